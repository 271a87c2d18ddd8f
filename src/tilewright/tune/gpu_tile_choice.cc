// The tile of a sum of products on a GPU: threads along both of its sides, steps between barriers.
#include <algorithm>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/dtype.h"
#include "tilewright/ir/walk.h"
#include "tilewright/tune/gpu_rule.h"

namespace tilewright::tune {
namespace {

/// Threads and elements per thread along each of the two sides of a product's tile.
constexpr int64_t kSideThreads = 16, kSideEach = 4;
/// Iterations of the reduction between two barriers, where shared memory allows.
constexpr int64_t kSteps = 16;
int64_t up_to(int64_t wanted, int64_t extent) {
  int64_t size = 1;
  while (size < wanted && size < extent) size *= 2;
  return size;
}

/// Gives the axes of one side of a product its threads and elements, innermost axis first.
void fill_side(std::vector<GpuAxis*> side) {
  int64_t threads = kSideThreads, each = kSideEach;
  for (auto axis = side.rbegin(); axis != side.rend(); ++axis) {
    (*axis)->threads = up_to(threads, (*axis)->extent);
    threads /= (*axis)->threads;
    (*axis)->each = up_to(each, ((*axis)->extent + (*axis)->threads - 1) / (*axis)->threads);
    each /= (*axis)->each;
  }
}

/// Elements of `load` that a round of the tile reads, seen as a box; its axes' strides count.
int64_t staged_elements(const Load& load, const BlockFacts& block, const GpuTile& tile) {
  int64_t elements = 1;
  for (const Expr& index : load.indices) {
    int64_t extent = 1;
    for (const Iter& iter : block.block->iters) {
      const int64_t step = arith::as_affine(index).coefficient(iter.var);
      if (step == 0) continue;
      const std::string loop = block.loop_of(iter.var);
      for (const GpuAxis& axis : tile.axes)
        if (axis.loop == loop || axis.loop == loop + ".i")
          extent += std::abs(step) * (axis.tile() - 1);
      for (size_t i = 0; i < tile.reduces.size(); ++i)
        if (tile.reduces[i] == loop) extent += std::abs(step) * (tile.steps[i] - 1);
    }
    elements *= extent;
  }
  return elements;
}

/// c if `load` depends on `var` only through var / c: that many iterations share what they read.
int64_t group_size(const Load& load, const Var& var) {
  int64_t size = 0;
  for (const Expr& index : load.indices) {
    const arith::Affine sum = arith::as_affine(index);
    if (sum.coefficient(var) != 0) return 0;
    for (const auto& [term, coefficient] : sum.terms) {
      if (!uses(term, var)) continue;
      const auto* quotient = term.as<Binary>();
      const bool plain = quotient && quotient->op == BinaryOp::Div && quotient->a.as<VarRef>();
      const int64_t by = plain ? as_int(quotient->b).value_or(0) : 0;
      if (by < 2 || (size != 0 && size != by)) return 0;
      size = by;
    }
  }
  return size;
}

class TileChooser {
 public:
  TileChooser(const BlockFacts& block, const Product& product, const hw::GpuTarget& target)
      : block_(block), product_(product), target_(target) {}

  std::optional<GpuTile> run() {
    return find_axes() && share_out_threads() && choose_steps() ? std::optional(tile_)
                                                                : std::nullopt;
  }

 private:
  /// The loops of the result and of the terms; which factors an axis of the result moves.
  bool find_axes() {
    for (const Iter& iter : block_.block->iters) {
      const std::string loop = block_.loop_of(iter.var);
      const int64_t extent = block_.extent_of(iter.var);
      if (loop.empty() || extent < 1) return false;
      if (iter.kind == IterKind::Reduce) {
        tile_.reduces.push_back(loop);
        tile_.extents.push_back(extent);
        continue;
      }
      const int64_t group_a = group_size(product_.a, iter.var);
      const int64_t group_b = group_size(product_.b, iter.var), group = std::max(group_a, group_b);
      const bool grouped = group > 1 && extent % group == 0 && tile_.group == 0;
      if (grouped) tile_.groups = loop, tile_.group = group;
      tile_.axes.push_back({grouped ? loop + ".i" : loop, grouped ? group : extent});
      in_a_.push_back(mentions(product_.a, iter.var) && !(grouped && group_a > 0));
      in_b_.push_back(mentions(product_.b, iter.var) && !(grouped && group_b > 0));
    }
    return true;
  }

  /// False where no element of a factor would be used twice, or axes of the grid do not suffice.
  bool share_out_threads() {
    std::vector<GpuAxis*> side_a, side_b;
    for (size_t i = 0; i < tile_.axes.size(); ++i) {
      if (in_a_[i] && !in_b_[i]) side_a.push_back(&tile_.axes[i]);
      if (in_b_[i] && !in_a_[i]) side_b.push_back(&tile_.axes[i]);
    }
    for (const auto* side : {&side_a, &side_b}) {
      fill_side(*side);
      int64_t size = 1;
      for (const GpuAxis* axis : *side) size *= axis->tile();
      if (size < 2) return false;
    }
    while (!leaves_blocks()) {
      const auto widest =
          std::max_element(tile_.axes.begin(), tile_.axes.end(),
                           [](const GpuAxis& x, const GpuAxis& y) { return x.each < y.each; });
      if (widest->each < 2) return false;
      widest->each /= 2;
    }
    return std::count_if(tile_.axes.begin(), tile_.axes.end(),
                         [](const GpuAxis& axis) { return axis.threads > 1; }) <= 3;
  }

  /// Whether something is left for blocks to share out: a small result has smaller tiles.
  bool leaves_blocks() const {
    return tile_.group > 0 ||
           std::any_of(tile_.axes.begin(), tile_.axes.end(), [](const GpuAxis& axis) {
             return axis.tile() < axis.extent || axis.tile() == 1;
           });
  }

  /// The outermost reduction loop (channels) has as many steps as shared memory holds.
  bool choose_steps() {
    tile_.steps = tile_.extents;
    for (size_t i = 0; i < tile_.steps.size(); ++i) {
      int64_t inner = 1;
      for (size_t j = i + 1; j < tile_.steps.size(); ++j) inner *= tile_.steps[j];
      tile_.steps[i] = std::min(tile_.extents[i], std::max<int64_t>(1, kSteps / inner));
      while (tile_.steps[i] > 1 && !fits()) tile_.steps[i] /= 2;
      if (fits()) return true;
    }
    return false;
  }

  bool fits() const {
    const int64_t elements =
        staged_elements(product_.a, block_, tile_) + staged_elements(product_.b, block_, tile_);
    return storage_bytes(product_.a.buffer.dtype(), elements) <= target_.shared_bytes;
  }

  const BlockFacts& block_;
  const Product& product_;
  const hw::GpuTarget& target_;
  GpuTile tile_;
  std::vector<bool> in_a_, in_b_;  ///< by axis
};

}  // namespace

std::optional<GpuTile> choose_gpu_tile(const BlockFacts& block, const hw::GpuTarget& target) {
  const auto product = product_of(block);
  return product ? TileChooser(block, *product, target).run() : std::nullopt;
}

}  // namespace tilewright::tune
