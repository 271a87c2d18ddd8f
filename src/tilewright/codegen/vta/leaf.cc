// One perfect nest: what its block is decides the instructions.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/codegen/vta/emitter.h"
#include "tilewright/codegen/vta/transfer.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen::stream {

using vta::Mem;

tl::unexpected<Error> unsupported(const std::string& name, const std::string& why,
                                  const std::string& fix) {
  return fail(ErrorKind::Unsupported, "Block `" + name + "` cannot run on VTA.", why, fix);
}

Status Emitter::nest(std::vector<const For*> loops, const Stmt& leaf) {
  const auto* block = leaf.as<Block>();
  const std::string name = block != nullptr ? block->name : "(outside of blocks)";
  auto attempted = attempt(loops, leaf);
  if (!attempted)
    return tl::unexpected<Error>(std::move(attempted.error()).at("block `" + name + "`"));
  if (attempted->stuck)
    return unsupported(name, "an index or condition depends on data, or is no sum of loops");
  if (attempted->cut != nullptr)
    return in_two(*attempted->cut, attempted->at, [&] { return nest(loops, leaf); });
  const For* unrolled = attempted->unroll;
  if (unrolled == nullptr) return {};
  loops.erase(std::find(loops.begin(), loops.end(), unrolled));
  return execute(*unrolled, [&] { return nest(loops, leaf); });
}

/// The values of a loop: all, or the part it was cut to.
Range Emitter::range_of(const For& loop, int64_t extent) const {
  const auto it = cuts_.find(&loop);
  return it == cuts_.end() ? Range{0, extent - 1} : it->second;
}

Status Emitter::in_two(const For& loop, int64_t at, const std::function<Status()>& body) {
  const auto it = cuts_.find(&loop);
  const auto outer = it == cuts_.end() ? std::nullopt : std::optional(it->second);
  const Range whole = range_of(loop, env_.value(loop.extent).value_or(0));
  cuts_[&loop] = {whole.lo, at - 1};
  TW_TRY_STATUS(body());
  cuts_[&loop] = {at, whole.hi};
  TW_TRY_STATUS(body());
  if (outer)
    cuts_[&loop] = *outer;
  else
    cuts_.erase(&loop);
  return {};
}

Emitter::Attempt Emitter::unroll(const Open& open) const {
  if (open.loops.empty()) return Attempt{nullptr, true};
  return Attempt{open.loops.front()};
}

/// The loop that a condition joins with others: one that reduces, then the shortest.
Emitter::Attempt Emitter::unroll_for(const Form& condition, const Open& open) const {
  size_t best = open.loops.size();
  for (size_t i = 0; i < open.loops.size(); ++i)
    if (condition.k[i] != 0 &&
        (best == open.loops.size() || std::pair(!open.reduces[i], env_.extents()[i]) <
                                          std::pair(!open.reduces[best], env_.extents()[best])))
      best = i;
  if (open.ordered || best == open.loops.size()) return unroll(open);
  return Attempt{open.loops[best]};
}

namespace {

size_t loops_in(const Form& f) {
  return static_cast<size_t>(
      std::count_if(f.k.begin(), f.k.end(), [](int64_t k) { return k != 0; }));
}

}  // namespace

/// Shrinks the loops to where the guard holds. Absent: go on.
Result<std::optional<Emitter::Attempt>> Emitter::open_guard(const Expr& guard, Open& open) {
  std::vector<Form> conditions;
  const Env::Truth truth = env_.collect(guard, true, conditions);
  if (truth == Env::Truth::Never) return std::optional(Attempt{});
  if (truth == Env::Truth::Unknown) return std::optional(unroll(open));
  std::vector<Range> inside;
  for (const int64_t n : env_.extents()) inside.push_back({0, n - 1});
  for (const Form& f : conditions) {
    if (loops_in(f) != 1) return std::optional(unroll_for(f, open));
    const size_t i = static_cast<size_t>(
        std::find_if(f.k.begin(), f.k.end(), [](int64_t k) { return k != 0; }) - f.k.begin());
    if (f.k[i] > 0)
      inside[i].lo = std::max(inside[i].lo, -floor_div(f.c, f.k[i]));
    else
      inside[i].hi = std::min(inside[i].hi, floor_div(f.c, -f.k[i]));
  }
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i].hi < inside[i].lo) return std::optional(Attempt{});
    open.first[i] += inside[i].lo;
    env_.clip_loop(i, open.loops[i]->var, open.first[i], inside[i].hi - inside[i].lo + 1);
  }
  return std::optional<Attempt>();
}

