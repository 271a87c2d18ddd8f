// The decisions behind a program, as a value: what the compiler searches, what tuning searches
// further, and what tuning records keep.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tilewright/base/result.h"
#include "tilewright/codegen/dpu/network.h"

namespace tilewright::dpu {

/// How layers become nodes: as they are; with inputs that several layers read in memory once; with
/// rows put so that strided convolutions never wait for a bank.
enum class Form { Plain, InputsOnce, StridesReordered };

/// Which node is next, of those whose inputs are there.
enum class Schedule {
  Given,         ///< the first of the network
  BreadthFirst,  ///< the one fewest layers behind the inputs: branches side by side
  DepthFirst,    ///< the one whose inputs were made last: branches one after the other
  LeastLive,     ///< the one that leaves the least memory in use
  LongestWay,    ///< the one with most computation between it and the results
};

/// Which memory a feature map gets that fits several, and which map is placed first.
enum class Homes { Smallest, Largest, Earliest };

/// Nodes and roots count as in the network lowered in the form. What is not named is decided by
/// rules.
struct Way {
  Form form = Form::Plain;
  Schedule schedule = Schedule::Given;
  std::map<int, int> later;      ///< by node: how many others go before it once it could be next
  bool fuse = true;              ///< pools and additions join the convolution before them
  bool behind_pools = false;     ///< convolutions join the pool before them
  std::set<int> plain_strides;   ///< layers that stay as they are where others are reordered
  std::set<int> apart;           ///< nodes that do not, all the same
  int pieces = 1;                ///< passes that layers of few tiles are split into, where it fits
  std::map<int, int> pieces_of;  ///< by first node of a group: passes, where it fits
  std::map<int, int> rows;       ///< by first node of a group: rows of a tile
  Homes homes = Homes::Smallest;
  std::map<int, int> home;  ///< by root: the memory to try first, or kInDdr
  friend bool operator==(const Way&, const Way&) = default;
};
inline constexpr int kInDdr = 3;

/// The names of values of a decision, by number.
inline constexpr const char* kForms[] = {"plain", "inputs-once", "strides-reordered"};
inline constexpr const char* kSchedules[] = {"given", "breadth-first", "depth-first", "least-live",
                                             "longest-way"};
inline constexpr const char* kHomes[] = {"smallest", "largest", "earliest"};

/// `form=plain schedule=breadth-first fuse=1 later=12:2,15:1 apart=7 pieces=4 ...`: what differs
/// from Way() alone, `default` for nothing. The inverse of parse_way.
std::string to_string(const Way& way);
/// errors: Parse.
Result<Way> parse_way(std::string_view text);

/// For people: `breadth first, fused, low layers in 4 passes, strided layers reordered`.
std::string describe(const Way& way, const Network& network, bool can_fuse);

/// What of a network decides how good a way is: a line for each value and layer, without names,
/// weights and scales.
std::string shape_text(const Network& network);

}  // namespace tilewright::dpu
