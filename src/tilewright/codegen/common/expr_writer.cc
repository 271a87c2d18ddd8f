#include "tilewright/codegen/common/expr_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "tilewright/base/check.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

/// Words of C, C++, OpenCL C and CUDA C++ that emitted text must not use as names.
const std::set<std::string>& reserved() {
  static const std::set<std::string> words = {
      "alignas",   "alignof",  "and",       "asm",      "auto",         "barrier",      "bf16",
      "bitand",    "bitor",    "blockDim",  "blockIdx", "bool",         "break",        "buffers",
      "case",      "catch",    "char",      "class",    "compl",        "const",        "constant",
      "constexpr", "continue", "decltype",  "default",  "delete",       "do",           "double",
      "else",      "enum",     "env",       "explicit", "export",       "extern",       "f16",
      "f32",       "f64",      "false",     "float",    "for",          "friend",       "gamma",
      "global",    "goto",     "gridDim",   "half",     "i16",          "i32",          "i64",
      "i8",        "if",       "index",     "inline",   "int",          "j0",           "j1",
      "jn",        "kernel",   "local",     "long",     "main",         "mutable",      "namespace",
      "new",       "noexcept", "not",       "nullptr",  "operator",     "or",           "private",
      "protected", "public",   "register",  "restrict", "return",       "scalars",      "services",
      "short",     "signed",   "signgam",   "sizeof",   "static",       "struct",       "switch",
      "template",  "this",     "threadIdx", "throw",    "true",         "try",          "typedef",
      "typename",  "u16",      "u32",       "u64",      "u8",           "uchar",        "uint",
      "ulong",     "union",    "unsigned",  "ushort",   "using",        "virtual",      "void",
      "volatile",  "warpSize", "while",     "worker",   "workspace",    "xor",          "y0",
      "y1",        "yn",       "NAN",       "INFINITY", "get_group_id", "get_local_id", "isnan",
      "isinf"};
  return words;
}

struct MathName {
  MathFn fn;
  const char* name;  // of the f64 function; f32 adds an f
};
constexpr MathName kLibm[] = {
    {MathFn::Abs, "fabs"},    {MathFn::Exp, "exp"},      {MathFn::Log, "log"},
    {MathFn::Sqrt, "sqrt"},   {MathFn::Sin, "sin"},      {MathFn::Cos, "cos"},
    {MathFn::Tan, "tan"},     {MathFn::Asin, "asin"},    {MathFn::Acos, "acos"},
    {MathFn::Atan, "atan"},   {MathFn::Sinh, "sinh"},    {MathFn::Cosh, "cosh"},
    {MathFn::Tanh, "tanh"},   {MathFn::Asinh, "asinh"},  {MathFn::Acosh, "acosh"},
    {MathFn::Atanh, "atanh"}, {MathFn::Erf, "erf"},      {MathFn::Floor, "floor"},
    {MathFn::Ceil, "ceil"},   {MathFn::Round, "rint"},   {MathFn::Trunc, "trunc"},
    {MathFn::Pow, "pow"},     {MathFn::TruncMod, "fmod"}};

bool is_function(const std::string& text) {
  for (const MathName& row : kLibm)
    if (text == row.name || text == std::string(row.name) + "f") return true;
  return false;
}

/// The type a float expression is computed in.
std::string float_type(DType dtype) { return dtype == DType::F64 ? "f64" : "f32"; }

std::string float_text(double v, DType dtype) {
  if (std::isnan(v)) return dtype == DType::F64 ? "(f64)NAN" : "NAN";
  if (std::isinf(v)) return v < 0 ? "(-INFINITY)" : "INFINITY";
  std::string text =
      dtype == DType::F64 ? fmt::format("{}", v) : fmt::format("{}", static_cast<float>(v));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (dtype != DType::F64) text += "f";
  return std::signbit(v) ? "(" + text + ")" : text;
}

