// Which products matrix instructions compute, and how their factors are laid out.
//
// Iterations are told apart by the factors that move with them. In C[b, m, n] += A[b, m, k] * B[b,
// k, n] both move with b (a batch), one with m (rows) or n (columns), and k is not in the result
// (terms). A convolution is such a product, too: its pixels are rows, its channels and taps terms.
// Then it is found out in which order elements of a factor lie in memory: whether 16 bytes of them
// can be copied at once, or have to be gathered one by one.
#include <algorithm>

#include "tilewright/arith/affine.h"
#include "tilewright/arith/bounds.h"
#include "tilewright/base/dtype.h"
#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/gpu/mma.h"

namespace tilewright::rules {
namespace {

/// Sides of a product below this leave most of an instruction unused.
constexpr int64_t kLeastSide = 8, kLeastTerms = 8;
/// Rows or columns of a group, and its terms, at least.
constexpr int64_t kLeastGroup = 16;
/// Elements that are copied together, at least, to be worth keeping their order.
constexpr int64_t kFewest = 4;

/// Terms of a round of groups of warps.
constexpr int64_t kGroupTerms = 64;

/// `f32(load)` of a 16-bit float, `i32(load)` of a byte, a load of f32.
const Load* factor_of(const Expr& e) {
  if (const auto* load = e.as<Load>()) return e.dtype() == DType::F32 ? load : nullptr;
  const auto* wide = e.as<Cast>();
  const auto* load = wide != nullptr && !wide->bits ? wide->a.as<Load>() : nullptr;
  if (load == nullptr) return nullptr;
  const bool byte = bit_width(load->buffer.dtype()) == 8;
  return e.dtype() == (byte ? DType::I32 : DType::F32) ? load : nullptr;
}

class Chooser {
 public:
  Chooser(const BlockFacts& block, const hw::GpuTarget& target) : block_(block), target_(target) {}

  Answer<GpuMma> run() {
    const bool adds = block_.store != nullptr && block_.store->combine == Combine::Add;
    const auto* product = adds ? block_.store->value.as<Binary>() : nullptr;
    if (product == nullptr || product->op != BinaryOp::Mul)
      return decline("`{}` is no sum of products", block_.name);
    const Load *a = factor_of(product->a), *b = factor_of(product->b);
    if (a == nullptr || b == nullptr)
      return decline("a factor of `{}` is computed, or of a type that no instruction multiplies",
                     block_.name);
    if (a->buffer == b->buffer || bit_width(a->buffer.dtype()) != bit_width(b->buffer.dtype()))
      return decline("the factors of `{}` are one value, or differ in size", block_.name);
    if (a->buffer.dtype() == DType::F32 && !target_.tf32)
      return decline("the factors are f32, which may not be rounded to TF32 (--tf32)");
    out_.bytes = bit_width(a->buffer.dtype()) / 8;
    out_.block_k = 2 * out_.terms();
    Load first = *a, second = *b;
    if (!find_axes(first, second))
      return decline("an axis of `{}` is not constant, or no plain part of its result",
                     block_.name);
    if (Answer<Done> sides = find_sides(); !sides) return decline("{}", sides.error());
    if (swapped_) std::swap(first, second);
    if (!find_types(first, second))
      return decline("the target has no matrix instruction for {} and {}", out_.a.type,
                     out_.b.type);
    find_order(first, second);
    find_split();
    return std::move(out_);
  }

 private:
  /// False: no instruction multiplies them.
  bool find_types(const Load& a, const Load& b) {
    const auto type = [](const Load& load) {
      const DType dtype = load.buffer.dtype();
      return dtype == DType::F32 ? kTf32 : std::string(name(dtype));
    };
    out_.a.type = type(a), out_.b.type = type(b);
    out_.types = hw::factor_types(out_.a.type, out_.b.type);
    return hw::multiplies_matrices(target_, out_.types);
  }

  /// An iteration, or a part of one that counts groups.
  struct Axis {
    Var var;
    std::string name;
    int64_t extent = 1;
    bool in_a = false, in_b = false;
    std::optional<size_t> place;  ///< of the result: an axis; absent: terms
  };

