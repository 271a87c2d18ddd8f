#include "tilewright/codegen/stream/concrete.h"

#include <algorithm>

#include "tilewright/arith/affine.h"
#include "tilewright/base/check.h"

namespace tilewright::codegen::stream {

using arith::floor_div;

bool Form::constant() const {
  return std::all_of(k.begin(), k.end(), [](int64_t x) { return x == 0; });
}

Form& Form::operator+=(const Form& other) {
  c += other.c;
  for (size_t i = 0; i < kMaxLoops; ++i) k[i] += other.k[i];
  return *this;
}

Form& Form::scale(int64_t factor) {
  c *= factor;
  for (int64_t& x : k) x *= factor;
  return *this;
}

size_t Env::add_loop(const Var& var, int64_t extent) {
  TW_CHECK(extents_.size() < kMaxLoops && extent >= 1, "loop {} of {}", var.name(), extent);
  extents_.push_back(extent);
  clip_loop(extents_.size() - 1, var, 0, extent);
  return extents_.size() - 1;
}

void Env::clip_loop(size_t loop, const Var& var, int64_t lo, int64_t extent) {
  extents_[loop] = extent;
  Form f{lo, {}};
  if (extent > 1) f.k[loop] = 1;
  set(var, f);
}

Range Env::range(const Form& f) const {
  Range out{f.c, f.c};
  for (size_t i = 0; i < extents_.size(); ++i)
    (f.k[i] > 0 ? out.hi : out.lo) += f.k[i] * (extents_[i] - 1);
  return out;
}

std::optional<Form> Env::form(const Expr& e) const {
  if (const auto* i = e.as<IntImm>()) return Form{i->value, {}};
  if (const auto* v = e.as<VarRef>()) {
    const auto it = values_.find(v->var.id());
    return it == values_.end() ? std::nullopt : std::optional(it->second);
  }
  if (const auto* b = e.as<Binary>()) return binary(*b);
  if (const auto* u = e.as<Unary>(); u != nullptr && u->op == UnaryOp::Neg) {
    auto a = form(u->a);
    if (a) a->scale(-1);
    return a;
  }
  if (const auto* s = e.as<Select>()) {
    const auto which = decide(s->condition);
    return which ? form(*which ? s->on_true : s->on_false) : std::nullopt;
  }
  if (const auto* c = e.as<Cast>(); c != nullptr && !c->bits && is_int(c->a.dtype()))
    return bit_width(e.dtype()) >= bit_width(c->a.dtype()) ? form(c->a) : std::nullopt;
  return std::nullopt;
}

namespace {

/// a = q * d + r with a remainder that the ranges of the loops keep inside [0,
/// d).
bool divide(const Env& env, const Form& a, int64_t d, Form& q, Form& r) {
  if (d <= 0) return false;
  for (size_t i = 0; i < kMaxLoops; ++i)
    if (a.k[i] % d == 0)
      q.k[i] = a.k[i] / d;
    else
      r.k[i] = a.k[i];
  q.c = floor_div(a.c, d);
  r.c = a.c - q.c * d;
  const Range range = env.range(r);
  const int64_t whole = floor_div(range.lo, d);
  if (floor_div(range.hi, d) != whole) return false;
  q.c += whole;
  r.c -= whole * d;
  return true;
}

/// min or max of two forms of which one is always the smaller.
std::optional<Form> extremum(const Env& env, const Form& a, const Form& b, bool minimum) {
  Form difference = b;
  difference.scale(-1);
  difference += a;
  const Range range = env.range(difference);
  if (range.hi <= 0) return minimum ? a : b;
  if (range.lo >= 0) return minimum ? b : a;
  return std::nullopt;
}

}  // namespace

std::optional<Form> Env::binary(const Binary& b) const {
  auto x = form(b.a);
  if (!x) return std::nullopt;
  auto y = form(b.b);
  if (!y) return std::nullopt;
  Form q, r;
  switch (b.op) {
    case BinaryOp::Add:
      *x += *y;
      return x;
    case BinaryOp::Sub:
      y->scale(-1);
      *x += *y;
      return x;
    case BinaryOp::Mul:
      if (y->constant()) return x->scale(y->c);
      if (x->constant()) return y->scale(x->c);
      return std::nullopt;
    case BinaryOp::Div:
    case BinaryOp::Mod:
      if (!y->constant() || !divide(*this, *x, y->c, q, r)) return std::nullopt;
      return b.op == BinaryOp::Div ? q : r;
    case BinaryOp::Min:
    case BinaryOp::Max:
      return extremum(*this, *x, *y, b.op == BinaryOp::Min);
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> Env::value(const Expr& e) const {
  const auto f = form(e);
  return f && f->constant() ? std::optional(f->c) : std::nullopt;
}

std::optional<Range> Env::range(const Expr& e) const {
  if (const auto f = form(e)) return range(*f);
  if (const auto* s = e.as<Select>()) {
    const auto a = range(s->on_true), b = range(s->on_false);
    if (!a || !b) return std::nullopt;
    return Range{std::min(a->lo, b->lo), std::max(a->hi, b->hi)};
  }
  const auto* b = e.as<Binary>();
  if (b == nullptr) return std::nullopt;
  const auto x = range(b->a), y = range(b->b);
  if (!x || !y) return std::nullopt;
  switch (b->op) {
    case BinaryOp::Add:
      return Range{x->lo + y->lo, x->hi + y->hi};
    case BinaryOp::Sub:
      return Range{x->lo - y->hi, x->hi - y->lo};
    case BinaryOp::Mul: {
      const auto [lo, hi] =
          std::minmax({x->lo * y->lo, x->lo * y->hi, x->hi * y->lo, x->hi * y->hi});
      return Range{lo, hi};
    }
    case BinaryOp::Min:
      return Range{std::min(x->lo, y->lo), std::min(x->hi, y->hi)};
    case BinaryOp::Max:
      return Range{std::max(x->lo, y->lo), std::max(x->hi, y->hi)};
    case BinaryOp::Div:
      if (y->lo != y->hi || y->lo <= 0) return std::nullopt;
      return Range{floor_div(x->lo, y->lo), floor_div(x->hi, y->lo)};
    case BinaryOp::Mod:
      if (y->lo != y->hi || y->lo <= 0) return std::nullopt;
      return Range{0, y->lo - 1};
    default:
      return std::nullopt;
  }
}

Env::Truth Env::nonneg(Form f, std::vector<Form>& out) const {
  const Range r = range(f);
  if (r.hi < 0) return Truth::Never;
  if (r.lo < 0) out.push_back(f);
  return Truth::If;
}

Env::Truth Env::compare(const Binary& b, bool wanted, std::vector<Form>& out) const {
  auto x = form(b.a), y = form(b.b);
  if (!x || !y) return Truth::Unknown;
  auto at_least = [&](const Form& greater, const Form& smaller, int64_t slack) {
    Form d = smaller;
    d.scale(-1);
    d += greater;
    d.c += slack;
    return nonneg(d, out);
  };
  switch (b.op) {
    case BinaryOp::Lt:
      return wanted ? at_least(*y, *x, -1) : at_least(*x, *y, 0);
    case BinaryOp::Le:
      return wanted ? at_least(*y, *x, 0) : at_least(*x, *y, -1);
    case BinaryOp::Gt:
      return wanted ? at_least(*x, *y, -1) : at_least(*y, *x, 0);
    case BinaryOp::Ge:
      return wanted ? at_least(*x, *y, 0) : at_least(*y, *x, -1);
    case BinaryOp::Eq:
    case BinaryOp::Ne: {
      std::vector<Form> both;
      Form d = *y;
      d.scale(-1);
      d += *x;
      const Range r = range(d);
      const bool never_equal = r.lo > 0 || r.hi < 0;
      const bool always_equal = r.lo == 0 && r.hi == 0;
      if (wanted != (b.op == BinaryOp::Eq)) {  // to be different
        if (never_equal) return Truth::If;
        return always_equal ? Truth::Never : Truth::Unknown;
      }
      if (never_equal) return Truth::Never;
      at_least(*x, *y, 0);
      at_least(*y, *x, 0);
      return Truth::If;
    }
    default:
      return Truth::Unknown;
  }
}

Env::Truth Env::collect(const Expr& condition, bool wanted, std::vector<Form>& out) const {
  if (const auto i = as_int(condition)) return (*i != 0) == wanted ? Truth::If : Truth::Never;
  if (const auto* u = condition.as<Unary>(); u != nullptr && u->op == UnaryOp::Not)
    return collect(u->a, !wanted, out);
  const auto* b = condition.as<Binary>();
  if (b == nullptr) return Truth::Unknown;
  if (is_comparison(b->op)) return compare(*b, wanted, out);
  if (b->op != BinaryOp::And && b->op != BinaryOp::Or) return Truth::Unknown;
  if ((b->op == BinaryOp::And) == wanted) {  // both must be as wanted
    const Truth x = collect(b->a, wanted, out);
    if (x == Truth::Never) return x;
    const Truth y = collect(b->b, wanted, out);
    if (y == Truth::Never) return y;
    return x == Truth::Unknown ? x : y;
  }
  std::vector<Form> first, second;  // one of them must be
  const Truth x = collect(b->a, wanted, first);
  if (x == Truth::If && first.empty()) return x;
  const Truth y = collect(b->b, wanted, second);
  if (y == Truth::If && second.empty()) return y;
  if (x == Truth::Never) first = second;
  if (x != Truth::Never && y != Truth::Never) return Truth::Unknown;
  out.insert(out.end(), first.begin(), first.end());
  return x == Truth::Never ? y : x;
}

std::optional<bool> Env::decide(const Expr& condition) const {
  std::vector<Form> rest;
  const Truth truth = collect(condition, true, rest);
  if (truth == Truth::Never) return false;
  if (truth == Truth::If && rest.empty()) return true;
  rest.clear();
  if (collect(condition, false, rest) == Truth::Never) return true;
  return std::nullopt;
}

}  // namespace tilewright::codegen::stream
