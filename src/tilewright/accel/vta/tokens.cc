#include "tilewright/accel/vta/tokens.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::vta {
namespace {

/// What a module reads and writes on its way through the published designs and the extended one.
accel::Queue queue_of(Module module) {
  const int uop = number(Mem::Uop), wgt = number(Mem::Wgt), inp = number(Mem::Inp);
  const int acc = number(Mem::Acc), out = number(Mem::Out);
  switch (module) {
    case Module::Load:
      return {"load", {kDramMemory}, {inp, wgt}};
    case Module::Compute:
      return {"compute", {kDramMemory, uop, inp, wgt, acc}, {uop, acc, out}};
    case Module::Alu:
      return {"alu", {kDramMemory, uop, acc}, {acc, out}};
    case Module::Store:
      break;
  }
  return {"store", {out, acc}, {kDramMemory}};
}

int place(const std::vector<Module>& chain, Module module) {
  return static_cast<int>(std::find(chain.begin(), chain.end(), module) - chain.begin());
}

/// The flags of an instruction at place `m` of the chain.
Deps deps_of(const accel::Slot& slot) {
  const auto has = [](uint32_t mask, int queue) { return queue >= 0 && (mask >> queue & 1) != 0; };
  return {.pop_prev = has(slot.takes, slot.queue - 1),
          .pop_next = has(slot.takes, slot.queue + 1),
          .push_prev = has(slot.gives, slot.queue - 1),
          .push_next = has(slot.gives, slot.queue + 1)};
}

}  // namespace

accel::Queues queues(const Config& config) {
  accel::Queues out;
  for (const Module module : modules(config)) out.list.push_back(queue_of(module));
  for (const Mem mem : {Mem::Uop, Mem::Wgt, Mem::Inp, Mem::Acc, Mem::Out})
    out.memories.emplace_back(name(mem));
  out.memories.emplace_back("dram");
  out.paths = accel::TokenPaths::Neighbours;
  out.most_tokens = 254;  // hardware counts in 8 bits
  return out;
}

Insn no_op(Module module) {
  Insn insn;
  Transfer transfer;
  switch (module) {
    case Module::Load:
      transfer.mem = Mem::Inp;
      break;
    case Module::Compute:
      transfer.mem = Mem::Uop;
      break;
    case Module::Alu:
      transfer.mem = Mem::Acc;
      break;
    case Module::Store:
      transfer.store = true;
      transfer.mem = Mem::Out;
      break;
  }
  insn.op = transfer;
  return insn;
}

Result<Annotated> insert_tokens(const Config& config, const std::vector<Insn>& linear,
                                const std::vector<accel::Footprint>& footprints, bool serial) {
  const std::vector<Module> chain = modules(config);
  std::vector<int> queue;
  for (size_t i = 0; i < linear.size(); ++i) {
    if (std::holds_alternative<Finish>(linear[i].op))
      return fail(ErrorKind::Invalid,
                  fmt::format("instruction {} is FINISH, which is added here", i));
    queue.push_back(place(chain, module_of(config, linear[i])));
  }
  Insn finish;
  finish.op = Finish{};
  // FINISH has no flags in the portable form: a no-op before it takes the tokens.
  const int last = place(chain, module_of(config, finish));
  const std::vector<accel::Slot> slots =
      TW_TRY(accel::insert_tokens(queues(config), queue, footprints, {serial, last}));
  Annotated out;
  out.index.resize(linear.size());
  out.insns.reserve(slots.size() + 1);
  for (const accel::Slot& slot : slots) {
    const bool given = slot.given != accel::kNoOp;
    if (given) out.index[slot.given] = out.insns.size();
    out.insns.push_back(given ? linear[slot.given] : no_op(chain[static_cast<size_t>(slot.queue)]));
    out.insns.back().deps = deps_of(slot);
  }
  out.insns.push_back(finish);
  return out;
}

}  // namespace tilewright::vta
