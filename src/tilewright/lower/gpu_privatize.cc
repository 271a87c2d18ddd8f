// The pass `privatize`: a thread's own memory gets one axis per thread loop, which emission drops.
//
//   alloc C: f32[16]  for y in 4 bind(thread.y), i in 4 { C[4*y + i] = .. }
//   =>
//   alloc C: f32[4, 4]  for y in 4 bind(thread.y), i in 4 { C[y, i] = .. }
//
// In the IR the buffer is one for all threads; `C[4*y + i]` has a digit of radix 4 and weight 4
// that counts threads. All accesses must agree on these digits, which shows that no thread uses
// what is another's. Taking the digits out of the indices leaves each thread an array of its own.
// Buffers of scope `warp`, whose first axis is the lane, are treated alike; regions of instructions
// take all lanes together.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/arith/bounds.h"
#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/accesses.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// The part of an index that tells threads apart: its digit of radix `extent` at `weight`, which is
/// the position along the thread axis `name`.
struct Digit {
  size_t axis = 0;  ///< of the buffer
  std::string name;
  int64_t weight = 1, extent = 1;
  friend bool operator==(const Digit&, const Digit&) = default;
};
using Digits = std::vector<Digit>;

constexpr const char* kLaneAxis = "thread.x";
/// Memory of a warp: its first axis is that of the lanes, which `fragments` has put there.
bool is_warp(const Buffer& buffer) { return buffer.scope() == "warp"; }
int64_t lanes_of(const Buffer& buffer) { return as_int(buffer.shape()[0]).value_or(0); }
bool is_lanes(const Buffer& buffer, const Digit& digit) {
  return is_warp(buffer) && digit.name == kLaneAxis;
}

/// A buffer and what takes its place.
struct Divided {
  Buffer buffer;
  Digits digits;
};

