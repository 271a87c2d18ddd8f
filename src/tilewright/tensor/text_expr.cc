#include "tilewright/tensor/text_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "tilewright/base/names.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor::text {
namespace {

using Kind = Token::Kind;

// Deep programs are refused because everything that walks them is recursive.
constexpr int kMaxNesting = 200, kMaxOperators = 1500;

struct Infix {
  const char* symbol;
  BinaryOp op;
  int level;  ///< higher binds tighter; as in the IR text
};
constexpr int kComparison = 3;
constexpr Infix kInfix[] = {
    {"||", BinaryOp::Or, 1},    {"&&", BinaryOp::And, 2},   {"==", BinaryOp::Eq, 3},
    {"!=", BinaryOp::Ne, 3},    {"<", BinaryOp::Lt, 3},     {"<=", BinaryOp::Le, 3},
    {">", BinaryOp::Gt, 3},     {">=", BinaryOp::Ge, 3},    {"|", BinaryOp::BitOr, 4},
    {"^", BinaryOp::BitXor, 5}, {"&", BinaryOp::BitAnd, 6}, {"<<", BinaryOp::Shl, 7},
    {">>", BinaryOp::Shr, 7},   {"+", BinaryOp::Add, 8},    {"-", BinaryOp::Sub, 8},
    {"*", BinaryOp::Mul, 9},    {"/", BinaryOp::Div, 9},    {"%", BinaryOp::Mod, 9},
};

const Infix* find_infix(std::string_view symbol) {
  for (const Infix& row : kInfix)
    if (row.symbol == symbol) return &row;
  return nullptr;
}

constexpr std::string_view kWords[] = {"tensor", "func", "const", "where", "in",
                                       "return", "sum",  "prod",  "max",   "min",
                                       "select", "inf",  "nan",   "true",  "false"};

/// Why `op` does not apply to `dtype`; empty if it does.
std::string objection(BinaryOp op, DType dtype) {
  const bool logical = op == BinaryOp::And || op == BinaryOp::Or;
  const bool equality = op == BinaryOp::Eq || op == BinaryOp::Ne;
  if (logical) return dtype == DType::Bool ? "" : "needs bool";
  if (op >= BinaryOp::BitAnd) return is_int(dtype) ? "" : "needs integers";
  return dtype == DType::Bool && !equality ? "needs numbers" : "";
}

std::string objection(MathFn fn, DType dtype) {
  if (fn == MathFn::Popcount) return is_int(dtype) ? "" : "needs an integer";
  const bool any_number =
      fn == MathFn::Abs || fn == MathFn::Pow || fn == MathFn::TruncDiv || fn == MathFn::TruncMod;
  if (any_number) return dtype == DType::Bool ? "needs a number" : "";
  return is_float(dtype) ? "" : "needs a floating-point number";
}

bool fits(int64_t value, DType dtype) {
  if (bit_width(dtype) == 64) return is_signed_int(dtype) || value >= 0;
  const int bits = bit_width(dtype) - (is_signed_int(dtype) ? 1 : 0);
  const int64_t limit = int64_t{1} << bits;
  return value < limit && value >= (is_signed_int(dtype) ? -limit : 0);
}

TextOperand value_of(Expr e) { return {std::move(e), std::nullopt}; }
TextOperand integer_value(int64_t v) { return {Expr(), Literal{false, v, 0}}; }
TextOperand real_value(double v) { return {Expr(), Literal{true, 0, v}}; }

}  // namespace

bool is_reserved(const std::string& word) {
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords) ||
         parse_dtype(word) || parse_math_fn(word);
}

Result<Expr> TensorExprParser::expr() {
  const size_t start = scan_.offset();
  return default_typed(TW_TRY(parse(0)), start);
}

Result<int64_t> TensorExprParser::size(const std::string& what) {
  const size_t start = scan_.offset();
  const TextOperand v = TW_TRY(parse(kComparison + 1));
  if (v.literal && !v.literal->real) return v.literal->integer;
  return scan_.error_at(start, fmt::format("{} must be an integer known here", what),
                        "use literals, names from `where` and + - * / % of them");
}

