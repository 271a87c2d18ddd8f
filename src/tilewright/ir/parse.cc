// The parser of programs: recursive descent over tokens, one function of FuncParser per statement
// of the grammar in docs/ir.md, section 2; expressions are in ir/parse_expr.cc.
//
//   for i in 4 { B[i] = A[i] + 1.0 }   ->   For{i, 4, Store{B, [i], Binary{Add, Load A, 1.0}}}
//
// Names are bound while reading: `names_` maps those in scope to variables and buffers, and is
// restored at the end of a scope. So every error has the line and column of its token. A function
// stands before its callers; the last one of a text is the result.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/scanner.h"
#include "tilewright/ir/parse_expr.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/text_tables.h"
#include "tilewright/ir/walk.h"

namespace tilewright {
namespace {

using text::ExprParser;
using text::ScopeNames;
using Kind = Token::Kind;
using Callees = std::vector<std::shared_ptr<const Func>>;

std::optional<ForKind> loop_kind(const Scanner& scan) {
  for (const ForKind kind :
       {ForKind::Serial, ForKind::Parallel, ForKind::Vector, ForKind::Unroll, ForKind::Bind})
    if (scan.at_word(name(kind))) return kind;
  return std::nullopt;
}

/// Parses one function; names live in `names_` and are restored where their scope ends.
class FuncParser {
 public:
  /// `text_limit`: more elements than this cannot stand in the text.
  FuncParser(Scanner& scanner, const Callees& callees, size_t text_limit)
      : scan_(scanner),
        callees_(callees),
        exprs_(scanner, names_),
        text_limit_(static_cast<int64_t>(text_limit)) {}

  Result<Func> func() {
    Func f;
    TW_TRY_STATUS(scan_.expect_word("func", "at the start of a function"));
    f.name = TW_TRY(scan_.expect_name("a function"));
    TW_TRY_STATUS(scan_.expect_symbol("(", "before the parameters"));
    if (!scan_.at_symbol(")")) {
      do TW_TRY_STATUS(param(f));
      while (scan_.accept_symbol(","));
    }
    TW_TRY_STATUS(scan_.expect_symbol(")", "or `,` after a parameter"));
    if (scan_.accept_word("exact")) f.math = MathMode::Exact;
    f.body = TW_TRY(braced());
    return f;
  }

 private:
  Status param(Func& f) {
    Param p;
    for (const ParamMode mode : {ParamMode::In, ParamMode::Const, ParamMode::Out, ParamMode::InOut})
      if (scan_.accept_word(name(mode))) {
        p.mode = mode;
        break;
      }
    const size_t start = scan_.offset();
    const std::string param_name = TW_TRY(scan_.expect_name("a parameter"));
    if (names_.vars.contains(param_name) || names_.buffers.contains(param_name))
      return scan_.error_at(start, fmt::format("two parameters are named `{}`", param_name));
    TW_TRY_STATUS(scan_.expect_symbol(":", "after the parameter's name"));
    if (scan_.at_word("int")) {
      if (p.mode != ParamMode::In)
        return scan_.error(fmt::format("a scalar cannot be {}", name(p.mode)));
      if (!f.params.empty())
        return scan_.error("scalars come before buffers in the parameter list");
      f.scalars.push_back(TW_TRY(scalar(param_name)));
      return {};
    }
    p.buffer = TW_TRY(buffer_type(param_name));
    if (scan_.accept_word("strides")) {
      p.strides = TW_TRY(shape("strides"));
      if (p.strides.size() != p.buffer.rank())
        return scan_.error_at(start, fmt::format("`{}` has {} axes and {} strides", param_name,
                                                 p.buffer.rank(), p.strides.size()));
    }
    if (scan_.at_symbol("=")) {
      if (p.mode != ParamMode::Const) return scan_.error("only a const parameter can have values");
      p.values = TW_TRY(values(p.buffer));
    }
    names_.buffers[param_name] = p.buffer;
    f.params.push_back(std::move(p));
    return {};
  }

