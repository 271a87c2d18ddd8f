// Blocks of element-wise operations: steps on accumulators in place, then
// perhaps a store.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tilewright/arith/affine.h"
#include "tilewright/codegen/vta/emitter.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen::vta_code {

using arith::floor_div;
using vta::Mem;
using Kind = AluStep::Kind;

namespace {

BinaryOp operation(Combine combine) {
  switch (combine) {
    case Combine::Add:
      return BinaryOp::Add;
    case Combine::Mul:
      return BinaryOp::Mul;
    case Combine::Max:
      return BinaryOp::Max;
    case Combine::Min:
    case Combine::Set:
      break;
  }
  return BinaryOp::Min;
}

bool same_indices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return equal(x, y); });
}

/// Whether steps of several iterations on one element may be regrouped step by
/// step.
bool commute(const std::vector<AluStep>& steps) {
  auto family = [](const AluStep& s) { return s.kind == Kind::Diagonal ? vta::AluOp::Add : s.op; };
  return std::all_of(steps.begin(), steps.end(), [&](const AluStep& s) {
    return s.kind != Kind::Reset && family(s) == family(steps[0]) && family(s) != vta::AluOp::Shr;
  });
}

/// Calls f with each value of a form, once per value if the form is injective over its loops.
void each_value(const ConcreteNest& nest, const Form& form, const std::function<void(int64_t)>& f) {
  std::function<void(size_t, int64_t)> go = [&](size_t depth, int64_t at) {
    if (depth == nest.size()) return f(at);
    const int64_t n = form.k[depth] == 0 ? 1 : nest.extents[depth];
    for (int64_t i = 0; i < n; ++i) go(depth + 1, at + i * form.k[depth]);
  };
  go(0, form.c);
}

/// The first select that the environment does not decide.
const Select* undecided(const Expr& e) {
  const Select* found = nullptr;
  tilewright::walk(e, [&](const Expr& x) {
    if (found == nullptr) found = x.as<Select>();
  });
  return found;
}

}  // namespace

/// Addresses in elements; absent if one is no sum of loops.
Result<std::optional<Emitter::Operands>> Emitter::operands(const Store& s,
                                                           const Expr& value) const {
  Operands o;
  o.nest.extents = env_.extents();
  bool affine = true, dram = false;
  auto add = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    const auto f = address(buffer, indices);
    affine &= f.has_value();
    o.nest.forms.push_back(f.value_or(Form{}));
  };
  add(s.buffer, s.indices);
  bool inputs = false;
  tilewright::walk(value, [&](const Expr& e) {
    const auto* l = e.as<Load>();
    if (l == nullptr) return;
    dram |= !place(l->buffer).memory;
    inputs |= in(place(l->buffer), Mem::Inp);
    o.loads.push_back(l);
    add(l->buffer, l->indices);
  });
  if (dram)
    return fail(ErrorKind::Unsupported, "an operand is in DRAM", "",
                "stage it with cache_read to vta.acc or vta.inp");
  if (inputs && config_.block_in() != config_.block_out())
    return fail(ErrorKind::Unsupported,
                fmt::format("inputs of {} channels do not add to accumulators of {}",
                            config_.block_in(), config_.block_out()));
  if (!affine) return std::optional<Operands>();
  o.nest.addresses = o.nest.forms.size();
  merge_loops(o.nest);
  TW_TRY_STATUS(take_lanes(o.nest, config_.element_scalars(Mem::Acc)));
  return std::optional(std::move(o));
}

/// The form whose accumulators take the value: that of the store, or, for a
/// store to DRAM, of a load that may be overwritten.
Result<size_t> Emitter::choose_target(const Store& s, const Operands& o) const {
  if (memory_of(s.buffer)) return size_t{0};
  for (size_t i = 0; i < o.loads.size(); ++i) {
    const bool accumulator = in(place(o.loads[i]->buffer), Mem::Acc);
    if (accumulator && injective(o.nest, i + 1)) return i + 1;
  }
  return fail(ErrorKind::Unsupported, "nothing that it reads is an accumulator it may overwrite",
              "", "compute its value into a vta.acc buffer first");
}

/// Where to cut a loop so that a condition holds in all of one part, or in none of it.
Attempt Emitter::divide(const Expr& condition, const Open& open) const {
  std::vector<Form> forms;
  if (env_.collect(condition, true, forms) == Env::Truth::Unknown) {
    forms.clear();
    if (env_.collect(condition, false, forms) == Env::Truth::Unknown) return unroll(open);
  }
  if (forms.empty()) return unroll(open);
  const Form& f = forms.front();
  size_t loop = open.loops.size();
  for (size_t i = 0; i < open.loops.size(); ++i) {
    if (f.k[i] == 0) continue;
    if (loop < open.loops.size()) return unroll_for(f, open);
    loop = i;
  }
  if (loop == open.loops.size()) return unroll(open);
  Attempt out;
  out.cut = open.loops[loop];
  out.at = open.first[loop] +
           (f.k[loop] > 0 ? -floor_div(f.c, f.k[loop]) : floor_div(f.c, -f.k[loop]) + 1);
  return out;
}

