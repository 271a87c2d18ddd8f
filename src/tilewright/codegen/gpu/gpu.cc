// The text of GPU kernels: one writer for OpenCL C and CUDA C++; a prelude per language defines the
// names in which they differ.
//
//   for x in 128 bind(thread.x) { if x < n { B[x] = A[x] * 2.0 } }
//   ->  const i32 x = (i32)threadIdx.x;  (OpenCL C: get_local_id(0))  if (x < n) B[x] = ..
//
// Loops bound to blocks and threads become their indices; a thread loop shorter than its axis
// becomes a condition. Shared buffers are arrays of the block, local ones arrays of the thread
// whose thread axes are dropped. Vector loops that copy become wide accesses (vectors.h), calls of
// instructions functions of matrix.h, copies marked asynchronous `cp.async` or bulk copies
// (bulk.h).
#include "tilewright/codegen/gpu/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/base/check.h"
#include "tilewright/codegen/common/expr_writer.h"
#include "tilewright/codegen/common/plan.h"
#include "tilewright/codegen/gpu/bulk.h"
#include "tilewright/codegen/gpu/calls.h"
#include "tilewright/codegen/gpu/kernel_facts.h"
#include "tilewright/codegen/gpu/kernel_head.h"
#include "tilewright/codegen/gpu/matrix.h"
#include "tilewright/codegen/gpu/prelude.h"
#include "tilewright/codegen/gpu/speculate.h"
#include "tilewright/codegen/gpu/vectors.h"
#include "tilewright/hw/gpu_threads.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_async.h"
#include "tilewright/lower/gpu_fragments.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/gpu_products.h"
#include "tilewright/lower/gpu_shared.h"

namespace tilewright::codegen {
namespace {

constexpr std::string_view kAxes = "xyz";
/// Turns of asynchronous copies that are written out: addresses of more would take registers.
constexpr int64_t kTurns = 8;

using lower::is_sync;

/// The line of kernels that use matrix instructions in OpenCL, where their functions are macros.
constexpr const char* kMatrixState = "TW_MATRIX_STATE";

/// Writes one kernel.
class KernelWriter {
 public:
  KernelWriter(const lower::GpuKernel& kernel, const Func& func, const hw::GpuTarget& target,
               MatrixFunctions& functions)
      : kernel_(kernel),
        func_(func),
        target_(target),
        functions_(functions),
        bulk_text_(kernel.bulk),
        opencl_(target.language == hw::GpuLanguage::OpenCl),
        exprs_(names_, strides_,
               CDialect{opencl_ ? "" : "f", true, !opencl_ && func.math == MathMode::Exact,
                        opencl_ && target.has_f16}) {
    names_.fresh(symbol_of(func));
    exprs_.bounds = arith::Bounds(func);
    shared_ = lower::plan_shared(func.body, kernel.bulk.groups, target.shared_bytes);
    needless_ = needless_tests(func, shared_);
  }

  Result<std::string> run() {
    CText out;
    begin(out);
    if (opencl_ && lower::contains(func_.body, lower::is_warp_call)) out.line(kMatrixState);
    allocate_shared(out);
    products_ = lower::contains(func_.body, lower::is_product);
    stmt(func_.body, out);
    out.close();
    if (error_) return tl::unexpected<Error>(std::move(*error_));
    return out.text;
  }

 private:
  /// The head of the kernel, up to where its parameters have their names.
  void begin(CText& out) {
    for (const Param& p : func_.params) strides_[p.buffer] = strides_of(p.buffer, p.strides);
    KernelHead given = kernel_head(func_, opencl_, names_, exprs_);
    for (const std::string& map : bulk_text_.parameters()) given.parameters.push_back(map);
    const auto& b = kernel_.block;
    const std::string head =
        opencl_ ? fmt::format("__kernel __attribute__((reqd_work_group_size({}, {}, {}))) void",
                              b[0], b[1], b[2])
                : fmt::format("extern \"C\" __global__ void __launch_bounds__({}, {})",
                              b[0] * b[1] * b[2],
                              blocks_at_once(func_.body, b[0] * b[1] * b[2], target_));
    out.open(
        fmt::format("{} {}({}) {{", head, symbol_of(func_), fmt::join(given.parameters, ", ")));
    for (const std::string& view : given.views) out.line(view);
    if (is_patched()) {
      out.line(fmt::format("const i32 tw_thread = (i32)(threadIdx.y * {} + threadIdx.x);", b[0]));
      out.line(fmt::format("const i32 tw_x = tw_thread / 32 % {} * {} + tw_thread % {};",
                           b[0] / hw::kPatchWidth, hw::kPatchWidth, hw::kPatchWidth));
      out.line(fmt::format("const i32 tw_y = tw_thread / {} * {} + tw_thread % 32 / {};",
                           b[0] * 32 / hw::kPatchWidth, 32 / hw::kPatchWidth, hw::kPatchWidth));
    }
  }