  /// An iteration that tells groups apart and counts what is in one becomes two.
  bool find_axes(Load& a, Load& b) {
    const auto& to = block_.store->indices;
    for (const Iter& iter : block_.block->iters) {
      Axis axis{iter.var, iter.var.name(), block_.extent_of(iter.var), false, false, {}};
      if (axis.extent < 1) return false;
      for (size_t d = 0; d < to.size(); ++d)
        if (const auto* var = to[d].as<VarRef>(); var != nullptr && var->var == iter.var)
          axis.place = d;
      if (axis.place.has_value() != (iter.kind == IterKind::Space) && axis.extent > 1) return false;
      const int64_t group = group_of(a, b, axis);
      if (group < 2) {
        bounds_.bind(iter.var, int_imm(axis.extent));
        axes_.push_back(axis);
        continue;
      }
      if (!out_.grouped.empty() || !axis.place || group < kLeastGroup) return false;
      out_.grouped = axis.name, out_.per_group = group;
      Axis outer = axis, inner = axis;
      outer.name += ".o", inner.name += ".i";
      outer.var = Var(outer.name), inner.var = Var(inner.name);
      outer.extent = axis.extent / group, inner.extent = group;
      bounds_.bind(outer.var, int_imm(outer.extent)), bounds_.bind(inner.var, int_imm(group));
      const VarMap parts = {{axis.var, ref(outer.var) * group + ref(inner.var)}};
      for (Load* load : {&a, &b})
        for (Expr& index : load->indices) index = substitute(index, parts);
      axes_.insert(axes_.end(), {outer, inner});
    }
    for (Load* load : {&a, &b})
      for (Expr& index : load->indices) index = arith::simplify(index, bounds_);
    for (Axis& axis : axes_) axis.in_a = mentions(a, axis.var), axis.in_b = mentions(b, axis.var);
    return std::all_of(to.begin(), to.end(), [](const Expr& e) {
      return e.as<VarRef>() != nullptr || as_int(e).has_value();
    });
  }

  /// The size of groups that a factor finds by division; 0 where there is none.
  static int64_t group_of(const Load& a, const Load& b, const Axis& axis) {
    int64_t group = 0;
    for (const Load* load : {&a, &b})
      for (const Expr& index : load->indices)
        walk(index, [&](const Expr& e) {
          const auto* div = e.as<Binary>();
          const auto* var = div && div->op == BinaryOp::Div ? div->a.as<VarRef>() : nullptr;
          if (var != nullptr && var->var == axis.var) group = as_int(div->b).value_or(0);
        });
    return group > 0 && axis.extent % group == 0 ? group : 0;
  }

  /// What only one factor moves with makes rows and columns, what both do tells products apart;
  /// columns have the last axis of the result.
  Answer<Done> find_sides() {
    for (const Axis& axis : axes_) {
      if (axis.extent == 1 && !axis.in_a && !axis.in_b) continue;
      if (!axis.place) {
        if (axis.extent > 1 && (!axis.in_a || !axis.in_b))
          return decline("one factor does not move with the terms along `{}`", axis.name);
        terms_.push_back(axis);
      } else if (axis.in_a && axis.in_b) {
        out_.batch.push_back(axis.name);
        out_.extent_batch *= axis.extent;
      } else {
        if (!axis.in_a && !axis.in_b)
          return decline("no factor moves with the results along `{}`", axis.name);
        (axis.in_a ? rows_ : columns_).push_back(axis);
      }
    }
    if (rows_.empty() || columns_.empty() || terms_.empty())
      return decline("no element of a factor is used for several results");
    const auto by_place = [](const Axis& x, const Axis& y) { return *x.place < *y.place; };
    std::stable_sort(rows_.begin(), rows_.end(), by_place);
    std::stable_sort(columns_.begin(), columns_.end(), by_place);
    swapped_ = last_place(rows_) > last_place(columns_);
    if (swapped_) std::swap(rows_, columns_);
    out_.extent_m = extent(rows_), out_.extent_n = extent(columns_), out_.extent_k = extent(terms_);
    const int64_t least = out_.grouped.empty() ? kLeastTerms : kLeastGroup;
    if (out_.extent_m < kLeastSide || out_.extent_n < kLeastSide || out_.extent_k < least)
      return decline("{} x {} results of {} terms fill little of {} x {} and {}", out_.extent_m,
                     out_.extent_n, out_.extent_k, kLeastSide, kLeastSide, least);
    return Done{};
  }

  static int64_t last_place(const std::vector<Axis>& side) {
    int64_t last = -1;
    for (const Axis& axis : side)
      if (axis.extent > 1) last = std::max(last, static_cast<int64_t>(*axis.place));
    return last;
  }

