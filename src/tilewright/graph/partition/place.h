// Where each node of a quantised graph runs, with reasons.
#pragma once

#include <string>
#include <vector>

#include "tilewright/graph/layout/tiles.h"

namespace tilewright::graph {

/// What placement asks of a matrix accelerator with 8-bit operands and 32-bit sums.
struct PlaceTarget {
  std::string name;  ///< as reasons call it
  TileShape tile;
  bool has_multiply = false;  ///< element-wise products of sums
};

enum class Where {
  Accelerator,
  Cpu,
  Nothing,  ///< a view: nothing runs
};

struct Placement {
  int node = -1;
  std::string name, op;
  Where where = Where::Cpu;
  std::string why;                          ///< Cpu: the reason in words, with numbers
  ErrorKind kind = ErrorKind::Unsupported;  ///< Cpu: of the reason; Capacity: it does not fit
  bool meant = false;                       ///< Cpu: the hardware's description wants it there
};

/// One entry per node of a tiled graph, in order; graphs without tiles stay on the CPU.
std::vector<Placement> place(const Graph& graph, const PlaceTarget& target);

/// Lines for people: how many nodes run where, then each one that is left on the CPU with its
/// reason.
std::vector<std::string> explain(const std::vector<Placement>& placements,
                                 const PlaceTarget& target);

}  // namespace tilewright::graph