std::string int_text(int64_t v, DType dtype) {
  if (dtype == DType::Bool) return v ? "1" : "0";
  if (dtype == DType::U64) return fmt::format("UINT64_C({})", static_cast<uint64_t>(v));
  if (v == INT64_MIN) return "INT64_MIN";
  const bool small = v >= -0x7fffffff && v <= 0x7fffffff;
  std::string text = small ? fmt::format("{}", v) : fmt::format("INT64_C({})", v);
  if (dtype != DType::I64 && dtype != DType::I32) return fmt::format("(({}){})", name(dtype), text);
  if (dtype == DType::I32 && !small) return "((i32)" + text + ")";
  return v < 0 ? "(" + text + ")" : text;
}

bool in_32_bits(int64_t lo, int64_t hi) { return lo >= -0x7fffffff && hi <= 0x7fffffff; }

/// k if `e` is 2^k.
std::optional<int> power_of_two(const Expr& e) {
  const auto value = as_int(e);
  if (!value || *value <= 0 || (*value & (*value - 1)) != 0) return std::nullopt;
  int k = 0;
  while (*value >> k != 1) ++k;
  return k;
}

std::string_view helper_name(BinaryOp op) {
  constexpr std::string_view kNames[] = {"add", "sub", "mul", "div", "mod", "min", "max"};
  if (op <= BinaryOp::Max) return kNames[static_cast<int>(op)];
  return op == BinaryOp::Shl ? "shl" : "shr";
}

bool is_leaf(const Expr& e) { return e.as<IntImm>() || e.as<FloatImm>() || e.as<VarRef>(); }

}  // namespace

std::string CNames::fresh(const std::string& wish) {
  std::string base = wish;
  for (char& c : base)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0])) || base[0] == '_' ||
      base.rfind("tw_", 0) == 0)
    base.insert(0, "v");
  if (reserved().contains(base) || is_function(base)) base += "_";
  std::string text = base;
  for (int n = 2; !used_.insert(text).second; ++n) text = fmt::format("{}_{}", base, n);
  return text;
}

std::string CNames::of(const void* id, const std::string& wish) {
  std::string& text = by_id_[id];
  if (text.empty()) text = fresh(wish);
  return text;
}

std::string c_value_type(DType dtype) {
  if (dtype == DType::Bool) return "int";
  if (dtype == DType::F16 || dtype == DType::BF16) return "f32";
  return std::string(name(dtype));
}

std::string c_storage_type(DType dtype) {
  return dtype == DType::Bool ? "tw_bool" : std::string(name(dtype));
}

std::string CExprWriter::declared_type(const Var& var) {
  if (!dialect_.narrow || !fits(ref(var))) return "i64";
  narrow_vars_.insert(var);
  return "i32";
}

void CExprWriter::begin(const std::vector<Expr>& roots) {
  uses_.clear(), lazy_.clear(), index_.clear(), narrow_.clear();
  temps_.clear(), temp_order_.clear();
  // A walk that enters each node once: expanded functions share nodes heavily.
  std::vector<Expr> todo = roots;
  while (!todo.empty()) {
    const Expr e = todo.back();
    todo.pop_back();
    if (!e || ++uses_[e.get()] > 1) continue;
    match(
        e, [&](const Unary& x) { todo.push_back(x.a); },
        [&](const Binary& x) { todo.insert(todo.end(), {x.a, x.b}); },
        [&](const Select& x) { todo.insert(todo.end(), {x.condition, x.on_true, x.on_false}); },
        [&](const Cast& x) { todo.push_back(x.a); },
        [&](const Load& x) { todo.insert(todo.end(), x.indices.begin(), x.indices.end()); },
        [&](const MathCall& x) { todo.insert(todo.end(), x.args.begin(), x.args.end()); },
        [](const auto&) {});
  }
}

std::string CExprWriter::value(const Expr& e, CText& out) {
  if (const auto it = temps_.find(e.get()); it != temps_.end()) return it->second;
  std::string text = build(e, out);
  const auto uses = uses_.find(e.get());
  if (uses == uses_.end() || uses->second < 2 || is_leaf(e) || plain_index(e)) return text;
  const std::string temp = names_.fresh("t");
  out.line(fmt::format("const {} {} = {};", c_value_type(e.dtype()), temp, text));
  temps_[e.get()] = temp;
  temp_order_.push_back(e.get());
  return temp;
}