  static int64_t extent(const std::vector<Axis>& side) {
    int64_t product = 1;
    for (const Axis& axis : side) product *= axis.extent;
    return product;
  }

  static std::vector<std::string> names(const std::vector<Axis>& side) {
    std::vector<std::string> out;
    for (const Axis& axis : side) out.push_back(axis.name);
    return out;
  }

  /// How both factors are stored and terms are counted.
  void find_order(const Load& a, const Load& b) {
    const bool a_windows = sort_by_windows(a, b), b_windows = !a_windows && sort_by_windows(b, a);
    const bool windows = a_windows || b_windows, by_a = out_.extent_m >= out_.extent_n;
    for (const Load* load : {by_a ? &a : &b, by_a ? &b : &a})
      if (windows || sort_terms(*load)) break;
    out_.m = names(rows_), out_.n = names(columns_), out_.k = names(terms_);
    const bool a_terms = along(a, terms_) || b_windows, b_terms = along(b, terms_) || a_windows;
    // All but 16-bit factors are loaded by neighbouring terms only; what is gathered one by one is
    // so too, since then a thread writes 16 bytes of terms where its neighbours write theirs.
    out_.b_by_rows = out_.bytes != 2 || b_terms ||
                     (run(b, columns_) % kFewest != 0 && columns_.size() > 1) ||
                     !along(b, columns_);
    out_.a.buffer = a.buffer.name(), out_.b.buffer = b.buffer.name();
    out_.a.as_is = is_matrix(a, rows_, terms_), out_.a.in_order = a_terms;
    out_.b.as_is =
        is_matrix(b, out_.b_by_rows ? columns_ : terms_, out_.b_by_rows ? terms_ : columns_);
    out_.b.in_order = out_.b_by_rows == b_terms;
    out_.a.whole_windows = a_windows, out_.b.whole_windows = b_windows;
    out_.a.packed = b_windows, out_.b.packed = a_windows;
  }

  /// The longest of the terms is what several blocks can share.
  void find_split() {
    for (const Axis& axis : terms_)
      if (axis.extent > out_.split_extent) out_.split = axis.name, out_.split_extent = axis.extent;
  }

  /// Where `load` moves through windows of whole groups of channels that lie apart: terms of a
  /// place in the window one after the other, if `other` can be laid out so.
  bool sort_by_windows(const Load& load, const Load& other) {
    const auto plain = [&](const Load& l, const Axis& axis) {
      return std::any_of(l.indices.begin(), l.indices.end(),
                         [&](const Expr& e) { return counts(e, axis, axis.extent); });
    };
    if (along(load, terms_)) return false;
    std::vector<Axis> channels, places;
    for (const Axis& axis : terms_) {
      if (!plain(other, axis)) return false;
      (plain(load, axis) ? channels : places).push_back(axis);
    }
    if (channels.size() != 1 || extent(places) == 1 || channels[0].extent % out_.per_row() != 0)
      return false;
    places.push_back(channels[0]);
    terms_ = std::move(places);
    return true;
  }

  /// Terms in the order of the axes of `load`, if they alone move its last one.
  bool sort_terms(const Load& load) {
    const auto place = [&](const Axis& axis) {
      size_t d = 0;
      while (d < load.indices.size() && !uses(load.indices[d], axis.var)) ++d;
      return d;
    };
    std::vector<Axis> sorted = terms_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const Axis& x, const Axis& y) { return place(x) < place(y); });
    if (!along(load, sorted)) return false;
    terms_ = std::move(sorted);
    return true;
  }

  /// Whether the last iteration of a side, and no other, moves to the next element of `load`.
  bool along(const Load& load, const std::vector<Axis>& side) const {
    size_t d = load.indices.size();
    while (d > 0 && is_const_int(load.buffer.shape()[d - 1], 1)) --d;
    const auto last =
        std::find_if(side.rbegin(), side.rend(), [](const Axis& axis) { return axis.extent > 1; });
    if (d == 0 || last == side.rend()) return false;
    return counts(load.indices[d - 1], *last, per_copy(*last));
  }
  /// Elements that are copied together: all of short iterations.
  int64_t per_copy(const Axis& axis) const { return std::min(axis.extent, out_.per_row()); }

