#include "tilewright/codegen/vta/vta.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/codegen/vta/emitter.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace stream {

using vta::Mem;

bool Emitter::holds_alloc(const Stmt& s) {
  const auto it = holds_alloc_.find(s.get());
  if (it != holds_alloc_.end()) return it->second;
  bool found = s.as<Alloc>() != nullptr;
  for (const Stmt& child : children(s)) found |= holds_alloc(child);
  return holds_alloc_[s.get()] = found;
}

Status Emitter::execute(const For& f, const std::function<Status()>& body) {
  const auto extent = env_.value(f.extent);
  if (!extent)
    return fail(ErrorKind::Unsupported,
                "The extent of loop `" + f.var.name() + "` is not known at compile time.");
  const Range range = range_of(f, *extent);
  for (int64_t i = range.lo; i <= range.hi; ++i) {
    env_.set(f.var, i);
    TW_TRY_STATUS(body());
  }
  return {};
}

Status Emitter::loop(const For& f) {
  std::vector<const For*> loops{&f};
  const Stmt* leaf = &f.body;
  while (const auto* inner = leaf->as<For>()) {
    loops.push_back(inner);
    leaf = &inner->body;
  }
  const bool perfect = leaf->as<Block>() || leaf->as<Store>() || leaf->as<Call>();
  if (perfect) return nest(std::move(loops), *leaf);
  return execute(f, [&] { return walk(f.body); });
}

Status Emitter::walk(const Stmt& s) {
  if (builder_ == nullptr && !holds_alloc(s)) return {};
  if (const auto* f = s.as<For>()) return loop(*f);
  if (const auto* a = s.as<Alloc>()) return alloc(a->buffer);
  if (const auto* q = s.as<Seq>()) {
    for (const Stmt& child : q->stmts) TW_TRY_STATUS(walk(child));
    return {};
  }
  if (const auto* i = s.as<If>()) {
    env_.clear_loops();
    const auto which = env_.decide(i->condition);
    if (!which) return fail(ErrorKind::Unsupported, "An `if` is not decided at compile time.");
    if (*which) return walk(i->then_body);
    return i->else_body ? walk(i->else_body) : Status{};
  }
  return nest({}, s);
}

Status Emitter::alloc(const Buffer& buffer) {
  const auto it = on_chip_.allocations.find(buffer.id());
  if (it == on_chip_.allocations.end()) {  // in DRAM
    if (builder_ == nullptr || places_.contains(buffer.id())) return {};
    int64_t bytes = storage_bytes(buffer.dtype(), 1);
    for (const Expr& n : buffer.shape()) bytes *= env_.value(n).value_or(0);
    const uint64_t address =
        TW_TRY(builder_->allocate(func_.name + "." + buffer.name(), static_cast<uint64_t>(bytes)));
    places_[buffer.id()] = TW_TRY(place_in_dram(buffer, {}, address, env_));
    return {};
  }
  Ring& ring = on_chip_.rings[it->second.ring];
  const int64_t copy = ring.next++ % ring.copies;
  Place instance = TW_TRY(place_instance(it->second, ring.first + copy * ring.size, config_, env_));
  waiting_resets_.erase(buffer.id());
  if (builder_ == nullptr) {
    ring.size = std::max(ring.size, instance.elements);
    ++ring.instances;
    return {};
  }
  if (instance.mem == Mem::Acc) instance.storable.resize(static_cast<size_t>(instance.elements));
  places_[buffer.id()] = std::move(instance);
  return {};
}

/// Diagonal weights that blocks of `s` need.
void Emitter::find_weights(const Stmt& s) {
  tilewright::walk(s, [&](const Stmt& x) {
    const auto* store = x.as<Store>();
    if (store == nullptr) return;
    const auto mem = memory_of(store->buffer);
    if (mem && mem != Mem::Acc) return;
    Expr value = store->value;
    if (store->combine == Combine::Add)
      value = binary(BinaryOp::Add, load(store->buffer, store->indices), value);
    find_weights(*store, value);
  });
}

/// Plans as when the block is emitted, with the first accumulator as the target, for either side
/// of each select.
void Emitter::find_weights(const Store& s, const Expr& value) {
  const Load* target = nullptr;
  const Select* choice = nullptr;
  tilewright::walk(value, [&](const Expr& e) {
    if (choice == nullptr) choice = e.as<Select>();
    const auto* l = e.as<Load>();
    const bool fits = l != nullptr && memory_of(l->buffer) == Mem::Acc &&
                      (!memory_of(s.buffer) || l->buffer == s.buffer);
    if (fits && target == nullptr) target = l;
  });
  if (choice != nullptr) {
    for (const Expr& side : {choice->on_true, choice->on_false})
      find_weights(s, rewrite(value, [&](const Expr& e) {
                     const auto* other = e.as<Select>();
                     return other != nullptr && same(other->condition, choice->condition) ? side
                                                                                          : e;
                   }));
    return;
  }
  const auto steps =
      AluPlanner{config_, env_, [&](const Load& l) { return &l == target; }}.plan(value);
  if (!steps) return;  // the emission reports it
  for (const AluStep& step : *steps)
    if (step.kind == AluStep::Kind::Diagonal &&
        std::find(weights_.begin(), weights_.end(), step.weight) == weights_.end())
      weights_.push_back(step.weight);
}