std::string CExprWriter::build(const Expr& e, CText& out) {
  return match(
      e, [&](const IntImm& x) { return int_text(x.value, e.dtype()); },
      [&](const FloatImm& x) { return float_text(x.value, e.dtype()); },
      [&](const VarRef& x) { return names_.of(x.var); },
      [&](const Unary& x) { return unary_text(e, x, out); },
      [&](const Binary& x) { return binary_text(e, x, out); },
      [&](const Select& x) { return select_text(e, x, out); },
      [&](const Cast& x) { return cast_text(e, x, out); },
      [&](const Load& x) {
        const std::string text = element(x.buffer, x.indices, out);
        if (e.dtype() != DType::BF16 && e.dtype() != DType::F16) return text;
        return fmt::format("tw_{}_f32({})", name(e.dtype()), text);
      },
      [&](const MathCall& x) { return math_text(e, x, out); });
}

std::string CExprWriter::rounded(DType dtype, std::string text) const {
  if (dtype == DType::F16 || dtype == DType::BF16)
    return fmt::format("tw_round_{}({})", name(dtype), text);
  return text;
}

std::string CExprWriter::stored(DType dtype, const std::string& text) const {
  if (dtype != DType::BF16 && dtype != DType::F16) return text;
  return fmt::format("tw_f32_{}({})", name(dtype), text);
}

std::string CExprWriter::offset(const Buffer& buffer, const std::vector<Expr>& indices,
                                CText& out) {
  const std::vector<Expr>& strides = strides_.find(buffer)->second;
  const bool in_32 = dialect_.narrow && small(buffer);
  std::string sum;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (is_const_int(indices[axis], 0) || is_const_int(strides[axis], 0)) continue;
    std::string term = value(indices[axis], out);
    // An index lies in its axis, whatever is known of its parts.
    if (dialect_.narrow && in_32 != narrow(indices[axis]))
      term = (in_32 ? "(i32)" : "(i64)") + term;
    if (!is_const_int(strides[axis], 1)) term += " * " + value(strides[axis], out);
    sum += (sum.empty() ? "" : " + ") + term;
  }
  return sum.empty() ? "0" : sum;
}

std::string CExprWriter::element(const Buffer& buffer, const std::vector<Expr>& indices,
                                 CText& out) {
  const std::string at = offset(buffer, indices, out);
  return fmt::format("{}[{}]", names_.of(buffer), at);
}

void CExprWriter::assign(const Buffer& buffer, const std::vector<Expr>& indices,
                         const std::string& text, CText& out) {
  const std::string target = element(buffer, indices, out);
  out.line(fmt::format("{} = {};", target, text));
}

namespace {

/// Whether `e` is an element of type `dtype`, perhaps one or zero by a condition, whose bits can be
/// moved as they are.
bool is_moved(const Expr& e, DType dtype) {
  if (const auto* choice = e.as<Select>())
    return is_moved(choice->on_true, dtype) && is_moved(choice->on_false, dtype);
  if (const auto* real = e.as<FloatImm>()) return real->value == 0 && !std::signbit(real->value);
  const auto* from = e.as<Load>();
  int64_t loads = 0;
  walk(e, [&](const Expr& x) { loads += x.as<Load>() != nullptr ? 1 : 0; });
  return from != nullptr && from->buffer.dtype() == dtype && loads == 1;
}

}  // namespace

std::string CExprWriter::moved_text(const Expr& e, DType dtype, CText& out) {
  if (const auto* from = e.as<Load>()) return element(from->buffer, from->indices, out);
  const auto* choice = e.as<Select>();
  if (choice == nullptr) return stored(dtype, float_text(0, DType::F32));
  const std::string condition = value(choice->condition, out);
  const std::string x = moved_text(choice->on_true, dtype, out);
  const std::string y = moved_text(choice->on_false, dtype, out);
  return fmt::format("({} ? {} : {})", condition, x, y);
}