  Result<Scalar> scalar(const std::string& scalar_name) {
    scan_.next();
    TW_TRY_STATUS(scan_.expect_word("in", "before the range of the scalar"));
    Scalar s{Var(scalar_name), 0, 0};
    s.lo = TW_TRY(scan_.expect_int("the lower end of the range"));
    TW_TRY_STATUS(scan_.expect_symbol("..", "between the ends of the range"));
    s.hi = TW_TRY(scan_.expect_int("the upper end of the range"));
    names_.vars[scalar_name] = s.var;
    scalars_.push_back(s.var);
    return s;
  }

  /// `f32[4,8] scope`, after the colon.
  Result<Buffer> buffer_type(const std::string& buffer_name) {
    const DType dtype = TW_TRY(exprs_.dtype());
    std::vector<Expr> extents = TW_TRY(shape("the shape"));
    std::string scope = "global";
    // The next line may start with a name too: a store.
    const bool here = scan_.peek().kind == Kind::Name && !scan_.peek().first_on_line;
    if (here && !at_reserved()) scope = scan_.next().value;
    return Buffer(buffer_name, dtype, std::move(extents), std::move(scope));
  }

  bool at_reserved() const {
    const auto reserved = text::reserved_words();
    return !scan_.peek().quoted &&
           std::find(reserved.begin(), reserved.end(), scan_.peek().text) != reserved.end();
  }

  Result<std::vector<Expr>> shape(std::string_view what) {
    std::vector<Expr> dims;
    TW_TRY_STATUS(scan_.expect_symbol("[", fmt::format("before {}", what)));
    if (!scan_.at_symbol("]")) {
      do dims.push_back(TW_TRY(exprs_.expr_of(DType::I64, "an extent or stride")));
      while (scan_.accept_symbol(","));
    }
    TW_TRY_STATUS(scan_.expect_symbol("]", fmt::format("or `,` in {}", what)));
    return dims;
  }

  /// The number of elements of a table, checked against the text that is left: an element takes
  /// at least two characters, so a huge shape never allocates.
  Result<Array> values(const Buffer& buffer) {
    const size_t start = scan_.offset();
    scan_.next();
    TW_TRY_STATUS(scan_.expect_symbol("{", "before the values"));
    Shape dims;
    int64_t count = 1;
    for (const Expr& extent : buffer.shape()) {
      const auto n = as_int(extent);
      if (!n || *n < 0 || (*n > 0 && count > text_limit_ / *n))
        return scan_.error_at(start, fmt::format("`{}` has values but its shape is not constant or "
                                                 "larger than the text",
                                                 buffer.name()));
      dims.push_back(*n);
      count *= *n;
    }
    Array array(buffer.dtype(), dims);
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0)
        TW_TRY_STATUS(scan_.expect_symbol(
            ",", fmt::format("before value {} of {} of `{}`", i + 1, count, buffer.name())));
      TW_TRY_STATUS(exprs_.element(array, i));
    }
    TW_TRY_STATUS(
        scan_.expect_symbol("}", fmt::format("after the {} values of `{}`", count, buffer.name())));
    return array;
  }

  /// `{ ... }` as one statement; buffers declared inside end with it.
  Result<Stmt> braced() {
    if (++nesting_ > text::kMaxNesting)
      return scan_.error(fmt::format("statements nested deeper than {}", text::kMaxNesting));
    TW_TRY_STATUS(scan_.expect_symbol("{", "before the body"));
    const size_t outer_allocs = shadowed_.size();
    std::vector<Stmt> stmts;
    while (!scan_.at_symbol("}")) {
      if (scan_.at_end()) return scan_.error("expected a statement or `}`, found the end of text");
      stmts.push_back(TW_TRY(stmt()));
    }
    scan_.next();
    for (; shadowed_.size() > outer_allocs; shadowed_.pop_back())
      restore(names_.buffers, shadowed_.back().first, shadowed_.back().second);
    --nesting_;
    return seq(std::move(stmts));
  }

