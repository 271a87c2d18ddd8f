#include "tilewright/codegen/stream/walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/arith/affine.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen::stream {

using arith::floor_div;

size_t loops_in(const Form& f) {
  return static_cast<size_t>(
      std::count_if(f.k.begin(), f.k.end(), [](int64_t k) { return k != 0; }));
}

tl::unexpected<Error> Walk::unsupported(const std::string& name, const std::string& why,
                                        const std::string& fix) const {
  return fail(ErrorKind::Unsupported, "block `" + name + "` cannot run on " + memories_.device, why,
              fix);
}

Status Walk::prepare() {
  for (const Scalar& s : func_.scalars) {
    if (s.lo != s.hi)
      return fail(ErrorKind::Unsupported,
                  fmt::format("scalar `{}` of `{}` is not known at compile time ({}..{})",
                              s.var.name(), func_.name, s.lo, s.hi));
    env_.set(s.var, s.lo);
  }
  on_chip_ = TW_TRY(find_allocations(func_, memories_));
  return {};
}

Status Walk::measure_rings(int copies) {
  measuring_ = true;
  TW_TRY_STATUS(walk(func_.body));
  measuring_ = false;
  for (Ring& ring : on_chip_.rings) {
    ring.copies = std::clamp<int64_t>(ring.wanted > 0 ? ring.wanted : copies, 1,
                                      std::max<int64_t>(ring.instances, 1));
    ring.next = 0;
  }
  return {};
}

Status Walk::emit_all(const std::vector<uint64_t>& addresses) {
  if (addresses.size() != func_.params.size())
    return fail(ErrorKind::Invalid, fmt::format("`{}` has {} parameters, {} addresses are given",
                                                func_.name, func_.params.size(), addresses.size()));
  for (size_t i = 0; i < addresses.size(); ++i) {
    const Param& p = func_.params[i];
    places_[p.buffer.id()] = TW_TRY(place_in_dram(p.buffer, p.strides, addresses[i], env_));
  }
  return walk(func_.body);
}

bool Walk::holds_alloc(const Stmt& s) {
  const auto it = holds_alloc_.find(s.get());
  if (it != holds_alloc_.end()) return it->second;
  bool found = s.as<Alloc>() != nullptr;
  for (const Stmt& child : children(s)) found |= holds_alloc(child);
  return holds_alloc_[s.get()] = found;
}

Status Walk::execute(const For& f, const std::function<Status()>& body) {
  const auto extent = env_.value(f.extent);
  if (!extent)
    return fail(ErrorKind::Unsupported,
                "the extent of loop `" + f.var.name() + "` is not known at compile time");
  const Range range = range_of(f, *extent);
  for (int64_t i = range.lo; i <= range.hi; ++i) {
    env_.set(f.var, i);
    TW_TRY_STATUS(body());
  }
  return {};
}

Status Walk::loop(const For& f) {
  std::vector<const For*> loops{&f};
  const Stmt* inner_stmt = &f.body;
  while (const auto* inner = inner_stmt->as<For>()) {
    loops.push_back(inner);
    inner_stmt = &inner->body;
  }
  const bool perfect = inner_stmt->as<Block>() || inner_stmt->as<Store>() || inner_stmt->as<Call>();
  if (perfect) return nest(std::move(loops), *inner_stmt);
  return execute(f, [&] { return walk(f.body); });
}

Status Walk::walk(const Stmt& s) {
  if (measuring_ && !holds_alloc(s)) return {};
  if (const auto* f = s.as<For>()) return loop(*f);
  if (const auto* a = s.as<Alloc>()) return alloc(a->buffer);
  if (const auto* q = s.as<Seq>()) {
    for (const Stmt& child : q->stmts) TW_TRY_STATUS(walk(child));
    return {};
  }
  if (const auto* i = s.as<If>()) {
    env_.clear_loops();
    const auto which = env_.decide(i->condition);
    if (!which) return fail(ErrorKind::Unsupported, "an `if` is not decided at compile time");
    if (*which) return walk(i->then_body);
    return i->else_body ? walk(i->else_body) : Status{};
  }
  return nest({}, s);
}

Status Walk::alloc_in_dram(const Buffer& buffer) {
  if (measuring_ || places_.contains(buffer.id())) return {};
  int64_t bytes = storage_bytes(buffer.dtype(), 1);
  for (const Expr& n : buffer.shape()) bytes *= env_.value(n).value_or(0);
  const uint64_t address =
      TW_TRY(allocate(func_.name + "." + buffer.name(), static_cast<uint64_t>(bytes)));
  places_[buffer.id()] = TW_TRY(place_in_dram(buffer, {}, address, env_));
  return {};
}

Status Walk::alloc(const Buffer& buffer) {
  const auto it = on_chip_.allocations.find(buffer.id());
  if (it == on_chip_.allocations.end()) return alloc_in_dram(buffer);
  Ring& ring = on_chip_.rings[it->second.ring];
  const int64_t copy = ring.next++ % ring.copies;
  PlacedBox instance =
      TW_TRY(place_instance(it->second, ring.first + copy * ring.size, memories_, env_));
  if (measuring_) {
    ring.size = std::max(ring.size, instance.elements);
    ++ring.instances;
    return {};
  }
  begin(buffer, instance);
  places_[buffer.id()] = std::move(instance);
  return {};
}

// --- one nest around one block ------------------------------------------------------------------