Result<VtaUse> Emitter::measure() {
  for (const Scalar& s : func_.scalars) {
    if (s.lo != s.hi)
      return fail(ErrorKind::Unsupported,
                  fmt::format("Scalar `{}` of `{}` is not known at compile time ({}..{}).",
                              s.var.name(), func_.name, s.lo, s.hi));
    env_.set(s.var, s.lo);
  }
  on_chip_ = TW_TRY(find_allocations(func_, config_));
  find_weights(func_.body);
  TW_TRY_STATUS(walk(func_.body));
  VtaUse use;
  use.wgt = static_cast<int64_t>(weights_.size());
  for (Ring& ring : on_chip_.rings) {
    ring.copies = std::clamp<int64_t>(ring.wanted > 0 ? ring.wanted : options_.copies, 1,
                                      std::max<int64_t>(ring.instances, 1));
    ring.next = 0;
    const int64_t size = ring.copies * ring.size;
    (ring.mem == Mem::Inp ? use.inp : ring.mem == Mem::Wgt ? use.wgt : use.acc) += size;
  }
  return use;
}

/// Rings follow each other in the order of the program's text.
Status Emitter::assign_slots() {
  std::map<Mem, int64_t> next;
  std::map<Mem, std::string> parts;
  for (Ring& ring : on_chip_.rings) {
    ring.first = next[ring.mem];
    next[ring.mem] += ring.copies * ring.size;
    parts[ring.mem] += fmt::format("{}{} {} x {}", parts[ring.mem].empty() ? "" : "; ", ring.names,
                                   ring.copies, ring.size);
  }
  if (!weights_.empty()) {
    next[Mem::Wgt] += static_cast<int64_t>(weights_.size());
    parts[Mem::Wgt] += fmt::format("; diagonal weights {}", weights_.size());
  }
  for (const auto& [mem, elements] : next)
    if (elements > config_.depth(mem))
      return fail(ErrorKind::Capacity,
                  fmt::format("`{}` does not fit the {} memory: {} elements needed, {} there.",
                              func_.name, vta::name(mem), elements, config_.depth(mem)),
                  parts[mem], "Use smaller tiles, or fewer copies.");
  return {};
}

Status Emitter::emit(const std::vector<uint64_t>& addresses, vta::Builder& builder) {
  TW_TRY_STATUS(assign_slots());
  if (addresses.size() != func_.params.size())
    return fail(ErrorKind::Invalid, fmt::format("`{}` has {} parameters, {} addresses are given.",
                                                func_.name, func_.params.size(), addresses.size()));
  for (size_t i = 0; i < addresses.size(); ++i) {
    const Param& p = func_.params[i];
    places_[p.buffer.id()] = TW_TRY(place_in_dram(p.buffer, p.strides, addresses[i], env_));
  }
  builder_ = &builder;
  return walk(func_.body);
}

}  // namespace stream

Status emit_vta(const Func& func, const std::vector<uint64_t>& addresses, const VtaOptions& options,
                vta::Builder& builder) {
  const vta::Config config = builder.config();
  stream::Emitter emitter(func, config, options);
  TW_TRY_STATUS(emitter.measure());
  return emitter.emit(addresses, builder);
}

Result<VtaUse> vta_use(const Func& func, const vta::Config& config, const VtaOptions& options) {
  return stream::Emitter(func, config, options).measure();
}

Result<vta::Program> vta_program(const Func& scheduled, const vta::Config& config, int copies) {
  vta::Builder builder(config);
  std::vector<uint64_t> addresses;
  for (const Param& p : scheduled.params) {
    int64_t bytes = storage_bytes(p.buffer.dtype(), 1);
    for (const Expr& e : p.buffer.shape()) bytes *= as_int(e).value_or(0);
    addresses.push_back(TW_TRY(builder.allocate(p.buffer.name(), static_cast<uint64_t>(bytes))));
  }
  TW_TRY_STATUS(emit_vta(scheduled, addresses, VtaOptions{copies}, builder));
  return builder.finish();
}

}  // namespace tilewright::codegen