  Result<Stmt> stmt() {
    if (scan_.accept_word("for")) return loops();
    if (scan_.accept_word("block")) return block();
    if (scan_.accept_word("alloc")) return alloc();
    if (scan_.accept_word("if")) return condition();
    if (scan_.accept_word("call")) return call();
    if (scan_.peek().kind != Kind::Name || at_reserved())
      return scan_.error(fmt::format("expected a statement, found {}", scan_.found()),
                         "a statement is for, block, alloc, if, call or `buffer[...] = value`");
    return store();
  }

  Result<Stmt> loops() {
    if (++nesting_ > text::kMaxNesting)
      return scan_.error(fmt::format("statements nested deeper than {}", text::kMaxNesting));
    For loop;
    loop.var = Var(TW_TRY(scan_.expect_name("a loop")));
    TW_TRY_STATUS(scan_.expect_word("in", "after the loop's name"));
    loop.extent = TW_TRY(exprs_.expr_of(DType::I64, "a loop's extent"));
    if (const auto kind = loop_kind(scan_)) {
      scan_.next();
      loop.kind = *kind;
      if (*kind == ForKind::Bind) {
        TW_TRY_STATUS(scan_.expect_symbol("(", "before the axis"));
        loop.axis = TW_TRY(scan_.expect_name("an axis"));
        TW_TRY_STATUS(scan_.expect_symbol(")", "after the axis"));
      }
    }
    loop.marks = TW_TRY(marks());
    const auto outer = std::exchange(names_.vars[loop.var.name()], loop.var);
    const bool comma = scan_.accept_symbol(",");
    loop.body = comma ? TW_TRY(loops()) : TW_TRY(braced());
    restore(names_.vars, loop.var.name(), outer);
    --nesting_;
    return make(std::move(loop));
  }

  /// Ends a scope: `key` means what it meant outside, perhaps nothing.
  template <class Map>
  static void restore(Map& names, const std::string& key, const typename Map::mapped_type& outer) {
    if (outer) {
      names[key] = outer;
    } else {
      names.erase(key);
    }
  }

  Result<Marks> marks() {
    Marks all;
    if (!scan_.accept_symbol("@")) return all;
    TW_TRY_STATUS(scan_.expect_symbol("(", "before the marks"));
    do {
      const size_t start = scan_.offset();
      const std::string word = TW_TRY(scan_.expect_name("a mark"));
      const auto kind = parse_mark_kind(word);
      if (!kind)
        return scan_.error_at(start, fmt::format("unknown mark `{}`", word),
                              "the marks are " + mark_kinds());
      Mark mark{*kind};
      if (scan_.accept_symbol("=")) {
        if (scan_.peek().kind == Kind::Name) {
          mark.value = scan_.next().value;
        } else {
          mark.value = TW_TRY(scan_.expect_int("the value of the mark"));
        }
      }
      all.push_back(std::move(mark));
    } while (scan_.accept_symbol(","));
    TW_TRY_STATUS(scan_.expect_symbol(")", "or `,` after a mark"));
    return all;
  }

  Result<Stmt> block() {
    Block b;
    b.name = TW_TRY(scan_.expect_name("a block"));
    TW_TRY_STATUS(scan_.expect_symbol("(", "before the iterations"));
    if (!scan_.at_symbol(")")) {
      do TW_TRY_STATUS(iteration(b));
      while (scan_.accept_symbol(","));
    }
    TW_TRY_STATUS(scan_.expect_symbol(")", "or `,` after an iteration"));
    if (scan_.accept_word("where")) b.guard = TW_TRY(exprs_.expr_of(DType::Bool, "a guard"));
    b.marks = TW_TRY(marks());
    // The body sees scalars (the names at function level that no loop hides) and its iterations.
    const auto outer_vars = names_.vars, outer_hidden = names_.hidden;
    std::erase_if(names_.vars, [&](const auto& entry) { return !is_scalar(entry.second); });
    names_.hidden = outer_vars;
    for (const Iter& iter : b.iters) names_.vars[iter.var.name()] = iter.var;
    b.body = TW_TRY(braced());
    names_.vars = outer_vars;
    names_.hidden = outer_hidden;
    return make(std::move(b));
  }