Result<Attempt> Emitter::compute(const Store& s, const Expr& stored, const Open& open) {
  if (const Select* choice = undecided(stored)) return divide(choice->condition, open);
  Expr value = stored;
  if (s.combine != Combine::Set)
    value = binary(operation(s.combine), load(s.buffer, s.indices), stored);
  auto found = TW_TRY(operands(s, value));
  if (!found) return unroll(open);
  Operands& o = *found;
  const size_t target = TW_TRY(choose_target(s, o));
  const Load* target_load = target == 0 ? nullptr : o.loads[target - 1];
  const Buffer& buffer = target == 0 ? s.buffer : target_load->buffer;
  auto is_target = [&](const Load& l) {
    return target == 0 ? l.buffer == s.buffer && same_indices(l.indices, s.indices)
                       : &l == target_load;
  };
  for (const Load* l : o.loads)
    if (l->buffer == buffer && !is_target(*l))
      return unsupported(open.name,
                         "it reads `" + buffer.name() + "` at two places and changes it");
  auto steps = TW_TRY(AluPlanner{config_, env_, is_target}.plan(value));
  if (!injective(o.nest, target) && (target != 0 || !commute(steps))) return unroll(open);
  if (target == 0 && steps.size() == 1 && steps[0].kind == Kind::Reset) {
    TW_TRY_STATUS(reset(with_forms(o.nest, {0}), s.buffer));
    return Attempt{};
  }
  for (size_t i = 0; i < o.loads.size(); ++i)
    TW_TRY_STATUS(check_unconsumed(o.nest, o.nest.forms[i + 1], o.loads[i]->buffer));
  const bool stores = !memory_of(s.buffer);
  if (stores && steps.empty() && !may_store(o.nest, o.nest.forms[target], buffer)) {
    AluStep nothing;
    nothing.kind = Kind::Immediate;
    nothing.op = vta::AluOp::Shr;
    steps.push_back(nothing);
  }
  TW_TRY_STATUS(run_steps(steps, o, target));
  if (!steps.empty()) wrote(o.nest, o.nest.forms[target], buffer, steps.back().kind != Kind::Reset);
  if (!stores) return Attempt{};
  consume(o.nest, o.nest.forms[target], buffer);
  if (bit_width(s.buffer.dtype()) != config_.out_bits())
    return unsupported(open.name,
                       fmt::format("it stores {}, outputs have {} bits",
                                   tilewright::name(s.buffer.dtype()), config_.out_bits()));
  TW_TRY_STATUS(emit_transfers(with_forms(o.nest, {target, 0}), Mem::Out, true, *builder_));
  return Attempt{};
}

Status Emitter::check_unconsumed(const ConcreteNest& nest, const Form& form,
                                 const Buffer& buffer) const {
  const auto it = accumulators_.find(buffer.id());
  if (it == accumulators_.end() || it->second.consumed.empty()) return {};
  const int64_t first = place(buffer).first;
  bool gone = false;
  each_value(nest, form, [&](int64_t element) {
    gone |= it->second.consumed[static_cast<size_t>(element - first)];
  });
  if (!gone) return {};
  return fail(
      ErrorKind::Unsupported,
      "`" + buffer.name() + "` is used again after the block that stores it computed in place", "",
      "give each block that stores an accumulator buffer of its own");
}

/// Notes a write by a GEMM or the ALU (`storable`), or by a reset or a LOAD.
void Emitter::wrote(const ConcreteNest& nest, const Form& form, const Buffer& buffer,
                    bool storable) {
  const auto it = accumulators_.find(buffer.id());
  if (it == accumulators_.end()) return;
  Accumulators& a = it->second;
  const int64_t first = place(buffer).first;
  each_value(nest, form, [&](int64_t element) {
    const auto i = static_cast<size_t>(element - first);
    a.storable[i] = storable;
    if (!a.consumed.empty()) a.consumed[i] = false;
  });
}

/// requires: an accumulator.
void Emitter::consume(const ConcreteNest& nest, const Form& form, const Buffer& buffer) {
  Accumulators& a = accumulators_.at(buffer.id());
  const PlacedBox& p = place(buffer);
  a.consumed.resize(static_cast<size_t>(p.elements));
  each_value(nest, form,
             [&](int64_t element) { a.consumed[static_cast<size_t>(element - p.first)] = true; });
}

