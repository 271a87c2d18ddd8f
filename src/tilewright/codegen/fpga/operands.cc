#include "tilewright/codegen/fpga/operands.h"

#include <algorithm>

#include "tilewright/ir/walk.h"

namespace tilewright::codegen::fpga_design {
namespace {

/// A load from memory outside, and what must hold for it to happen.
struct Operand {
  Expr load;
  std::vector<Expr> conditions;
  std::vector<Counter> counters;  ///< that it depends on
  bool side_by_side = false;      ///< on an unrolled loop, too: several are read in a cycle
  int64_t elements() const {
    int64_t n = 1;
    for (const Counter& counter : counters) n *= counter.extent;
    return n;
  }
};

class Collector {
 public:
  Collector(std::vector<Counter> counters, const Surroundings& around)
      : counters_(std::move(counters)), in_turn_(counters_.size()), around_(around) {}

  void statement(const Stmt& s) {
    const auto* loop = s.as<For>();
    const auto* test = s.as<If>();
    if (const auto* store = s.as<Store>()) {
      stores_outside |= around_.arguments.contains(store->buffer);
      expression(store->value);
    }
    if (loop != nullptr) counters_.push_back({loop->var, as_int(loop->extent).value_or(1)});
    if (test != nullptr) conditions_.push_back(test->condition);
    for (const Stmt& child : children(s))
      if (child) statement(child);
    if (test != nullptr) conditions_.pop_back();
    if (loop != nullptr) counters_.pop_back();
  }

  std::vector<Operand> found;
  bool stores_outside = false;

 private:
  void expression(const Expr& e) {
    if (const auto* load = e.as<Load>()) {
      if (around_.arguments.contains(load->buffer)) add(e, *load);
      return;
    }
    if (const auto* choice = e.as<Select>(); choice != nullptr && !has_loads(choice->condition)) {
      conditions_.push_back(choice->condition);
      expression(choice->on_true);
      conditions_.pop_back();
      expression(choice->on_false);
      return;
    }
    std::visit(Overloaded{[&](const Unary& u) { expression(u.a); },
                          [&](const Binary& b) { expression(b.a), expression(b.b); },
                          [&](const Select& c) {
                            expression(c.condition), expression(c.on_true), expression(c.on_false);
                          },
                          [&](const Cast& c) { expression(c.a); },
                          [&](const MathCall& c) {
                            for (const Expr& arg : c.args) expression(arg);
                          },
                          [](const auto&) {}},
               e.get()->op);
  }

  void add(const Expr& e, const Load& load) {
    for (const Operand& known : found)
      if (equal(known.load, e)) return;
    Operand operand{e, conditions_, {}};
    for (size_t i = 0; i < counters_.size(); ++i) {
      const Counter& counter = counters_[i];
      const auto depends = [&](const Expr& part) { return uses(part, counter.var); };
      if (std::any_of(load.indices.begin(), load.indices.end(), depends) ||
          std::any_of(conditions_.begin(), conditions_.end(), depends)) {
        operand.counters.push_back(counter);
        operand.side_by_side |= i >= in_turn_;
      }
    }
    found.push_back(std::move(operand));
  }

  std::vector<Counter> counters_;
  size_t in_turn_;  ///< of the counters; the others are unrolled loops
  const Surroundings& around_;
  std::vector<Expr> conditions_;
};

Fetched::Copy copy_of(const Operand& operand) {
  const auto* load = operand.load.as<Load>();
  Fetched::Copy copy;
  VarMap fresh;
  std::vector<Expr> shape, indices;
  for (const Counter& counter : operand.counters) {
    const Var var(load->buffer.name() + ".l." + counter.var.name());
    copy.counters.push_back({var, counter.extent});
    fresh[counter.var] = ref(var);
    shape.push_back(int_imm(counter.extent));
    indices.push_back(ref(var));
  }
  if (shape.empty()) shape = {int_imm(1)}, indices = {int_imm(0)};
  copy.buffer = Buffer(load->buffer.name() + ".l", load->buffer.dtype(), shape,
                       operand.side_by_side ? "fpga.reg" : "fpga.bram");
  Expr value = substitute(operand.load, fresh);
  for (const Expr& condition : operand.conditions)
    value = select(substitute(condition, fresh), value, const_of(load->buffer.dtype(), 0));
  copy.body = make(Store{copy.buffer, indices, value, Combine::Set});
  return copy;
}

}  // namespace

Fetched fetch_operands(const std::vector<Counter>& counters, const Stmt& body,
                       const Surroundings& around) {
  Collector collector(counters, around);
  collector.statement(body);
  std::vector<Operand> operands = std::move(collector.found);
  Fetched out{{}, body};
  if (!collector.stores_outside && !operands.empty()) {
    // The port moves the largest one; all loads of its tensor, if they lie side by side.
    const auto largest = std::max_element(
        operands.begin(), operands.end(),
        [](const Operand& a, const Operand& b) { return a.elements() < b.elements(); });
    const Buffer moved = largest->load.as<Load>()->buffer;
    std::erase_if(operands, [&](const Operand& o) { return o.load.as<Load>()->buffer == moved; });
  }
  for (const Operand& operand : operands) {
    const Fetched::Copy copy = copy_of(operand);
    std::vector<Expr> indices;
    for (const Counter& counter : operand.counters) indices.push_back(ref(counter.var));
    if (indices.empty()) indices = {int_imm(0)};
    const Expr read = load(copy.buffer, indices);
    out.body = rewrite(out.body, {}, [&](const Expr& e) {
      return rewrite(e, [&](const Expr& part) { return equal(part, operand.load) ? read : part; });
    });
    out.copies.push_back(copy);
  }
  return out;
}

}  // namespace tilewright::codegen::fpga_design
