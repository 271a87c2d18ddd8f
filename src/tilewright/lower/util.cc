#include <fmt/format.h>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {

std::vector<Expr> conjuncts(const Expr& condition) {
  if (!condition) return {};
  const auto* b = condition.as<Binary>();
  if (b == nullptr || b->op != BinaryOp::And) return {condition};
  std::vector<Expr> terms = conjuncts(b->a);
  for (const Expr& term : conjuncts(b->b)) terms.push_back(term);
  return terms;
}

Expr conjunction(const std::vector<Expr>& terms) {
  Expr out;
  for (const Expr& term : terms) out = out ? logical_and(out, term) : term;
  return out;
}

bool reads_memory(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) { found |= x.as<Load>() != nullptr; });
  return found;
}

Expr lasting_guard(const Stmt& s) {
  const If* branch = s.as<If>();
  if (branch == nullptr || branch->else_body || reads_memory(branch->condition)) return {};
  return branch->condition;
}

int64_t count_statements(const Stmt& s) {
  int64_t count = 0;
  walk(s, [&](const Stmt&) { ++count; });
  return count;
}

Namer::Namer(const Func& func) {
  for (const Param& p : func.params) used_.insert(p.buffer.name());
  for (const Scalar& s : func.scalars) used_.insert(s.var.name());
  walk(func.body, [&](const Stmt& s) {
    if (const auto* loop = s.as<For>()) used_.insert(loop->var.name());
    if (const auto* block = s.as<Block>()) used_.insert(block->name);
    if (const auto* alloc = s.as<Alloc>()) used_.insert(alloc->buffer.name());
  });
}

std::string Namer::fresh(const std::string& base, const std::string& suffix) {
  std::string text = base + suffix;
  for (int n = 2; !used_.insert(text).second; ++n) text = fmt::format("{}{}{}", base, suffix, n);
  return text;
}

}  // namespace tilewright::lower
