#include "tilewright/lower/gpu_fragments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/check.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

const std::string kSuffix = ".lanes";

/// A buffer and what lanes hold of it.
struct Fragment {
  Buffer buffer;
  hw::LaneLayout layout;
  std::vector<size_t> axes;  ///< of the old buffer, one per axis of the tile
};
using Fragments = std::map<Buffer, Fragment>;

/// The axes of `shape` with those of tiles counted in tiles, lanes in front, registers behind.
std::vector<Expr> divided_shape(const std::vector<Expr>& shape, const hw::LaneLayout& layout,
                                const std::vector<size_t>& axes) {
  std::vector<Expr> out = shape;
  for (size_t d = 0; d < axes.size(); ++d)
    out[axes[d]] =
        arith::simplify((shape[axes[d]] + (layout.tile[d] - 1)) / layout.tile[d], arith::Bounds());
  out.insert(out.begin(), int_imm(layout.lanes));
  out.push_back(int_imm(layout.registers));
  return out;
}

std::vector<Expr> divided_indices(const std::vector<Expr>& indices, const hw::LaneLayout& layout,
                                  const std::vector<size_t>& axes, const arith::Bounds& bounds) {
  std::vector<Expr> out = indices;
  VarMap inside;
  for (size_t d = 0; d < axes.size(); ++d) {
    const Expr& index = indices[axes[d]];
    inside[layout.axes[d]] = arith::simplify(index % layout.tile[d], bounds);
    out[axes[d]] = arith::simplify(index / layout.tile[d], bounds);
  }
  out.insert(out.begin(), arith::simplify(substitute(layout.lane, inside), bounds));
  out.push_back(arith::simplify(substitute(layout.reg, inside), bounds));
  return out;
}

/// Rewrites loads and stores of fragments where it is known what loops and conditions say.
class Rewriter {
 public:
  explicit Rewriter(const Fragments& fragments) : fragments_(fragments) {}

  Stmt stmt(const Stmt& s, const arith::Bounds& bounds) {
    return match(
        s,
        [&](const For& x) {
          arith::Bounds inside = bounds;
          inside.bind(x.var, x.extent);
          For out = x;
          out.body = stmt(x.body, inside);
          return make(std::move(out));
        },
        [&](const Block& x) {
          TW_CHECK(false, "block {} is left", x.name);
          return s;
        },
        [&](const Store& x) { return store(x, bounds); },
        [&](const Alloc& x) {
          const auto it = fragments_.find(x.buffer);
          return it == fragments_.end() ? s : make(Alloc{it->second.buffer, x.marks});
        },
        [&](const If& x) {
          arith::Bounds inside = bounds;
          inside.assume(x.condition);
          If out{expr(x.condition, bounds), stmt(x.then_body, inside), {}};
          if (x.else_body) out.else_body = stmt(x.else_body, bounds);
          return make(std::move(out));
        },
        [&](const Seq& x) {
          std::vector<Stmt> out;
          for (const Stmt& child : x.stmts) out.push_back(stmt(child, bounds));
          return seq(std::move(out));
        },
        [&](const Call& x) { return call(s, x, bounds); });
  }

  std::optional<Error> error;

 private:
  Expr expr(const Expr& e, const arith::Bounds& bounds) const {
    return rewrite(e, [&](const Expr& x) {
      const auto* l = x.as<Load>();
      const auto it = l ? fragments_.find(l->buffer) : fragments_.end();
      if (it == fragments_.end()) return x;
      const Fragment& f = it->second;
      return load(f.buffer, divided_indices(l->indices, f.layout, f.axes, bounds));
    });
  }

  Stmt store(const Store& x, const arith::Bounds& bounds) const {
    Store out = x;
    out.value = expr(x.value, bounds);
    for (Expr& index : out.indices) index = expr(index, bounds);
    if (const auto it = fragments_.find(x.buffer); it != fragments_.end()) {
      const Fragment& f = it->second;
      out.buffer = f.buffer;
      out.indices = divided_indices(x.indices, f.layout, f.axes, bounds);
    }
    return make(std::move(out));
  }

