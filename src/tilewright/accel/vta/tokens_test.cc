#include "tilewright/accel/vta/tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

using accel::Footprint;

Config design(bool pipeline4) {
  Config config;
  config.extensions.pipeline4 = pipeline4;
  return config;
}

/// An instruction that `module` executes; what it touches is said by a footprint of its own.
Insn insn_of(Module module) {
  Insn insn;
  Transfer transfer;
  transfer.x_size = transfer.y_size = 1;
  switch (module) {
    case Module::Load:
      insn.op = transfer;
      break;
    case Module::Compute:
      insn.op = Gemm{};
      break;
    case Module::Alu:
      insn.op = Alu{};
      break;
    case Module::Store:
      transfer.store = true;
      transfer.mem = Mem::Out;
      insn.op = transfer;
      break;
  }
  return insn;
}

struct Stream {
  std::vector<Insn> insns;
  std::vector<Footprint> footprints;

  void add(Module module, Footprint footprint) {
    insns.push_back(insn_of(module));
    footprints.push_back(std::move(footprint));
  }
};

accel::Access sram(Mem mem, uint64_t begin, uint64_t end, bool write) {
  return accel::one_row(number(mem), begin, end, write);
}
accel::Access dram(uint64_t address, uint64_t pitch, uint64_t width, uint32_t rows, bool write) {
  return {kDramMemory, address, pitch, width, rows, write};
}

/// What each module does all day, in random parts of its memories.
Stream random_stream(const Config& config, Rng& rng, size_t length) {
  const accel::Queues design = queues(config);
  const std::vector<Module> chain = modules(config);
  Stream stream;
  for (size_t i = 0; i < length; ++i) {
    const auto m = static_cast<size_t>(rng.below(std::ssize(chain)));
    Footprint footprint;
    for (const bool write : {false, true})
      for (const int memory : write ? design.list[m].writes : design.list[m].reads) {
        const auto begin = static_cast<uint64_t>(rng.below(16));
        if (rng.chance(0.4)) footprint.push_back(accel::one_row(memory, begin, begin + 3, write));
      }
    stream.add(chain[m], footprint);
  }
  return stream;
}

/// Between which queues tokens go is tested in accel/common: here, that flags say the same.
TEST(Tokens, AreFlagsOfNeighbours) {
  for (bool pipeline4 : {false, true})
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      SCOPED_TRACE(seed);
      Rng rng(seed);
      const Config config = design(pipeline4);
      const std::vector<Module> chain = modules(config);
      const Stream stream = random_stream(config, rng, static_cast<size_t>(rng.between(0, 40)));
      const auto result = insert_tokens(config, stream.insns, stream.footprints);
      ASSERT_TRUE(result) << to_string(result.error());
      std::vector<int> queue;
      for (const Insn& insn : stream.insns)
        queue.push_back(static_cast<int>(
            std::find(chain.begin(), chain.end(), module_of(config, insn)) - chain.begin()));
      Insn finish;
      finish.op = Finish{};
      const int last = static_cast<int>(
          std::find(chain.begin(), chain.end(), module_of(config, finish)) - chain.begin());
      const auto slots =
          accel::insert_tokens(queues(config), queue, stream.footprints, {false, last});
      ASSERT_TRUE(slots);
      ASSERT_EQ(result->insns.size(), slots->size() + 1);
      EXPECT_EQ(result->insns.back(), finish);
      for (size_t i = 0; i < slots->size(); ++i) {
        const accel::Slot& slot = (*slots)[i];
        Insn plain = result->insns[i];
        const Deps deps = std::exchange(plain.deps, {});
        EXPECT_EQ(module_of(config, plain), chain[static_cast<size_t>(slot.queue)]);
        const auto mask = [&](bool prev, bool next) {
          return (prev ? 1u << slot.queue >> 1 : 0u) | (next ? 2u << slot.queue : 0u);
        };
        EXPECT_EQ(slot.takes, mask(deps.pop_prev, deps.pop_next));
        EXPECT_EQ(slot.gives, mask(deps.push_prev, deps.push_next));
        if (slot.given != accel::kNoOp) {
          EXPECT_EQ(plain, stream.insns[slot.given]);
          EXPECT_EQ(result->index[slot.given], i);
        } else {
          const auto* transfer = std::get_if<Transfer>(&plain.op);
          ASSERT_NE(transfer, nullptr);
          EXPECT_FALSE(transfer->moves());
        }
      }
    }
}

/// A footprint is of what its module can touch, for every instruction.
TEST(Tokens, EveryInstructionIsInItsQueue) {
  const std::vector<Uop> uops = {{1, 2, 3}};
  for (bool pipeline4 : {false, true}) {
    const Config config = design(pipeline4);
    std::vector<Insn> insns;
    for (const Mem mem : {Mem::Uop, Mem::Wgt, Mem::Inp, Mem::Acc, Mem::Acc8, Mem::Out}) {
      Transfer transfer;
      transfer.mem = mem;
      transfer.store = mem == Mem::Out;
      transfer.x_size = transfer.y_size = transfer.x_stride = 1;
      insns.push_back({{}, transfer});
    }
    Loops loops;
    loops.uop_end = 1;
    insns.push_back({{}, Gemm{false, false, loops}});
    insns.push_back({{}, Gemm{true, false, loops}});
    insns.push_back({{}, Alu{AluOp::Add, false, 0, loops}});
    insns.push_back({{}, Alu{AluOp::Add, true, 1, loops}});
    std::vector<Footprint> footprints;
    for (const Insn& insn : insns) {
      footprints.push_back(footprint(config, insn, uops));
      EXPECT_FALSE(footprints.back().empty());
    }
    const auto result = insert_tokens(config, insns, footprints);
    EXPECT_TRUE(result) << to_string(result.error());
  }
}

