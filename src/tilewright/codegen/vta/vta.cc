#include "tilewright/codegen/vta/vta.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/vta/footprint.h"
#include "tilewright/codegen/stream/transfer.h"
#include "tilewright/codegen/vta/emitter.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace vta_code {

using vta::Mem;
using vta::number;

std::optional<Mem> memory_of(const Buffer& buffer) {
  if (buffer.scope() == "vta.inp") return Mem::Inp;
  if (buffer.scope() == "vta.wgt") return Mem::Wgt;
  if (buffer.scope() == "vta.acc") return Mem::Acc;
  return std::nullopt;
}

bool in(const PlacedBox& place, Mem mem) { return place.memory == number(mem); }

int scalar_bits(const vta::Config& config, Mem mem) {
  switch (mem) {
    case Mem::Inp:
      return config.inp_bits();
    case Mem::Wgt:
      return config.wgt_bits();
    case Mem::Acc:
      return config.acc_bits();
    case Mem::Out:
      return config.out_bits();
    case Mem::Acc8:
      return 8;
    case Mem::Uop:
      break;
  }
  return 32;
}

Status emit_transfers(ConcreteNest nest, Mem mem, bool store, vta::Builder& builder) {
  stream::TransferLimits limits;  // 16-bit sizes, 4-bit padding
  if (mem == Mem::Wgt)
    limits.no_zeros = Error{ErrorKind::Unsupported,
                            "a load of weights fills with zeros",
                            {},
                            "the weight memory has no padding",
                            "pad the weights where they are packed",
                            {}};
  return stream::emit_transfers(std::move(nest), limits, [&](const stream::Transfer& t) {
    const auto field = [](int64_t value) { return static_cast<uint32_t>(value); };
    vta::Transfer out;
    out.store = store;
    out.mem = mem;
    out.sram = field(t.sram);
    out.dram = field(t.dram);
    out.y_size = field(t.y_size);
    out.x_size = field(t.x_size);
    out.x_stride = field(t.x_stride);
    out.y_pad_top = field(t.y_pad_top);
    out.y_pad_bottom = field(t.y_pad_bottom);
    out.x_pad_left = field(t.x_pad_left);
    out.x_pad_right = field(t.x_pad_right);
    return builder.transfer(out);
  });
}

namespace {

stream::Memories memories_of(const vta::Config& config) {
  stream::Memories out{"VTA", {}};
  for (const auto& [mem, scope] :
       {std::pair(Mem::Inp, "vta.inp"), {Mem::Wgt, "vta.wgt"}, {Mem::Acc, "vta.acc"}})
    out.list.push_back({number(mem), scope, scalar_bits(config, mem), config.element_scalars(mem)});
  return out;
}

}  // namespace

Emitter::Emitter(const Func& func, const vta::Config& config, const VtaOptions& options)
    : Walk(func, memories_of(config)), config_(config), options_(options), step_loops_(config) {}

Result<uint64_t> Emitter::allocate(const std::string& name, uint64_t bytes) {
  return builder_->allocate(name, bytes);
}

void Emitter::begin(const Buffer& buffer, const PlacedBox& place) {
  waiting_resets_.erase(buffer.id());
  if (!in(place, Mem::Acc)) return;
  Accumulators fresh;
  fresh.storable.resize(static_cast<size_t>(place.elements));
  accumulators_[buffer.id()] = std::move(fresh);
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

Result<std::map<int, int64_t>> Emitter::measure() {
  TW_TRY_STATUS(prepare());
  find_weights(func_.body);
  TW_TRY_STATUS(measure_rings(options_.copies));
  std::map<int, int64_t> use = stream::lay_out(on_chip_.rings);
  if (!weights_.empty()) use[number(Mem::Wgt)] += std::ssize(weights_);
  return use;
}

/// That so many elements are there.
Status Emitter::check_capacity(const std::map<int, int64_t>& use) const {
  for (const Mem mem : {Mem::Wgt, Mem::Inp, Mem::Acc}) {
    const auto found = use.find(number(mem));
    if (found == use.end() || found->second <= config_.depth(mem)) continue;
    std::string parts = stream::describe(on_chip_.rings, number(mem));
    if (mem == Mem::Wgt && !weights_.empty())
      parts += fmt::format("; diagonal weights {}", weights_.size());
    return fail(ErrorKind::Capacity,
                fmt::format("`{}` does not fit the {} memory: {} elements needed, {} there",
                            func_.name, vta::name(mem), found->second, config_.depth(mem)),
                parts, "use smaller tiles, or fewer copies");
  }
  return {};
}

Status Emitter::emit(const std::vector<uint64_t>& addresses, vta::Builder& builder) {
  builder_ = &builder;
  return emit_all(addresses);
}

}  // namespace vta_code

Status emit_vta(const Func& func, const std::vector<uint64_t>& addresses, const VtaOptions& options,
                vta::Builder& builder) {
  const vta::Config config = builder.config();
  vta_code::Emitter emitter(func, config, options);
  const std::map<int, int64_t> use = TW_TRY(emitter.measure());
  TW_TRY_STATUS(emitter.check_capacity(use));
  return emitter.emit(addresses, builder);
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
