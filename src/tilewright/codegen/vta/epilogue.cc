#include "tilewright/codegen/vta/epilogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen::vta_code {
namespace {

using vta::AluOp;
using Kind = AluStep::Kind;

constexpr int64_t kMaxImmediates = 8;  // ADDs for one constant
constexpr int64_t kMaxRepeat = 33;     // diagonal steps for one coefficient
constexpr int64_t kLowestImmediate = -32768, kHighestImmediate = 32767;

tl::unexpected<Error> no_instruction(const Expr& e, const std::string& why) {
  return fail(ErrorKind::Unsupported, "`" + print(e) + "` has no instruction", why,
              "compute it into a vta.acc buffer of its own, or leave the operator to the CPU");
}

bool is_input(const Load& l) { return l.buffer.scope() == "vta.inp"; }
bool is_accumulator(const Load& l) { return l.buffer.scope() == "vta.acc"; }

struct Summand {
  Expr e;
  bool minus = false;
};

void flatten(const Expr& e, bool minus, std::vector<Summand>& out) {
  const auto* b = e.as<Binary>();
  if (b != nullptr && e.dtype() == DType::I32 &&
      (b->op == BinaryOp::Add || b->op == BinaryOp::Sub)) {
    flatten(b->a, minus, out);
    flatten(b->b, minus != (b->op == BinaryOp::Sub), out);
  } else {
    out.push_back({e, minus});
  }
}

class Selector {
 public:
  explicit Selector(const AluPlanner& p) : p_(p) {}

  Status value(const Expr& e);
  std::vector<AluStep> steps;

 private:
  struct Sum {
    int64_t constant = 0;
    std::vector<InputTerm> inputs;
    std::vector<const Load*> registers;
    Expr spine;
  };

  std::optional<int64_t> constant(const Expr& e) const { return p_.env.value(e); }
  const Load* accumulator(const Expr& e) const {
    const auto* l = e.as<Load>();
    return l != nullptr && is_accumulator(*l) && !p_.is_target(*l) ? l : nullptr;
  }
  bool few_steps(const InputTerm& t) const {
    return std::abs(t.coefficient) <= kMaxRepeat * largest_weight();
  }
  int64_t largest_weight() const { return (int64_t{1} << (p_.config.wgt_bits() - 1)) - 1; }

  void immediate(AluOp op, int64_t value) {
    AluStep s;
    s.kind = Kind::Immediate;
    s.op = op;
    s.immediate = static_cast<int16_t>(value);
    steps.push_back(s);
  }
  void with_register(AluOp op, const Load* load) {
    AluStep s;
    s.kind = Kind::Register;
    s.op = op;
    s.load = load;
    steps.push_back(s);
  }
  void reset() { steps.push_back(AluStep{}); }

  Status add_constant(const Expr& e, int64_t c);
  void shift_right(int64_t by);
  void shift_left(int64_t by);
  Status add_input(const Expr& e, const InputTerm& t);
  void diagonal(const InputTerm& t, int64_t weight, int64_t repeat);
  void start_from(const InputTerm& t);
  Result<Sum> sort_summands(const Expr& e) const;
  Status sum(const Expr& e);
  Status extremum(const Expr& e, const Binary& b);
  Status shift(const Expr& e, const Binary& b);
  Status product(const Expr& e, const Binary& b);
  Status narrowed(const Expr& e, const Cast& c);
  Status binary(const Expr& e, const Binary& b);

