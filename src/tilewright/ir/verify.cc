// The rules are numbered in docs/ir.md, section 9; each message below cites its rule's subject.
#include "tilewright/ir/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/ir/text.h"
#include "tilewright/ir/text_tables.h"
#include "tilewright/ir/walk.h"

namespace tilewright {
namespace {

constexpr size_t kMaxErrors = 16;

class Verifier {
 public:
  Verifier(const Func& func, Stage stage) : func_(func), stage_(stage) {}

  Status run() {
    place_ = "the parameters";
    if (func_.name.empty()) report("the function has no name");
    for (const Scalar& s : func_.scalars) scalar(s);
    for (const Param& p : func_.params) param(p);
    place_ = "the body";
    if (!func_.body) {
      report("the function has no body");
    } else {
      if (stage_ == Stage::Tensor) tensor_nests();
      stmt(func_.body);
    }
    if (errors_.empty()) return {};
    Error first = std::move(errors_.front());
    first.others.assign(std::make_move_iterator(errors_.begin() + 1),
                        std::make_move_iterator(errors_.end()));
    return tl::unexpected<Error>(std::move(first));
  }

 private:
  // --- Reporting.
  void report(std::string what, std::string fix = {}) {
    if (errors_.size() >= kMaxErrors) return;
    Error e;
    e.kind = ErrorKind::Invalid;
    e.what = std::move(what);
    e.place = fmt::format("func {}: {}", func_.name, place_);
    e.fix = std::move(fix);
    errors_.push_back(std::move(e));
  }

  // --- Names (9.1).
  /// `what`: what has names of this kind, in the plural.
  void declare(std::set<std::string>& names, const std::string& name, const char* what) {
    if (name.empty()) report(fmt::format("one of the {} has no name", what));
    if (!names.insert(name).second) report(fmt::format("two {} are named `{}`", what, name));
  }
  void declare_buffer(const Buffer& buffer) {
    declare(buffer_names_, buffer.name(), "buffers");
    if (buffer.scope().empty()) report(fmt::format("`{}` has no scope", buffer.name()));
    if (buffer.scope().starts_with("fpga.") && !is_fpga_memory(fpga_memory(buffer.scope())))
      report(fmt::format("`{}` has the scope {}, which no FPGA has", buffer.name(), buffer.scope()),
             fmt::format("fpga.{}", fmt::join(kFpgaMemories, ", fpga.")));
    for (const Expr& extent : buffer.shape()) {
      size(extent, fmt::format("an extent of `{}`", buffer.name()));
      if (const auto n = extent ? as_int(extent) : std::nullopt; n && *n < 0)
        report(fmt::format("`{}` has the negative extent {}", buffer.name(), *n));
    }
    buffers_.insert(buffer);
  }

  void scalar(const Scalar& s) {
    declare(loop_names_, s.var.name(), "loops or scalars");
    if (s.var.dtype() != DType::I64) report(fmt::format("scalar `{}` is not i64", s.var.name()));
    if (s.lo > s.hi)
      report(fmt::format("scalar `{}` has the empty range {}..{}", s.var.name(), s.lo, s.hi));
    vars_.insert(s.var);
    scalars_.insert(s.var);
  }

  void param(const Param& p) {
    const std::string& name = p.buffer.name();
    declare_buffer(p.buffer);
    params_[p.buffer] = p.mode;
    if (!p.strides.empty() && p.strides.size() != p.buffer.rank())
      report(
          fmt::format("`{}` has {} axes and {} strides", name, p.buffer.rank(), p.strides.size()));
    for (const Expr& stride : p.strides) size(stride, fmt::format("a stride of `{}`", name));
    if (!p.values) return;
    if (p.mode != ParamMode::Const) report(fmt::format("`{}` has values but is not const", name));
    bool fits =
        p.values->dtype() == p.buffer.dtype() && p.values->shape().size() == p.buffer.rank();
    for (size_t k = 0; fits && k < p.buffer.rank(); ++k)
      fits = as_int(p.buffer.shape()[k]) == p.values->shape()[k];
    if (!fits)
      report(fmt::format("the values of `{}` are {}{}, not of its type and shape", name,
                         tilewright::name(p.values->dtype()), to_string(p.values->shape())));
  }