void CExprWriter::store(const Store& x, CText& out) {
  constexpr BinaryOp kOps[] = {BinaryOp::Add, BinaryOp::Add, BinaryOp::Mul, BinaryOp::Max,
                               BinaryOp::Min};
  Expr v = x.value;
  if (x.combine != Combine::Set)
    v = binary(kOps[static_cast<int>(x.combine)], load(x.buffer, x.indices), v);
  const DType dtype = x.buffer.dtype();
  if (const auto* c = v.as<Cast>();
      (dtype == DType::F16 || dtype == DType::BF16) && c && !c->bits && c->a.dtype() == DType::F32)
    v = c->a;  // what is stored is rounded anyway
  std::vector<Expr> roots = x.indices;
  roots.push_back(v);
  begin(roots);
  const bool moved = (dtype == DType::F16 || dtype == DType::BF16) && is_moved(v, dtype);
  const std::string text = moved ? moved_text(v, dtype, out) : stored(dtype, value(v, out));
  assign(x.buffer, x.indices, text, out);
}

std::string CExprWriter::unary_text(const Expr& e, const Unary& u, CText& out) {
  const std::string a = value(u.a, out);
  const DType dtype = e.dtype();
  if (u.op == UnaryOp::Not) return "!" + a;
  if (u.op == UnaryOp::BitNot) return fmt::format("(({})~{})", name(dtype), a);
  if (is_float(dtype) || plain_index(e))
    return fmt::format("(-{}{})", narrow(u.a) && !narrow(e) ? "(i64)" : "", a);
  return fmt::format("tw_sub_{}(0, {})", name(dtype), a);
}

std::string CExprWriter::binary_text(const Expr& e, const Binary& b, CText& out) {
  using enum BinaryOp;
  if ((b.op == And || b.op == Or) && must_stay_lazy(b.b)) return lazy_logic(b, out);
  const std::string x = value(b.a, out), y = value(b.b, out);
  const DType dtype = b.a.dtype();
  auto infix = [&](std::string_view op) { return fmt::format("({} {} {})", x, op, y); };
  auto helper = [&](std::string_view op, std::string_view type) {
    return fmt::format("tw_{}_{}({}, {})", op, type, x, y);
  };
  if (is_comparison(b.op) || b.op == And || b.op == Or) return infix(symbol(b.op));
  if (is_float(dtype)) {
    // Rounding what f32 gives and computing in f16 give the same bits: f32 is more than twice as
    // precise.
    if (dtype == DType::F16 && b.op <= Mul && dialect_.halves)
      return fmt::format("tw_half_{}({}, {})", helper_name(b.op), x, y);
    if (b.op == Mul && dialect_.separate_products)
      return rounded(e.dtype(), helper("mul", float_type(dtype)));
    if (b.op <= Div) return rounded(e.dtype(), infix(symbol(b.op)));
    const std::string_view op = b.op == Mod ? "mod" : b.op == Min ? "min" : "max";
    return rounded(e.dtype(), helper(op, float_type(dtype)));
  }
  if (dtype == DType::Bool) return infix(b.op == Min || b.op == Mul ? "&" : "|");
  if (b.op == BitAnd || b.op == BitOr || b.op == BitXor) return infix(symbol(b.op));
  if (plain_index(e)) return index_text(e, b, x, y);
  return helper(helper_name(b.op), name(dtype));
}

std::string CExprWriter::index_text(const Expr& e, const Binary& b, std::string x,
                                    const std::string& y) {
  using enum BinaryOp;
  const bool in_32 = narrow(e);
  if (b.op <= Mul) {
    if (narrow(b.a) && !in_32) x.insert(0, "(i64)");
    return fmt::format("({} {} {})", x, symbol(b.op), y);
  }
  if (b.op == Div || b.op == Mod) {
    const auto k = power_of_two(b.b);
    if (k && dialect_.narrow)
      return b.op == Div ? fmt::format("({} >> {})", x, *k)
                         : fmt::format("({} & {})", x, (int64_t{1} << *k) - 1);
    const auto range = arith::const_range(b.a, bounds), divisor = arith::const_range(b.b, bounds);
    if (range && divisor && range->first >= 0 && divisor->first > 0)
      return fmt::format("({} {} {})", x, symbol(b.op), y);
  }
  return fmt::format("tw_{}_{}({}, {})", helper_name(b.op), in_32 ? "i32" : "i64", x, y);
}

