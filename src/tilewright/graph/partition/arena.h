// Packing pieces of memory that live at different times into one arena, as tightly as possible.
#pragma once

#include <cstdint>
#include <vector>

namespace tilewright::graph {

/// A piece of memory, alive from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

struct Arena {
  std::vector<int64_t> offset;  ///< of each piece, a multiple of 64
  int64_t bytes = 0;
  int64_t lower_bound = 0;  ///< most bytes alive at once
  bool optimal = false;     ///< proven: no arrangement needs less
};

/// Where pieces are counted in lines of 64 bytes: greedy orders first; where they miss the lower
/// bound, an exact search of at most about `nodes` placements. Deterministic.
/// requires: bytes > 0, first <= last.
Arena pack_arena(const std::vector<Lifetime>& pieces, int64_t nodes = 200000);

}  // namespace tilewright::graph
