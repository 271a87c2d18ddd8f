#include "tilewright/codegen/hls/loop_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tilewright/arith/bounds.h"

namespace tilewright::codegen {
namespace {

int64_t factor_of(const LoopSum& sum, int loop) {
  const auto it = sum.factors.find(loop);
  return it == sum.factors.end() ? 0 : it->second;
}

/// `a < b && c >= d` as differences that, with the number beside them, are at least 0.
bool split_condition(const Expr& condition, std::vector<std::pair<Expr, int64_t>>& differences) {
  const auto* b = condition.as<Binary>();
  if (b == nullptr) return false;
  if (b->op == BinaryOp::And)
    return split_condition(b->a, differences) && split_condition(b->b, differences);
  const bool less = b->op == BinaryOp::Lt || b->op == BinaryOp::Le;
  const bool more = b->op == BinaryOp::Gt || b->op == BinaryOp::Ge;
  if ((!less && !more) || b->a.dtype() != DType::I64) return false;
  const bool strict = b->op == BinaryOp::Lt || b->op == BinaryOp::Gt;
  differences.emplace_back(less ? b->b - b->a : b->a - b->b, strict ? -1 : 0);
  return true;
}

}  // namespace

Expr LoopSums::number(const Numbers& values) {
  if (alike(values)) return int_imm(values[0]);
  const auto at = std::find(values_.begin(), values_.end(), values);
  const auto column = static_cast<size_t>(at - values_.begin());
  if (at == values_.end()) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    columns_.push_back({Var(fmt::format("table.{}", column)), *least, *most});
    values_.push_back(values);
  }
  return ref(columns_[column].var);
}

Var LoopSums::bind(const std::vector<Var>& vars, const Numbers& extents) {
  const int loop = static_cast<int>(loops_.size());
  for (size_t p = 0; p < vars.size(); ++p) loops_of_[p][vars[p]] = loop;
  loops_.emplace_back(vars[0].name());
  extents_.push_back(extents);
  return loops_.back();
}

std::optional<LoopSum> LoopSums::sum_of(size_t program, const Expr& e) const {
  const arith::Affine affine = arith::as_affine(e);
  LoopSum out;
  out.constant = affine.constant;
  for (const auto& [term, factor] : affine.terms) {
    const auto* var = term.as<VarRef>();
    if (var == nullptr) return std::nullopt;
    out.factors[loops_of_[program].at(var->var)] += factor;
  }
  return out;
}

std::optional<std::vector<LoopSum>> LoopSums::sums_of(const std::vector<Expr>& exprs) const {
  std::vector<LoopSum> out;
  for (size_t p = 0; p < exprs.size(); ++p) {
    auto sum = exprs[p].dtype() == DType::I64 ? sum_of(p, exprs[p]) : std::nullopt;
    if (!sum) return std::nullopt;
    out.push_back(*std::move(sum));
  }
  return out;
}

/// Of one loop in all sums; where it turns once, as in the first program that has it.
Numbers LoopSums::factors_of(const std::vector<LoopSum>& sums, int loop) const {
  Numbers out = each(sums, [&](const LoopSum& sum) { return factor_of(sum, loop); });
  const auto known = std::find_if(out.begin(), out.end(), [](int64_t f) { return f != 0; });
  if (known == out.end()) return out;
  const int64_t first = *known;
  for (size_t p = 0; p < out.size(); ++p)
    if (out[p] == 0 && turns_once(loop, p)) out[p] = first;
  return out;
}

/// What all factors have in common stays a constant: banks are told by it.
Expr LoopSums::times(const Expr& loop, Numbers factors) {
  int64_t common = 0;
  for (const int64_t factor : factors) common = std::gcd(common, factor);
  if (!alike(factors)) {
    for (int64_t& factor : factors) factor /= common;
    return common == 1 ? loop * number(factors) : loop * number(factors) * common;
  }
  return factors[0] == 1 ? loop : loop * number(factors);
}