  const AluPlanner& p_;
};

Status Selector::add_constant(const Expr& e, int64_t c) {
  c = static_cast<int32_t>(c);
  if (std::abs(c) > kMaxImmediates * kHighestImmediate)
    return no_instruction(
        e, fmt::format("{} takes more than {} immediates of 16 bits", c, kMaxImmediates));
  while (c != 0) {
    const int64_t part = std::clamp(c, kLowestImmediate, kHighestImmediate);
    immediate(AluOp::Add, part);
    c -= part;
  }
  return {};
}

// Amounts stay within -16..15, on which all implementations agree.
void Selector::shift_right(int64_t by) {
  for (by = std::min<int64_t>(by, 31); by > 0; by -= std::min<int64_t>(by, 15))
    immediate(AluOp::Shr, std::min<int64_t>(by, 15));
}
void Selector::shift_left(int64_t by) {
  for (by = std::min<int64_t>(by, 32); by > 0; by -= std::min<int64_t>(by, 16))
    immediate(AluOp::Shr, -std::min<int64_t>(by, 16));
}

void Selector::diagonal(const InputTerm& t, int64_t weight, int64_t repeat) {
  if (weight == 0 || repeat == 0) return;
  AluStep s;
  s.kind = Kind::Diagonal;
  s.load = t.load;
  s.weight = weight;
  s.repeat = repeat;
  steps.push_back(s);
}

/// A coefficient beyond one weight is a sum of weights that differ by one at
/// most.
Status Selector::add_input(const Expr& e, const InputTerm& t) {
  if (!few_steps(t))
    return no_instruction(e, fmt::format("coefficient {} takes more than {} steps of weights up to "
                                         "{}",
                                         t.coefficient, kMaxRepeat, largest_weight()));
  const int64_t size = std::abs(t.coefficient), sign = t.coefficient < 0 ? -1 : 1;
  if (size == 0) return {};
  const int64_t n = (size + largest_weight() - 1) / largest_weight();
  const int64_t low = size / n, more = size % n;
  diagonal(t, sign * low, n - more);
  diagonal(t, sign * (low + 1), more);
  return {};
}

/// target = coefficient * input, digit by digit.
void Selector::start_from(const InputTerm& t) {
  const int digit = p_.config.wgt_bits() - 2;  // bits of a digit: powers of two are weights too
  const int64_t sign = t.coefficient < 0 ? -1 : 1;
  const auto size = static_cast<uint64_t>(std::abs(t.coefficient));
  reset();
  const int zeros = size == 0 ? 0 : std::countr_zero(size);
  const uint64_t odd = size >> zeros;
  const int width = std::bit_width(odd);
  if (width <= digit + 1 && width + zeros <= digit + 1) {
    diagonal(t, sign * static_cast<int64_t>(size), 1);
    return;
  }
  const int digits = width <= digit + 1 ? 1 : (width + digit - 1) / digit;
  for (int i = digits - 1; i >= 0; --i) {
    const uint64_t d = digits == 1 ? odd : odd >> (i * digit) & ((uint64_t{1} << digit) - 1);
    diagonal(t, sign * static_cast<int64_t>(d), 1);
    shift_left(i > 0 ? digit : zeros);
  }
}

Result<Selector::Sum> Selector::sort_summands(const Expr& e) const {
  std::vector<Summand> summands;
  flatten(e, false, summands);
  Sum out;
  auto take_spine = [&](const Summand& s) -> Status {
    if (out.spine) return no_instruction(e, "two of its summands need an accumulator");
    if (s.minus) return no_instruction(e, "an accumulator is subtracted");
    out.spine = s.e;
    return {};
  };
  for (const Summand& s : summands) {
    const auto c = constant(s.e);
    auto input = input_term(s.e, p_.env);
    const Load* acc = accumulator(s.e);
    if (c) {
      out.constant += s.minus ? -*c : *c;
    } else if (input && few_steps(*input)) {
      if (s.minus) input->coefficient = -input->coefficient;
      out.inputs.push_back(*input);
    } else if (acc != nullptr && !s.minus) {
      out.registers.push_back(acc);
    } else {
      TW_TRY_STATUS(take_spine(s));
    }
  }
  return out;
}

Status Selector::sum(const Expr& e) {
  Sum s = TW_TRY(sort_summands(e));
  if (s.spine)
    TW_TRY_STATUS(value(s.spine));
  else
    reset();
  for (const InputTerm& t : s.inputs) TW_TRY_STATUS(add_input(e, t));
  for (const Load* l : s.registers) with_register(AluOp::Add, l);
  return add_constant(e, s.constant);
}

Status Selector::extremum(const Expr& e, const Binary& b) {
  const AluOp op = b.op == BinaryOp::Min ? AluOp::Min : AluOp::Max;
  auto simple = [&](const Expr& x) { return constant(x) || accumulator(x) != nullptr; };
  const bool swapped = simple(b.a) && !simple(b.b);
  const Expr& spine = swapped ? b.b : b.a;
  const Expr& other = swapped ? b.a : b.b;
  TW_TRY_STATUS(value(spine));
  if (const Load* l = accumulator(other)) {
    with_register(op, l);
    return {};
  }
  const auto c = constant(other);
  if (!c) return no_instruction(e, "both sides need an accumulator");
  const bool idle = op == AluOp::Max ? *c <= INT32_MIN : *c >= INT32_MAX;
  if (idle) return {};
  if (*c < kLowestImmediate || *c > kHighestImmediate)
    return no_instruction(e, fmt::format("{} is no immediate of 16 bits", *c));
  immediate(op, *c);
  return {};
}

Status Selector::shift(const Expr& e, const Binary& b) {
  TW_TRY_STATUS(value(b.a));
  const auto by = constant(b.b);
  if (by) {
    const int64_t amount = *by < 0 ? 32 : std::min<int64_t>(*by, 32);
    b.op == BinaryOp::Shr ? shift_right(amount) : shift_left(amount);
    return {};
  }
  const Load* l = accumulator(b.b);
  if (l == nullptr || b.op == BinaryOp::Shl)
    return no_instruction(e, "the amount is neither a constant nor (to the right) a vta.acc value");
  with_register(AluOp::Shr, l);
  return {};
}

Status Selector::product(const Expr& e, const Binary& b) {
  const bool swapped = (constant(b.a) || accumulator(b.a) != nullptr) && !constant(b.b) &&
                       accumulator(b.b) == nullptr;
  const Expr& spine = swapped ? b.b : b.a;
  const Expr& other = swapped ? b.a : b.b;
  const auto c = constant(other);
  const Load* l = accumulator(other);
  if (!c && l == nullptr) return no_instruction(e, "both factors need an accumulator");
  TW_TRY_STATUS(value(spine));
  if (c && *c > 0 && std::has_single_bit(static_cast<uint64_t>(*c))) {
    shift_left(std::countr_zero(static_cast<uint64_t>(*c)));
    return {};
  }
  if (!p_.config.has_mul)
    return no_instruction(e, "this configuration has no MUL (`has_mul = false`)");
  if (l != nullptr) {
    with_register(AluOp::Mul, l);
    return {};
  }
  if (*c < kLowestImmediate || *c > kHighestImmediate)
    return no_instruction(e, fmt::format("{} is no immediate of 16 bits", *c));
  immediate(AluOp::Mul, *c);
  return {};
}

/// Bounds of a clipped value, else the whole of i32.
Range clip_of(const Expr& e, const Env& env) {
  Range out{INT32_MIN, INT32_MAX};
  const auto* b = e.as<Binary>();
  if (b == nullptr || (b->op != BinaryOp::Min && b->op != BinaryOp::Max)) return out;
  for (const Expr* side : {&b->a, &b->b}) {
    const auto c = env.value(*side);
    if (!c) continue;
    const Range inner = clip_of(side == &b->a ? b->b : b->a, env);
    if (b->op == BinaryOp::Min) return {std::min(inner.lo, *c), std::min(inner.hi, *c)};
    return {std::max(inner.lo, *c), std::max(inner.hi, *c)};
  }
  return out;
}

/// A cast to a narrower integer and back keeps the low bits, with their sign.
Status Selector::narrowed(const Expr& e, const Cast& c) {
  TW_TRY_STATUS(value(c.a));
  const int bits = bit_width(e.dtype());
  const Range range = clip_of(c.a, p_.env);
  const int64_t half = int64_t{1} << (bits - 1);
  if (bits >= 32 || (range.lo >= -half && range.hi < half)) return {};
  shift_left(32 - bits);
  shift_right(32 - bits);
  return {};
}

Status Selector::binary(const Expr& e, const Binary& b) {
  const bool extreme = b.op == BinaryOp::Min || b.op == BinaryOp::Max;
  if (e.dtype() != DType::I32 && !(extreme && is_signed_int(e.dtype())))
    return no_instruction(e, "the accumulator computes in i32");
  switch (b.op) {
    case BinaryOp::Add:
    case BinaryOp::Sub:
      return sum(e);
    case BinaryOp::Min:
    case BinaryOp::Max:
      return extremum(e, b);
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      return shift(e, b);
    case BinaryOp::Mul:
      return product(e, b);
    case BinaryOp::Div: {
      const auto c = constant(b.b);
      if (!c || *c <= 0 || !std::has_single_bit(static_cast<uint64_t>(*c)))
        return no_instruction(e, "only divisors that are powers of two shift");
      TW_TRY_STATUS(value(b.a));
      shift_right(std::countr_zero(static_cast<uint64_t>(*c)));
      return {};
    }
    default:
      return no_instruction(e, fmt::format("the ALU has no `{}`", symbol(b.op)));
  }
}

Status Selector::value(const Expr& e) {
  if (const auto c = constant(e)) {
    reset();
    return add_constant(e, *c);
  }
  if (const auto t = input_term(e, p_.env)) {
    start_from(*t);
    return {};
  }
  if (const auto* l = e.as<Load>()) {
    if (p_.is_target(*l)) return {};
    if (!is_accumulator(*l))
      return no_instruction(e, "`" + l->buffer.name() + "` is in " + l->buffer.scope());
    reset();
    with_register(AluOp::Add, l);
    return {};
  }
  if (const auto* b = e.as<Binary>()) return binary(e, *b);
  if (const auto* c = e.as<Cast>(); c != nullptr && !c->bits) {
    if (is_signed_int(e.dtype()) && is_signed_int(c->a.dtype()))
      return bit_width(e.dtype()) < bit_width(c->a.dtype()) ? narrowed(e, *c) : value(c->a);
  }
  return no_instruction(e, "it is not made of +, min, max, shifts and casts of signed integers");
}

}  // namespace