std::pair<std::string, std::string> CExprWriter::apart(const Expr& e, const CText& around) {
  CText inner;
  inner.indent = around.indent + 1;
  const size_t mark = temp_order_.size();
  std::string text = value(e, inner);
  for (; temp_order_.size() > mark; temp_order_.pop_back()) temps_.erase(temp_order_.back());
  return {text, inner.text};
}

std::string CExprWriter::lazy_logic(const Binary& b, CText& out) {
  const std::string x = value(b.a, out);
  const auto [y, before] = apart(b.b, out);
  if (before.empty()) return fmt::format("({} {} {})", x, symbol(b.op), y);
  const std::string temp = names_.fresh("c");
  out.line(fmt::format("int {} = {};", temp, x));
  out.open(fmt::format("if ({}{}) {{", b.op == BinaryOp::Or ? "!" : "", temp));
  out.text += before;
  out.line(fmt::format("{} = {};", temp, y));
  out.close();
  return temp;
}

std::string CExprWriter::select_text(const Expr& e, const Select& s, CText& out) {
  const std::string c = value(s.condition, out);
  if (!must_stay_lazy(s.on_true) && !must_stay_lazy(s.on_false)) {
    const std::string x = value(s.on_true, out), y = value(s.on_false, out);
    return fmt::format("({} ? {} : {})", c, x, y);
  }
  const auto [x, before_x] = apart(s.on_true, out);
  const auto [y, before_y] = apart(s.on_false, out);
  if (before_x.empty() && before_y.empty()) return fmt::format("({} ? {} : {})", c, x, y);
  const std::string temp = names_.fresh("s");
  out.line(fmt::format("{} {};", c_value_type(e.dtype()), temp));
  out.open(fmt::format("if ({}) {{", c));
  out.text += before_x;
  out.line(fmt::format("{} = {};", temp, x));
  --out.indent, out.open("} else {");
  out.text += before_y;
  out.line(fmt::format("{} = {};", temp, y));
  out.close();
  return temp;
}

std::string CExprWriter::cast_text(const Expr& e, const Cast& c, CText& out) {
  const std::string a = value(c.a, out);
  const DType to = e.dtype(), from = c.a.dtype();
  if (to == from) return a;
  if (c.bits) {
    if (to == DType::Bool) return fmt::format("({} != 0)", a);
    const std::string bits =
        fmt::format("tw_bits_{}_{}({})", c_storage_type(from), c_storage_type(to), stored(from, a));
    if (to != DType::BF16 && to != DType::F16) return bits;
    return fmt::format("tw_{}_f32({})", name(to), bits);
  }
  if (to == DType::Bool) return fmt::format("({} != 0)", a);
  if (is_float(to)) return rounded(to, fmt::format("({}){}", float_type(to), a));
  if (is_float(from)) return fmt::format("tw_{}_{}({})", float_type(from), name(to), a);
  return fmt::format("(({}){})", name(to), a);
}

std::string CExprWriter::math_text(const Expr& e, const MathCall& m, CText& out) {
  std::vector<std::string> args;
  for (const Expr& arg : m.args) args.push_back(value(arg, out));
  const DType dtype = m.args[0].dtype();
  const std::string list = fmt::format("{}", fmt::join(args, ", "));
  if (m.fn == MathFn::IsNan || m.fn == MathFn::IsInf) {
    if (!is_float(dtype)) return "0";
    return fmt::format("({}{}({}) != 0)", dialect_.math_prefix, name(m.fn), list);
  }
  if (!is_float(dtype)) {
    const bool identity = m.fn == MathFn::Floor || m.fn == MathFn::Ceil || m.fn == MathFn::Round ||
                          m.fn == MathFn::Trunc;
    if (identity) return list;
    if (dtype == DType::Bool) return args[0];
    return fmt::format("tw_{}_{}({})", name(m.fn), name(dtype), list);
  }
  const std::string type = float_type(dtype);
  if (m.fn == MathFn::Rsqrt || m.fn == MathFn::Sigmoid)
    return rounded(e.dtype(), fmt::format("tw_{}_{}({})", name(m.fn), type, list));
  const std::string suffix = type == "f64" ? "" : dialect_.f32_suffix;
  if (m.fn == MathFn::TruncDiv)
    return rounded(e.dtype(), fmt::format("{}trunc{}({} / {})", dialect_.math_prefix, suffix,
                                          args[0], args[1]));
  for (const MathName& row : kLibm)
    if (row.fn == m.fn)
      return rounded(e.dtype(),
                     fmt::format("{}{}{}({})", dialect_.math_prefix, row.name, suffix, list));
  TW_CHECK(false, "no C for {} of {}", name(m.fn), name(dtype));
}