class Privatizer {
 public:
  explicit Privatizer(const Func& func) : func_(func) {
    walk(func.body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      if (loop && is_thread_loop(*loop) && !is_const_int(loop->extent, 1))
        threads_[loop->var] = loop;
    });
  }

  Result<Func> run() {
    plan(func_.body, arith::Bounds(func_));
    if (error_) return tl::unexpected<Error>(std::move(*error_));
    Func out = func_;
    out.body = arith::simplify(rewritten(func_.body), arith::Bounds(func_));
    for (const auto& [old, to] : divided_)
      if (thread_axes(to.buffer, out.body) < to.digits.size())
        return fail(ErrorKind::Unsupported, shared_text(old),
                    "an index does not say which thread an element belongs to");
    return out;
  }

 private:
  static std::string shared_text(const Buffer& buffer) {
    return fmt::format("{} buffer '{}' would be shared by {}", buffer.scope(), buffer.name(),
                       is_warp(buffer) ? "warps" : "threads");
  }

  /// Finds out how each local buffer allocated in `s` is divided among threads.
  void plan(const Stmt& s, const arith::Bounds& bounds) {
    if (const auto* loop = s.as<For>()) {
      arith::Bounds inside = bounds;
      inside.bind(loop->var, loop->extent);
      return plan(loop->body, inside);
    }
    if (const auto* list = s.as<Seq>())
      for (const Stmt& child : list->stmts)
        if (const auto* alloc = child.as<Alloc>();
            alloc && (alloc->buffer.scope() == "local" || is_warp(alloc->buffer)))
          divide(alloc->buffer, s, bounds);
    for (const Stmt& child : children(s)) plan(child, bounds);
  }

  void divide(const Buffer& buffer, const Stmt& scope, const arith::Bounds& bounds) {
    const std::vector<BufferAccess> accesses = accesses_of(scope, buffer, bounds);
    if (accesses.empty()) return;
    const Digits digits = digits_of(accesses[0]);
    for (const BufferAccess& access : accesses)
      if (const std::string why = trouble(access, digits); !why.empty()) {
        if (!error_) error_ = Error{ErrorKind::Unsupported, shared_text(buffer), {}, why, {}, {}};
        return;
      }
    if (digits.empty() || (digits.size() == 1 && is_lanes(buffer, digits[0]))) return;
    std::vector<Expr> shape;
    for (const Digit& d : digits) shape.push_back(int_imm(d.extent));
    for (size_t axis = 0; axis < buffer.rank(); ++axis) {
      Expr extent = buffer.shape()[axis];
      for (const Digit& d : greatest_first(digits, axis))
        extent = (extent + (d.weight * d.extent - 1)) / (d.weight * d.extent) * d.weight;
      shape.push_back(arith::simplify(extent, bounds));
    }
    divided_[buffer] = {Buffer(buffer.name(), buffer.dtype(), shape, buffer.scope()), digits};
  }

  /// Why a buffer cannot be divided as `digits` say where `access` is; empty if it can.
  std::string trouble(const BufferAccess& access, const Digits& digits) const {
    const bool warp = is_warp(access.buffer), region = !access.sizes.empty();
    const bool together = region && !is_const_int(access.sizes[0], 1);
    const Digits other = digits_of(access);
    size_t loops = warp ? 1 : 0;
    const For* lanes = nullptr;
    for (const Var& var : access.vars) {
      const auto it = threads_.find(var);
      if (it == threads_.end()) continue;
      const bool along = warp && it->second->axis == kLaneAxis;
      if (along) lanes = it->second;
      loops += along ? 0 : 1;
    }
    if (!std::is_permutation(digits.begin(), digits.end(), other.begin(), other.end()) ||
        loops != digits.size())
      return "its accesses are in different loops over threads";
    if (warp && together && lanes != nullptr)
      return fmt::format("all lanes use it together inside loop '{}' over them", lanes->var.name());
    if (warp && !together) {
      const auto* lane = access.indices[0].as<VarRef>();
      if (lanes == nullptr || lane == nullptr || !(lane->var == lanes->var) ||
          !is_const_int(lanes->extent, lanes_of(access.buffer)))
        return fmt::format("lane {} has an element that {} uses", print(access.indices[0]),
                           lanes ? "lane " + lanes->var.name() : "no lane");
    }
    for (const Digit& d : digits)
      if (region && !is_lanes(access.buffer, d) &&
          !arith::prove(
              access.indices[d.axis] % d.weight + access.sizes[d.axis] <= int_imm(d.weight),
              access.bounds))
        return "a region of it belongs to several threads";
    return {};
  }

  /// Thread variables with their coefficients, outermost loop first; lanes last.
  Digits digits_of(const BufferAccess& access) const {
    Digits digits;
    const bool warp = is_warp(access.buffer);
    for (const Var& var : access.vars) {
      const auto it = threads_.find(var);
      if (it == threads_.end() || (warp && it->second->axis == kLaneAxis)) continue;
      for (size_t axis = warp ? 1 : 0; axis < access.indices.size(); ++axis) {
        const int64_t weight = arith::as_affine(access.indices[axis]).coefficient(var);
        if (weight > 0)
          digits.push_back(
              {axis, it->second->axis, weight, as_int(it->second->extent).value_or(1)});
      }
    }
    if (warp) digits.push_back({0, kLaneAxis, 1, lanes_of(access.buffer)});
    return digits;
  }

  /// Taking a great digit away leaves the smaller ones where they are.
  static Digits greatest_first(const Digits& digits, size_t axis) {
    Digits out;
    for (const Digit& d : digits)
      if (d.axis == axis) out.push_back(d);
    std::sort(out.begin(), out.end(),
              [](const Digit& a, const Digit& b) { return a.weight > b.weight; });
    return out;
  }

  static std::vector<Expr> divided_indices(const std::vector<Expr>& from, const Digits& digits) {
    std::vector<Expr> out;
    for (const Digit& d : digits) out.push_back(from[d.axis] / d.weight % d.extent);
    for (size_t axis = 0; axis < from.size(); ++axis) {
      Expr rest = from[axis];
      for (const Digit& d : greatest_first(digits, axis))
        rest = rest / (d.weight * d.extent) * d.weight + rest % d.weight;
      out.push_back(rest);
    }
    return out;
  }

  /// A region keeps its sizes: it lies in one thread's part, or in that of all lanes.
  static void divide_region(Region& region, const Divided& to) {
    std::vector<Expr> begins;
    for (const auto& dim : region.dims) begins.push_back(dim.first);
    const std::vector<Expr> indices = divided_indices(begins, to.digits);
    std::vector<std::pair<Expr, Expr>> dims;
    for (size_t k = 0; k < indices.size(); ++k) {
      const bool digit = k < to.digits.size();
      const size_t axis = digit ? to.digits[k].axis : k - to.digits.size();
      const bool lanes = digit && is_lanes(to.buffer, to.digits[k]);
      const bool spread = is_warp(to.buffer) && axis == 0 && !lanes;
      dims.emplace_back(indices[k],
                        lanes || (!digit && !spread) ? region.dims[axis].second : int_imm(1));
    }
    region = {to.buffer, std::move(dims)};
  }

  Stmt rewritten(const Stmt& s) const {
    const auto expr = [&](const Expr& e) {
      return rewrite(e, [&](const Expr& x) {
        const auto* l = x.as<Load>();
        const auto it = l ? divided_.find(l->buffer) : divided_.end();
        if (it == divided_.end()) return x;
        return load(it->second.buffer, divided_indices(l->indices, it->second.digits));
      });
    };
    return rewrite(
        s,
        [&](const Stmt& x) {
          if (const auto* alloc = x.as<Alloc>(); alloc && divided_.contains(alloc->buffer))
            return make(Alloc{divided_.at(alloc->buffer).buffer, alloc->marks});
          if (const auto* call = x.as<Call>()) {
            Call out = *call;
            for (auto& arg : out.args)
              if (auto* region = std::get_if<Region>(&arg);
                  region != nullptr && divided_.contains(region->buffer))
                divide_region(*region, divided_.at(region->buffer));
            return make(std::move(out));
          }
          const auto* store = x.as<Store>();
          if (store == nullptr || !divided_.contains(store->buffer)) return x;
          const Divided& to = divided_.at(store->buffer);
          Store out = *store;
          out.buffer = to.buffer;
          out.indices = divided_indices(store->indices, to.digits);
          return make(std::move(out));
        },
        expr);
  }

  const Func& func_;
  ThreadLoops threads_;
  std::map<Buffer, Divided> divided_;
  std::optional<Error> error_;
};

}  // namespace