Result<TextOperand> TensorExprParser::parse(int least) {
  TextOperand left = TW_TRY(unary());
  bool compared = false;
  while (scan_.peek().kind == Kind::Symbol) {
    const Infix* infix = find_infix(scan_.peek().text);
    if (infix == nullptr || infix->level < least) break;
    const size_t offset = scan_.offset();
    if (infix->level == kComparison && compared)
      return scan_.error("comparisons do not chain", "join two of them with `&&`");
    if (++operators_ > kMaxOperators)
      return scan_.error(fmt::format("an expression has more than {} operators", kMaxOperators),
                         "name a part of it as a tensor of its own");
    scan_.next();
    TextOperand right = TW_TRY(parse(infix->level + 1));
    compared = infix->level == kComparison;
    left = TW_TRY(apply(infix->op, std::move(left), std::move(right), offset));
  }
  return left;
}

Result<TextOperand> TensorExprParser::apply(BinaryOp op, TextOperand a, TextOperand b,
                                            size_t offset) {
  if (a.literal && b.literal) return apply_literals(op, *a.literal, *b.literal, offset);
  const std::string what = fmt::format("`{}`", symbol(op));
  std::vector<Expr> both = TW_TRY(unify(what, {std::move(a), std::move(b)}, offset, std::nullopt));
  if (const std::string problem = objection(op, both[0].dtype()); !problem.empty())
    return scan_.error_at(offset,
                          fmt::format("{} {}, not {}", what, problem, name(both[0].dtype())));
  return value_of(binary(op, both[0], both[1]));
}

Result<TextOperand> TensorExprParser::apply_literals(BinaryOp op, const Literal& a,
                                                     const Literal& b, size_t offset) {
  if (!a.real && !b.real) {
    int64_t out = 0;
    bool overflow = false;
    const int64_t x = a.integer, y = b.integer;
    switch (op) {
      case BinaryOp::Add:
        overflow = __builtin_add_overflow(x, y, &out);
        break;
      case BinaryOp::Sub:
        overflow = __builtin_sub_overflow(x, y, &out);
        break;
      case BinaryOp::Mul:
        overflow = __builtin_mul_overflow(x, y, &out);
        break;
      case BinaryOp::Div:
      case BinaryOp::Mod: {
        if (y == 0) return scan_.error_at(offset, "division by zero");
        if (y == -1) {  // the one case where C++ division overflows
          overflow = op == BinaryOp::Div && __builtin_sub_overflow(int64_t{0}, x, &out);
          break;
        }
        const int64_t rest = x % y, below = rest != 0 && (rest < 0) != (y < 0) ? 1 : 0;
        out = op == BinaryOp::Div ? x / y - below : rest + below * y;
        break;
      }
      default:
        return value_of(binary(op, int_imm(x), int_imm(y)));
    }
    if (overflow)
      return scan_.error_at(offset,
                            fmt::format("{} {} {} does not fit in 64 bits", x, symbol(op), y));
    return integer_value(out);
  }
  const double x = a.real ? a.number : static_cast<double>(a.integer);
  const double y = b.real ? b.number : static_cast<double>(b.integer);
  if (op == BinaryOp::Add) return real_value(x + y);
  if (op == BinaryOp::Sub) return real_value(x - y);
  if (op == BinaryOp::Mul) return real_value(x * y);
  if (op == BinaryOp::Div) return real_value(x / y);
  if (const std::string problem = objection(op, DType::F32); !problem.empty())
    return scan_.error_at(offset, fmt::format("`{}` {}, not f32", symbol(op), problem));
  return value_of(binary(op, float_imm(x), float_imm(y)));
}