  // --- Expressions (9.2).
  void use(const Buffer& buffer) {
    if (!buffers_.contains(buffer))
      report(fmt::format("buffer `{}` is not declared here", buffer.name()),
             "its alloc stands earlier in an enclosing body");
  }
  void use(const Var& var) {
    if (vars_.contains(var)) return;
    if (hidden_.contains(var)) {
      report(fmt::format("loop `{}` is not seen inside a block body", var.name()),
             "use the iteration bound to it");
    } else {
      report(fmt::format("variable `{}` is not in scope", var.name()));
    }
  }

  std::string type_problem(const Expr& e) const {
    const DType type = e.dtype();
    auto must_be = [&](DType expected) {
      return type == expected ? ""
                              : fmt::format("a node of type {} stands where {} is computed",
                                            name(type), name(expected));
    };
    return match(
        e,
        [&](const IntImm& x) -> std::string {
          if (is_float(type)) return "an integer literal of a floating-point type";
          return text::fits(x.value, type)
                     ? ""
                     : fmt::format("literal {} is outside the range of {}", x.value, name(type));
        },
        [&](const FloatImm&) -> std::string {
          return is_float(type) ? "" : "a floating-point literal of an integer type";
        },
        [&](const VarRef& x) -> std::string { return must_be(x.var.dtype()); },
        [&](const Unary& x) -> std::string {
          std::string problem = text::type_problem(x.op, x.a.dtype());
          return problem.empty() ? must_be(x.a.dtype()) : problem;
        },
        [&](const Binary& x) -> std::string {
          std::string problem = text::type_problem(x.op, x.a.dtype(), x.b.dtype());
          const bool yes_no = is_comparison(x.op) || x.op == BinaryOp::And || x.op == BinaryOp::Or;
          return problem.empty() ? must_be(yes_no ? DType::Bool : x.a.dtype()) : problem;
        },
        [&](const Select& x) -> std::string {
          if (x.condition.dtype() != DType::Bool) return "a select on something not bool";
          if (x.on_true.dtype() != x.on_false.dtype())
            return fmt::format("a select between {} and {}", name(x.on_true.dtype()),
                               name(x.on_false.dtype()));
          return must_be(x.on_true.dtype());
        },
        [&](const Cast& x) -> std::string {
          return x.bits ? text::bitcast_problem(x.a.dtype(), type) : "";
        },
        [&](const Load& x) -> std::string { return must_be(x.buffer.dtype()); },
        [&](const MathCall& x) -> std::string {
          for (const Expr& arg : x.args)
            if (arg.dtype() != x.args[0].dtype())
              return fmt::format("`{}` of mixed types", name(x.fn));
          std::string problem = text::type_problem(x.fn, x.args[0].dtype());
          const bool yes_no = x.fn == MathFn::IsNan || x.fn == MathFn::IsInf;
          return problem.empty() ? must_be(yes_no ? DType::Bool : x.args[0].dtype()) : problem;
        });
  }

  void expr(const Expr& e, const std::string& what) {
    if (!e) return report(fmt::format("{} is missing", what));
    walk(e, [&](const Expr& x) {
      if (const auto* r = x.as<VarRef>()) use(r->var);
      if (const auto* l = x.as<Load>()) access(l->buffer, l->indices);
      if (std::string problem = type_problem(x); !problem.empty())
        report(fmt::format("{}: {} in `{}`", what, problem, print_short(x)));
    });
  }
  void expr_of(DType type, const Expr& e, const std::string& what) {
    expr(e, what);
    if (e && e.dtype() != type)
      report(fmt::format("{} is {}, not {}", what, name(e.dtype()), name(type)));
  }
  /// An i64 expression without loads: extents, shapes, bindings are known before any data.
  void size(const Expr& e, const std::string& what) {
    expr_of(DType::I64, e, what);
    walk(e, [&](const Expr& x) {
      if (x.as<Load>()) report(fmt::format("{} reads `{}`", what, x.as<Load>()->buffer.name()));
    });
  }
  void access(const Buffer& buffer, const std::vector<Expr>& indices) {
    use(buffer);
    if (indices.size() != buffer.rank())
      report(fmt::format("{} indices for `{}` of rank {}", indices.size(), buffer.name(),
                         buffer.rank()));
    for (const Expr& index : indices)
      if (index.dtype() != DType::I64)
        report(fmt::format("an index of `{}` is {}, not i64", buffer.name(), name(index.dtype())));
  }
  static std::string print_short(const Expr& e) {
    std::string text = print(e);
    return text.size() <= 60 ? text : text.substr(0, 57) + "...";
  }