TEST(Tokens, NoOpIsExecutedByItsModule) {
  for (bool pipeline4 : {false, true})
    for (Module module : modules(design(pipeline4)))
      EXPECT_EQ(module_of(design(pipeline4), no_op(module)), module);
}

TEST(Tokens, DoubleBufferingNeedsOneTokenEachWay) {
  const Config config = design(false);
  Stream stream;
  for (uint32_t i = 0; i < 6; ++i) {
    const uint32_t half = i % 2 * 8;
    stream.add(Module::Load, {sram(Mem::Inp, half, half + 8, true)});
    stream.add(Module::Compute, {sram(Mem::Inp, half, half + 8, false)});
  }
  const auto result = insert_tokens(config, stream.insns, stream.footprints);
  ASSERT_TRUE(result);
  for (size_t i = 0; i < 6; ++i) {
    const Deps load = result->insns[result->index[2 * i]].deps;
    const Deps gemm = result->insns[result->index[2 * i + 1]].deps;
    EXPECT_EQ(load, (Deps{.pop_next = i >= 2, .push_next = true})) << i;
    EXPECT_EQ(gemm, (Deps{.pop_prev = true, .push_prev = i + 2 < 6})) << i;
  }
  EXPECT_EQ(result->insns.size(), 13u) << "FINISH follows the last load by the last GEMM";
}

TEST(Tokens, LoadAfterStorePassesThroughCompute) {
  const Config config = design(false);
  Stream stream;
  const accel::Access written = dram(0, 16, 16, 4, true), read = dram(32, 16, 16, 1, false);
  stream.add(Module::Store, {written});
  stream.add(Module::Compute, {});
  stream.add(Module::Load, {read});
  const auto result = insert_tokens(config, stream.insns, stream.footprints);
  ASSERT_TRUE(result);
  // STORE, no-op, GEMM, LOAD: compute waits before its last instruction, which LOAD does not need.
  EXPECT_EQ(result->index, (std::vector<size_t>{0, 2, 3}));
  EXPECT_EQ(result->insns[0].deps, (Deps{.push_prev = true}));
  EXPECT_EQ(result->insns[1].deps, (Deps{.pop_next = true, .push_prev = true}));
  EXPECT_EQ(result->insns[3].deps, (Deps{.pop_next = true, .push_next = true}));
  // Rows that lie between the written ones do not conflict.
  stream.footprints[0][0].pitch = 48;
  const auto apart = insert_tokens(config, stream.insns, stream.footprints);
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->insns[apart->index[2]].deps, (Deps{.push_next = true}));
}

TEST(Tokens, RelayOfAStoreDoesNotWaitForTheNextTile) {
  const Config config = design(true);
  Stream stream;
  constexpr size_t kPasses = 8, kPerTile = kPasses + 2;
  for (uint32_t tile = 0; tile < 4; ++tile) {
    const uint32_t half = tile % 2 * 64;
    stream.add(Module::Compute, {sram(Mem::Out, half, half + 64, true)});
    for (size_t pass = 0; pass < kPasses; ++pass)
      stream.add(Module::Alu, {sram(Mem::Out, half, half + 64, true)});
    stream.add(Module::Store, {sram(Mem::Out, half, half + 64, false)});
  }
  const auto result = insert_tokens(config, stream.insns, stream.footprints);
  ASSERT_TRUE(result);
  // GEMM of tile 2 writes what tile 0 stores: the ALU passes that on before it begins tile 1.
  const size_t store = result->index[kPerTile - 1], next = result->index[kPerTile + 1];
  ASSERT_LT(store, next);
  const auto relay = std::find_if(
      result->insns.begin() + static_cast<std::ptrdiff_t>(store),
      result->insns.begin() + static_cast<std::ptrdiff_t>(next), [&](const Insn& insn) {
        return module_of(config, insn) == Module::Alu && insn.deps.pop_next && insn.deps.push_prev;
      });
  EXPECT_NE(relay, result->insns.begin() + static_cast<std::ptrdiff_t>(next));
}

TEST(Tokens, EmptyStreamIsFinish) {
  const auto result = insert_tokens(design(false), {}, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->insns.size(), 1u);
}

TEST(Tokens, RefusesWrongInput) {
  Insn finish;
  finish.op = Finish{};
  EXPECT_EQ(insert_tokens(design(false), {finish}, {{}}).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(insert_tokens(design(false), {insn_of(Module::Load)}, {}).error().kind,
            ErrorKind::Invalid);
}

}  // namespace
}  // namespace tilewright::vta
