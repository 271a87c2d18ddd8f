#include "tilewright/codegen/gpu/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tilewright/base/check.h"
#include "tilewright/codegen/common/expr_writer.h"
#include "tilewright/codegen/common/plan.h"
#include "tilewright/codegen/gpu/prelude.h"
#include "tilewright/codegen/gpu/vectors.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

constexpr std::string_view kAxes = "xyz";

using lower::is_sync;

bool is_thread_loop(const Stmt& s) {
  const auto* loop = s.as<For>();
  return loop != nullptr && lower::is_thread_loop(*loop);
}
bool is_block_loop(const Stmt& s) {
  const auto* loop = s.as<For>();
  return loop != nullptr && lower::is_block_loop(*loop);
}

/// Whether threads part ways or meet somewhere inside `s`.
bool is_shared_out(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) { found |= is_thread_loop(x) || is_sync(x); });
  return found;
}
bool has_sync(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) { found |= is_sync(x); });
  return found;
}

bool uses_type(const Func& func, DType dtype) {
  bool found = false;
  for (const Param& p : func.params) found |= p.buffer.dtype() == dtype;
  walk(
      func.body,
      [&](const Stmt& s) {
        if (const auto* alloc = s.as<Alloc>()) found |= alloc->buffer.dtype() == dtype;
      },
      [&](const Expr& e) { found |= e.dtype() == dtype; });
  return found;
}

/// Writes one kernel.
class KernelWriter {
 public:
  KernelWriter(const lower::GpuKernel& kernel, const Func& func, const hw::GpuTarget& target)
      : kernel_(kernel),
        func_(func),
        target_(target),
        opencl_(target.language == hw::GpuLanguage::OpenCl),
        exprs_(names_, strides_,
               CDialect{opencl_ ? "" : "f", true, !opencl_ && func.math == MathMode::Exact}) {
    names_.fresh(symbol_of(func));
    exprs_.bounds = arith::Bounds(func);
  }

  Result<std::string> run() {
    CText out;
    begin(out);
    allocate_shared(out);
    stmt(func_.body, out);
    out.close();
    if (error_) return tl::unexpected<Error>(std::move(*error_));
    return out.text;
  }

 private:
  /// The head of the kernel, up to where its parameters have their names.
  void begin(CText& out) {
    std::vector<std::string> parameters, views;
    for (const Param& p : func_.params) {
      strides_[p.buffer] = strides_of(p.buffer, p.strides);
      const std::string id = names_.of(p.buffer), type = c_storage_type(p.buffer.dtype());
      const bool reads = p.mode == ParamMode::In || p.mode == ParamMode::Const;
      if (!opencl_) {
        parameters.push_back(fmt::format("{}{}* __restrict__ {}", reads ? "const " : "", type, id));
        continue;
      }
      const std::string base = names_.fresh(id + "_base"), offset = names_.fresh(id + "_offset");
      parameters.push_back(fmt::format("__global char* {}", base));
      parameters.push_back("long " + offset);
      const std::string pointer = fmt::format("__global {}{}*", reads ? "const " : "", type);
      views.push_back(
          fmt::format("{0} restrict {1} = ({0})({2} + {3});", pointer, id, base, offset));
    }
    for (const Scalar& s : func_.scalars) {
      const std::string type = exprs_.declared_type(s.var), id = names_.of(s.var);
      const std::string given = names_.fresh(id + "_given");
      parameters.push_back("i64 " + given);
      views.push_back(fmt::format("const {0} {1} = ({0}){2};", type, id, given));
    }
    const auto& b = kernel_.block;
    const std::string head =
        opencl_
            ? fmt::format("__kernel __attribute__((reqd_work_group_size({}, {}, {}))) void", b[0],
                          b[1], b[2])
            : fmt::format("extern \"C\" __global__ void __launch_bounds__({})", b[0] * b[1] * b[2]);
    out.open(fmt::format("{} {}({}) {{", head, symbol_of(func_), fmt::join(parameters, ", ")));
    for (const std::string& view : views) out.line(view);
  }

  /// Shared memory is declared at the head: OpenCL has it nowhere else.
  void allocate_shared(CText& out) {
    walk(func_.body, [&](const Stmt& s) {
      const auto* alloc = s.as<Alloc>();
      if (alloc == nullptr || alloc->buffer.scope() != "shared") return;
      strides_[alloc->buffer] = strides_of(alloc->buffer, {});
      out.line(fmt::format("{} TW_ALIGNED {} {}[{}];", opencl_ ? "__local" : "__shared__",
                           c_storage_type(alloc->buffer.dtype()), names_.of(alloc->buffer),
                           std::max<int64_t>(1, *const_elements(alloc->buffer))));
    });
  }