  /// Whether warps take patches of the plane of threads.
  bool is_patched() const { return !opencl_ && hw::has_patches(kernel_.block); }

  /// Shared memory is declared at the head: OpenCL has it nowhere else. What a kernel asks for at
  /// launch is one array.
  void allocate_shared(CText& out) {
    const bool asked = kernel_.shared_bytes > 0;
    if (asked)
      out.line(fmt::format("extern __shared__ __align__({}) unsigned char tw_shared[];",
                           bulk_text_.any() ? hw::kPanelAlign : lower::kSharedAlign));
    walk(func_.body, [&](const Stmt& s) {
      const auto* alloc = s.as<Alloc>();
      if (alloc == nullptr || alloc->buffer.scope() != "shared") return;
      const Buffer& buffer = alloc->buffer;
      const lower::SharedBuffer& place = shared_.buffers.at(buffer);
      strides_[buffer] = lower::shared_strides(buffer, place);
      const bool bulk = !opencl_ && lower::is_bulk(*alloc);
      if (bulk)
        bulk_.insert(buffer);
      else if (lower::is_async(*alloc))
        async_.insert(buffer);
      written_ |= !bulk;
      const std::string type = c_storage_type(buffer.dtype()), id = names_.of(buffer);
      if (asked)
        out.line(fmt::format("{0}* const {1} = ({0}*)(tw_shared + {2});", type, id, place.offset));
      else
        out.line(fmt::format("{} {} {} {}[{}];", opencl_ ? "__local" : "__shared__",
                             bulk ? fmt::format("__align__({})", hw::kPanelAlign) : "TW_ALIGNED",
                             type, id, std::max<int64_t>(1, place.elements)));
    });
    if (bulk_text_.any())
      bulk_text_.begin(asked ? fmt::format("tw_shared + {}", shared_.arrivals) : "", out);
  }

  void stmt(const Stmt& s, CText& out) {
    if (!s.as<Alloc>() && !s.as<Seq>() && !is_shared_out(s) && !is_block_loop(s)) {
      const std::string alone = first_on_free_axes();
      const bool bulk = bound_.empty() && stores_only(s, bulk_);
      if (bulk && s.as<If>()) return branch(*s.as<If>(), out);  // one thread is chosen inside
      if (!alone.empty()) return only_first(s, bulk ? std::string(kOneThread) : alone, out);
    }
    if (!opencl_ && !in_products_ && lower::is_products(s)) return products(s, out);
    match(
        s, [&](const For& x) { loop(x, out); },
        [&](const Block& x) { refuse(fmt::format("block '{}' is left", x.name)); },
        [&](const Store& x) { store(x, out); }, [&](const Alloc& x) { alloc(x, out); },
        [&](const If& x) { branch(x, out); },
        [&](const Seq& x) {
          for (const Stmt& child : x.stmts) stmt(child, out);
        },
        [&](const Call& x) {
          if (lower::is_commit(s) || lower::waits_for(s)) return wait(s, out);
          if (const auto runs = lower::waits_for_products(s)) {
            if (!opencl_) out.line(fmt::format("tw_wait_products({});", *runs));
            return;
          }
          if (lower::is_thread_call(s)) return thread_call(x, out);
          if (!is_sync(s)) return warp_call(x, out);
          if (divergent_ > 0) refuse("a barrier is where not all threads come");
          if (!opencl_ && products_ && written_) out.line("tw_show_cores();");
          out.line(opencl_ ? "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
                           : "__syncthreads();");
          forget(out);
        });
  }

  /// OpenCL makes all copies where they stand.
  void wait(const Stmt& s, CText& out) const {
    const auto groups = lower::waits_for(s);
    if (bulk_text_.any()) groups ? bulk_text_.wait(*groups, out) : bulk_text_.commit(out);
    if (!opencl_ && !async_.empty())
      out.line(groups ? fmt::format("tw_wait({});", *groups) : "tw_commit();");
  }

  void forget(CText& out) const {
    if (opencl_)
      for (const std::string& name : live_) out.line(fmt::format("TW_FORGET({})", name));
  }

  /// Instructions that run on, one after the other: a later `sync.products` waits for them.
  void products(const Stmt& s, CText& out) {
    out.line("tw_begin_products();");
    in_products_ = true;
    stmt(s, out);
    in_products_ = false;
    out.line("tw_commit_products();");
  }