size_t thread_axes(const Buffer& buffer, const Stmt& body) {
  ThreadLoops threads;
  size_t shared = buffer.rank();
  std::vector<std::string> axes;
  bool first = true;
  const auto meet = [&](const std::vector<Expr>& indices, const std::vector<Expr>& sizes) {
    std::vector<std::string> own;
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto* r = indices[d].as<VarRef>();
      const auto it = r ? threads.find(r->var) : threads.end();
      // A region of all lanes; no other axis of a fragment has as many elements.
      const bool lanes =
          is_warp(buffer) && !sizes.empty() && is_const_int(indices[d], 0) &&
          (is_const_int(sizes[d], hw::kWarpLanes) || is_const_int(sizes[d], hw::kGroupLanes));
      if (lanes)
        own.emplace_back(kLaneAxis);
      else if (it != threads.end() && (sizes.empty() || is_const_int(sizes[d], 1)))
        own.push_back(it->second->axis);
      else
        break;
    }
    if (std::exchange(first, false)) axes = own;
    const auto end = std::mismatch(axes.begin(), axes.end(), own.begin(), own.end());
    shared = std::min<size_t>(shared, static_cast<size_t>(end.first - axes.begin()));
  };
  walk(
      body,
      [&](const Stmt& s) {
        if (const auto* loop = s.as<For>(); loop && is_thread_loop(*loop))
          threads[loop->var] = loop;
        if (const auto* store = s.as<Store>(); store && store->buffer == buffer)
          meet(store->indices, {});
        const auto* call = s.as<Call>();
        for (size_t i = 0; call != nullptr && i < call->args.size(); ++i) {
          const auto* region = std::get_if<Region>(&call->args[i]);
          if (region == nullptr || !(region->buffer == buffer)) continue;
          std::vector<Expr> begins, sizes;
          for (const auto& [begin, size] : region->dims)
            begins.push_back(begin), sizes.push_back(size);
          meet(begins, sizes);
        }
      },
      [&](const Expr& e) {
        if (const auto* l = e.as<Load>(); l && l->buffer == buffer) meet(l->indices, {});
      });
  return first ? 0 : shared;
}

Result<Func> privatize(const Func& func) { return Privatizer(func).run(); }

}  // namespace tilewright::lower