Result<Emitter::Attempt> Emitter::attempt(const std::vector<const For*>& loops, const Stmt& leaf) {
  env_.clear_loops();
  Open open;
  for (const For* loop : loops) {
    const auto extent = env_.value(loop->extent);
    if (!extent || env_.extents().size() == kMaxLoops) return Attempt{loops.front()};
    const Range range = range_of(*loop, *extent);
    if (range.hi < range.lo) return Attempt{};
    if (range.hi == range.lo) {
      env_.set(loop->var, range.lo);
      continue;
    }
    if (loop->kind == ForKind::Unroll || loop->kind == ForKind::VThread) return Attempt{loop};
    const size_t i = env_.add_loop(loop->var, range.hi - range.lo + 1);
    env_.clip_loop(i, loop->var, range.lo, range.hi - range.lo + 1);
    open.loops.push_back(loop);
    open.first.push_back(range.lo);
  }
  const Stmt* body = &leaf;
  if (const auto* block = leaf.as<Block>()) {
    open.name = block->name;
    open.reduces.resize(open.loops.size());
    for (const Iter& iter : block->iters) {
      open.ordered |= iter.kind == IterKind::Scan;
      const auto f = iter.kind == IterKind::Reduce ? env_.form(iter.binding) : std::nullopt;
      for (size_t i = 0; f && i < open.loops.size(); ++i)
        if (f->k[i] != 0) open.reduces[i] = true;
    }
    if (open.ordered && !open.loops.empty()) return unroll(open);
    if (block->guard) {
      const auto early = TW_TRY(open_guard(block->guard, open));
      if (early) return *early;
    }
    for (const Iter& iter : block->iters) {
      const auto f = env_.form(iter.binding);
      if (!f) return unroll(open);
      env_.set(iter.var, *f);
    }
    body = &block->body;
  }
  if (const auto* s = body->as<Store>()) return store(*s, open);
  if (const auto* c = body->as<Call>()) return call(*c, open);
  return unsupported(open.name, "its body is several stores", "Split it into one block per store.");
}

std::optional<Form> Emitter::address(const Buffer& buffer, const std::vector<Expr>& indices) const {
  const Place& p = place(buffer);
  Form out{p.base, {}};
  for (size_t i = 0; i < indices.size(); ++i) {
    auto f = env_.form(indices[i]);
    if (!f) return std::nullopt;
    f->c -= p.begin[i];
    out += f->scale(p.stride[i]);
  }
  return out;
}

Result<Emitter::Attempt> Emitter::store(const Store& s, const Open& open) {
  const Expr value = decided(s.value, env_);
  const auto mem = memory_of(s.buffer);
  bool from_dram = false;
  tilewright::walk(value, [&](const Expr& e) {
    const auto* l = e.as<Load>();
    from_dram |= l != nullptr && !place(l->buffer).mem;
  });
  const bool copies = mem && (mem != Mem::Acc || from_dram);
  if (!copies) return compute(s, value, open);
  if (s.combine != Combine::Set)
    return unsupported(open.name, "it accumulates from DRAM or into " + s.buffer.scope());
  return copy(s, value, open);
}

Result<Emitter::Attempt> Emitter::copy(const Store& s, const Expr& value, const Open& open) {
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
  if (l == nullptr || place(l->buffer).mem)
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
  Nest n{env_.extents(), {*to, *from}, 2};
  n.forms.insert(n.forms.end(), inside.begin(), inside.end());
  merge_loops(n);
  for (size_t i = n.addresses; i < n.forms.size(); ++i)
    if (loops_in(n.forms[i]) > 1) {
      const auto joint =
          std::find_if(inside.begin(), inside.end(), [](const Form& f) { return loops_in(f) > 1; });
      return joint == inside.end() ? unroll(open) : unroll_for(*joint, open);
    }
  TW_TRY_STATUS(take_lanes(n, config_.element_scalars(mem)));
  TW_TRY_STATUS(flush_reset(s.buffer));
  wrote(n, n.forms[0], s.buffer, false);
  TW_TRY_STATUS(emit_transfers(std::move(n), mem, false, *builder_));
  return Attempt{};
}

/// A tile outside of the image: a copy of which nothing is inside.
Result<Emitter::Attempt> Emitter::zeros(const Store& s, const Open& open) {
  const auto to = address(s.buffer, s.indices);
  if (!to) return unroll(open);
  Nest n{env_.extents(), {*to, *to, Form{-1, {}}}, 2};
  merge_loops(n);
  TW_TRY_STATUS(take_lanes(n, config_.element_scalars(Mem::Inp)));
  TW_TRY_STATUS(emit_transfers(std::move(n), Mem::Inp, false, *builder_));
  return Attempt{};
}

namespace {

/// Empty if a region covers exactly one element, else what it does.
std::string not_an_element(const std::vector<int64_t>& sizes, const Place& place, int64_t lanes) {
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
Result<Emitter::Attempt> Emitter::fill(const Call& c, const Open& open) {
  const auto* r = std::get_if<Region>(&c.args.back());
  if (r == nullptr || memory_of(r->buffer) != Mem::Acc)
    return unsupported(open.name, "only accumulators can be filled");
  std::string problem;
  const auto f = element(*r, Mem::Acc, problem);
  if (!problem.empty()) return unsupported(open.name, problem);
  if (!f) return unroll(open);
  TW_TRY_STATUS(reset(Nest{env_.extents(), {*f}, 1}, r->buffer));
  return Attempt{};
}

Result<Emitter::Attempt> Emitter::call(const Call& c, const Open& open) {
  const auto* empty = c.callee->body.as<Seq>();
  if (empty != nullptr && empty->stmts.empty()) return Attempt{};  // orders things elsewhere
  if (fills_with_zero(*c.callee)) return fill(c, open);
  if (c.callee->name.rfind("vta.gemm", 0) != 0)
    return unsupported(open.name, "VTA has no `" + c.callee->name + "`");
  std::map<Mem, const Region*> regions;
  for (const auto& arg : c.args)
    if (const auto* r = std::get_if<Region>(&arg))
      if (const auto mem = memory_of(r->buffer)) regions[*mem] = r;
  Nest n{env_.extents(), {}, 3};
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
std::vector<std::pair<int64_t, int64_t>> moving(Nest nest) {
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
std::vector<StepNest> with_first_part(const Nest& nest, const std::vector<size_t>& fixed) {
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

Status Emitter::gemm(Nest n, const Buffer& target) {
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
    Nest first = n;
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

}  // namespace tilewright::codegen::stream