bool CExprWriter::must_stay_lazy(const Expr& e) {
  if (const auto it = lazy_.find(e.get()); it != lazy_.end()) return it->second;
  const bool lazy = match(
      e, [&](const Unary& x) { return must_stay_lazy(x.a); },
      [&](const Binary& x) { return must_stay_lazy(x.a) || must_stay_lazy(x.b); },
      [&](const Select& x) {
        return must_stay_lazy(x.condition) || must_stay_lazy(x.on_true) ||
               must_stay_lazy(x.on_false);
      },
      [&](const Cast& x) { return must_stay_lazy(x.a); }, [](const Load&) { return true; },
      [&](const MathCall& x) {
        for (const Expr& arg : x.args)
          if (must_stay_lazy(arg)) return true;
        return false;
      },
      [](const auto&) { return false; });
  return lazy_[e.get()] = lazy;
}

/// Index arithmetic: i64 made of variables and constants, which cannot overflow.
bool CExprWriter::plain_index(const Expr& e) {
  if (e.dtype() != DType::I64) return false;
  if (const auto it = index_.find(e.get()); it != index_.end()) return it->second;
  const bool plain = match(
      e, [](const IntImm&) { return true; }, [](const VarRef&) { return true; },
      [&](const Unary& x) { return x.op == UnaryOp::Neg && plain_index(x.a); },
      [&](const Binary& x) {
        return x.op <= BinaryOp::Max && plain_index(x.a) && plain_index(x.b);
      },
      [](const auto&) { return false; });
  return index_[e.get()] = plain;
}

bool CExprWriter::fits(const Expr& e) const {
  const auto range = arith::const_range(e, bounds);
  return range && in_32_bits(range->first, range->second);
}

/// Whether the text of `e` has 32 bits: it is an index and so are all its parts, which fit.
bool CExprWriter::narrow(const Expr& e) {
  if (!dialect_.narrow || !plain_index(e)) return false;
  if (const auto it = narrow_.find(e.get()); it != narrow_.end()) return it->second;
  const bool yes = match(
      e, [](const IntImm& x) { return in_32_bits(x.value, x.value); },
      [&](const VarRef& x) { return narrow_vars_.contains(x.var); },
      [&](const Unary& x) { return narrow(x.a) && fits(e); },
      [&](const Binary& x) { return narrow(x.a) && narrow(x.b) && fits(e); },
      [](const auto&) { return false; });
  return narrow_[e.get()] = yes;
}

/// Whether every linear index of the buffer fits in 32 bits.
bool CExprWriter::small(const Buffer& buffer) {
  if (const auto it = small_.find(buffer); it != small_.end()) return it->second;
  const std::vector<Expr>& strides = strides_.find(buffer)->second;
  int64_t last = 0;
  bool yes = true;
  for (size_t axis = 0; yes && axis < strides.size(); ++axis) {
    const auto extent = as_int(buffer.shape()[axis]), stride = as_int(strides[axis]);
    yes = extent && stride && *extent <= 0x7fffffff && *stride <= 0x7fffffff;
    if (yes) last += std::max<int64_t>(*extent - 1, 0) * *stride;
    yes = yes && last <= 0x7fffffff;
  }
  return small_[buffer] = yes;
}

}  // namespace tilewright::codegen