  // --- Statements (9.3).
  void stmt(const Stmt& s) {
    if (!s) return report("a statement is missing");
    match(
        s, [&](const For& x) { loop(x); }, [&](const Block& x) { block(x); },
        [&](const Store& x) {
          if (block_ == nullptr && stage_ != Stage::Lowered)
            report(fmt::format("a store to `{}` stands outside a block", x.buffer.name()));
          store(x);
        },
        [&](const Alloc& x) { alloc(x); }, [&](const If& x) { condition(x); },
        [&](const Seq& x) { sequence(x); },
        [&](const Call& x) {
          if (stage_ == Stage::Tensor) report("a call stands in a program of stage tensor");
          call(x);
        });
  }

  /// Marks whose values are read as numbers of slots and ports (9.5).
  void marks(const Marks& all, bool slots, bool port) {
    for (const Mark& mark : all) {
      const auto* n = std::get_if<int64_t>(&mark.value);
      if (mark.kind == MarkKind::Slots && !slots)
        report("mark `slots` stands on something that is no allocation");
      if (mark.kind == MarkKind::Slots && (n == nullptr || *n < 1 || *n > 8))
        report("the value of mark `slots` is not 1 to 8");
      if (mark.kind == MarkKind::Port && !port) report("mark `port` stands on an allocation");
      if (mark.kind == MarkKind::Port && (n == nullptr || *n < 0))
        report("the value of mark `port` is no number of a port");
    }
  }

  void loop(const For& x) {
    const std::string outer = std::exchange(place_, fmt::format("loop `{}`", x.var.name()));
    marks(x.marks, false, true);
    declare(loop_names_, x.var.name(), "loops or scalars");
    if (x.var.dtype() != DType::I64) report("the loop variable is not i64");
    size(x.extent, "the extent");
    if (const auto n = x.extent ? as_int(x.extent) : std::nullopt; n && *n < 0)
      report(fmt::format("the extent {} is negative", *n));
    if ((x.kind == ForKind::Bind) == x.axis.empty())
      report(x.axis.empty() ? "a bind loop names no axis" : "only a bind loop names an axis");
    if (stage_ == Stage::Tensor && (x.kind != ForKind::Serial || !x.marks.empty()))
      report("a loop of stage tensor is serial and has no marks");
    vars_.insert(x.var);
    scoped(x.body);
    vars_.erase(x.var);
    place_ = outer;
  }

  /// A body: buffers allocated in it end with it.
  void scoped(const Stmt& body) {
    const size_t outer = allocated_.size();
    stmt(body);
    for (; allocated_.size() > outer; allocated_.pop_back()) buffers_.erase(allocated_.back());
  }

  void sequence(const Seq& x) {
    if (x.stmts.size() == 1) report("a Seq of one statement");
    for (const Stmt& child : x.stmts) {
      if (child && child.as<Seq>()) report("a Seq directly inside a Seq");
      stmt(child);
    }
  }

  void alloc(const Alloc& x) {
    const std::string outer = std::exchange(place_, fmt::format("alloc `{}`", x.buffer.name()));
    if (buffers_.contains(x.buffer)) report("the buffer is allocated twice");
    if (stage_ == Stage::Tensor && (x.buffer.scope() != "global" || !x.marks.empty()))
      report("an allocation of stage tensor is global and has no marks");
    declare_buffer(x.buffer);
    marks(x.marks, true, false);
    allocated_.push_back(x.buffer);
    place_ = outer;
  }