  bool is_scalar(const Var& var) const {
    return std::find(scalars_.begin(), scalars_.end(), var) != scalars_.end();
  }

  Status iteration(Block& b) {
    Iter iter;
    const size_t start = scan_.offset();
    iter.var = Var(TW_TRY(scan_.expect_name("an iteration")));
    for (const Iter& other : b.iters)
      if (other.var.name() == iter.var.name())
        return scan_.error_at(start, fmt::format("two iterations of block `{}` are named `{}`",
                                                 b.name, iter.var.name()));
    TW_TRY_STATUS(scan_.expect_symbol(":", "after the iteration's name"));
    bool known = false;
    for (const IterKind kind : {IterKind::Space, IterKind::Reduce, IterKind::Scan})
      if (!known && scan_.accept_word(name(kind))) iter.kind = kind, known = true;
    if (!known)
      return scan_.error(
          fmt::format("expected `space`, `reduce` or `scan`, found {}", scan_.found()));
    iter.extent = TW_TRY(exprs_.expr_of(DType::I64, "an iteration's extent"));
    TW_TRY_STATUS(scan_.expect_symbol("=", "before the iteration's binding"));
    iter.binding = TW_TRY(exprs_.expr_of(DType::I64, "an iteration's binding"));
    b.iters.push_back(std::move(iter));
    return {};
  }

  Result<Stmt> alloc() {
    Alloc a;
    const std::string buffer_name = TW_TRY(scan_.expect_name("a buffer"));
    TW_TRY_STATUS(scan_.expect_symbol(":", "after the buffer's name"));
    a.buffer = TW_TRY(buffer_type(buffer_name));
    a.marks = TW_TRY(marks());
    shadowed_.emplace_back(buffer_name, std::exchange(names_.buffers[buffer_name], a.buffer));
    return make(std::move(a));
  }

  Result<Stmt> condition() {
    If branch;
    branch.condition = TW_TRY(exprs_.expr_of(DType::Bool, "a condition"));
    branch.then_body = TW_TRY(braced());
    if (scan_.accept_word("else")) branch.else_body = TW_TRY(braced());
    return make(std::move(branch));
  }

  Result<Stmt> store() {
    Store s;
    const size_t start = scan_.offset();
    s.buffer = TW_TRY(exprs_.buffer());
    s.indices = TW_TRY(shape("the indices"));
    if (s.indices.size() != s.buffer.rank())
      return scan_.error_at(start, fmt::format("`{}` has {} axes, not {}", s.buffer.name(),
                                               s.buffer.rank(), s.indices.size()));
    if (scan_.accept_symbol("+=")) {
      s.combine = Combine::Add;
    } else if (scan_.accept_symbol("*=")) {
      s.combine = Combine::Mul;
    } else {
      if (scan_.accept_word("max")) {
        s.combine = Combine::Max;
      } else if (scan_.accept_word("min")) {
        s.combine = Combine::Min;
      }
      TW_TRY_STATUS(scan_.expect_symbol("=", "(or `+=`, `*=`, `max=`, `min=`) in a store"));
    }
    if (s.combine != Combine::Set && s.buffer.dtype() == DType::Bool)
      return scan_.error_at(start, fmt::format("`{}` does not apply to bool", name(s.combine)));
    s.value = TW_TRY(exprs_.expr_of(s.buffer.dtype(), "the stored value"));
    return make(std::move(s));
  }