Result<Expr> TensorExprParser::typed(const TextOperand& v, DType dtype, size_t offset) {
  if (!v.literal) return v.e;
  const Literal& l = *v.literal;
  if (is_float(dtype)) return float_imm(l.real ? l.number : static_cast<double>(l.integer), dtype);
  const std::string shown = l.real ? fmt::format("{}", l.number) : fmt::format("{}", l.integer);
  if (l.real || dtype == DType::Bool || !fits(l.integer, dtype))
    return scan_.error_at(offset, fmt::format("the literal {} is no {}", shown, name(dtype)),
                          fmt::format("the other operand is {}", name(dtype)));
  return int_imm(l.integer, dtype);
}

Result<Expr> TensorExprParser::default_typed(const TextOperand& v, size_t offset) {
  if (!v.literal) return v.e;
  return typed(v, v.literal->real ? DType::F32 : DType::I64, offset);
}

Result<std::vector<Expr>> TensorExprParser::unify(const std::string& what,
                                                  const std::vector<TextOperand>& values,
                                                  size_t offset, std::optional<DType> fallback) {
  std::optional<DType> dtype;
  for (const TextOperand& v : values) {
    if (v.literal) continue;
    if (dtype && *dtype != v.e.dtype())
      return scan_.error_at(
          offset,
          fmt::format("operands of {} have types {} and {}", what, name(*dtype), name(v.e.dtype())),
          fmt::format("convert one of them: {}(...)", name(*dtype)));
    dtype = v.e.dtype();
  }
  if (!dtype) dtype = fallback;
  if (!dtype) {
    const bool real = std::any_of(values.begin(), values.end(),
                                  [](const TextOperand& v) { return v.literal->real; });
    dtype = real ? DType::F32 : DType::I64;
  }
  std::vector<Expr> out;
  for (const TextOperand& v : values) out.push_back(TW_TRY(typed(v, *dtype, offset)));
  return out;
}

Result<TextOperand> TensorExprParser::unary() {
  const size_t start = scan_.offset();
  if (++nesting_ > kMaxNesting)
    return scan_.error(fmt::format("expressions nest deeper than {}", kMaxNesting));
  auto done = [&](Result<TextOperand> v) {
    --nesting_;
    return v;
  };
  if (scan_.accept_symbol("-")) {
    const TextOperand a = TW_TRY(unary());
    if (a.literal && a.literal->real) return done(real_value(-a.literal->number));
    if (a.literal) return done(apply_literals(BinaryOp::Sub, {}, *a.literal, start));
    if (a.e.dtype() == DType::Bool) return scan_.error_at(start, "`-` needs a number, not bool");
    return done(value_of(-a.e));
  }
  if (scan_.accept_symbol("!")) {
    const Expr a = TW_TRY(default_typed(TW_TRY(unary()), start));
    if (a.dtype() != DType::Bool)
      return scan_.error_at(start, fmt::format("`!` needs bool, not {}", name(a.dtype())));
    return done(value_of(logical_not(a)));
  }
  if (scan_.accept_symbol("~")) {
    const Expr a = TW_TRY(default_typed(TW_TRY(unary()), start));
    if (!is_int(a.dtype()))
      return scan_.error_at(start, fmt::format("`~` needs an integer, not {}", name(a.dtype())));
    return done(value_of(tilewright::unary(UnaryOp::BitNot, a)));
  }
  return done(primary());
}

Result<TextOperand> TensorExprParser::primary() {
  if (scan_.accept_symbol("(")) {
    TextOperand v = TW_TRY(parse(0));
    TW_TRY_STATUS(scan_.expect_symbol(")", "to close the parenthesis"));
    return v;
  }
  const Token token = scan_.peek();
  if (token.kind == Kind::Int || token.kind == Kind::Float) return number(token);
  if (token.kind == Kind::Name) {
    scan_.next();
    return scan_.at_symbol("(") ? call(token) : named(token);
  }
  return scan_.error(fmt::format("expected an expression, found {}", scan_.found()));
}

