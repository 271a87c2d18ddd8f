// C11 text of lowered programs: statements become the statements they look like.
//
//   for i in n parallel { B[i] = A[i] * 2.0 }
//   ->  struct with what the body uses; static void body(void* env, int64_t i, int32_t worker);
//       in the kernel: services->parallel_for(services->pool, n, body, &env);
//
// Outermost parallel loops become functions of their own; allocations are where
// codegen/common/plan.h places them. Vector and unrolled loops are plain loops with a comment: the
// C compiler decides.
#include "tilewright/codegen/c/c.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/codegen/c/prelude.h"
#include "tilewright/codegen/common/arithmetic.h"
#include "tilewright/codegen/common/expr_writer.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

/// Writes one kernel: first the bodies of its parallel loops, then the kernel itself.
class KernelWriter {
 public:
  KernelWriter(const Func& func, const KernelPlan& plan)
      : func_(func), plan_(plan), exprs_(names_, strides_) {
    names_.fresh(plan.info.symbol);
    for (const Param& p : func.params) strides_[p.buffer] = strides_of(p.buffer, p.strides);
    walk(func.body, [&](const Stmt& s) {
      if (const auto* a = s.as<Alloc>()) strides_[a->buffer] = strides_of(a->buffer, {});
    });
    exprs_.bounds = arith::Bounds(func);
  }

  std::string run() {
    CText out;
    out.open(
        fmt::format("void {}(void* const* buffers, const int64_t* scalars, void* workspace,\n"
                    "    const tw_kernel_services* services) {{",
                    plan_.info.symbol));
    out.line("(void)buffers, (void)scalars, (void)workspace, (void)services;");
    for (size_t i = 0; i < func_.params.size(); ++i) {
      const Param& p = func_.params[i];
      const bool reads = p.mode == ParamMode::In || p.mode == ParamMode::Const;
      const std::string type = c_storage_type(p.buffer.dtype());
      out.line(fmt::format("{}{}* restrict {} = buffers[{}];", reads ? "const " : "", type,
                           names_.of(p.buffer), i));
      if (reads) read_only_.insert(p.buffer);
    }
    for (size_t i = 0; i < func_.scalars.size(); ++i)
      out.line(fmt::format("const i64 {} = scalars[{}];", names_.of(func_.scalars[i].var), i));
    stmt(func_.body, out, false);
    out.close();
    return functions_ + out.text;
  }

 private:
  void stmt(const Stmt& s, CText& out, bool inside_parallel) {
    match(
        s, [&](const For& x) { loop(s, x, out, inside_parallel); },
        [&](const Block& x) { block(x, out, inside_parallel); },
        [&](const Store& x) { exprs_.store(x, out); }, [&](const Alloc& x) { alloc(x, out); },
        [&](const If& x) {
          exprs_.begin({x.condition});
          out.open(fmt::format("if ({}) {{", exprs_.value(x.condition, out)));
          stmt(x.then_body, out, inside_parallel);
          if (x.else_body) {
            --out.indent, out.open("} else {");
            stmt(x.else_body, out, inside_parallel);
          }
          out.close();
        },
        [&](const Seq& x) {
          for (const Stmt& child : x.stmts) stmt(child, out, inside_parallel);
        },
        [](const Call&) { TW_CHECK(false, "calls are inlined before"); });
  }

  void loop(const Stmt&, const For& x, CText& out, bool inside_parallel) {
    exprs_.begin({x.extent});
    const std::string extent = exprs_.value(x.extent, out), var = names_.of(x.var);
    const arith::Bounds outer = exprs_.bounds;
    exprs_.bounds.bind(x.var, x.extent);
    if (is_outlined(x, inside_parallel)) {
      outline(x, extent, out);
    } else {
      const std::string note =
          x.kind == ForKind::Serial ? "" : fmt::format("  /* {} */", name(x.kind));
      out.open(fmt::format("for (i64 {0} = 0; {0} < {1}; ++{0}) {{{2}", var, extent, note));
      stmt(x.body, out, inside_parallel);
      out.close();
    }
    exprs_.bounds = outer;
  }

