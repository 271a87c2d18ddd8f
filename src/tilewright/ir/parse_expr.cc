// Expressions: precedence climbing. parse(p) reads operators that bind at least as tightly as p.
//
//   a + b * c < d   ->   parse(0): a, `+` binds tighter: right side parse(product) = b * c, so
//                        a + (b*c); then `<` with d
//
// Types are checked while reading, since there are no implicit conversions: `x + 1` with an f32 x
// is an error that proposes `1.0`. Depth is counted, because passes over expressions are recursive.
#include "tilewright/ir/parse_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "tilewright/ir/text.h"
#include "tilewright/ir/text_tables.h"

namespace tilewright::text {
namespace {

using Kind = Token::Kind;

struct SpecialFloat {
  std::string_view word;
  bool nan;
  DType dtype;
};
constexpr SpecialFloat kSpecialFloats[] = {
    {"inf", false, DType::F32},       {"nan", true, DType::F32},
    {"inf_f64", false, DType::F64},   {"nan_f64", true, DType::F64},
    {"inf_f16", false, DType::F16},   {"nan_f16", true, DType::F16},
    {"inf_bf16", false, DType::BF16}, {"nan_bf16", true, DType::BF16}};

const SpecialFloat* find_special(const Token& token) {
  if (token.kind != Kind::Name || token.quoted) return nullptr;
  for (const SpecialFloat& row : kSpecialFloats)
    if (row.word == token.text) return &row;
  return nullptr;
}

template <class T>
bool read_number(std::string_view digits, T& value) {
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return code == std::errc() && end == digits.data() + digits.size();
}

/// The value of decimal digits as `dtype`; false if it is out of range. f16 and bf16 round twice
/// (through f32), which cannot change digits that were printed from such a value.
bool read_float(std::string_view digits, DType dtype, double& value) {
  if (dtype == DType::F64) return read_number(digits, value);
  float single = 0;
  if (!read_number(digits, single)) return false;
  value = float_imm(single, dtype).as<FloatImm>()->value;
  return std::isfinite(value);
}

template <class Map>
std::vector<std::string> keys(const Map& map) {
  std::vector<std::string> names;
  for (const auto& entry : map) names.push_back(entry.first);
  return names;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? "" : fmt::format("did you mean `{}`?", nearest);
}

}  // namespace

Result<Expr> ExprParser::expr() { return TW_TRY(parse(0)).e; }

Result<Expr> ExprParser::expr_of(DType dtype, std::string_view what) {
  const size_t start = scan_.offset();
  Expr e = TW_TRY(expr());
  if (e.dtype() == dtype) return e;
  return scan_.error_at(start,
                        fmt::format("{} must be {}, not {}", what, name(dtype), name(e.dtype())));
}

Result<DType> ExprParser::dtype() {
  const Token& token = scan_.peek();
  const auto type = token.kind == Kind::Name ? parse_dtype(token.text) : std::nullopt;
  if (!type)
    return scan_.error(fmt::format("expected an element type, found {}", scan_.found()),
                       "the types are f32 f64 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64 bool");
  scan_.next();
  return *type;
}

Result<Buffer> ExprParser::buffer() {
  const size_t start = scan_.offset();
  const std::string text = TW_TRY(scan_.expect_name("a buffer"));
  const auto found = names_.buffers.find(text);
  if (found != names_.buffers.end()) return found->second;
  return scan_.error_at(start, fmt::format("unknown buffer `{}`", text),
                        did_you_mean(text, keys(names_.buffers)));
}

Result<Parsed> ExprParser::combine(Expr e, std::vector<int> depths, size_t offset) {
  int depth = 0;
  for (const int d : depths) depth = std::max(depth, d);
  if (depth + 1 > kMaxChain)
    return scan_.error_at(offset, fmt::format("expression deeper than {} operators", kMaxChain));
  return Parsed{std::move(e), depth + 1};
}

Result<Parsed> ExprParser::parse(int min_precedence) {
  Parsed left = TW_TRY(unary());
  bool compared = false;
  while (scan_.peek().kind == Kind::Symbol) {
    const auto op = infix_operator(scan_.peek().text);
    if (!op) break;
    const Precedence level = *precedence(*op);
    if (level < min_precedence) break;
    const size_t offset = scan_.offset();
    if (is_comparison(*op) && compared)
      return scan_.error("comparisons do not chain", "put one of them in parentheses");
    scan_.next();
    Parsed right = TW_TRY(parse(level + 1));
    if (std::string problem = type_problem(*op, left.e.dtype(), right.e.dtype()); !problem.empty())
      return scan_.error_at(offset, std::move(problem),
                            left.e.dtype() == right.e.dtype()
                                ? ""
                                : "write a cast, or a literal with a type suffix (`1.0`, `1i32`)");
    compared = is_comparison(*op);
    left = TW_TRY(combine(binary(*op, std::move(left.e), std::move(right.e)),
                          {left.depth, right.depth}, offset));
  }
  return left;
}

Result<Parsed> ExprParser::unary() {
  const size_t start = scan_.offset();
  UnaryOp op;
  if (scan_.at_symbol("-")) {
    op = UnaryOp::Neg;
  } else if (scan_.at_symbol("!")) {
    op = UnaryOp::Not;
  } else if (scan_.at_symbol("~")) {
    op = UnaryOp::BitNot;
  } else {
    return primary();
  }
  scan_.next();
  if (op == UnaryOp::Neg) {
    const Kind kind = scan_.peek().kind;
    if (kind == Kind::Int || kind == Kind::Float) return number(true, start);
    if (const SpecialFloat* row = find_special(scan_.peek()); row && !row->nan)
      return special_float(true);
  }
  if (++nesting_ > kMaxNesting)
    return scan_.error(fmt::format("nested deeper than {} levels", kMaxNesting));
  Parsed a = TW_TRY(unary());
  --nesting_;
  if (std::string problem = type_problem(op, a.e.dtype()); !problem.empty())
    return scan_.error_at(start, std::move(problem));
  return combine(tilewright::unary(op, std::move(a.e)), {a.depth}, start);
}

Result<Parsed> ExprParser::primary() {
  const Token& token = scan_.peek();
  if (token.kind == Kind::Int || token.kind == Kind::Float) return number(false, token.offset);
  if (scan_.at_symbol("(")) {
    if (++nesting_ > kMaxNesting)
      return scan_.error(fmt::format("nested deeper than {} levels", kMaxNesting));
    scan_.next();
    Parsed inner = TW_TRY(parse(0));
    --nesting_;
    TW_TRY_STATUS(scan_.expect_symbol(")", "to close the parenthesis"));
    return inner;
  }
  if (token.kind != Kind::Name)
    return scan_.error(fmt::format("expected an expression, found {}", scan_.found()));
  if (find_special(token)) return special_float(false);
  if (scan_.accept_word("true")) return Parsed{bool_imm(true)};
  if (scan_.accept_word("false")) return Parsed{bool_imm(false)};
  const auto reserved = reserved_words();
  if (!token.quoted && std::find(reserved.begin(), reserved.end(), token.text) != reserved.end())
    return scan_.error(fmt::format("expected an expression, found the word {}", scan_.found()),
                       "a name that is also a keyword stands in backquotes");
  const Token word = scan_.next();
  if (scan_.at_symbol("(")) return call(word);
  if (scan_.at_symbol("[")) return load(word);
  return variable(word);
}

Result<Parsed> ExprParser::number(bool negative, size_t start) {
  const Token token = scan_.next();
  if (token.kind == Kind::Int) return integer(negative, start, token);
  const DType type =
      token.suffix.empty() ? DType::F32 : parse_dtype(token.suffix).value_or(DType::Bool);
  if (!is_float(type))
    return scan_.error_at(
        start, fmt::format("`{}` is not the type of a floating-point literal", token.suffix));
  double value = 0;
  if (!read_float(token.text, type, value))
    return scan_.error_at(
        start, fmt::format("{} is outside the range of {}", token.text.substr(0, 40), name(type)));
  return Parsed{float_imm(negative ? -value : value, type)};
}

Result<Parsed> ExprParser::integer(bool negative, size_t start, const Token& token) {
  const auto type = token.suffix.empty() ? DType::I64 : parse_dtype(token.suffix);
  if (!type || !is_int(*type))
    return scan_.error_at(
        start, fmt::format("`{}` is not the type of an integer literal", token.suffix),
        type && is_float(*type) ? "a floating-point literal has a point: `1.0`" : "");
  const std::string digits = (negative ? "-" : "") + std::string(token.text);
  int64_t value = 0;
  bool ok = false;
  if (uint64_t wide = 0; *type == DType::U64 && !negative) {
    ok = read_number(digits, wide);
    value = std::bit_cast<int64_t>(wide);
  } else {
    ok = *type != DType::U64 && read_number(digits, value) && fits(value, *type);
  }
  if (!ok)
    return scan_.error_at(
        start, fmt::format("{} is outside the range of {}", digits.substr(0, 40), name(*type)));
  return Parsed{int_imm(value, *type)};
}

Result<uint64_t> ExprParser::hex_bits() {
  TW_TRY_STATUS(scan_.expect_symbol("(", "before the bits of the NaN"));
  const Token token = scan_.peek();
  uint64_t bits = 0;
  const bool hex = token.kind == Kind::Int && token.text == "0" && token.suffix.starts_with("x");
  const std::string_view digits = hex ? token.suffix.substr(1) : std::string_view();
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (!hex || code != std::errc() || end != digits.data() + digits.size())
    return scan_.error("expected the bits of the NaN in hexadecimal");
  scan_.next();
  TW_TRY_STATUS(scan_.expect_symbol(")", "after the bits of the NaN"));
  return bits;
}

Result<Parsed> ExprParser::special_float(bool negative) {
  const size_t start = scan_.offset();
  const SpecialFloat row = *find_special(scan_.peek());
  scan_.next();
  const double infinity = std::numeric_limits<double>::infinity();
  if (!row.nan) return Parsed{float_imm(negative ? -infinity : infinity, row.dtype)};
  uint64_t bits = plain_nan_bits(DType::F64);
  if (scan_.at_symbol("(")) bits = TW_TRY(hex_bits());
  const double value = std::bit_cast<double>(bits);
  if (!std::isnan(value)) return scan_.error_at(start, "these bits are not a NaN of f64");
  return Parsed{float_imm(value, row.dtype)};
}

Status ExprParser::element(Array& values, int64_t i) {
  const DType type = values.dtype();
  const size_t start = scan_.offset();
  if (type == DType::Bool) {
    const bool yes = scan_.accept_word("true");
    if (!yes && !scan_.accept_word("false"))
      return scan_.error(fmt::format("expected true or false, found {}", scan_.found()));
    values.set_int(i, yes);
    return {};
  }
  const bool negative = scan_.accept_symbol("-");
  if (is_float(type) && scan_.accept_word("inf")) {
    const double infinity = std::numeric_limits<double>::infinity();
    values.set(i, negative ? -infinity : infinity);
    return {};
  }
  if (is_float(type) && scan_.accept_word("nan")) {
    uint64_t bits = plain_nan_bits(type);
    if (scan_.at_symbol("(")) bits = TW_TRY(hex_bits());
    const size_t bytes = static_cast<size_t>(storage_bytes(type, 1));
    std::memcpy(static_cast<char*>(values.data()) + static_cast<size_t>(i) * bytes, &bits, bytes);
    if (std::isnan(values.get(i)) && (bytes == 8 || bits >> (8 * bytes) == 0)) return {};
    return scan_.error_at(start, fmt::format("these bits are not a NaN of {}", name(type)));
  }
  Token token = scan_.peek();
  if ((token.kind != Kind::Int && token.kind != Kind::Float) || !token.suffix.empty())
    return scan_.error(fmt::format("expected a literal of {} without suffix, found {}", name(type),
                                   scan_.found()));
  scan_.next();
  double value = 0;
  if (is_float(type) && read_float(token.text, type, value)) {
    values.set(i, negative ? -value : value);
    return {};
  }
  if (is_int(type) && token.kind == Kind::Int) {
    token.suffix = name(type);
    const Parsed parsed = TW_TRY(integer(negative, start, token));
    values.set_int(i, *as_int(parsed.e));
    return {};
  }
  return scan_.error_at(
      start, fmt::format("{} is not a value of {}", token.text.substr(0, 40), name(type)));
}

Result<std::vector<Parsed>> ExprParser::arguments(std::string_view close) {
  std::vector<Parsed> args;
  if (++nesting_ > kMaxNesting)
    return scan_.error(fmt::format("nested deeper than {} levels", kMaxNesting));
  scan_.next();
  if (!scan_.at_symbol(close)) {
    do args.push_back(TW_TRY(parse(0)));
    while (scan_.accept_symbol(","));
  }
  --nesting_;
  TW_TRY_STATUS(scan_.expect_symbol(close, "or `,` after the expression"));
  return args;
}

Result<Parsed> ExprParser::call(const Token& word) {
  if (word.text == "bitcast") {
    scan_.next();
    const DType to = TW_TRY(dtype());
    TW_TRY_STATUS(scan_.expect_symbol(",", "after the type"));
    if (++nesting_ > kMaxNesting)
      return scan_.error(fmt::format("nested deeper than {} levels", kMaxNesting));
    Parsed a = TW_TRY(parse(0));
    --nesting_;
    TW_TRY_STATUS(scan_.expect_symbol(")", "after the expression"));
    if (std::string problem = bitcast_problem(a.e.dtype(), to); !problem.empty())
      return scan_.error_at(word.offset, std::move(problem));
    return combine(bitcast(to, std::move(a.e)), {a.depth}, word.offset);
  }
  return apply(word, TW_TRY(arguments(")")));
}

Result<Parsed> ExprParser::apply(const Token& word, std::vector<Parsed> args) {
  std::vector<Expr> exprs;
  std::vector<int> depths;
  for (Parsed& arg : args) exprs.push_back(std::move(arg.e)), depths.push_back(arg.depth);
  auto wrong = [&](std::string what) { return scan_.error_at(word.offset, std::move(what)); };
  auto needs = [&](size_t count) {
    return wrong(fmt::format("`{}` takes {} argument{}, not {}", word.text, count,
                             count == 1 ? "" : "s", exprs.size()));
  };
  const bool is_min = word.text == "min";
  if (is_min || word.text == "max") {
    if (exprs.size() != 2) return needs(2);
    const BinaryOp op = is_min ? BinaryOp::Min : BinaryOp::Max;
    if (std::string problem = type_problem(op, exprs[0].dtype(), exprs[1].dtype());
        !problem.empty())
      return wrong(std::move(problem));
    return combine(binary(op, exprs[0], exprs[1]), depths, word.offset);
  }
  if (word.text == "select") {
    if (exprs.size() != 3) return needs(3);
    if (exprs[0].dtype() != DType::Bool)
      return wrong(fmt::format("`select` needs a bool condition, not {}", name(exprs[0].dtype())));
    if (exprs[1].dtype() != exprs[2].dtype())
      return wrong(fmt::format("`select` chooses between {} and {}", name(exprs[1].dtype()),
                               name(exprs[2].dtype())));
    return combine(select(exprs[0], exprs[1], exprs[2]), depths, word.offset);
  }
  if (const auto type = parse_dtype(word.text)) {
    if (exprs.size() != 1) return needs(1);
    return combine(cast(*type, exprs[0]), depths, word.offset);
  }
  const auto fn = parse_math_fn(word.text);
  if (!fn) return wrong(fmt::format("unknown function `{}`", word.text.substr(0, 80)));
  if (exprs.size() != static_cast<size_t>(arity(*fn))) return needs(arity(*fn));
  if (exprs.size() == 2 && exprs[0].dtype() != exprs[1].dtype())
    return wrong(fmt::format("arguments of `{}` have types {} and {}", word.text,
                             name(exprs[0].dtype()), name(exprs[1].dtype())));
  if (std::string problem = type_problem(*fn, exprs[0].dtype()); !problem.empty())
    return wrong(std::move(problem));
  return combine(math(*fn, std::move(exprs)), depths, word.offset);
}

Result<Parsed> ExprParser::load(const Token& word) {
  const auto found = names_.buffers.find(word.value);
  if (found == names_.buffers.end())
    return scan_.error_at(word.offset, fmt::format("unknown buffer `{}`", word.value),
                          did_you_mean(word.value, keys(names_.buffers)));
  const std::vector<Parsed> args = TW_TRY(arguments("]"));
  const Buffer& source = found->second;
  if (args.size() != source.rank())
    return scan_.error_at(word.offset, fmt::format("`{}` has {} axes, not {}", source.name(),
                                                   source.rank(), args.size()));
  std::vector<Expr> indices;
  std::vector<int> depths = {0};
  for (const Parsed& arg : args) {
    if (arg.e.dtype() != DType::I64)
      return scan_.error_at(word.offset, fmt::format("an index of `{}` is {}, not i64",
                                                     source.name(), name(arg.e.dtype())));
    indices.push_back(arg.e), depths.push_back(arg.depth);
  }
  return combine(tilewright::load(source, std::move(indices)), depths, word.offset);
}

Result<Parsed> ExprParser::variable(const Token& word) {
  if (const auto found = names_.vars.find(word.value); found != names_.vars.end())
    return Parsed{ref(found->second)};
  if (names_.hidden.contains(word.value))
    return scan_.error_at(word.offset,
                          fmt::format("loop `{}` is not seen inside a block body", word.value),
                          "use the iteration bound to it");
  if (names_.buffers.contains(word.value))
    return scan_.error_at(word.offset,
                          fmt::format("`{}` is a buffer: it needs indices", word.value));
  return scan_.error_at(word.offset, fmt::format("unknown name `{}`", word.value),
                        did_you_mean(word.value, keys(names_.vars)));
}

}  // namespace tilewright::text

namespace tilewright {

Result<Expr> parse_expr(std::string_view text, const std::vector<Var>& vars,
                        const std::vector<Buffer>& buffers) {
  text::ScopeNames names;
  for (const Var& var : vars) names.vars[var.name()] = var;
  for (const Buffer& buffer : buffers) names.buffers[buffer.name()] = buffer;
  Scanner scanner(text);
  Expr e = TW_TRY(text::ExprParser(scanner, names).expr());
  if (!scanner.at_end())
    return scanner.error(fmt::format("unexpected {} after the expression", scanner.found()));
  return e;
}

}  // namespace tilewright