  /// A thread does an instruction by itself.
  void thread_call(const Call& x, CText& out) {
    const hw::Intrinsic& in = *hw::find_gpu_intrinsic(*x.callee);
    functions_.emplace(matrix_function_name(in), &in);
    out.open("{");
    write_call(x, in, Var("lane"), out);
    out.close();
  }

  void write_call(const Call& x, const hw::Intrinsic& in, const Var& lane, CText& out) {
    const auto text = matrix_call(
        x, in, lane, strides_, [&](const Buffer& b) { return space(b); }, names_, exprs_, out);
    if (text)
      out.line(*text);
    else if (!error_)
      error_ = text.error();
  }

  /// All lanes of a warp do an instruction together.
  void warp_call(const Call& x, CText& out) {
    const hw::Intrinsic& in = *lower::find_lanes_form(*x.callee);
    if (bound_.contains('x'))
      return refuse(fmt::format("{} is inside a loop over lanes", in.name()));
    for (size_t axis = 1; axis < 3; ++axis)
      if (kernel_.block[axis] > 1 && !bound_.contains(kAxes[axis]))
        return refuse(
            fmt::format("{} is outside of the loop over warps along {}", in.name(), kAxes[axis]));
    const int64_t lanes = hw::gpu_instruction(in)->lanes();
    if (kernel_.block[0] != lanes)
      return refuse(
          fmt::format("{} needs {} threads along x, not {}", in.name(), lanes, kernel_.block[0]));
    functions_.emplace(matrix_function_name(in), &in);
    const arith::Bounds outer = exprs_.bounds;
    const Var lane("lane");
    exprs_.bounds.bind(lane, int_imm(lanes));
    const std::string type = exprs_.declared_type(lane);
    out.open("{");
    out.line(fmt::format("const {} {} = {};", type, names_.of(lane), position("thread", 0)));
    write_call(x, in, lane, out);
    forget(out);
    out.close();
    exprs_.bounds = outer;
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
    if (kind == "thread" && axis < 2 && is_patched()) return axis == 0 ? "tw_x" : "tw_y";
    return fmt::format("(i32){}Idx.{}", kind, kAxes[axis]);
  }

