// Where the operands of an instruction are: the address arithmetic that checks, footprints and
// simulators share.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tilewright/accel/common/ranges.h"
#include "tilewright/accel/spatial/isa.h"

namespace tilewright::spatial {

/// Lanes of each role in a step, or those of them that do something.
struct RoleLanes {
  int64_t i = 1, j = 1, k = 1;
  friend bool operator==(const RoleLanes&, const RoleLanes&) = default;
};
RoleLanes all_lanes(const Design& design);
/// Elements of the factors that a step reads: its first `row`, its second (0 where that one stays).
std::array<int64_t, 2> row_lanes(const Design& design, const RoleLanes& lanes);
/// How often a row of a factor is fetched: by each unit that has no link to its neighbours.
uint32_t row_fetches(const Design& design, int factor);
/// Cycles from the last step until its sums are in memory, less 2.
int fill_cycles(const Design& design);

/// 32-bit words of each part of the private memory.
int64_t sum_words(const Design& design);
/// Where the words of a part end that a COMPUTE has for sums: a block that stays, with the weights
/// of all its taps, takes the last words of each part. `sum_words` if no block stays.
int64_t sum_limit(const Design& design, const Compute& compute);
/// Weights that a block has for each of its lanes.
int64_t taps(const Compute& compute);

/// Places begin + sum of p * step over the dimensions, 0 <= p < count.
struct Dim {
  uint64_t count = 1;
  int64_t step = 0;
};
struct Box {
  int64_t begin = 0;
  std::vector<Dim> dims;

  bool empty() const;
  int64_t first() const;
  int64_t last() const;
};

/// Contiguous runs in DRAM, one at each place of a box.
struct Runs {
  Box begins;
  uint64_t bytes = 0;  ///< of each; 0: there are none

  uint64_t count() const;
};
/// With the bias.
Runs runs(const Load& load);
Runs runs(const Store& store);
/// Bytes that a LOAD writes to the scratchpad, zeros included.
uint64_t box_bytes(const Load& load);
/// Bytes in DRAM of one sum.
inline int64_t stored_bytes(const Store& store) { return store.wide ? 4 : 1; }

/// Where a LOAD writes: bytes of the scratchpad.
std::vector<Box> loaded(const Load& load);

/// A share of a COMPUTE's steps in which the same lanes work: `count` steps of each loop, from
/// `first` on.
struct Share {
  std::array<uint32_t, kLoops> first{}, count{};
  RoleLanes lanes;

  uint64_t steps() const;
};
/// All of them. requires: lanes name loops that are there.
std::vector<Share> shares(const Design& design, const Compute& compute);
/// Bytes of the scratchpad that a share reads of factor 0 or 1.
Box read_of(const Design& design, const Compute& compute, const Share& share, int factor);
/// Private memory as one row of words: part p of place s is at s * sum_parts + p.
Box sums_of(const Design& design, const Compute& compute, const Share& share);
std::vector<Box> sums_of(const Design& design, const Store& store);

}  // namespace tilewright::spatial