  void block(const Block& x, CText& out, bool inside_parallel) {
    const arith::Bounds outer = exprs_.bounds;
    if (x.guard) {
      exprs_.begin({x.guard});
      out.open(fmt::format("if ({}) {{", exprs_.value(x.guard, out)));
      exprs_.bounds.assume(x.guard);
    } else {
      out.open("{");
    }
    out.text.insert(out.text.size() - 1, fmt::format("  /* {} */", x.name));
    for (const Iter& iter : x.iters) {
      exprs_.begin({iter.binding});
      const std::string binding = exprs_.value(iter.binding, out);
      out.line(fmt::format("const i64 {} = {};", names_.of(iter.var), binding));
      exprs_.bounds.bind(iter.var, iter.extent);
    }
    stmt(x.body, out, inside_parallel);
    out.close();
    exprs_.bounds = outer;
  }

  void alloc(const Alloc& x, CText& out) {
    const AllocPlacement& place = plan_.places.at(x.buffer);
    const std::string type = c_storage_type(x.buffer.dtype()), id = names_.of(x.buffer);
    if (place.where == AllocPlacement::Where::Stack) {
      const int64_t bytes = bit_width(x.buffer.dtype()) / 8;
      out.line(fmt::format("_Alignas(64) {} {}[{}];", type, id,
                           std::max<int64_t>(1, place.bytes / bytes)));
      return;
    }
    const bool shared = place.where == AllocPlacement::Where::Shared;
    out.line(fmt::format("{0}* restrict {1} = ({0}*)((char*){2} + {3});", type, id,
                         shared ? "workspace" : "tw_worker_space", place.offset));
  }

  void outline(const For& x, const std::string& extent, CText& out) {
    Captures taken = captures(x);
    for (const Scalar& s : func_.scalars)
      if (std::find(taken.vars.begin(), taken.vars.end(), s.var) == taken.vars.end())
        taken.vars.push_back(s.var);
    const std::string body = names_.fresh(plan_.info.symbol + "_" + x.var.name());
    const std::string type = "struct " + body + "_env";
    CText text;
    text.open(type + " {");
    text.line("char* workspace;");
    for (const Buffer& b : taken.buffers) text.line(pointer(b) + ";");
    for (const Var& v : taken.vars) text.line("i64 " + names_.of(v) + ";");
    text.close("};");
    text.open(fmt::format("static void {}(void* env_, int64_t {}, int32_t worker) {{", body,
                          names_.of(x.var)));
    text.line(fmt::format("const {0}* env = (const {0}*)env_;", type));
    text.line(fmt::format("char* tw_worker_space = env->workspace + {} + worker * INT64_C({});",
                          plan_.info.shared_bytes, plan_.info.per_worker_bytes));
    text.line("(void)tw_worker_space;");
    for (const Buffer& b : taken.buffers)
      text.line(fmt::format("{} = env->{};", pointer(b), names_.of(b)));
    for (const Var& v : taken.vars)
      text.line(fmt::format("const i64 {0} = env->{0};", names_.of(v)));
    stmt(x.body, text, true);
    text.close();
    functions_ += text.text + "\n";

    out.open("{");
    out.line(fmt::format("{} env = {{0}};", type));
    out.line("env.workspace = (char*)workspace;");
    for (const Buffer& b : taken.buffers) out.line(fmt::format("env.{0} = {0};", names_.of(b)));
    for (const Var& v : taken.vars) out.line(fmt::format("env.{0} = {0};", names_.of(v)));
    out.line(fmt::format("services->parallel_for(services->pool, {}, {}, &env);", extent, body));
    out.close();
  }

  std::string pointer(const Buffer& b) {
    return fmt::format("{}{}* restrict {}", read_only_.contains(b) ? "const " : "",
                       c_storage_type(b.dtype()), names_.of(b));
  }

  const Func& func_;
  const KernelPlan& plan_;
  CNames names_;
  CExprWriter::Strides strides_;
  CExprWriter exprs_;
  std::set<Buffer> read_only_;
  std::string functions_;
};

}  // namespace

Result<CModule> emit_c(const std::vector<Func>& lowered) {
  CModule module;
  module.source = std::string(kCPrelude) + kArithmetic;
  for (const Func& func : lowered) {
    const Func plain = TW_TRY(inline_calls(func));
    const KernelPlan plan = TW_TRY(plan_kernel(plain));
    for (const KernelInfo& other : module.kernels)
      if (other.symbol == plan.info.symbol)
        return fail(ErrorKind::Invalid, fmt::format("two kernels are called {}", other.symbol));
    module.source += "\n" + KernelWriter(plain, plan).run();
    module.kernels.push_back(plan.info);
  }
  return module;
}

}  // namespace tilewright::codegen
