// The canonical text of programs and expressions, docs/ir.md, section 2: what ir/parse.cc reads.
//
//   For{i, 4, For{j, 8, Store{..}}}  ->  for i in 4, j in 8 {
//                                          C[i, j] = A[i] * 2.0
//                                        }
//
// Parentheses stand only where precedence asks for them, floats have the fewest digits that read
// back as the same value, and names that are no plain words stand in backquotes.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "tilewright/base/check.h"
#include "tilewright/base/scanner.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/text_tables.h"
#include "tilewright/ir/walk.h"

namespace tilewright {
namespace {

std::string quoted(const std::string& name) { return quote_name(name, text::reserved_words()); }

/// A float without its type: `1.5`, `-inf`, `nan`. `bits` are shown for any other NaN.
std::string float_text(double value, DType dtype, uint64_t bits, uint64_t plain_nan,
                       std::string_view suffix) {
  if (std::isnan(value)) {
    if (bits == plain_nan) return fmt::format("nan{}", suffix);
    return fmt::format("nan{}({:#x})", suffix, bits);
  }
  if (std::isinf(value)) return fmt::format("{}inf{}", value < 0 ? "-" : "", suffix);
  return text::float_digits(value, dtype);
}

/// Element `i` of a constant table, without a type suffix.
std::string element_text(const Array& values, int64_t i) {
  const DType dtype = values.dtype();
  if (dtype == DType::Bool) return values.get_int(i) != 0 ? "true" : "false";
  if (dtype == DType::U64) return fmt::format("{}", static_cast<uint64_t>(values.get_int(i)));
  if (!is_float(dtype)) return fmt::format("{}", values.get_int(i));
  const size_t bytes = static_cast<size_t>(storage_bytes(dtype, 1));
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(values.data()) + static_cast<size_t>(i) * bytes,
              bytes);
  return float_text(values.get(i), dtype, bits, text::plain_nan_bits(dtype), "");
}

class Printer {
 public:
  std::string take() { return std::move(out_); }

  void func(const Func& f) {
    out_ += fmt::format("func {}(", quoted(f.name));
    const char* comma = "";
    for (const Scalar& s : f.scalars) {
      out_ += fmt::format("{}{}: int in {}..{}", comma, quoted(s.var.name()), s.lo, s.hi);
      comma = ", ";
    }
    for (const Param& p : f.params) {
      out_ += comma;
      param(p);
      comma = ", ";
    }
    out_ += f.math == MathMode::Exact ? ") exact " : ") ";
    braced(f.body);
    out_ += '\n';
  }

  void stmt(const Stmt& s) {
    match(
        s, [&](const For& x) { loops(x); }, [&](const Block& x) { block(x); },
        [&](const Store& x) {
          line();
          access(x.buffer, x.indices);
          out_ += fmt::format(" {} ", name(x.combine));
          expr(x.value);
        },
        [&](const Alloc& x) {
          line();
          out_ += "alloc ";
          buffer(x.buffer);
          marks(x.marks);
        },
        [&](const If& x) {
          line();
          out_ += "if ";
          expr(x.condition);
          out_ += ' ';
          braced(x.then_body);
          if (!x.else_body) return;
          out_ += " else ";
          braced(x.else_body);
        },
        [&](const Seq& x) {
          for (const Stmt& child : x.stmts) stmt(child);
        },
        [&](const Call& x) { call(x); });
  }