/// The terms with positive factors (`sign` 1), or those with negative ones, negated; absent if
/// there are none. requires: a factor has one sign in all sums, or `sign` is 0: all terms.
Expr LoopSums::terms_of(const std::vector<LoopSum>& sums, int sign) {
  Expr out;
  for (size_t loop = 0; loop < loops_.size(); ++loop) {
    Numbers factors = factors_of(sums, static_cast<int>(loop));
    const bool negative =
        std::any_of(factors.begin(), factors.end(), [](int64_t f) { return f < 0; });
    if (alike(factors) && factors[0] == 0) continue;
    if (sign != 0 && negative != (sign < 0)) continue;
    if (sign < 0)
      for (int64_t& factor : factors) factor = -factor;
    const Expr term = times(ref(loops_[loop]), factors);
    out = out ? out + term : term;
  }
  return out;
}

Expr LoopSums::index(const std::vector<LoopSum>& sums) {
  const Numbers constants = each(sums, [](const LoopSum& sum) { return sum.constant; });
  const Expr terms = terms_of(sums, 0);
  if (!terms) return number(constants);
  if (!alike(constants)) return terms + number(constants);
  if (constants[0] == 0) return terms;
  return constants[0] < 0 ? terms - int_imm(-constants[0]) : terms + int_imm(constants[0]);
}

bool LoopSums::add_conditions(size_t program, const Expr& condition,
                              std::vector<LoopSum>& where) const {
  std::vector<std::pair<Expr, int64_t>> differences;
  if (!split_condition(condition, differences)) return false;
  std::vector<LoopSum> sums;
  for (const auto& [e, constant] : differences) {
    auto sum = sum_of(program, e);
    if (!sum) return false;
    sum->constant += constant;
    sums.push_back(*std::move(sum));
  }
  where.insert(where.end(), sums.begin(), sums.end());
  return true;
}

/// Whether they limit the same loops in the same direction, but for loops of one turn.
bool LoopSums::one_condition(const LoopSum& a, size_t of_a, const LoopSum& b, size_t of_b) const {
  for (int loop = 0; loop < static_cast<int>(loops_.size()); ++loop) {
    const int64_t in_a = factor_of(a, loop), in_b = factor_of(b, loop);
    if (in_a == 0 && in_b == 0) continue;
    if (in_a == 0 && turns_once(loop, of_a)) continue;
    if (in_b == 0 && turns_once(loop, of_b)) continue;
    if (in_a == 0 || in_b == 0 || (in_a > 0) != (in_b > 0)) return false;
  }
  return true;
}

/// `like` with the least constant with which it holds for all turns of this program's loops.
LoopSum LoopSums::always(const LoopSum& like, size_t program) const {
  LoopSum out = like;
  out.constant = 0;
  for (const auto& [loop, factor] : like.factors)
    if (factor < 0) out.constant -= factor * (extents_[static_cast<size_t>(loop)][program] - 1);
  return out;
}

Expr LoopSums::condition(const std::vector<LoopSum>& sums) {
  const Numbers constants = each(sums, [](const LoopSum& sum) { return sum.constant; });
  const Expr more = terms_of(sums, 1), less = terms_of(sums, -1);
  if (!more && !less) return int_imm(0) <= number(constants);
  if (!less) return more >= number(each(constants, [](int64_t c) { return -c; }));
  if (!more) return less <= number(constants);
  return less <= more + number(constants);
}

Expr LoopSums::conditions(const std::vector<std::vector<LoopSum>>& where) {
  // Each condition joins the first like it that its program has not joined yet.
  std::vector<std::map<size_t, LoopSum>> kinds;
  for (size_t p = 0; p < where.size(); ++p)
    for (const LoopSum& sum : where[p]) {
      const auto fits = [&](const std::map<size_t, LoopSum>& kind) {
        return !kind.contains(p) && std::all_of(kind.begin(), kind.end(), [&](const auto& known) {
          return one_condition(known.second, known.first, sum, p);
        });
      };
      auto kind = std::find_if(kinds.begin(), kinds.end(), fits);
      if (kind == kinds.end()) kind = kinds.insert(kinds.end(), std::map<size_t, LoopSum>());
      kind->emplace(p, sum);
    }
  Expr all;
  for (const std::map<size_t, LoopSum>& kind : kinds) {
    std::vector<LoopSum> sums;
    for (size_t p = 0; p < where.size(); ++p)
      sums.push_back(kind.contains(p) ? kind.at(p) : always(kind.begin()->second, p));
    const Expr one = condition(sums);
    all = all ? logical_and(all, one) : one;
  }
  return all;
}

}  // namespace tilewright::codegen