  void condition(const If& x) {
    if (stage_ == Stage::Tensor) report("an if stands in a program of stage tensor");
    expr_of(DType::Bool, x.condition, "the condition of an if");
    scoped(x.then_body);
    if (x.else_body) scoped(x.else_body);
  }

  void block(const Block& x) {
    const std::string outer = std::exchange(place_, fmt::format("block `{}`", x.name));
    declare(block_names_, x.name, "blocks");
    marks(x.marks, false, true);
    if (stage_ == Stage::Tensor && !x.marks.empty()) report("a block of stage tensor has no marks");
    if (x.guard) expr_of(DType::Bool, x.guard, "the guard");
    std::set<std::string> names;
    for (const Iter& iter : x.iters) {
      const std::string what = fmt::format("iteration `{}`", iter.var.name());
      declare(names, iter.var.name(), "iterations");
      if (iter.var.dtype() != DType::I64) report(what + " is not i64");
      for (const Var& s : scalars_)
        if (s.name() == iter.var.name()) report(what + " has the name of a scalar");
      size(iter.extent, "the extent of " + what);
      size(iter.binding, "the binding of " + what);
    }
    body(x);
    place_ = outer;
  }

  void body(const Block& x) {
    const std::set<Var> loops = std::exchange(vars_, scalars_);
    const std::set<Var> outer_hidden = std::exchange(hidden_, loops);
    bool reduces = false;
    for (const Iter& iter : x.iters) {
      vars_.insert(iter.var);
      reduces |= iter.kind == IterKind::Reduce;
    }
    const Block* outer = std::exchange(block_, &x);
    bool shape = x.body && (x.body.as<Store>() || x.body.as<Call>());
    if (const Seq* all = x.body ? x.body.as<Seq>() : nullptr)
      shape = !all->stmts.empty() && std::all_of(all->stmts.begin(), all->stmts.end(),
                                                 [](const Stmt& s) { return s && s.as<Store>(); });
    if (!shape || outer != nullptr)
      report("the body of a block is one store, stores in a row, or one call");
    if (shape) {
      stmt(x.body);
      walk(x.body, [&](const Stmt& s) {
        if (const Store* st = s.as<Store>(); st && reduces && st->combine == Combine::Set)
          report(fmt::format("`{}` is set once per step of a reduce iteration", st->buffer.name()),
                 "combine into it, or make the iteration space or scan");
      });
    }
    block_ = outer;
    hidden_ = outer_hidden;
    vars_ = loops;
  }

  void writable(const Buffer& buffer) {
    const auto found = params_.find(buffer);
    if (found == params_.end()) return;
    if (found->second == ParamMode::In || found->second == ParamMode::Const)
      report(fmt::format("`{}` is written but is an {} parameter", buffer.name(),
                         found->second == ParamMode::In ? "input" : "unchanging (const)"));
  }

  void store(const Store& x) {
    access(x.buffer, x.indices);
    writable(x.buffer);
    for (const Expr& index : x.indices)
      expr(index, fmt::format("an index of `{}`", x.buffer.name()));
    expr_of(x.buffer.dtype(), x.value, fmt::format("the value stored to `{}`", x.buffer.name()));
    if (x.combine != Combine::Set && x.buffer.dtype() == DType::Bool)
      report(fmt::format("`{}` into the bool buffer `{}`", name(x.combine), x.buffer.name()));
  }

  // --- Calls (9.4).
  void call(const Call& x) {
    if (!x.callee) return report("a call without callee");
    const Func& f = *x.callee;
    const auto [known, fresh] = callees_.emplace(f.name, x.callee.get());
    if (f.name == func_.name || (!fresh && known->second != &f && !equal(*known->second, f)))
      report(fmt::format("two functions are named `{}`", f.name));
    if (fresh) callee(f);
    if (x.args.size() != f.scalars.size() + f.params.size())
      return report(fmt::format("`{}` takes {} arguments, not {}", f.name,
                                f.scalars.size() + f.params.size(), x.args.size()));
    for (size_t i = 0; i < x.args.size(); ++i) {
      const auto* scalar_arg = std::get_if<Expr>(&x.args[i]);
      const bool wants_scalar = i < f.scalars.size();
      if ((scalar_arg != nullptr) != wants_scalar) {
        report(fmt::format("argument {} of `{}` must be a {}", i, f.name,
                           wants_scalar ? "scalar" : "region"));
      } else if (wants_scalar) {
        scalar_argument(f, f.scalars[i], *scalar_arg);
      } else {
        region(f, f.params[i - f.scalars.size()], std::get<Region>(x.args[i]));
      }
    }
  }