  void stmt(const Stmt& s, CText& out) {
    if (!s.as<Alloc>() && !s.as<Seq>() && !is_shared_out(s) && !is_block_loop(s)) {
      const std::string alone = first_on_free_axes();
      if (!alone.empty()) return only_first(s, alone, out);
    }
    match(
        s, [&](const For& x) { loop(x, out); },
        [&](const Block& x) { refuse(fmt::format("block '{}' is left", x.name)); },
        [&](const Store& x) { store(x, out); }, [&](const Alloc& x) { alloc(x, out); },
        [&](const If& x) { branch(x, out); },
        [&](const Seq& x) {
          for (const Stmt& child : x.stmts) stmt(child, out);
        },
        [&](const Call&) {
          if (divergent_ > 0) refuse("a barrier is where not all threads come");
          out.line(opencl_ ? "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
                           : "__syncthreads();");
          if (opencl_)
            for (const std::string& name : live_) out.line(fmt::format("TW_FORGET({})", name));
        });
  }

  /// The condition under which a statement outside of loops over some thread axes runs: once.
  std::string first_on_free_axes() const {
    std::string text;
    for (size_t axis = 0; axis < 3; ++axis)
      if (kernel_.block[axis] > 1 && !bound_.contains(kAxes[axis]))
        text += fmt::format("{}{} == 0", text.empty() ? "" : " && ", position("thread", axis));
    return text;
  }

  void only_first(const Stmt& s, const std::string& condition, CText& out) {
    const std::set<char> outer = bound_;
    bound_.insert(kAxes.begin(), kAxes.end());
    out.open(fmt::format("if ({}) {{", condition));
    stmt(s, out);
    out.close();
    bound_ = outer;
  }

  /// Where the running thread is along an axis.
  std::string position(std::string_view kind, size_t axis) const {
    if (opencl_)
      return fmt::format("(i32)get_{}_id({})", kind == "block" ? "group" : "local", axis);
    return fmt::format("(i32){}Idx.{}", kind, kAxes[axis]);
  }

  void loop(const For& x, CText& out) {
    const arith::Bounds outer = exprs_.bounds;
    if (x.kind == ForKind::Bind) {
      bound_loop(x, out);
    } else {
      exprs_.begin({x.extent});
      const std::string extent = exprs_.value(x.extent, out);
      exprs_.bounds.bind(x.var, x.extent);
      const std::string var = names_.of(x.var), type = exprs_.declared_type(x.var);
      if (x.kind == ForKind::Unroll || x.kind == ForKind::Vector) out.line("#pragma unroll");
      const int64_t lanes =
          x.kind == ForKind::Vector
              ? copy_lanes(x, strides_, exprs_.bounds, std::min<int64_t>(16, target_.vector_bytes))
              : 1;
      const std::string step = lanes > 1 ? fmt::format("{} += {}", var, lanes) : "++" + var;
      out.open(fmt::format("for ({0} {1} = 0; {1} < {2}; {3}) {{", type, var, extent, step));
      live_.push_back(var);
      if (lanes > 1)
        wide_copy(*x.body.as<Store>(), lanes, out);
      else
        stmt(x.body, out);
      live_.pop_back();
      out.close();
    }
    exprs_.bounds = outer;
  }

  /// Each block or thread has its own place in the loop; those behind its end wait.
  void bound_loop(const For& x, CText& out) {
    const size_t axis = kAxes.find(x.axis.back());
    if (axis == std::string_view::npos)
      return refuse(fmt::format("loop '{}' is bound to '{}'", x.var.name(), x.axis));
    if (!axes_.insert(x.axis).second)
      return refuse(fmt::format("two loops, one in the other, are bound to '{}'", x.axis));
    const bool threads = x.axis.starts_with("thread.");
    const int64_t extent = as_int(x.extent).value_or(0);
    const bool all = extent == (threads ? kernel_.block : kernel_.grid)[axis];
    exprs_.bounds.bind(x.var, x.extent);
    const std::string var = names_.of(x.var), type = exprs_.declared_type(x.var);
    out.open("{");
    out.line(fmt::format("{} {} = {};", type, var, position(threads ? "thread" : "block", axis)));
    if (opencl_) out.line(fmt::format("TW_FORGET({})", var));
    live_.push_back(var);
    if (!all) out.open(fmt::format("if ({} < {}) {{", var, extent));
    if (!all && threads) ++divergent_;
    if (threads) bound_.insert(x.axis.back());
    if (threads) thread_vars_.insert(x.var);
    stmt(x.body, out);
    live_.pop_back();
    if (threads) bound_.erase(x.axis.back());
    if (!all && threads) --divergent_;
    axes_.erase(x.axis);
    if (!all) out.close();
    out.close();
  }