  Stmt call(const Stmt& s, const Call& x, const arith::Bounds& bounds) {
    const hw::Intrinsic* in = hw::find_gpu_intrinsic(*x.callee);
    if (in == nullptr) return s;
    if (hw::is_of_thread(*in)) return thread_call(x, bounds);
    Call out{lanes_form(*in), x.args};
    for (auto& arg : out.args) {
      auto* region = std::get_if<Region>(&arg);
      const auto it = region ? fragments_.find(region->buffer) : fragments_.end();
      if (it != fragments_.end()) divide(*region, it->second, *in, bounds);
    }
    return make(std::move(out));
  }

  /// A thread uses single elements of what its warp holds.
  Stmt thread_call(const Call& x, const arith::Bounds& bounds) const {
    Call out = x;
    for (auto& arg : out.args) {
      auto* region = std::get_if<Region>(&arg);
      const auto it = region ? fragments_.find(region->buffer) : fragments_.end();
      if (it == fragments_.end()) continue;
      std::vector<Expr> indices;
      for (const auto& dim : region->dims) indices.push_back(dim.first);
      const Fragment& f = it->second;
      *region = {f.buffer, {}};
      for (const Expr& index : divided_indices(indices, f.layout, f.axes, bounds))
        region->dims.emplace_back(index, int_imm(1));
    }
    return make(std::move(out));
  }

  /// The region in tiles.
  void divide(Region& region, const Fragment& f, const hw::Intrinsic& in,
              const arith::Bounds& bounds) {
    for (size_t d = 0; d < f.axes.size(); ++d) {
      auto& [begin, size] = region.dims[f.axes[d]];
      const int64_t tile = f.layout.tile[d];
      if (!error && !arith::prove(eq(begin % tile, int_imm(0)), bounds))
        error = Error{ErrorKind::Unsupported,
                      fmt::format("{} uses '{}' at a place that is no multiple of {}", in.name(),
                                  region.buffer.name(), tile),
                      {},
                      "lanes hold whole tiles",
                      {},
                      {}};
      begin = arith::simplify(begin / tile, bounds);
      size = arith::simplify(size / tile, bounds);
    }
    region.buffer = f.buffer;
    region.dims.insert(region.dims.begin(), {int_imm(0), int_imm(f.layout.lanes)});
    region.dims.emplace_back(int_imm(0), int_imm(f.layout.registers));
  }

  const Fragments& fragments_;
};

/// Finds out how instructions use memory of warps.
class FragmentFinder {
 public:
  Status run(const Stmt& body) {
    std::vector<Buffer> warps;
    Status status;
    walk(body, [&](const Stmt& s) {
      if (const auto* alloc = s.as<Alloc>(); alloc && alloc->buffer.scope() == "warp")
        warps.push_back(alloc->buffer);
      const auto* call = s.as<Call>();
      const hw::Intrinsic* in = call ? hw::find_gpu_intrinsic(*call->callee) : nullptr;
      if (in != nullptr && !hw::is_of_thread(*in) && status) status = use(*in, *call);
    });
    TW_TRY_STATUS(std::move(status));
    for (const Buffer& b : warps)
      if (!fragments.contains(b))
        return fail(ErrorKind::Unsupported,
                    fmt::format("no instruction says which lane holds what of '{}'", b.name()), {},
                    "set its scope to local");
    return {};
  }

  Fragments fragments;

 private:
  Status use(const hw::Intrinsic& in, const Call& call) {
    const hw::GpuInstruction instruction = TW_TRY(hw::gpu_instruction(in));
    for (const auto& operand : instruction.operands) {
      const auto* region = std::get_if<Region>(&call.args[operand.param]);
      if (region == nullptr) continue;
      const std::string& name = in.meaning.params[operand.param].buffer.name();
      const std::string wanted = operand.lanes ? "warp" : "shared";
      if (region->buffer.scope() != wanted)
        return fail(
            ErrorKind::Unsupported,
            fmt::format("'{}' is {} memory, operand {} of {} is {} memory", region->buffer.name(),
                        region->buffer.scope(), name, in.name(), wanted));
      if (operand.lanes) TW_TRY_STATUS(add(*region, *operand.lanes, in));
    }
    return {};
  }