Status Walk::nest(std::vector<const For*> loops, const Stmt& leaf_stmt) {
  const auto* block = leaf_stmt.as<Block>();
  const std::string name = block != nullptr ? block->name : "(outside of blocks)";
  auto attempted = attempt(loops, leaf_stmt);
  if (!attempted)
    return tl::unexpected<Error>(std::move(attempted.error()).at("block `" + name + "`"));
  if (attempted->stuck)
    return unsupported(name, "an index or condition depends on data, or is no sum of loops");
  if (attempted->cut != nullptr)
    return in_two(*attempted->cut, attempted->at, [&] { return nest(loops, leaf_stmt); });
  const For* unrolled = attempted->unroll;
  if (unrolled == nullptr) return {};
  loops.erase(std::find(loops.begin(), loops.end(), unrolled));
  return execute(*unrolled, [&] { return nest(loops, leaf_stmt); });
}

/// The values of a loop: all, or the part it was cut to.
Range Walk::range_of(const For& loop, int64_t extent) const {
  const auto it = cuts_.find(&loop);
  return it == cuts_.end() ? Range{0, extent - 1} : it->second;
}

Status Walk::in_two(const For& loop, int64_t at, const std::function<Status()>& body) {
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

Attempt Walk::unroll(const Open& open) const {
  if (open.loops.empty()) return Attempt{nullptr, true};
  return Attempt{open.loops.front()};
}

Attempt Walk::unroll_for(const Form& condition, const Open& open) const {
  size_t best = open.loops.size();
  for (size_t i = 0; i < open.loops.size(); ++i)
    if (condition.k[i] != 0 &&
        (best == open.loops.size() || std::pair(!open.reduces[i], env_.extents()[i]) <
                                          std::pair(!open.reduces[best], env_.extents()[best])))
      best = i;
  if (open.ordered || best == open.loops.size()) return unroll(open);
  return Attempt{open.loops[best]};
}

/// Shrinks the loops to where the guard holds. Absent: go on.
std::optional<Attempt> Walk::open_guard(const Expr& guard, Open& open) {
  std::vector<Form> conditions;
  const Env::Truth truth = env_.collect(guard, true, conditions);
  if (truth == Env::Truth::Never) return Attempt{};
  if (truth == Env::Truth::Unknown) return unroll(open);
  std::vector<Range> inside;
  for (const int64_t n : env_.extents()) inside.push_back({0, n - 1});
  for (const Form& f : conditions) {
    if (loops_in(f) != 1) return unroll_for(f, open);
    const size_t i = static_cast<size_t>(
        std::find_if(f.k.begin(), f.k.end(), [](int64_t k) { return k != 0; }) - f.k.begin());
    if (f.k[i] > 0)
      inside[i].lo = std::max(inside[i].lo, -floor_div(f.c, f.k[i]));
    else
      inside[i].hi = std::min(inside[i].hi, floor_div(f.c, -f.k[i]));
  }
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i].hi < inside[i].lo) return Attempt{};
    open.first[i] += inside[i].lo;
    env_.clip_loop(i, open.loops[i]->var, open.first[i], inside[i].hi - inside[i].lo + 1);
  }
  return std::nullopt;
}

/// Absent: go on.
std::optional<Attempt> Walk::open_loops(const std::vector<const For*>& loops, Open& open) {
  for (const For* loop : loops) {
    const auto extent = env_.value(loop->extent);
    if (!extent || env_.extents().size() == kMaxLoops) return Attempt{loops.front()};
    const Range range = range_of(*loop, *extent);
    if (range.hi < range.lo) return Attempt{};
    if (range.hi == range.lo) {
      env_.set(loop->var, range.lo);
      continue;
    }
    if (loop->kind == ForKind::Unroll) return Attempt{loop};
    const size_t i = env_.add_loop(loop->var, range.hi - range.lo + 1);
    env_.clip_loop(i, loop->var, range.lo, range.hi - range.lo + 1);
    open.loops.push_back(loop);
    open.first.push_back(range.lo);
  }
  return std::nullopt;
}

/// Absent: go on.
std::optional<Attempt> Walk::open_block(const Block& block, Open& open) {
  open.name = block.name;
  open.reduces.resize(open.loops.size());
  for (const Iter& iter : block.iters) {
    open.ordered |= iter.kind == IterKind::Scan;
    const auto f = iter.kind == IterKind::Reduce ? env_.form(iter.binding) : std::nullopt;
    for (size_t i = 0; f && i < open.loops.size(); ++i)
      if (f->k[i] != 0) open.reduces[i] = true;
  }
  if (open.ordered && !open.loops.empty()) return unroll(open);
  if (block.guard)
    if (const auto early = open_guard(block.guard, open)) return early;
  for (const Iter& iter : block.iters) {
    const auto f = env_.form(iter.binding);
    if (!f) return unroll(open);
    env_.set(iter.var, *f);
  }
  return std::nullopt;
}

Result<Attempt> Walk::attempt(const std::vector<const For*>& loops, const Stmt& leaf_stmt) {
  env_.clear_loops();
  Open open;
  if (const auto early = open_loops(loops, open)) return *early;
  const Stmt* body = &leaf_stmt;
  if (const auto* block = leaf_stmt.as<Block>()) {
    if (const auto early = open_block(*block, open)) return *early;
    body = &block->body;
  }
  if (body->as<Store>() || body->as<Call>()) return leaf(*body, open);
  return unsupported(open.name, "its body is several stores", "split it into one block per store");
}

std::optional<Form> Walk::address(const Buffer& buffer, const std::vector<Expr>& indices) const {
  const PlacedBox& p = place(buffer);
  Form out{p.base, {}};
  for (size_t i = 0; i < indices.size(); ++i) {
    auto f = env_.form(indices[i]);
    if (!f) return std::nullopt;
    f->c -= p.begin[i];
    out += f->scale(p.stride[i]);
  }
  return out;
}

}  // namespace tilewright::codegen::stream