  /// `min_precedence`: the loosest operator that needs no parentheses here.
  void expr(const Expr& e, int min_precedence = 0) {
    match(
        e, [&](const IntImm& x) { int_imm(x.value, e.dtype()); },
        [&](const FloatImm& x) {
          const std::string suffix(e.dtype() == DType::F32 ? "" : name(e.dtype()));
          const bool finite = std::isfinite(x.value);
          out_ += float_text(x.value, e.dtype(), std::bit_cast<uint64_t>(x.value),
                             text::plain_nan_bits(DType::F64),
                             finite || suffix.empty() ? "" : "_" + suffix);
          if (finite) out_ += suffix;
        },
        [&](const VarRef& x) { out_ += quoted(x.var.name()); }, [&](const Unary& x) { unary(x); },
        [&](const Binary& x) { binary(x, min_precedence); },
        [&](const Select& x) { function("select", {x.condition, x.on_true, x.on_false}); },
        [&](const Cast& x) {
          out_ += x.bits ? fmt::format("bitcast({}, ", name(e.dtype()))
                         : fmt::format("{}(", name(e.dtype()));
          expr(x.a);
          out_ += ')';
        },
        [&](const Load& x) { access(x.buffer, x.indices); },
        [&](const MathCall& x) { function(name(x.fn), x.args); });
  }

 private:
  void line() {
    if (!out_.empty()) out_ += '\n';
    out_.append(static_cast<size_t>(indent_) * 2, ' ');
  }

  void braced(const Stmt& body) {
    out_ += '{';
    ++indent_;
    if (body) stmt(body);
    --indent_;
    line();
    out_ += '}';
  }

  void param(const Param& p) {
    if (p.mode != ParamMode::In) out_ += fmt::format("{} ", name(p.mode));
    buffer(p.buffer);
    if (!p.strides.empty()) {
      out_ += " strides [";
      list(p.strides, ",");
      out_ += ']';
    }
    if (!p.values) return;
    out_ += " = {";
    for (int64_t i = 0; i < p.values->size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += element_text(*p.values, i);
    }
    out_ += '}';
  }

  void buffer(const Buffer& b) {
    out_ += fmt::format("{}: {}[", quoted(b.name()), name(b.dtype()));
    list(b.shape(), ",");
    out_ += ']';
    if (b.scope() != "global") out_ += ' ' + quoted(b.scope());
  }

  void marks(const Marks& all) {
    if (all.empty()) return;
    out_ += " @(";
    const char* comma = "";
    for (const Mark& mark : all) {
      out_ += fmt::format("{}{}", comma, name(mark.kind));
      comma = ", ";
      if (const auto* word = std::get_if<std::string>(&mark.value)) {
        out_ += '=' + quoted(*word);
      } else if (const int64_t value = std::get<int64_t>(mark.value); value != 1) {
        out_ += fmt::format("={}", value);
      }
    }
    out_ += ')';
  }

  void loops(const For& outer) {
    line();
    out_ += "for ";
    const For* loop = &outer;
    while (true) {
      out_ += quoted(loop->var.name()) + " in ";
      expr(loop->extent);
      if (loop->kind == ForKind::Bind) {
        out_ += fmt::format(" bind({})", quoted(loop->axis));
      } else if (loop->kind != ForKind::Serial) {
        out_ += fmt::format(" {}", name(loop->kind));
      }
      marks(loop->marks);
      const For* inner = loop->body ? loop->body.as<For>() : nullptr;
      if (inner == nullptr) break;
      out_ += ", ";
      loop = inner;
    }
    out_ += ' ';
    braced(loop->body);
  }

  void block(const Block& b) {
    line();
    out_ += fmt::format("block {}(", quoted(b.name));
    const char* comma = "";
    for (const Iter& iter : b.iters) {
      out_ += fmt::format("{}{}: {} ", comma, quoted(iter.var.name()), name(iter.kind));
      comma = ", ";
      expr(iter.extent);
      out_ += " = ";
      expr(iter.binding);
    }
    out_ += ')';
    if (b.guard) {
      out_ += " where ";
      expr(b.guard);
    }
    marks(b.marks);
    out_ += ' ';
    braced(b.body);
  }

