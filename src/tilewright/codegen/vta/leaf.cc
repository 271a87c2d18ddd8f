// What the block of a nest is decides its instructions.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/codegen/vta/emitter.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen::vta_code {

using vta::Mem;

Result<Attempt> Emitter::leaf(const Stmt& body, const Open& open) {
  if (const auto* s = body.as<Store>()) return store(*s, open);
  return call(*body.as<Call>(), open);
}

Result<Attempt> Emitter::store(const Store& s, const Open& open) {
  const Expr value = decided(s.value, env_);
  const auto mem = memory_of(s.buffer);
  bool from_dram = false;
  tilewright::walk(value, [&](const Expr& e) {
    const auto* l = e.as<Load>();
    from_dram |= l != nullptr && !place(l->buffer).memory;
  });
  const bool copies = mem && (mem != Mem::Acc || from_dram);
  if (!copies) return compute(s, value, open);
  if (s.combine != Combine::Set)
    return unsupported(open.name, "it accumulates from DRAM or into " + s.buffer.scope());
  return copy(s, value, open);
}

Result<Attempt> Emitter::copy(const Store& s, const Expr& value, const Open& open) {
  Expr source = value;
  std::vector<Form> inside;
  while (const auto* select = source.as<Select>()) {
    const bool wanted = is_const_int(select->on_false, 0);
    if (!wanted && !is_const_int(select->on_true, 0))
      return unsupported(open.name, "what it copies is filled up with something else than 0");
    const Env::Truth truth = env_.collect(select->condition, wanted, inside);
    if (truth == Env::Truth::Unknown) return unroll(open);
    if (truth == Env::Truth::Never) inside.push_back(Form{-1, {}});
    source = wanted ? select->on_true : select->on_false;
  }
  Mem mem = *memory_of(s.buffer);
  if (const auto* c = source.as<Cast>(); c != nullptr && mem == Mem::Acc && config_.has_acc8) {
    source = c->a;
    mem = Mem::Acc8;
  }
  if (is_const_int(source, 0) && mem == Mem::Inp) return zeros(s, open);
  const auto* l = source.as<Load>();
  if (l == nullptr || place(l->buffer).memory)
    return unsupported(open.name, "it fills " + s.buffer.scope() +
                                      " with something else than a "
                                      "copy of DRAM");
  if (bit_width(l->buffer.dtype()) != scalar_bits(config_, mem) ||
      !is_signed_int(l->buffer.dtype()))
    return unsupported(open.name,
                       fmt::format("`{}` is {}, the memory takes {}-bit integers", l->buffer.name(),
                                   tilewright::name(l->buffer.dtype()), scalar_bits(config_, mem)));
  const auto to = address(s.buffer, s.indices), from = address(l->buffer, l->indices);
  if (!to || !from) return unroll(open);
  ConcreteNest n{env_.extents(), {*to, *from}, 2};
  n.forms.insert(n.forms.end(), inside.begin(), inside.end());
  merge_loops(n);
  for (size_t i = n.addresses; i < n.forms.size(); ++i)
    if (stream::loops_in(n.forms[i]) > 1) {
      const auto joint = std::find_if(inside.begin(), inside.end(),
                                      [](const Form& f) { return stream::loops_in(f) > 1; });
      return joint == inside.end() ? unroll(open) : unroll_for(*joint, open);
    }
  TW_TRY_STATUS(take_lanes(n, config_.element_scalars(mem)));
  TW_TRY_STATUS(flush_reset(s.buffer));
  wrote(n, n.forms[0], s.buffer, false);
  TW_TRY_STATUS(emit_transfers(std::move(n), mem, false, *builder_));
  return Attempt{};
}

/// A tile outside of the image: a copy of which nothing is inside.
Result<Attempt> Emitter::zeros(const Store& s, const Open& open) {
  const auto to = address(s.buffer, s.indices);
  if (!to) return unroll(open);
  ConcreteNest n{env_.extents(), {*to, *to, Form{-1, {}}}, 2};
  merge_loops(n);
  TW_TRY_STATUS(take_lanes(n, config_.element_scalars(Mem::Inp)));
  TW_TRY_STATUS(emit_transfers(std::move(n), Mem::Inp, false, *builder_));
  return Attempt{};
}

namespace {

/// Empty if a region covers exactly one element, else what it does.
std::string not_an_element(const std::vector<int64_t>& sizes, const PlacedBox& place,
                           int64_t lanes) {
  int64_t covered = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (place.stride[i] != covered) return "its scalars do not follow each other in the memory";
    covered *= sizes[i];
  }
  if (covered == lanes) return {};
  return fmt::format("it has {} scalars, an element {}", covered, lanes);
}

}  // namespace

/// The address of the element that a region is, in elements. Absent: not a sum of loops, or, with
/// `problem`, no element.
std::optional<Form> Emitter::element(const Region& r, Mem mem, std::string& problem) const {
  std::vector<Expr> begins;
  std::vector<int64_t> sizes;
  for (const auto& [begin, size] : r.dims) {
    begins.push_back(begin);
    sizes.push_back(env_.value(size).value_or(-1));
  }
  const int64_t lanes = config_.element_scalars(mem);
  const std::string why = not_an_element(sizes, place(r.buffer), lanes);
  if (!why.empty()) problem = "operand `" + r.buffer.name() + "`: " + why;
  auto f = address(r.buffer, begins);
  if (!f) return f;
  bool aligned = f->c % lanes == 0;
  for (const int64_t k : f->k) aligned &= k % lanes == 0;
  if (!aligned && problem.empty())
    problem = "operand `" + r.buffer.name() + "` does not start at an element";
  f->c /= lanes;
  for (int64_t& k : f->k) k /= lanes;
  return f;
}

