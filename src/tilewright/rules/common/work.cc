#include "tilewright/rules/common/work.h"

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/rules/common/program_facts.h"

namespace tilewright::rules {
namespace {

double operations(const Expr& e) {
  const auto all = [](const std::vector<Expr>& args) {
    double sum = 0;
    for (const Expr& arg : args) sum += operations(arg);
    return sum;
  };
  return match(
      e, [](const IntImm&) { return 0.0; }, [](const FloatImm&) { return 0.0; },
      [](const VarRef&) { return 0.0; }, [](const Load&) { return 0.0; },
      [](const Unary& u) { return 1 + operations(u.a); },
      [](const Binary& b) { return 1 + operations(b.a) + operations(b.b); },
      [](const Select& s) { return std::max(operations(s.on_true), operations(s.on_false)); },
      [](const Cast& c) { return operations(c.a); },
      [&](const MathCall& m) { return 1 + all(m.args); });
}

/// Narrow factors decide where the machine multiplies them as they are; else the accumulator does.
DType operand_type(const BlockFacts& block) {
  if (block.store == nullptr) return DType::F32;
  const DType stored = block.store->buffer.dtype();
  const std::optional<Product> product =
      block.kind == BlockFacts::Kind::Reduce ? product_of(block) : std::nullopt;
  if (!product) return stored;
  const DType a = product->a.buffer.dtype(), b = product->b.buffer.dtype();
  if (a == DType::BF16 && b == DType::BF16) return DType::BF16;
  const auto narrow = [](DType d) { return d == DType::I8 || d == DType::U8; };
  return narrow(a) && narrow(b) ? DType::I8 : stored;
}

}  // namespace

double operations_of(const BlockFacts& block) {
  double each = 0;
  walk(block.block->body, [&](const Stmt& s) {
    if (const Store* store = s.as<Store>())
      each += operations(store->value) + (store->combine == Combine::Set ? 0 : 1);
  });
  return each * static_cast<double>(block.work()) * block.counted();
}

Work work_of(const Func& func) {
  Work work;
  double most = -1;
  for (const BlockFacts& block : collect_blocks(func)) {
    const double total = operations_of(block);
    work.operations += total;
    if (total > most) most = total, work.dtype = operand_type(block);
  }
  return work;
}

}  // namespace tilewright::rules