Result<TextOperand> TensorExprParser::number(const Token& token) {
  if (!token.suffix.empty())
    return scan_.error(fmt::format("a number with the suffix `{}`", token.suffix),
                       "literals take the type they need; to force one write f32(1)");
  const char *begin = token.text.data(), *end = begin + token.text.size();
  TextOperand v;
  bool good = false;
  if (token.kind == Kind::Int) {
    int64_t i = 0;
    const auto [stop, code] = std::from_chars(begin, end, i);
    good = stop == end && code == std::errc();
    v = integer_value(i);
  } else {
    double d = 0;
    const auto [stop, code] = std::from_chars(begin, end, d);
    good = stop == end && code == std::errc();
    v = real_value(d);
  }
  if (!good) return scan_.error(fmt::format("the number {} is out of range", token.text));
  scan_.next();
  return v;
}

Result<TextOperand> TensorExprParser::named(const Token& token) {
  if (const auto it = scope_.indices.find(token.value); it != scope_.indices.end())
    return value_of(it->second);
  if (const auto it = scope_.sizes.find(token.value); it != scope_.sizes.end())
    return integer_value(it->second);
  if (const auto it = scope_.tensors.find(token.value); it != scope_.tensors.end())
    return read(token, it->second);
  if (token.value == "true" || token.value == "false")
    return value_of(bool_imm(token.value == "true"));
  if (token.value == "inf") return real_value(std::numeric_limits<double>::infinity());
  if (token.value == "nan") return real_value(std::numeric_limits<double>::quiet_NaN());
  std::vector<std::string> known;
  for (const auto& entry : scope_.indices) known.push_back(entry.first);
  for (const auto& entry : scope_.sizes) known.push_back(entry.first);
  for (const auto& entry : scope_.tensors) known.push_back(entry.first);
  const std::string near = nearest_name(token.value, known);
  return scan_.error_at(token.offset, fmt::format("unknown name `{}`", token.value),
                        near.empty() ? "" : fmt::format("did you mean `{}`?", near));
}

Result<TextOperand> TensorExprParser::read(const Token& token, const Tensor& tensor) {
  Indices at;
  if (tensor.rank() > 0 || scan_.at_symbol("[")) {
    TW_TRY_STATUS(scan_.expect_symbol("[", fmt::format("to index `{}`", token.value)));
    const size_t start = scan_.offset();
    for (const TextOperand& v : TW_TRY(arguments("]"))) {
      const Expr e = TW_TRY(typed(v, DType::I64, start));
      if (!is_int(e.dtype()))
        return scan_.error_at(start, fmt::format("an index of `{}` is {}, not an integer",
                                                 token.value, name(e.dtype())));
      at.push_back(cast(DType::I64, e));
    }
  }
  if (at.size() != tensor.rank())
    return scan_.error_at(token.offset,
                          fmt::format("`{}` has {} axes, {} indices are given", token.value,
                                      tensor.rank(), at.size()),
                          fmt::format("its shape is {}", to_string(tensor.shape())));
  TextOperand v = value_of(tensor(at));
  reads_[v.e.get()] = token.offset;
  return v;
}

Result<std::vector<TextOperand>> TensorExprParser::arguments(const std::string& close) {
  std::vector<TextOperand> out;
  if (scan_.accept_symbol(close)) return out;
  do {
    out.push_back(TW_TRY(parse(0)));
  } while (scan_.accept_symbol(","));
  TW_TRY_STATUS(scan_.expect_symbol(close, "or a comma after an argument"));
  return out;
}