/// Whether what a STORE reads is up to date without a further instruction. requires: an
/// accumulator.
bool Emitter::may_store(const ConcreteNest& nest, const Form& form, const Buffer& buffer) const {
  const Accumulators& a = accumulators_.at(buffer.id());
  const int64_t first = place(buffer).first;
  bool all = true;
  each_value(nest, form,
             [&](int64_t element) { all &= a.storable[static_cast<size_t>(element - first)]; });
  return all;
}

Status Emitter::run_steps(const std::vector<AluStep>& steps, const Operands& o, size_t target) {
  for (const Load* l : o.loads) TW_TRY_STATUS(flush_reset(l->buffer));
  for (const AluStep& step : steps) TW_TRY_STATUS(run_step(step, o, target));
  return {};
}

Status Emitter::run_step(const AluStep& step, const Operands& o, size_t target) {
  const bool gemm = step.kind == Kind::Diagonal || step.kind == Kind::Reset;
  size_t source = target;
  for (size_t i = 0; i < o.loads.size(); ++i)
    if (o.loads[i] == step.load) source = i + 1;
  StepNest steps{with_forms(o.nest, {target, source}), gemm, false, -1};
  if (step.kind == Kind::Reset) steps.nest = with_forms(o.nest, {target});
  if (step.kind == Kind::Diagonal) {
    TW_TRY_STATUS(load_weights());
    const auto it = std::find(weights_.begin(), weights_.end(), step.weight);
    if (it == weights_.end() || steps.nest.size() == kMaxLoops)
      return fail(ErrorKind::Unsupported,
                  fmt::format("diagonal weight {} is not in the table", step.weight));
    const int64_t slot =
        config_.depth(Mem::Wgt) - static_cast<int64_t>(weights_.size()) + (it - weights_.begin());
    steps.nest.forms.push_back(Form{slot, {}});
    steps.nest.addresses = 3;
    if (step.repeat > 1) steps.nest.extents.push_back(step.repeat);
  }
  return step_loops_.run(
      std::move(steps), [&](std::vector<vta::Uop> uops, const vta::Loops& loops, bool) -> Status {
        if (gemm) return builder_->gemm(std::move(uops), loops, step.kind == Kind::Reset);
        const auto immediate =
            step.kind == Kind::Immediate ? std::optional(step.immediate) : std::nullopt;
        return builder_->alu(step.op, std::move(uops), loops, immediate);
      });
}

Status Emitter::reset(ConcreteNest n, const Buffer& target) {
  TW_TRY_STATUS(flush_reset(target));
  wrote(n, n.forms[0], target, false);
  if (config_.extensions.fused_reset) {
    waiting_resets_[target.id()] = std::move(n);
    return {};
  }
  return step_loops_.run({std::move(n), true, false, -1},
                         [&](std::vector<vta::Uop> uops, const vta::Loops& loops, bool) {
                           return builder_->gemm(std::move(uops), loops, true);
                         });
}

Status Emitter::flush_reset(const Buffer& buffer) {
  const auto it = waiting_resets_.find(buffer.id());
  if (it == waiting_resets_.end()) return {};
  ConcreteNest n = std::move(it->second);
  waiting_resets_.erase(it);
  return step_loops_.run({std::move(n), true, false, -1},
                         [&](std::vector<vta::Uop> uops, const vta::Loops& loops, bool) {
                           return builder_->gemm(std::move(uops), loops, true);
                         });
}

std::string diagonal_element(const vta::Config& config, int64_t value) {
  const int bits = config.wgt_bits();
  std::string out(static_cast<size_t>(config.element_bytes(Mem::Wgt)), '\0');
  for (int c = 0; c < config.block_out(); ++c) {
    const int64_t first = (int64_t{c} * config.block_in() + c) * bits;
    for (int b = 0; b < bits; ++b)
      if (value >> b & 1) {
        char& byte = out[static_cast<size_t>((first + b) / 8)];
        byte = static_cast<char>(byte | 1 << (first + b) % 8);
      }
  }
  return out;
}

Status Emitter::load_weights() {
  if (weights_loaded_ || weights_.empty()) return {};
  weights_loaded_ = true;
  std::string table;
  for (const int64_t w : weights_) table += diagonal_element(config_, w);
  const auto bytes = static_cast<uint64_t>(config_.element_bytes(Mem::Wgt));
  const uint64_t address =
      TW_TRY(builder_->allocate(func_.name + ".diagonals", table.size(), bytes));
  builder_->write(address, table);
  vta::Transfer t;
  t.mem = Mem::Wgt;
  t.sram = static_cast<uint32_t>(config_.depth(Mem::Wgt) - static_cast<int64_t>(weights_.size()));
  t.dram = static_cast<uint32_t>(address / bytes);
  t.y_size = 1;
  t.x_size = t.x_stride = static_cast<uint32_t>(weights_.size());
  return builder_->transfer(t);
}

}  // namespace tilewright::codegen::vta_code
