// The split of a lowered Func into kernels.
//
//   for t in 2 { for b in 8 bind(block.x) { S }  for b in 4 bind(block.x) { T } }
//   =>
//   kernels S(t) with a grid of 8, T(t) with a grid of 4; calls S(0) T(0) S(1) T(1)
//
// The host goes through statements and loops outside of all grids here, at compile time. A
// statement becomes a kernel once; its parameters are the buffers it uses and the loop variables
// around it. Allocations outside of kernels become temporaries in global memory.
#include "tilewright/lower/gpu_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_passes.h"

namespace tilewright::lower {
namespace {

constexpr std::string_view kAxes = "xyz";

bool has_bind(const Stmt& s) {
  return contains(s, [](const Stmt& x) {
    const auto* loop = x.as<For>();
    return loop != nullptr && loop->kind == ForKind::Bind;
  });
}

/// The greatest extent of each bound axis `kind.x|y|z`. errors: Unsupported (not constant).
Result<std::array<int64_t, 3>> extents_of(const Stmt& s, const std::string& kind) {
  std::array<int64_t, 3> extents = {1, 1, 1};
  std::optional<std::string> unknown;
  walk(s, [&](const Stmt& x) {
    const auto* loop = x.as<For>();
    if (loop == nullptr || loop->kind != ForKind::Bind || !loop->axis.starts_with(kind + "."))
      return;
    const size_t axis = kAxes.find(loop->axis.back());
    const auto extent = as_int(loop->extent);
    if (!extent || axis == std::string_view::npos)
      unknown = loop->var.name();
    else
      extents[axis] = std::max(extents[axis], *extent);
  });
  if (unknown)
    return fail(ErrorKind::Unsupported,
                fmt::format("loop '{}' is bound, but its extent is not constant", *unknown));
  return extents;
}

/// Makes kernels of the statements of a Func, in order.
class Splitter {
 public:
  explicit Splitter(const Func& func) : func_(func) {}

  Result<GpuLaunches> run() {
    TW_TRY_STATUS(host(func_.body, {}));
    return std::move(plan_);
  }

 private:
  /// Statements outside of all grids: the host goes through them, `values` are its loops'
  /// variables.
  Status host(const Stmt& s, const VarMap& values) {
    if (const auto* list = s.as<Seq>()) {
      for (const Stmt& child : list->stmts) TW_TRY_STATUS(host(child, values));
      return {};
    }
    if (const auto* alloc = s.as<Alloc>()) {
      const Buffer& b = alloc->buffer;
      if (b.scope() != "global" && b.scope() != "local")
        return fail(ErrorKind::Unsupported,
                    fmt::format("{} buffer '{}' is used by several kernels", b.scope(), b.name()));
      if (std::find(plan_.temporaries.begin(), plan_.temporaries.end(), b) ==
          plan_.temporaries.end())
        plan_.temporaries.push_back(b);
      return {};
    }
    const auto* loop = s.as<For>();
    if (loop && loop->kind != ForKind::Bind && has_bind(s)) return host_loop(*loop, values);
    return kernel(s, values);
  }

  Status host_loop(const For& loop, const VarMap& values) {
    const auto extent = as_int(arith::simplify(substitute(loop.extent, values)));
    if (!extent)
      return fail(ErrorKind::Unsupported,
                  fmt::format("loop '{}' around kernels has no constant extent", loop.var.name()));
    host_loops_[loop.var] = *extent;
    for (int64_t i = 0; i < *extent; ++i) {
      VarMap inner = values;
      inner[loop.var] = int_imm(i);
      TW_TRY_STATUS(host(loop.body, inner));
    }
    return {};
  }

  Status kernel(const Stmt& s, const VarMap& values) {
    const auto [it, fresh] = known_.try_emplace(s.get(), plan_.kernels.size());
    if (fresh) {
      sites_.emplace_back();
      plan_.kernels.push_back(TW_TRY(make_kernel(s, sites_.back())));
    }
    const Site& site = sites_[it->second];
    GpuCallSite call{it->second, site.buffers, {}};
    for (const Var& var : site.vars) call.scalars.push_back(*as_int(values.at(var)));
    plan_.calls.push_back(std::move(call));
    return {};
  }

  /// What a kernel takes from outside.
  struct Site {
    std::vector<Buffer> buffers;
    std::vector<Var> vars;
  };

  Result<GpuKernel> make_kernel(const Stmt& s, Site& site) {
    GpuKernel kernel;
    kernel.grid = TW_TRY(extents_of(s, "block"));
    kernel.block = TW_TRY(extents_of(s, "thread"));
    collect(s, site);
    kernel.func.name =
        plan_.kernels.empty() ? func_.name : fmt::format("{}_{}", func_.name, plan_.kernels.size());
    kernel.func.math = func_.math;
    for (const Buffer& b : site.buffers) kernel.func.params.push_back(param_of(b, s));
    for (const Var& var : site.vars)
      kernel.func.scalars.push_back({var, 0, std::max<int64_t>(host_loops_.at(var) - 1, 0)});
    kernel.func.body = s;
    return kernel;
  }

  void collect(const Stmt& s, Site& site) const {
    std::set<Buffer> inside, seen;
    std::set<Var> vars;
    const auto use = [&](const Buffer& b) {
      if (!inside.contains(b) && seen.insert(b).second) site.buffers.push_back(b);
    };
    walk(
        s,
        [&](const Stmt& x) {
          if (const auto* alloc = x.as<Alloc>()) inside.insert(alloc->buffer);
          if (const auto* store = x.as<Store>()) use(store->buffer);
          if (const auto* call = x.as<Call>())
            for (const auto& arg : call->args)
              if (const auto* region = std::get_if<Region>(&arg)) use(region->buffer);
        },
        [&](const Expr& e) {
          if (const auto* l = e.as<Load>()) use(l->buffer);
          const auto* r = e.as<VarRef>();
          if (r && host_loops_.contains(r->var) && vars.insert(r->var).second)
            site.vars.push_back(r->var);
        });
  }

  Param param_of(const Buffer& b, const Stmt& s) const {
    Param param;
    param.buffer = b;
    for (const Param& p : func_.params)
      if (p.buffer == b) param = p;
    bool written = false;
    walk(s, [&](const Stmt& x) {
      const auto* store = x.as<Store>();
      written |= store != nullptr && store->buffer == b;
      const auto* call = x.as<Call>();
      for (size_t i = 0; call != nullptr && i < call->callee->params.size(); ++i) {
        const auto* region = std::get_if<Region>(&call->args[call->callee->scalars.size() + i]);
        const ParamMode mode = call->callee->params[i].mode;
        written |= region != nullptr && region->buffer == b &&
                   (mode == ParamMode::Out || mode == ParamMode::InOut);
      }
    });
    // A kernel may write parts only, so what it writes it also hands on.
    param.mode = written ? ParamMode::InOut : ParamMode::In;
    param.values.reset();
    return param;
  }

  const Func& func_;
  GpuLaunches plan_;
  std::map<const StmtNode*, size_t> known_;
  std::vector<Site> sites_;
  std::map<Var, int64_t> host_loops_;
};

}  // namespace

Result<GpuLaunches> split_kernels(const Func& func) { return Splitter(func).run(); }

}  // namespace tilewright::lower
