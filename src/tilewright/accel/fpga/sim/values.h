// What the operators of a design compute, on bits. Internal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/accel/fpga/design.h"

namespace tilewright::fpga {

/// The value of an operator whose operands are `inputs`, of the types `types`. Floats as docs/ir.md
/// 4.3; a NaN that comes out is the quiet one without payload.
/// requires: no Const, Flag, Stream or Read.
uint64_t computed(const Node& node, const std::vector<uint64_t>& inputs,
                  const std::vector<Number>& types);

int64_t value_of(const Affine& affine, const std::vector<int64_t>& loops,
                 const std::vector<int64_t>& counters);
bool holds(const std::vector<Range>& ranges, const std::vector<int64_t>& loops,
           const std::vector<int64_t>& counters);

/// What memories hold, and arguments in memory outside of the chip.
class Values {
 public:
  Values(const Design& design, std::vector<std::string>& arguments);
  /// All iterations of a nest, in order; `slots` of each memory is the block that the process has.
  /// errors: Invalid: an address outside; a sum that is read before it is written.
  Status run(const Nest& nest, const NestTimes& times, const std::vector<int64_t>& loops,
             const std::vector<int>& slots);

 private:
  Result<size_t> index(const Nest& nest, const Place& place, const std::vector<int64_t>& loops,
                       const std::vector<int64_t>& counters, const std::vector<int>& slots) const;
  Status iterate(const Nest& nest, const std::vector<int>& late, int64_t iteration,
                 const std::vector<int64_t>& loops, const std::vector<int64_t>& counters,
                 const std::vector<int>& slots);
  Result<char*> group(const Nest& nest, const std::vector<int64_t>& loops,
                      const std::vector<int64_t>& counters);

  const Design& design_;
  std::vector<std::string>& arguments_;
  std::vector<std::vector<uint64_t>> memories_;
  std::vector<std::vector<int64_t>> written_;  ///< iteration of the nest at work; -1: none
  std::vector<uint64_t> nodes_;
};

}  // namespace tilewright::fpga
