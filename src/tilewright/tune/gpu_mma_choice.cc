// Which products matrix instructions compute, and in tiles of which size.
#include <algorithm>

#include "tilewright/base/dtype.h"
#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/tune/gpu_mma.h"

namespace tilewright::tune {
namespace {

/// Sides of a product below this leave most of an instruction unused.
constexpr int64_t kLeastSide = 8, kLeastTerms = 8;

/// Rounds in shared memory, where the target has as much.
constexpr int64_t kDepth = 4;

/// Tiles below each other that come before the next ones beside them, at most.
constexpr int64_t kRaster = 8;

/// A tile of a block; the first that leaves no multiprocessor without a block is taken, else the
/// last. Large ones read less of both factors per multiplication.
struct Shape {
  int64_t block_m, block_n, warp_m, warp_n;
};
constexpr Shape kShapes[] = {
    {128, 256, 64, 64}, {128, 128, 64, 64}, {128, 64, 64, 32}, {64, 64, 32, 32}, {32, 32, 16, 16},
};

/// The same for groups of warps, with terms of a round.
constexpr Shape kGroupShapes[] = {
    {128, 256, 64, 256}, {128, 128, 64, 128}, {64, 128, 64, 128}, {64, 64, 64, 64}};
constexpr int64_t kGroupTerms = 64;

/// `f32(load)` of a 16-bit float, `i32(load)` of a byte.
const Load* factor_of(const Expr& e) {
  const auto* wide = e.as<Cast>();
  const auto* load = wide != nullptr && !wide->bits ? wide->a.as<Load>() : nullptr;
  if (load == nullptr) return nullptr;
  const bool byte = load->buffer.dtype() == DType::I8;
  return e.dtype() == (byte ? DType::I32 : DType::F32) ? load : nullptr;
}

/// The iterations of an access, if its indices are just those.
std::optional<std::vector<Var>> plain_axes(const Load& load) {
  std::vector<Var> vars;
  for (const Expr& index : load.indices) {
    const auto* var = index.as<VarRef>();
    if (var == nullptr) return std::nullopt;
    vars.push_back(var->var);
  }
  return vars;
}

/// Takes the first shape that fits; the rest of shared memory is for rounds ahead.
template <size_t kCount>
bool choose_shape(GpuMma& mma, const Shape (&shapes)[kCount], const hw::GpuTarget& target) {
  bool found = false;
  for (const Shape& shape : shapes) {
    const auto blocks = [](int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; };
    const bool fits = shape.block_m <= 2 * mma.extent_m && shape.block_n <= 2 * mma.extent_n;
    if (!fits && &shape != std::end(shapes) - 1) continue;
    mma.block_m = shape.block_m, mma.block_n = shape.block_n;
    mma.warp_m = shape.warp_m, mma.warp_n = shape.warp_n;
    found = fits;
    if (blocks(mma.extent_m, shape.block_m) * blocks(mma.extent_n, shape.block_n) *
            mma.extent_batch >=
        target.units)
      break;
  }
  const int64_t tiles = (mma.extent_m + mma.block_m - 1) / mma.block_m;
  mma.raster = mma.extent_n > mma.block_n ? kRaster : 1;
  while (tiles % mma.raster != 0) mma.raster /= 2;
  mma.depth = std::min(kDepth, mma.rounds());
  const int64_t row = mma.block_k * mma.bytes + (mma.groups ? 0 : kMmaRowBytes);
  const int64_t round = (mma.block_m + mma.block_n) * row;
  while (mma.depth > 1 && mma.depth * round > target.shared_bytes) --mma.depth;
  return found;
}

class Chooser {
 public:
  Chooser(const BlockFacts& block, const hw::GpuTarget& target) : block_(block), target_(target) {}

