// Which addresses of the feature memories are taken in which groups of a plan.
//
// Example: a map of 6272 words from group 3 to 7 is in memory 0, at 0; another of 1568 words that
// is alive in group 5 goes behind it, or to another memory.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {

class Occupancy {
 public:
  /// `largest_first`: of the memories that have room.
  explicit Occupancy(const Config& config, bool largest_first = false);
  int64_t depth(int memory) const { return config_.fm_depth[static_cast<size_t>(memory)]; }

  /// Takes `words` of each bank from group `first` to `last`, of memory `wanted` if it has room,
  /// else of the smallest (or largest) that has.
  std::optional<Place> take(int64_t words, int first, int last, int wanted = -1);
  /// Takes a memory that is empty in group `g` and has at least so many words: rows walk through
  /// it.
  std::optional<Place> take_memory(int64_t words, int g);
  size_t mark() const { return used_.size(); }
  void back_to(size_t mark) { used_.resize(mark); }

 private:
  struct Used {
    int memory;
    int64_t addr, words;
    int first, last;
  };
  std::optional<int64_t> find(int m, int64_t words, int first, int last) const;

  const Config& config_;
  std::vector<int> order_;  ///< memories in the order of being tried
  std::vector<Used> used_;
};

}  // namespace tilewright::dpu