  Result<Stmt> call() {
    const size_t start = scan_.offset();
    const std::string callee_name = TW_TRY(scan_.expect_name("a function"));
    Call c;
    for (const auto& f : callees_)
      if (f->name == callee_name) c.callee = f;
    if (!c.callee)
      return scan_.error_at(start, fmt::format("unknown function `{}`", callee_name),
                            "a function stands in the text before its callers");
    const size_t count = c.callee->scalars.size() + c.callee->params.size();
    TW_TRY_STATUS(scan_.expect_symbol("(", "before the arguments"));
    for (size_t i = 0; i < count; ++i) {
      if (i > 0)
        TW_TRY_STATUS(scan_.expect_symbol(
            ",", fmt::format("before argument {} of {} of `{}`", i + 1, count, callee_name)));
      if (i < c.callee->scalars.size()) {
        c.args.emplace_back(TW_TRY(exprs_.expr_of(DType::I64, "a scalar argument")));
      } else {
        c.args.emplace_back(TW_TRY(region(c.callee->params[i - c.callee->scalars.size()])));
      }
    }
    TW_TRY_STATUS(scan_.expect_symbol(
        ")", fmt::format("after the {} arguments of `{}`", count, callee_name)));
    return make(std::move(c));
  }

  Result<Region> region(const Param& param) {
    const size_t start = scan_.offset();
    Region r;
    r.buffer = TW_TRY(exprs_.buffer());
    if (r.buffer.dtype() != param.buffer.dtype())
      return scan_.error_at(start, fmt::format("`{}` is {}, but parameter `{}` is {}",
                                               r.buffer.name(), name(r.buffer.dtype()),
                                               param.buffer.name(), name(param.buffer.dtype())));
    TW_TRY_STATUS(scan_.expect_symbol("[", "before the region"));
    for (size_t d = 0; d < r.buffer.rank(); ++d) {
      if (d > 0) TW_TRY_STATUS(scan_.expect_symbol(",", "between the axes of the region"));
      Expr begin = TW_TRY(exprs_.expr_of(DType::I64, "the begin of a region"));
      TW_TRY_STATUS(scan_.expect_symbol(":+", "before the size of the region"));
      Expr size = TW_TRY(exprs_.expr_of(DType::I64, "the size of a region"));
      r.dims.emplace_back(std::move(begin), std::move(size));
    }
    TW_TRY_STATUS(scan_.expect_symbol("]", "after the region"));
    return r;
  }

  Scanner& scan_;
  const Callees& callees_;
  ScopeNames names_;
  std::vector<Var> scalars_;
  ExprParser exprs_;
  std::vector<std::pair<std::string, Buffer>> shadowed_;  ///< by each alloc in scope
  int nesting_ = 0;
  int64_t text_limit_;
};

/// Marks every function of `all` that `f` calls, directly or not.
void mark_called(const Func& f, const Callees& all, std::vector<bool>& called) {
  walk(f.body, [&](const Stmt& s) {
    const auto* call = s.as<Call>();
    if (call == nullptr) return;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] != call->callee || called[i]) continue;
      called[i] = true;
      mark_called(*all[i], all, called);
    }
  });
}

Result<Callees> parse_all(Scanner& scan, std::string_view text) {
  Callees funcs;
  do {
    const size_t start = scan.offset();
    Func f = TW_TRY(FuncParser(scan, funcs, text.size()).func());
    for (const auto& other : funcs)
      if (other->name == f.name)
        return scan.error_at(start, fmt::format("two functions are named `{}`", f.name));
    funcs.push_back(std::make_shared<const Func>(std::move(f)));
  } while (!scan.at_end());
  return funcs;
}

}  // namespace

Result<std::vector<Func>> parse_funcs(std::string_view text) {
  Scanner scan(text);
  const Callees parsed = TW_TRY(parse_all(scan, text));
  std::vector<Func> funcs;
  for (const auto& f : parsed) funcs.push_back(*f);
  return funcs;
}

Result<Func> parse_func(std::string_view text) {
  Scanner scan(text);
  const Callees parsed = TW_TRY(parse_all(scan, text));
  std::vector<bool> called(parsed.size(), false);
  mark_called(*parsed.back(), parsed, called);
  for (size_t i = 0; i + 1 < parsed.size(); ++i)
    if (!called[i])
      return scan.error_at(0, fmt::format("expected one function and those it calls, but `{}` does "
                                          "not call `{}`",
                                          parsed.back()->name, parsed[i]->name));
  return *parsed.back();
}

}  // namespace tilewright