  void branch(const If& x, CText& out) {
    exprs_.begin({x.condition});
    const bool same = std::none_of(thread_vars_.begin(), thread_vars_.end(),
                                   [&](const Var& v) { return uses(x.condition, v); });
    const arith::Bounds outer = exprs_.bounds;
    out.open(fmt::format("if ({}) {{", exprs_.value(x.condition, out)));
    exprs_.bounds.assume(x.condition);
    if (!same && has_sync(make(x))) ++divergent_;
    stmt(x.then_body, out);
    exprs_.bounds = outer;
    if (x.else_body) {
      --out.indent, out.open("} else {");
      stmt(x.else_body, out);
    }
    if (!same && has_sync(make(x))) --divergent_;
    out.close();
  }

  void store(const Store& x, CText& out) {
    out.open("{");
    exprs_.store(x, out);
    out.close();
  }

  /// Several elements in one access.
  void wide_copy(const Store& x, int64_t lanes, CText& out) {
    const Load& from = *x.value.as<Load>();
    std::vector<Expr> roots = x.indices;
    roots.insert(roots.end(), from.indices.begin(), from.indices.end());
    exprs_.begin(roots);
    const std::string bytes = fmt::format("tw_b{}*", lanes * bit_width(x.buffer.dtype()) / 8);
    const std::string source = exprs_.offset(from.buffer, from.indices, out);
    const std::string target = exprs_.offset(x.buffer, x.indices, out);
    out.line(fmt::format("*({0}{1})({2} + {3}) = *({4}const {1})({5} + {6});", space(x.buffer),
                         bytes, names_.of(x.buffer), target, space(from.buffer),
                         names_.of(from.buffer), source));
  }
  /// The address space of a buffer, for pointers.
  std::string space(const Buffer& buffer) const {
    if (!opencl_ || buffer.scope() == "local") return "";
    return buffer.scope() == "shared" ? "__local " : "__global ";
  }

  /// A thread's own array: without the axes that tell threads apart.
  void alloc(const Alloc& x, CText& out) {
    if (x.buffer.scope() == "shared") return;
    const size_t own = lower::thread_axes(x.buffer, func_.body);
    std::vector<Expr> strides = strides_of(x.buffer, {});
    int64_t count = 1;
    for (size_t axis = 0; axis < x.buffer.rank(); ++axis) {
      if (axis < own)
        strides[axis] = int_imm(0);
      else
        count *= as_int(x.buffer.shape()[axis]).value_or(1);
    }
    strides_[x.buffer] = strides;
    out.line(fmt::format("TW_ALIGNED {} {}[{}];", c_storage_type(x.buffer.dtype()),
                         names_.of(x.buffer), std::max<int64_t>(1, count)));
  }

  void refuse(const std::string& why) {
    if (!error_)
      error_ = Error{ErrorKind::Unsupported,
                     fmt::format("kernel '{}' cannot be emitted for {}", func_.name, target_.name),
                     {},
                     why,
                     {},
                     {}};
  }

  const lower::GpuKernel& kernel_;
  const Func& func_;
  const hw::GpuTarget& target_;
  bool opencl_;
  CNames names_;
  CExprWriter::Strides strides_;
  CExprWriter exprs_;
  std::set<std::string> axes_;  ///< of the bound loops around
  std::set<char> bound_;        ///< thread axes of the loops around
  std::set<Var> thread_vars_;
  std::vector<std::string> live_;  ///< index variables of the loops around
  int divergent_ = 0;              ///< conditions around that not all threads fulfil
  std::optional<Error> error_;
};

}  // namespace

Result<std::string> emit_gpu(const std::vector<lower::GpuKernel>& kernels,
                             const hw::GpuTarget& target) {
  bool f64 = false;
  std::set<std::string> symbols;
  std::string text;
  for (const lower::GpuKernel& kernel : kernels) {
    if (!symbols.insert(symbol_of(kernel.func)).second)
      return fail(ErrorKind::Invalid,
                  fmt::format("two kernels are called {}", symbol_of(kernel.func)));
    if (uses_type(kernel.func, DType::F64)) {
      if (!target.has_f64)
        return fail(ErrorKind::Unsupported,
                    fmt::format("kernel '{}' computes in f64", kernel.func.name),
                    fmt::format("{} has no f64", target.name));
      f64 = true;
    }
    const Func plain = TW_TRY(inline_calls(
        kernel.func, [](const Call& call) { return call.callee->name == lower::kSyncBlock; }));
    text += "\n" + TW_TRY(KernelWriter(kernel, plain, target).run());
  }
  return gpu_prelude(target, f64) + text;
}

}  // namespace tilewright::codegen