Result<TextOperand> TensorExprParser::call(const Token& token) {
  const std::string& word = token.value;
  const size_t at = token.offset;
  scan_.next();
  if (scan_.peek().kind == Kind::Name) {
    // A reduction looks like `sum(i in n)`; only a whole right-hand side may be one.
    Scanner ahead = scan_;
    ahead.next();
    const std::vector<std::string> reductions = {"sum", "prod", "max", "min"};
    const bool known = std::find(reductions.begin(), reductions.end(), word) != reductions.end();
    if (ahead.at_word("in") && !known)
      return scan_.error_at(at, fmt::format("unknown reduction `{}`", word),
                            did_you_mean(word, reductions));
    if (ahead.at_word("in"))
      return scan_.error_at(at, "a reduction must be a whole right-hand side",
                            "give it a name: define it as a tensor and use that here");
  }
  const std::vector<TextOperand> args = TW_TRY(arguments(")"));
  if (const auto dtype = parse_dtype(word)) return conversion(*dtype, args, at);
  if (word == "min" || word == "max") return extreme(word, args, at);
  if (word == "select") return selection(args, at);
  if (const auto fn = parse_math_fn(word)) return function(*fn, args, at);
  std::vector<std::string> known = {"min", "max", "select"};
  for (int i = 0; i <= static_cast<int>(MathFn::TruncMod); ++i)
    known.emplace_back(name(static_cast<MathFn>(i)));
  const std::string near = nearest_name(word, known);
  return scan_.error_at(at, fmt::format("unknown function `{}`", word),
                        near.empty() ? "" : fmt::format("did you mean `{}`?", near));
}

Status TensorExprParser::need(std::string_view word, const std::vector<TextOperand>& args,
                              size_t count, size_t offset) const {
  if (args.size() == count) return {};
  return scan_.error_at(offset,
                        fmt::format("`{}` takes {} arguments, got {}", word, count, args.size()));
}

Result<TextOperand> TensorExprParser::conversion(DType dtype, const std::vector<TextOperand>& args,
                                                 size_t offset) {
  TW_TRY_STATUS(need(name(dtype), args, 1, offset));
  const TextOperand& v = args[0];
  // A literal becomes an immediate; a real one for an integer type is truncated as by Cast.
  if (v.literal && dtype != DType::Bool && (!v.literal->real || is_float(dtype)))
    return value_of(TW_TRY(typed(v, dtype, offset)));
  return value_of(convert(dtype, TW_TRY(default_typed(v, offset))));
}

Result<TextOperand> TensorExprParser::extreme(const std::string& word,
                                              const std::vector<TextOperand>& args, size_t offset) {
  const std::string what = "`" + word + "`";
  if (args.size() < 2) return scan_.error_at(offset, what + " takes two or more arguments");
  const std::vector<Expr> values = TW_TRY(unify(what, args, offset, std::nullopt));
  if (values[0].dtype() == DType::Bool)
    return scan_.error_at(offset, what + " needs numbers, not bool");
  Expr out = values[0];
  for (size_t i = 1; i < values.size(); ++i)
    out = binary(word == "min" ? BinaryOp::Min : BinaryOp::Max, out, values[i]);
  return value_of(out);
}

Result<TextOperand> TensorExprParser::selection(const std::vector<TextOperand>& args,
                                                size_t offset) {
  TW_TRY_STATUS(need("select", args, 3, offset));
  const Expr condition = TW_TRY(default_typed(args[0], offset));
  if (condition.dtype() != DType::Bool)
    return scan_.error_at(
        offset, fmt::format("the condition of `select` is {}, not bool", name(condition.dtype())));
  const auto sides = TW_TRY(unify("`select`", {args[1], args[2]}, offset, std::nullopt));
  return value_of(select(condition, sides[0], sides[1]));
}

Result<TextOperand> TensorExprParser::function(MathFn fn, const std::vector<TextOperand>& args,
                                               size_t offset) {
  const std::string what = fmt::format("`{}`", name(fn));
  TW_TRY_STATUS(need(name(fn), args, static_cast<size_t>(arity(fn)), offset));
  const auto values = TW_TRY(unify(what, args, offset, DType::F32));
  if (const std::string problem = objection(fn, values[0].dtype()); !problem.empty())
    return scan_.error_at(offset,
                          fmt::format("{} {}, not {}", what, problem, name(values[0].dtype())));
  return value_of(math(fn, values));
}

}  // namespace tilewright::tensor::text
