#include "tilewright/ir/stmt.h"

#include <map>

#include "tilewright/base/check.h"

namespace tilewright {
namespace {

constexpr std::string_view kForKinds[] = {"serial", "parallel", "vector", "unroll", "bind"};
constexpr std::string_view kIterKinds[] = {"space", "reduce", "scan"};
constexpr std::string_view kMarkKinds[] = {"async",     "atomic",   "pipeline",   "ii",
                                           "partition", "prefetch", "fetch_next", "copies",
                                           "align",     "pad",      "slots",      "port"};
constexpr std::string_view kCombines[] = {"=", "+=", "*=", "max=", "min="};
constexpr std::string_view kParamModes[] = {"in", "out", "inout", "const"};

/// Compares two programs, pairing bound variables and buffers as it meets them.
class Matcher {
 public:
  bool stmts(const Stmt& a, const Stmt& b) {
    if (!a || !b) return !a && !b;
    if (a.get() == b.get() && vars_.empty() && buffers_.empty()) return true;
    if (a.get()->op.index() != b.get()->op.index()) return false;
    return match(
        a, [&](const For& x) { return loops(x, *b.as<For>()); },
        [&](const Block& x) { return blocks(x, *b.as<Block>()); },
        [&](const Store& x) {
          const auto& y = *b.as<Store>();
          return x.combine == y.combine && buffers(x.buffer, y.buffer) &&
                 exprs(x.indices, y.indices) && exprs(x.value, y.value);
        },
        [&](const Alloc& x) {
          return declare(x.buffer, b.as<Alloc>()->buffer) && x.marks == b.as<Alloc>()->marks;
        },
        [&](const If& x) {
          const auto& y = *b.as<If>();
          return exprs(x.condition, y.condition) && stmts(x.then_body, y.then_body) &&
                 stmts(x.else_body, y.else_body);
        },
        [&](const Seq& x) {
          const auto& y = b.as<Seq>()->stmts;
          if (x.stmts.size() != y.size()) return false;
          for (size_t i = 0; i < y.size(); ++i)
            if (!stmts(x.stmts[i], y[i])) return false;
          return true;
        },
        [&](const Call& x) { return calls(x, *b.as<Call>()); });
  }

  bool funcs(const Func& a, const Func& b) {
    if (a.name != b.name || a.math != b.math || a.scalars.size() != b.scalars.size() ||
        a.params.size() != b.params.size())
      return false;
    for (size_t i = 0; i < a.scalars.size(); ++i) {
      const Scalar &x = a.scalars[i], &y = b.scalars[i];
      if (x.lo != y.lo || x.hi != y.hi || !bind(x.var, y.var)) return false;
    }
    for (size_t i = 0; i < a.params.size(); ++i)
      if (!params(a.params[i], b.params[i])) return false;
    return stmts(a.body, b.body);
  }