  void callee(const Func& f) {
    const Status status = verify(f, Stage::Scheduled);
    if (!status)
      report(fmt::format("callee `{}` is not valid: {}", f.name, status.error().what),
             status.error().place);
  }

  void scalar_argument(const Func& f, const Scalar& s, const Expr& e) {
    expr_of(DType::I64, e, fmt::format("scalar `{}` of `{}`", s.var.name(), f.name));
    const auto value = e ? as_int(e) : std::nullopt;
    if (value && (*value < s.lo || *value > s.hi))
      report(fmt::format("scalar `{}` of `{}` is {}, outside {}..{}", s.var.name(), f.name, *value,
                         s.lo, s.hi));
  }

  void region(const Func& f, const Param& p, const Region& r) {
    const std::string what = fmt::format("the region of `{}` for `{}` of `{}`", r.buffer.name(),
                                         p.buffer.name(), f.name);
    use(r.buffer);
    if (p.mode == ParamMode::Out || p.mode == ParamMode::InOut) writable(r.buffer);
    if (r.buffer.dtype() != p.buffer.dtype())
      report(fmt::format("{} is {}, not {}", what, name(r.buffer.dtype()), name(p.buffer.dtype())));
    if (r.dims.size() != r.buffer.rank())
      report(fmt::format("{} has {} axes, not {}", what, r.dims.size(), r.buffer.rank()));
    bool constant = true;
    std::vector<int64_t> sizes, extents;
    auto collect = [&](const Expr& e, std::vector<int64_t>& values) {
      const auto n = e ? as_int(e) : std::nullopt;
      constant &= n.has_value();
      if (n && *n != 1) values.push_back(*n);
    };
    for (const auto& [begin, extent] : r.dims) {
      expr_of(DType::I64, begin, "a begin in " + what);
      expr_of(DType::I64, extent, "a size in " + what);
      collect(extent, sizes);
    }
    for (const Expr& extent : p.buffer.shape()) collect(extent, extents);
    if (constant && sizes != extents)
      report(fmt::format("{} has sizes {}, the parameter {} (axes of size 1 aside)", what,
                         to_string(sizes), to_string(extents)));
  }

  // --- Stage tensor (9.6): one block per nest, except in nests over time.
  void tensor_nests() {
    const std::vector<Stmt> top =
        func_.body.as<Seq>() ? func_.body.as<Seq>()->stmts : std::vector<Stmt>{func_.body};
    for (const Stmt& nest : top) {
      std::vector<const Block*> blocks;
      bool scans = false, allocs = false;
      walk(nest, [&](const Stmt& s) {
        if (const Block* b = s.as<Block>()) {
          blocks.push_back(b);
          for (const Iter& iter : b->iters) scans |= iter.kind == IterKind::Scan;
        }
        allocs |= s.as<Alloc>() != nullptr;
      });
      if (nest && nest.as<Alloc>()) continue;
      if (!scans && (blocks.size() > 1 || allocs))
        report(fmt::format("blocks `{}` and `{}` share a nest in a program of stage tensor",
                           blocks.empty() ? "" : blocks.front()->name,
                           blocks.empty() ? "" : blocks.back()->name));
    }
  }

  const Func& func_;
  Stage stage_;
  std::string place_;
  std::vector<Error> errors_;
  std::set<std::string> loop_names_, block_names_, buffer_names_;
  std::set<Var> vars_, scalars_, hidden_;
  std::set<Buffer> buffers_;
  std::vector<Buffer> allocated_;  ///< those of buffers_ that end with a body
  std::map<Buffer, ParamMode> params_;
  std::map<std::string, const Func*> callees_;
  const Block* block_ = nullptr;
};

}  // namespace

Status verify(const Func& func, Stage stage) { return Verifier(func, stage).run(); }

}  // namespace tilewright