  Status add(const Region& region, const hw::LaneLayout& layout, const hw::Intrinsic& in) {
    Fragment f{{}, layout, {}};
    for (size_t d = 0; d < region.dims.size(); ++d)
      if (!is_const_int(region.dims[d].second, 1)) f.axes.push_back(d);
    const Buffer& b = region.buffer;
    const auto known = fragments.find(b);
    if (f.axes.size() != layout.tile.size() ||
        (known != fragments.end() &&
         (known->second.layout.text != layout.text || known->second.axes != f.axes)))
      return fail(ErrorKind::Unsupported,
                  fmt::format("{} wants '{}' in other registers than another instruction",
                              in.name(), b.name()),
                  layout.text);
    if (known != fragments.end()) return {};
    f.buffer = Buffer(b.name(), b.dtype(), divided_shape(b.shape(), layout, f.axes), b.scope());
    fragments.emplace(b, std::move(f));
    return {};
  }
};

/// Makes the lanes form of one intrinsic.
Func make_lanes_form(const hw::Intrinsic& in) {
  const auto instruction = hw::gpu_instruction(in);
  TW_CHECK(instruction.has_value(), "{}", instruction ? "" : to_string(instruction.error()));
  Func out = in.meaning;
  out.name += kSuffix;
  Fragments fragments;
  for (const auto& operand : instruction->operands) {
    if (!operand.lanes) continue;
    Param& param = out.params[operand.param];
    Fragment f{{}, *operand.lanes, {}};
    for (size_t d = 0; d < param.buffer.rank(); ++d) f.axes.push_back(d);
    f.buffer = Buffer(param.buffer.name(), param.buffer.dtype(),
                      divided_shape(param.buffer.shape(), f.layout, f.axes), "global");
    fragments.emplace(param.buffer, f);
    param.buffer = f.buffer;
  }
  // Iterations of the block have the ranges that its loops have outside.
  arith::Bounds bounds;
  walk(in.meaning.body, [&](const Stmt& s) {
    if (const auto* block = s.as<Block>())
      for (const Iter& iter : block->iters) bounds.bind(iter.var, iter.extent);
  });
  out.body = rewrite(in.meaning.body, [&](const Stmt& s) {
    return s.as<Store>() ? Rewriter(fragments).stmt(s, bounds) : s;
  });
  return out;
}

}  // namespace

Result<Func> fragments(const Func& func) {
  FragmentFinder finder;
  TW_TRY_STATUS(finder.run(func.body));
  if (finder.fragments.empty()) return func;
  Rewriter rewriter(finder.fragments);
  Func out = func;
  out.body = rewriter.stmt(func.body, arith::Bounds(func));
  if (rewriter.error) return tl::unexpected<Error>(std::move(*rewriter.error));
  return out;
}

std::shared_ptr<const Func> lanes_form(const hw::Intrinsic& intrinsic) {
  static const auto all = [] {
    std::map<std::string, std::shared_ptr<const Func>> forms;
    for (const hw::Intrinsic& in : hw::gpu_intrinsics())
      forms[in.name()] = std::make_shared<const Func>(make_lanes_form(in));
    return forms;
  }();
  return all.at(intrinsic.name());
}

const hw::Intrinsic* find_lanes_form(const Func& callee) {
  if (!callee.name.ends_with(kSuffix)) return nullptr;
  const hw::Intrinsic* in = hw::find_gpu_intrinsic(
      std::string_view(callee.name).substr(0, callee.name.size() - kSuffix.size()));
  if (in == nullptr) return nullptr;
  const auto form = lanes_form(*in);
  return form.get() == &callee || equal(*form, callee) ? in : nullptr;
}

bool is_warp_call(const Stmt& s) {
  const auto* call = s.as<Call>();
  return call != nullptr && find_lanes_form(*call->callee) != nullptr;
}

bool is_thread_call(const Stmt& s) {
  const auto* call = s.as<Call>();
  const hw::Intrinsic* in = call != nullptr ? hw::find_gpu_intrinsic(*call->callee) : nullptr;
  return in != nullptr && hw::is_of_thread(*in);
}

}  // namespace tilewright::lower