 private:
  bool bind(const Var& a, const Var& b) {
    vars_[a] = b;
    return a.name() == b.name() && a.dtype() == b.dtype();
  }
  bool declare(const Buffer& a, const Buffer& b) {
    buffers_[a] = b;
    return a.name() == b.name() && a.dtype() == b.dtype() && a.scope() == b.scope() &&
           exprs(a.shape(), b.shape());
  }
  bool buffers(const Buffer& a, const Buffer& b) const {
    const auto it = buffers_.find(a);
    return it == buffers_.end() ? a == b : it->second == b;
  }
  bool params(const Param& a, const Param& b) {
    if (a.values.has_value() != b.values.has_value()) return false;
    if (a.values && !identical(*a.values, *b.values)) return false;
    return a.mode == b.mode && declare(a.buffer, b.buffer) && exprs(a.strides, b.strides);
  }
  bool loops(const For& a, const For& b) {
    return a.kind == b.kind && a.axis == b.axis && a.marks == b.marks &&
           exprs(a.extent, b.extent) && bind(a.var, b.var) && stmts(a.body, b.body);
  }
  bool blocks(const Block& a, const Block& b) {
    if (a.name != b.name || a.marks != b.marks || a.iters.size() != b.iters.size()) return false;
    if (!exprs(a.guard, b.guard)) return false;
    for (size_t i = 0; i < a.iters.size(); ++i) {
      const Iter &x = a.iters[i], &y = b.iters[i];
      if (x.kind != y.kind || !exprs(x.extent, y.extent) || !exprs(x.binding, y.binding))
        return false;
    }
    for (size_t i = 0; i < a.iters.size(); ++i)
      if (!bind(a.iters[i].var, b.iters[i].var)) return false;
    return stmts(a.body, b.body);
  }
  bool calls(const Call& a, const Call& b) {
    if (a.args.size() != b.args.size() || !equal(*a.callee, *b.callee)) return false;
    for (size_t i = 0; i < a.args.size(); ++i) {
      if (a.args[i].index() != b.args[i].index()) return false;
      if (const auto* e = std::get_if<Expr>(&a.args[i])) {
        if (!exprs(*e, std::get<Expr>(b.args[i]))) return false;
        continue;
      }
      const Region &x = std::get<Region>(a.args[i]), &y = std::get<Region>(b.args[i]);
      if (!buffers(x.buffer, y.buffer) || x.dims.size() != y.dims.size()) return false;
      for (size_t d = 0; d < x.dims.size(); ++d)
        if (!exprs(x.dims[d].first, y.dims[d].first) || !exprs(x.dims[d].second, y.dims[d].second))
          return false;
    }
    return true;
  }
  bool exprs(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!exprs(a[i], b[i])) return false;
    return true;
  }
  bool exprs(const Expr& a, const Expr& b) const {
    if (!a || !b) return !a && !b;
    if (a.dtype() != b.dtype() || a.get()->op.index() != b.get()->op.index()) return false;
    return match(
        a,
        [&](const VarRef& x) {
          const auto it = vars_.find(x.var);
          return (it == vars_.end() ? x.var : it->second) == b.as<VarRef>()->var;
        },
        [&](const Unary& x) { return x.op == b.as<Unary>()->op && exprs(x.a, b.as<Unary>()->a); },
        [&](const Binary& x) {
          const auto& y = *b.as<Binary>();
          return x.op == y.op && exprs(x.a, y.a) && exprs(x.b, y.b);
        },
        [&](const Select& x) {
          const auto& y = *b.as<Select>();
          return exprs(x.condition, y.condition) && exprs(x.on_true, y.on_true) &&
                 exprs(x.on_false, y.on_false);
        },
        [&](const Cast& x) { return x.bits == b.as<Cast>()->bits && exprs(x.a, b.as<Cast>()->a); },
        [&](const Load& x) {
          return buffers(x.buffer, b.as<Load>()->buffer) && exprs(x.indices, b.as<Load>()->indices);
        },
        [&](const MathCall& x) {
          return x.fn == b.as<MathCall>()->fn && exprs(x.args, b.as<MathCall>()->args);
        },
        [&](const auto&) { return equal(a, b); });
  }

  std::map<Var, Var> vars_;
  std::map<Buffer, Buffer> buffers_;
};

}  // namespace

Stmt make(StmtOp op) { return Stmt(std::make_shared<const StmtNode>(StmtNode{std::move(op)})); }

Stmt seq(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  for (Stmt& s : stmts) {
    if (!s) continue;
    if (const Seq* inner = s.as<Seq>()) {
      flat.insert(flat.end(), inner->stmts.begin(), inner->stmts.end());
    } else {
      flat.push_back(std::move(s));
    }
  }
  return flat.size() == 1 ? flat[0] : make(Seq{std::move(flat)});
}

bool equal(const Func& a, const Func& b) { return Matcher().funcs(a, b); }
bool equal(const Stmt& a, const Stmt& b) { return Matcher().stmts(a, b); }

std::string_view name(ForKind kind) { return kForKinds[static_cast<int>(kind)]; }
std::string_view name(IterKind kind) { return kIterKinds[static_cast<int>(kind)]; }
std::string_view name(MarkKind kind) { return kMarkKinds[static_cast<int>(kind)]; }
std::string_view name(Combine combine) { return kCombines[static_cast<int>(combine)]; }
std::string_view name(ParamMode mode) { return kParamModes[static_cast<int>(mode)]; }
std::optional<MarkKind> parse_mark_kind(std::string_view text) {
  for (size_t i = 0; i < std::size(kMarkKinds); ++i)
    if (kMarkKinds[i] == text) return static_cast<MarkKind>(i);
  return std::nullopt;
}

std::string mark_kinds() {
  std::string all;
  for (const std::string_view kind : kMarkKinds)
    all += (all.empty() ? "" : " ") + std::string(kind);
  return all;
}

const Mark* find_mark(const Marks& marks, MarkKind kind) {
  for (const Mark& mark : marks)
    if (mark.kind == kind) return &mark;
  return nullptr;
}

std::optional<int64_t> int_mark(const Marks& marks, MarkKind kind) {
  const Mark* mark = find_mark(marks, kind);
  const auto* value = mark != nullptr ? std::get_if<int64_t>(&mark->value) : nullptr;
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::string_view fpga_memory(std::string_view scope) {
  constexpr std::string_view kPrefix = "fpga.";
  return scope.starts_with(kPrefix) ? scope.substr(kPrefix.size()) : std::string_view();
}

bool is_fpga_memory(std::string_view memory) {
  for (const std::string_view known : kFpgaMemories)
    if (memory == known) return true;
  return false;
}

}  // namespace tilewright