namespace {

/// Whether a callee only sets its one parameter to 0.
bool fills_with_zero(const Func& callee) {
  if (callee.params.size() != 1) return false;
  const Stmt* s = &callee.body;
  while (const auto* f = s->as<For>()) s = &f->body;
  if (const auto* b = s->as<Block>()) s = b->guard ? s : &b->body;
  const auto* store = s->as<Store>();
  return store != nullptr && store->combine == Combine::Set && is_const_int(store->value, 0);
}

}  // namespace

/// A call that sets an element to 0: a reset.
Result<Attempt> Emitter::fill(const Call& c, const Open& open) {
  const auto* r = std::get_if<Region>(&c.args.back());
  if (r == nullptr || memory_of(r->buffer) != Mem::Acc)
    return unsupported(open.name, "only accumulators can be filled");
  std::string problem;
  const auto f = element(*r, Mem::Acc, problem);
  if (!problem.empty()) return unsupported(open.name, problem);
  if (!f) return unroll(open);
  TW_TRY_STATUS(reset(ConcreteNest{env_.extents(), {*f}, 1}, r->buffer));
  return Attempt{};
}

Result<Attempt> Emitter::call(const Call& c, const Open& open) {
  const auto* empty = c.callee->body.as<Seq>();
  if (empty != nullptr && empty->stmts.empty()) return Attempt{};  // orders things elsewhere
  if (fills_with_zero(*c.callee)) return fill(c, open);
  if (c.callee->name.rfind("vta.gemm", 0) != 0)
    return unsupported(open.name, "VTA has no `" + c.callee->name + "`");
  std::map<Mem, const Region*> regions;
  for (const auto& arg : c.args)
    if (const auto* r = std::get_if<Region>(&arg))
      if (const auto mem = memory_of(r->buffer)) regions[*mem] = r;
  ConcreteNest n{env_.extents(), {}, 3};
  for (const Mem mem : {Mem::Acc, Mem::Inp, Mem::Wgt}) {
    if (!regions.contains(mem))
      return unsupported(open.name, fmt::format("`{}` has no operand in the {} memory",
                                                c.callee->name, vta::name(mem)));
    std::string problem;
    const auto f = element(*regions[mem], mem, problem);
    if (!problem.empty()) return unsupported(open.name, problem);
    if (!f) return unroll(open);
    n.forms.push_back(*f);
  }
  TW_TRY_STATUS(gemm(std::move(n), regions[Mem::Acc]->buffer));
  return Attempt{};
}

namespace {

/// Loops that move the first form, as sorted (step, iterations).
std::vector<std::pair<int64_t, int64_t>> moving(ConcreteNest nest) {
  nest = with_forms(nest, {0});
  for (size_t i = nest.size(); i-- > 0;)
    if (nest.forms[0].k[i] == 0) nest.fix(i, 0);
  merge_loops(nest);
  std::vector<std::pair<int64_t, int64_t>> out;
  for (size_t i = 0; i < nest.size(); ++i) out.emplace_back(nest.forms[0].k[i], nest.extents[i]);
  std::sort(out.begin(), out.end());
  return out;
}

/// Parts of a nest of which the first (all loops in `fixed` but the first at 0)
/// meets every destination first; the others are what it leaves.
std::vector<StepNest> with_first_part(const ConcreteNest& nest, const std::vector<size_t>& fixed) {
  std::vector<StepNest> out;
  StepNest first{nest, true, true, fixed.empty() ? -1 : static_cast<int>(fixed[0])};
  for (size_t j = 1; j < fixed.size(); ++j) first.nest.extents[fixed[j]] = 1;
  out.push_back(first);
  for (size_t j = 1; j < fixed.size(); ++j) {  // loop j beyond 0, those after it at 0
    StepNest rest{nest, true, false, -1};
    rest.nest.extents[fixed[j]] -= 1;
    for (Form& f : rest.nest.forms) f.c += f.k[fixed[j]];
    for (size_t i = j + 1; i < fixed.size(); ++i) rest.nest.extents[fixed[i]] = 1;
    out.push_back(rest);
  }
  return out;
}

}  // namespace

Status Emitter::gemm(ConcreteNest n, const Buffer& target) {
  TW_TRY_STATUS(check_unconsumed(n, n.forms[0], target));
  wrote(n, n.forms[0], target, true);
  const Issue issue = [&](std::vector<vta::Uop> uops, const vta::Loops& loops, bool replace) {
    return builder_->gemm(std::move(uops), loops, false, replace);
  };
  const auto waiting = waiting_resets_.find(target.id());
  if (waiting != waiting_resets_.end()) {
    merge_loops(n);
    std::vector<size_t> fixed;
    for (size_t i = 0; i < n.size(); ++i)
      if (n.forms[0].k[i] == 0) fixed.push_back(i);
    std::sort(fixed.begin(), fixed.end(),
              [&](size_t a, size_t b) { return n.extents[a] > n.extents[b]; });
    ConcreteNest first = n;
    for (const size_t i : fixed) first.extents[i] = 1;
    const bool all = waiting->second.forms[0].c == n.forms[0].c &&
                     moving(waiting->second) == moving(n) && injective(first, 0);
    if (all) {
      waiting_resets_.erase(waiting);
      for (StepNest& part : with_first_part(n, fixed))
        TW_TRY_STATUS(step_loops_.run(std::move(part), issue));
      return {};
    }
    TW_TRY_STATUS(flush_reset(target));
  }
  return step_loops_.run({std::move(n), true, false, -1}, issue);
}

}  // namespace tilewright::codegen::vta_code