  void loop(const For& x, CText& out) {
    if (!bulk_.empty() && fills_only(make(x), bulk_) && bulk_text_.fetch(x, names_, exprs_, out))
      return;
    const arith::Bounds outer = exprs_.bounds;
    if (x.kind == ForKind::Bind) {
      bound_loop(x, out);
    } else {
      exprs_.begin({x.extent});
      const std::string extent = exprs_.value(x.extent, out);
      exprs_.bounds.bind(x.var, x.extent);
      const std::string var = names_.of(x.var), type = exprs_.declared_type(x.var);
      if (x.kind == ForKind::Unroll || x.kind == ForKind::Vector)
        out.line("#pragma unroll");
      else if (!opencl_ && as_int(x.extent).value_or(0) > kTurns && fills_only(x.body, async_))
        out.line(fmt::format("#pragma unroll {}", kTurns));
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
      // What is still under way are groups without copies; a next loop finds the ring free.
      if (bulk_text_.any() && lower::pipeline_depth(x) && has_sync(x.body)) bulk_text_.wait(0, out);
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
    // An only iteration as a number: arrays that it indexes stay in registers.
    const std::string here = position(threads ? "thread" : "block", axis);
    out.line(fmt::format("{} {} = {};", type, var, extent == 1 && all ? "0" : here));
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
    if (needless_.contains(&x)) return stmt(x.then_body, out);
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
    if (bulk_.contains(x.buffer))
      return refuse(fmt::format("'{}' is not filled by whole tiles", x.buffer.name()));
    out.open("{");
    if (!async_copy(x, 1, out)) exprs_.store(x, out);
    out.close();
  }

  /// A copy that the thread waits for later; false where it has to be an ordinary one.
  bool async_copy(const Store& x, int64_t lanes, CText& out) {
    const int64_t bytes = lanes * bit_width(x.buffer.dtype()) / 8;
    const std::optional<Copy> copy = copy_of(x);
    if (opencl_ || !async_.contains(x.buffer) || bytes < 4 || !copy ||
        copy->from.buffer.scope() != "global")
      return false;
    std::vector<Expr> roots = x.indices;
    roots.insert(roots.end(), copy->from.indices.begin(), copy->from.indices.end());
    if (copy->condition) roots.push_back(copy->condition);
    exprs_.begin(roots);
    std::string there = "true";
    if (copy->condition) {
      there = names_.fresh("there");
      out.line(fmt::format("const bool {} = {};", there, exprs_.value(copy->condition, out)));
    }
    const std::string to = exprs_.offset(x.buffer, x.indices, out);
    std::string from = exprs_.offset(copy->from.buffer, copy->from.indices, out);
    if (copy->condition) from = fmt::format("({} ? {} : 0)", there, from);
    out.line(fmt::format("tw_copy{}({} + {}, {} + {}, {});", bytes, names_.of(x.buffer), to,
                         names_.of(copy->from.buffer), from, there));
    return true;
  }

  /// Several elements in one access.
  void wide_copy(const Store& x, int64_t lanes, CText& out) {
    if (async_copy(x, lanes, out)) return;
    const Copy copy = *copy_of(x);
    const std::string type = fmt::format("tw_b{}", lanes * bit_width(x.buffer.dtype()) / 8);
    std::string value = names_.fresh("moved");
    if (copy.condition) {
      out.line(fmt::format("{0} {1} = {0}_zero();", type, value));
      exprs_.begin({copy.condition});
      out.open(fmt::format("if ({}) {{", exprs_.value(copy.condition, out)));
      exprs_.begin(copy.from.indices);
      out.line(fmt::format("{} = {};", value,
                           wide(copy.from.buffer, copy.from.indices, "const " + type, out)));
      out.close();
      exprs_.begin(x.indices);
    } else {
      std::vector<Expr> roots = x.indices;
      roots.insert(roots.end(), copy.from.indices.begin(), copy.from.indices.end());
      exprs_.begin(roots);
      value = wide(copy.from.buffer, copy.from.indices, "const " + type, out);
    }
    const std::string to = wide(x.buffer, x.indices, type, out);
    out.line(fmt::format("{} = {};", to, value));
  }
  std::string wide(const Buffer& buffer, const std::vector<Expr>& indices, const std::string& type,
                   CText& out) {
    const std::string at = exprs_.offset(buffer, indices, out);
    return fmt::format("*({}{}*)({} + {})", space(buffer), type, names_.of(buffer), at);
  }
  /// The address space of a buffer, for pointers.
  std::string space(const Buffer& buffer) const {
    if (!opencl_ || buffer.scope() == "local" || buffer.scope() == "warp") return "";
    return buffer.scope() == "shared" ? "__local " : "__global ";
  }

  /// A thread's own array: without the axes that tell threads apart.
  void alloc(const Alloc& x, CText& out) {
    if (x.buffer.scope() == "shared") return;
    const size_t own = lower::thread_axes(x.buffer, func_.body);
    std::vector<Expr> strides = strides_of(x.buffer, {});
    for (size_t axis = 0; axis < own; ++axis) strides[axis] = int_imm(0);
    strides_[x.buffer] = strides;
    out.line(fmt::format("TW_ALIGNED {} {}[{}];", c_storage_type(x.buffer.dtype()),
                         names_.of(x.buffer),
                         std::max<int64_t>(1, own_elements(x.buffer, func_.body))));
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
  MatrixFunctions& functions_;
  BulkText bulk_text_;
  bool opencl_;
  CNames names_;
  CExprWriter::Strides strides_;
  CExprWriter exprs_;
  lower::SharedPlan shared_;
  std::set<const If*> needless_;  ///< tests to leave out
  std::set<std::string> axes_;    ///< of the bound loops around
  std::set<char> bound_;          ///< thread axes of the loops around
  std::set<Buffer> async_;        ///< whose copies may finish later
  std::set<Buffer> bulk_;         ///< whose copies the copy engine makes
  std::set<Var> thread_vars_;
  std::vector<std::string> live_;  ///< index variables of the loops around
  bool products_ = false;          ///< whether the kernel has asynchronous instructions
  bool written_ = false;           ///< whether threads write to shared memory themselves
  bool in_products_ = false;
  int divergent_ = 0;  ///< conditions around that not all threads fulfil
  std::optional<Error> error_;
};

}  // namespace

Result<std::string> emit_gpu(const std::vector<lower::GpuKernel>& kernels,
                             const hw::GpuTarget& target, const std::string& matrix_functions) {
  bool f64 = false, bulk = false;
  std::set<std::string> symbols;
  std::string text;
  MatrixFunctions functions;
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
    bulk |= !kernel.bulk.maps.empty();
    const Func plain = TW_TRY(inline_calls(kernel.func, stays_call));
    text += "\n" + TW_TRY(KernelWriter(kernel, plain, target, functions).run());
  }
  return gpu_prelude(target, f64) + (bulk ? cuda_bulk_helpers() : "") +
         TW_TRY(matrix_definitions(functions, target, matrix_functions)) + text;
}

}  // namespace tilewright::codegen