  void call(const Call& c) {
    line();
    out_ += fmt::format("call {}(", quoted(c.callee->name));
    const char* comma = "";
    for (const auto& arg : c.args) {
      out_ += comma;
      comma = ", ";
      if (const auto* e = std::get_if<Expr>(&arg)) {
        expr(*e);
        continue;
      }
      const Region& region = std::get<Region>(arg);
      out_ += quoted(region.buffer.name()) + '[';
      const char* separator = "";
      for (const auto& [begin, size] : region.dims) {
        out_ += separator;
        separator = ", ";
        expr(begin);
        out_ += ":+";
        expr(size);
      }
      out_ += ']';
    }
    out_ += ')';
  }

  void int_imm(int64_t value, DType dtype) {
    if (dtype == DType::Bool && (value == 0 || value == 1)) {
      out_ += value != 0 ? "true" : "false";
    } else if (dtype == DType::I64) {
      out_ += fmt::format("{}", value);
    } else if (dtype == DType::U64) {
      out_ += fmt::format("{}u64", static_cast<uint64_t>(value));
    } else {
      out_ += fmt::format("{}{}", value, name(dtype));
    }
  }

  void unary(const Unary& x) {
    out_ += x.op == UnaryOp::Neg ? '-' : x.op == UnaryOp::Not ? '!' : '~';
    // A minus directly before a literal belongs to the literal, so a negated literal is -(1).
    const auto* inner = x.a.as<Unary>();
    const bool literal = x.a.as<IntImm>() || x.a.as<FloatImm>();
    const bool minus = inner != nullptr && inner->op == UnaryOp::Neg;
    const bool parentheses = x.op == UnaryOp::Neg && (literal || minus);
    if (parentheses) out_ += '(';
    expr(x.a, parentheses ? 0 : text::kUnary);
    if (parentheses) out_ += ')';
  }

  void binary(const Binary& x, int min_precedence) {
    const auto level = text::precedence(x.op);
    if (!level) return function(symbol(x.op), {x.a, x.b});
    const bool parentheses = *level < min_precedence;
    if (parentheses) out_ += '(';
    expr(x.a, is_comparison(x.op) ? *level + 1 : *level);
    out_ += fmt::format(" {} ", symbol(x.op));
    expr(x.b, *level + 1);
    if (parentheses) out_ += ')';
  }

  void function(std::string_view callee, const std::vector<Expr>& args) {
    out_ += fmt::format("{}(", callee);
    list(args, ", ");
    out_ += ')';
  }

  void access(const Buffer& b, const std::vector<Expr>& indices) {
    out_ += quoted(b.name()) + '[';
    list(indices, ", ");
    out_ += ']';
  }

  void list(const std::vector<Expr>& exprs, const char* separator) {
    for (size_t i = 0; i < exprs.size(); ++i) {
      if (i > 0) out_ += separator;
      expr(exprs[i]);
    }
  }

  std::string out_;
  int indent_ = 0;
};

/// Callees of `f`, innermost first, each name once.
void collect_callees(const Func& f, std::vector<const Func*>& found) {
  walk(f.body, [&](const Stmt& s) {
    const auto* call = s.as<Call>();
    if (call == nullptr) return;
    for (const Func* known : found)
      if (known->name == call->callee->name) return;
    collect_callees(*call->callee, found);
    found.push_back(call->callee.get());
  });
}

}  // namespace

std::string print(const Func& func) {
  std::vector<const Func*> callees;
  collect_callees(func, callees);
  std::string text;
  for (const Func* callee : callees) {
    Printer printer;
    printer.func(*callee);
    text += printer.take() + '\n';
  }
  Printer printer;
  printer.func(func);
  return text + printer.take();
}

std::string print(const Stmt& stmt) {
  if (!stmt) return {};
  Printer printer;
  printer.stmt(stmt);
  return printer.take();
}

std::string print(const Expr& expr) {
  if (!expr) return {};
  Printer printer;
  printer.expr(expr);
  return printer.take();
}

uint64_t hash(const Func& func) {
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a, then SplitMix64's finaliser
  for (const char c : print(func)) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

}  // namespace tilewright