  /// Whether `index` counts the iteration, and what others move it by is a multiple of `step`.
  bool counts(const Expr& index, const Axis& wanted, int64_t step) const {
    const arith::Affine sum = arith::as_affine(index);
    return sum.coefficient(wanted.var) == 1 &&
           std::none_of(axes_.begin(), axes_.end(), [&](const Axis& axis) {
             return !(axis.var == wanted.var) && axis.extent > 1 && uses(index, axis.var) &&
                    (axis.place.has_value() && axis.in_a && axis.in_b
                         ? sum.coefficient(axis.var) % step != 0
                         : true);
           });
  }

  /// Elements of `side` that lie one behind the other.
  static int64_t run(const Load& load, const std::vector<Axis>& side) {
    int64_t elements = 1;
    size_t d = load.indices.size();
    for (size_t i = side.size(); i-- > 0 && d > 0;) {
      const auto* var = load.indices[--d].as<VarRef>();
      if (var == nullptr || !(var->var == side[i].var)) break;
      elements *= side[i].extent;
      if (as_int(load.buffer.shape()[d]) != side[i].extent) break;
    }
    return elements;
  }

  /// Whether the last axes of `load` are all of one iteration each of these sides, and the others
  /// plain.
  static bool is_matrix(const Load& load, const std::vector<Axis>& before,
                        const std::vector<Axis>& last) {
    const size_t rank = load.indices.size();
    if (before.size() != 1 || last.size() != 1 || rank < 2) return false;
    const auto is = [&](size_t axis, const Axis& wanted) {
      const auto* var = load.indices[axis].as<VarRef>();
      return var != nullptr && var->var == wanted.var &&
             as_int(load.buffer.shape()[axis]) == wanted.extent;
    };
    return is(rank - 1, last[0]) && is(rank - 2, before[0]) &&
           std::all_of(load.indices.begin(), load.indices.end() - 2,
                       [](const Expr& e) { return e.as<VarRef>() != nullptr; });
  }

  const BlockFacts& block_;
  const hw::GpuTarget& target_;
  GpuMma out_;
  arith::Bounds bounds_;
  std::vector<Axis> axes_, rows_, columns_, terms_;
  bool swapped_ = false;  ///< the second factor has the rows
};

/// Whether both factors are matrices in memory whose rows begin on multiples of 16 bytes, as the
/// copy engine wants them. Groups of warps were measured with such factors alone.
bool fetched_as_stored(const GpuMma& mma) {
  const int64_t row_of_b = mma.b_by_rows ? mma.extent_k : mma.extent_n;
  return mma.a.as_is && mma.a.in_order && mma.b.as_is && mma.b.in_order &&
         mma.extent_k % mma.per_row() == 0 && row_of_b % mma.per_row() == 0;
}

}  // namespace

std::optional<GpuMma> in_groups(const GpuMma& mma, const hw::GpuTarget& target) {
  const hw::Intrinsic* in = hw::find_gpu_intrinsic("cuda.wgmma64_" + mma.types);
  if (in == nullptr || !hw::has_intrinsic(target, *in)) return std::nullopt;
  GpuMma out = mma;
  const hw::Intrinsic* panels = hw::find_gpu_intrinsic("cuda.wgmma64_" + mma.types + "_panels");
  out.groups = true;
  out.bulk = panels != nullptr && hw::has_intrinsic(target, *panels);
  out.block_k = kGroupTerms;
  return choose_mma_tiles(out, target) ? std::optional(out) : std::nullopt;
}

Answer<GpuMma> match_gpu_mma(const BlockFacts& block, const hw::GpuTarget& target) {
  return Chooser(block, target).run();
}

std::optional<GpuMma> find_gpu_mma(const BlockFacts& block, const hw::GpuTarget& target) {
  Answer<GpuMma> mma = match_gpu_mma(block, target);
  return mma ? std::optional(*std::move(mma)) : std::nullopt;
}

std::optional<GpuMma> in_best_tiles(const GpuMma& mma, const hw::GpuTarget& target) {
  std::optional<GpuMma> groups;
  if (fetched_as_stored(mma)) groups = in_groups(mma, target);
  GpuMma warps = mma;
  if (!choose_mma_tiles(warps, target)) return groups;
  return groups && *mma_time(*groups, target) < *mma_time(warps, target) ? groups : warps;
}

std::optional<GpuMma> choose_gpu_mma(const BlockFacts& block, const hw::GpuTarget& target) {
  const auto mma = find_gpu_mma(block, target);
  return mma ? in_best_tiles(*mma, target) : std::nullopt;
}

}  // namespace tilewright::rules