std::optional<InputTerm> input_term(const Expr& e, const Env& env) {
  if (const auto* c = e.as<Cast>(); c != nullptr && !c->bits && e.dtype() == DType::I32) {
    const auto* l = c->a.as<Load>();
    if (l != nullptr && is_input(*l) && is_signed_int(c->a.dtype())) return InputTerm{l, 1};
    return std::nullopt;
  }
  if (const auto* u = e.as<Unary>(); u != nullptr && u->op == UnaryOp::Neg) {
    auto t = input_term(u->a, env);
    if (t) t->coefficient = -t->coefficient;
    return t;
  }
  const auto* b = e.as<Binary>();
  if (b == nullptr || e.dtype() != DType::I32 || (b->op != BinaryOp::Mul && b->op != BinaryOp::Shl))
    return std::nullopt;
  const bool swapped = b->op == BinaryOp::Mul && env.value(b->a).has_value();
  auto t = input_term(swapped ? b->b : b->a, env);
  const auto c = env.value(swapped ? b->a : b->b);
  if (!t || !c || (b->op == BinaryOp::Shl && (*c < 0 || *c > 30))) return std::nullopt;
  const int64_t factor = b->op == BinaryOp::Shl ? int64_t{1} << *c : *c;
  if (std::abs(factor) > INT32_MAX || std::abs(t->coefficient * factor) > INT32_MAX)
    return std::nullopt;
  t->coefficient *= factor;
  return t;
}

Expr decided(const Expr& e, const Env& env) {
  return rewrite(e, [&](const Expr& x) {
    const auto* s = x.as<Select>();
    const auto which = s == nullptr ? std::nullopt : env.decide(s->condition);
    return which ? (*which ? s->on_true : s->on_false) : x;
  });
}

Result<std::vector<AluStep>> AluPlanner::plan(const Expr& e) const {
  Selector selector(*this);
  // The store keeps the low bits, so the outermost narrowing is its business.
  const auto* c = e.as<Cast>();
  const bool stored = c != nullptr && !c->bits && is_signed_int(e.dtype()) &&
                      c->a.dtype() == DType::I32 && bit_width(e.dtype()) < 32;
  TW_TRY_STATUS(selector.value(stored ? c->a : e));
  return std::move(selector.steps);
}

}  // namespace tilewright::codegen::vta_code
