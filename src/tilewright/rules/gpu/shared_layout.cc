// Padding of rows in shared memory. Shared memory has 32 banks of four bytes, and lanes of a warp
// that want different words of one bank wait for each other: rows of 32 floats read down a column
// are all in one bank, rows of 33 are in 32. The places that a warp reads at a time, and writes
// where the copy's axes are in another order, are listed from the loops; cost/gpu_banks.h counts
// conflicts for each padding, reads eight times as much as writes.
#include "tilewright/rules/gpu/shared_layout.h"

#include <algorithm>
#include <array>
#include <map>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/dtype.h"
#include "tilewright/base/integers.h"
#include "tilewright/cost/gpu_banks.h"
#include "tilewright/hw/gpu_threads.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/gpu/byte_dot.h"

namespace tilewright::rules {
namespace {

constexpr int64_t kWarpLanes = 32;
/// Reads of an element of a copy for each write of it, about.
constexpr int64_t kReads = 8;

/// Steps of `index` (of iterations of `block`) along loops, by name.
std::map<std::string, int64_t> steps_of(const Expr& index, const BlockFacts& block) {
  std::map<std::string, int64_t> steps;
  for (const auto& [term, scale] : arith::as_affine(index).terms) {
    const auto* iter = term.as<VarRef>();
    if (iter == nullptr || block.iter(iter->var) == nullptr) continue;
    for (const auto& [part, step] : arith::as_affine(block.iter(iter->var)->binding).terms)
      if (const auto* loop = part.as<VarRef>()) steps[loop->var.name()] += scale * step;
  }
  return steps;
}

class RowPlanner {
 public:
  RowPlanner(const Draft& draft, const StagedCopy& staged)
      : staged_(staged),
        blocks_(draft.blocks()),
        copy_(*find_block(blocks_, staged.copy)),
        nest_(draft.nest_inside(staged.copy, staged.round)) {
    for (const Expr& index : copy_.store->indices) extents_.push_back(extent_along(index));
    for (const Load& load : find_block(blocks_, staged.sum)->loads)
      if (load.buffer == copy_.store->buffer)
        for (const Expr& index : load.indices)
          steps_.push_back(steps_of(index, *find_block(blocks_, staged.sum)));
    steps_.resize(extents_.size());
    if (staged.words) extents_[*staged.words] = ceil_div(extents_[*staged.words], kWordTerms);
  }

  StagedRows run() const {
    StagedRows rows;
    const int64_t bits = bit_width(copy_.store->buffer.dtype()) * (staged_.words ? kWordTerms : 1);
    if (extents_.empty() || bits < 8) return rows;
    for (size_t axis = 0; axis < extents_.size(); ++axis)
      for (const std::string& loop : staged_.vectors)
        if (const auto it = steps_[axis].find(loop); it != steps_[axis].end() && it->second == 1)
          rows.along = axis;
    const int64_t bytes = bits / 8, unit = std::max<int64_t>(1, staged_.access_bytes / bytes);
    if (!rows.along) {
      // Elements one by one; rows that are whole accesses stay so, since copies may be wide.
      const int64_t row = extents_.back();
      if (!staged_.words)
        rows.pad = cost::best_row_pad({read(extents_.size() - 1, 1)}, row, bytes,
                                      row % unit == 0 ? unit : 1);
      return rows;
    }
    const bool turned = *rows.along + 1 != extents_.size();
    const size_t last = *rows.along;
    // Rows are whole accesses anyway: what follows is counted on top.
    const int64_t fill = (unit - extents_[last] % unit) % unit;
    std::vector<cost::RowAccess> accesses = {read(last, unit)};
    if (turned) accesses.push_back(write(last));
    rows.pad = fill + cost::best_row_pad(accesses, extents_[last] + fill, bytes, unit);
    return rows;
  }

 private:
  int64_t extent_along(const Expr& index) const {
    const auto* iter = index.as<VarRef>();
    const std::string loop = iter ? copy_.loop_of(iter->var) : std::string();
    const auto at = std::find(nest_.names.begin(), nest_.names.end(), loop);
    return at == nest_.names.end()
               ? 1
               : std::max<int64_t>(1, nest_.extents[static_cast<size_t>(at - nest_.names.begin())]);
  }

  std::array<int64_t, 3> block() const {
    std::array<int64_t, 3> size = {1, 1, 1};
    std::copy_n(staged_.counts.begin(), std::min<size_t>(3, staged_.counts.size()), size.begin());
    return size;
  }

  /// Row and column of an element.
  std::pair<int64_t, int64_t> place(const std::vector<int64_t>& at, size_t last) const {
    int64_t row = 0;
    for (size_t axis = 0; axis < at.size(); ++axis)
      if (axis != last) row = row * extents_[axis] + at[axis];
    return {row, at[last]};
  }

  /// What threads of a warp read at a time.
  cost::RowAccess read(size_t last, int64_t elements) const {
    cost::RowAccess access{{}, elements, kReads};
    for (int64_t lane = 0; lane < kWarpLanes; ++lane) {
      const std::array<int64_t, 3> thread = hw::thread_place(lane, block());
      std::vector<int64_t> at(extents_.size());
      for (size_t axis = 0; axis < at.size(); ++axis)
        for (size_t i = 0; i < std::min<size_t>(3, staged_.threads.size()); ++i)
          if (const auto it = steps_[axis].find(staged_.threads[i]); it != steps_[axis].end())
            at[axis] += it->second * thread[i];
      access.lanes.push_back(place(at, last));
    }
    return access;
  }

  /// What they write, one element each, where next ones go through the axes in order.
  cost::RowAccess write(size_t last) const {
    cost::RowAccess access;
    const std::array<int64_t, 3> size = block();
    for (int64_t lane = 0; lane < kWarpLanes; ++lane) {
      const std::array<int64_t, 3> thread = hw::thread_place(lane, size);
      int64_t rest = (thread[2] * size[1] + thread[1]) * size[0] + thread[0];
      std::vector<int64_t> at(extents_.size());
      for (size_t axis = at.size(); axis-- > 0; rest /= extents_[axis])
        at[axis] = rest % extents_[axis];
      access.lanes.push_back(place(at, last));
    }
    return access;
  }

  const StagedCopy& staged_;
  const std::vector<BlockFacts> blocks_;
  const BlockFacts& copy_;
  const LoopNest nest_;
  std::vector<int64_t> extents_;                       ///< of a round's part, by axis
  std::vector<std::map<std::string, int64_t>> steps_;  ///< of the sum's read, by axis
};

}  // namespace

StagedRows rows_of(const Draft& draft, const StagedCopy& staged) {
  return RowPlanner(draft, staged).run();
}

}  // namespace tilewright::rules