  std::optional<GpuMma> run() {
    if (block_.store == nullptr || block_.store->combine != Combine::Add) return std::nullopt;
    const auto* product = block_.store->value.as<Binary>();
    if (product == nullptr || product->op != BinaryOp::Mul) return std::nullopt;
    const Load *a = factor_of(product->a), *b = factor_of(product->b);
    if (a == nullptr || b == nullptr || a->buffer == b->buffer ||
        a->buffer.dtype() != b->buffer.dtype())
      return std::nullopt;
    out_.type = std::string(name(a->buffer.dtype()));
    out_.bytes = bit_width(a->buffer.dtype()) / 8;
    out_.block_k = 2 * out_.terms();
    const hw::Intrinsic* mma = hw::find_gpu_intrinsic("cuda.mma_" + out_.type + "_t");
    if (mma == nullptr || !hw::has_intrinsic(target_, *mma)) return std::nullopt;
    if (!find_sides(*a, *b) || !find_order(*a, *b)) return std::nullopt;
    choose_shape(out_, kShapes, target_);
    return out_;
  }

 private:
  /// The last axes of the result are its rows, which the first factor moves with, and its columns,
  /// which the second does: lanes find their elements there. Any other axis tells products apart.
  bool find_sides(const Load& a, const Load& b) {
    const auto& to = block_.store->indices;
    const auto* row = to.size() < 2 ? nullptr : to[to.size() - 2].as<VarRef>();
    const auto* column = to.size() < 2 ? nullptr : to.back().as<VarRef>();
    if (row == nullptr || column == nullptr) return false;
    m_ = row->var, n_ = column->var;
    if (!mentions(a, m_) || mentions(b, m_) || mentions(a, n_) || !mentions(b, n_)) return false;
    for (const Iter& iter : block_.block->iters) {
      const int64_t extent = block_.extent_of(iter.var);
      const std::string& name = iter.var.name();
      if (extent < 1) return false;
      if (iter.kind == IterKind::Reduce) {
        if (!out_.k.empty() || !mentions(a, iter.var) || !mentions(b, iter.var)) return false;
        out_.k = name, out_.extent_k = extent, k_ = iter.var;
      } else if (iter.var == m_) {
        out_.m = name, out_.extent_m = extent;
      } else if (iter.var == n_) {
        out_.n = name, out_.extent_n = extent;
      } else {
        out_.batch.push_back(name);
        out_.extent_batch *= extent;
      }
    }
    return !out_.k.empty() && out_.extent_m >= kLeastSide && out_.extent_n >= kLeastSide &&
           out_.extent_k >= kLeastTerms;
  }

  /// How both factors are stored; what is stored in another way is rearranged.
  bool find_order(const Load& a, const Load& b) {
    const auto axes_a = plain_axes(a), axes_b = plain_axes(b);
    if (!axes_a || !axes_b || axes_a->size() < 2 || axes_b->size() < 2) return false;
    const auto ends = [](const std::vector<Var>& axes, const Var& before, const Var& last) {
      return axes.back() == last && axes[axes.size() - 2] == before;
    };
    out_.a = {a.buffer.name(), ends(*axes_a, m_, k_)};
    // Bytes are loaded by neighbouring terms only.
    const bool by_rows = ends(*axes_b, n_, k_), bytes = out_.bytes == 1;
    out_.b_by_rows = by_rows || bytes;
    out_.b = {b.buffer.name(), by_rows || (ends(*axes_b, k_, n_) && !bytes)};
    return true;
  }

  const BlockFacts& block_;
  const hw::GpuTarget& target_;
  GpuMma out_;
  Var m_, n_, k_;
};

}  // namespace

std::optional<GpuMma> in_groups(const GpuMma& mma, const hw::GpuTarget& target) {
  const hw::Intrinsic* in = hw::find_gpu_intrinsic("cuda.wgmma64_" + mma.type);
  if (in == nullptr || !hw::has_intrinsic(target, *in)) return std::nullopt;
  GpuMma out = mma;
  out.groups = true;
  out.block_k = kGroupTerms;
  return choose_shape(out, kGroupShapes, target) ? std::optional(out) : std::nullopt;
}

std::optional<GpuMma> choose_gpu_mma(const BlockFacts& block, const hw::GpuTarget& target) {
  return Chooser(block, target).run();
}

}  // namespace tilewright::tune
