#include "tilewright/accel/vta/runtime/command_queue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/accel/vta/tokens.h"
#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

constexpr uint64_t kCommandQueueDram = 8 << 20;

#define ASSERT_OK(expr)                               \
  do {                                                \
    const auto status = (expr);                       \
    ASSERT_TRUE(status) << to_string(status.error()); \
  } while (false)

QueueOptions options_for(size_t max_insns = 1 << 20) {
  QueueOptions options;
  options.dram_bytes = kCommandQueueDram;
  options.max_insns = max_insns;
  return options;
}

template <class T>
std::string command_queue_bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// One row of elements.
Transfer row(Mem mem, uint32_t sram, uint32_t dram, uint32_t count) {
  Transfer transfer;
  transfer.mem = mem;
  transfer.sram = sram;
  transfer.dram = dram;
  transfer.y_size = 1;
  transfer.x_size = transfer.x_stride = count;
  return transfer;
}

/// `count` steps of an ALU operation from accumulator `acc` on, with `src` behind it.
Kernel alu_kernel(const Config& config, AluOp op, uint32_t acc, uint32_t src, uint32_t count,
                  std::optional<int16_t> imm) {
  KernelRecorder recorder{Alu{op, imm.has_value(), imm.value_or(0), {}}};
  EXPECT_TRUE(recorder.loop_begin(count, 1, 1));
  recorder.push({acc, src, 0});
  EXPECT_TRUE(recorder.loop_end());
  return recorder.finish(config).value();
}

/// out[i] = low byte of (a[i] + b[i] + i): in pieces, with two halves of ACC in turn. The tokens
/// that let a half be loaded again are on their way all the time.
struct VectorAdd {
  static constexpr uint32_t kPieces = 24, kPiece = 8, kLanes = 16;
  std::vector<int32_t> a, b;
  Buffer from_a, from_b, to;

  explicit VectorAdd(uint64_t seed) {
    Rng rng(seed);
    for (uint32_t i = 0; i < kPieces * kPiece * kLanes; ++i) {
      a.push_back(static_cast<int32_t>(rng.between(-1000, 1000)));
      b.push_back(static_cast<int32_t>(rng.between(-1000, 1000)));
    }
  }
  void allocate(CommandQueue& queue) {
    from_a = queue.alloc(a.size() * 4).value();
    from_b = queue.alloc(b.size() * 4).value();
    to = queue.alloc(a.size()).value();
    ASSERT_OK(queue.copy_in(from_a, 0, command_queue_bytes_of(a)));
    ASSERT_OK(queue.copy_in(from_b, 0, command_queue_bytes_of(b)));
  }
  void emit(CommandQueue& queue, const Config& config) const {
    const Module next = config.extensions.pipeline4 ? Module::Alu : Module::Compute;
    for (uint32_t piece = 0; piece < kPieces; ++piece) {
      const uint32_t acc = piece % 2 * 2 * kPiece;
      if (piece >= 2) ASSERT_OK(queue.dep_pop(Module::Store, next));
      ASSERT_OK(queue.load_buffer_2d(from_a, row(Mem::Acc, acc, piece * kPiece, kPiece)));
      ASSERT_OK(queue.load_buffer_2d(from_b, row(Mem::Acc, acc + kPiece, piece * kPiece, kPiece)));
      ASSERT_OK(
          queue.push(alu_kernel(config, AluOp::Add, acc, acc + kPiece, kPiece, std::nullopt)));
      ASSERT_OK(queue.push(
          alu_kernel(config, AluOp::Add, acc, acc, kPiece, static_cast<int16_t>(piece))));
      ASSERT_OK(queue.dep_push(next, Module::Store));
      ASSERT_OK(queue.dep_pop(next, Module::Store));
      ASSERT_OK(queue.store_buffer_2d(to, row(Mem::Out, acc, piece * kPiece, kPiece)));
      if (piece + 2 < kPieces) ASSERT_OK(queue.dep_push(Module::Store, next));
    }
  }
  std::string want() const {
    std::string bytes;
    for (size_t i = 0; i < a.size(); ++i)
      bytes.push_back(static_cast<char>(a[i] + b[i] + static_cast<int32_t>(i / kPiece / kLanes)));
    return bytes;
  }
  std::string got(CommandQueue& queue) const {
    std::string bytes(a.size(), '\0');
    const Status status = queue.copy_out(to, 0, bytes.data(), bytes.size());
    EXPECT_TRUE(status) << to_string(status.error());
    return bytes;
  }
};

/// The dump is right by the checker, and gives the same bytes on a device of its own.
void expect_replays(const CommandQueue& queue, const Buffer& to, const std::string& want) {
  const Program program = queue.program({{"out", to.address, to.bytes}});
  CheckOptions options;
  // A launch in the middle relies on memories that keep their contents, as those of the devices do.
  options.portable = program.runs.size() == 1;
  for (const Finding& finding : check_program(program, options))
    ADD_FAILURE() << name(finding.rule) << ": " << finding.text;
  const auto device = make_fsim(program.config, kCommandQueueDram);
  ASSERT_OK(execute(*device, program));
  std::string bytes(to.bytes, '\0');
  ASSERT_OK(device->read(to.address, bytes.data(), bytes.size()));
  EXPECT_EQ(bytes, want);
}

Config four_stages() {
  Config config;
  config.extensions.pipeline4 = true;
  return config;
}

TEST(CommandQueue, VectorAddIsRight) {
  for (const Config& config : {Config(), four_stages()}) {
    const auto device = make_fsim(config, kCommandQueueDram);
    CommandQueue queue(*device, options_for());
    VectorAdd add(1);
    add.allocate(queue);
    add.emit(queue, config);
    const Result<LaunchReport> report = queue.synchronize();
    ASSERT_OK(report);
    EXPECT_EQ(report->counters.alu_reg_steps, VectorAdd::kPieces * VectorAdd::kPiece);
    EXPECT_EQ(report->counters.out_store_bytes, add.a.size());
    EXPECT_EQ(add.got(queue), add.want());
    EXPECT_EQ(queue.program().runs.size(), 1u);
    expect_replays(queue, add.to, add.want());
  }
}

/// The instruction buffer fills up with tokens on their way: they survive the launches between.
TEST(CommandQueue, LaunchesBeforeTheInstructionBufferOverflows) {
  for (const Config& config : {Config(), four_stages()})
    for (size_t max_insns : {24, 31, 50, 64}) {
      SCOPED_TRACE(max_insns);
      const auto device = make_fsim(config, kCommandQueueDram);
      CommandQueue queue(*device, options_for(max_insns));
      VectorAdd add(2);
      add.allocate(queue);
      add.emit(queue, config);
      const Result<LaunchReport> report = queue.synchronize();
      ASSERT_OK(report);
      EXPECT_EQ(report->counters.out_store_bytes, add.a.size()) << "all launches are reported";
      EXPECT_EQ(add.got(queue), add.want());
      const Program program = queue.program();
      EXPECT_GT(program.runs.size(), 2u);
      for (const auto& run : program.runs) EXPECT_LE(run.insns.size(), max_insns);
      expect_replays(queue, add.to, add.want());
    }
}

TEST(CommandQueue, SerialModeIgnoresDependences) {
  const Config config;
  QueueOptions options = options_for();
  options.serial = true;
  const auto device = make_fsim(config, kCommandQueueDram);
  CommandQueue queue(*device, options);
  VectorAdd add(3);
  add.allocate(queue);
  add.emit(queue, config);
  ASSERT_OK(queue.synchronize());
  EXPECT_EQ(add.got(queue), add.want());
  expect_replays(queue, add.to, add.want());
}

/// Twelve kernels of 800 to 900 micro-ops in one launch, and again in a second one; a token of the
/// caller is on its way all the time.
void test_wrap(const Config& config) {
  constexpr uint32_t kRows = 1024;
  QueueOptions options = options_for();
  options.max_uop_bytes = 20000;  // the second launch records them anew
  const auto device = make_fsim(config, kCommandQueueDram);
  CommandQueue queue(*device, options);
  Rng rng(5);
  std::vector<int32_t> want(kRows * 16);
  for (int32_t& value : want) value = static_cast<int32_t>(rng.between(-20, 20));
  const Buffer from = queue.alloc(want.size() * 4).value(), to = queue.alloc(want.size()).value();
  std::vector<Kernel> kernels;
  for (int k = 0; k < 12; ++k) {
    std::vector<uint32_t> rows(kRows);
    for (uint32_t i = 0; i < kRows; ++i) rows[i] = i;
    for (uint32_t i = kRows - 1; i > 0; --i)
      std::swap(rows[i], rows[static_cast<size_t>(rng.below(i + 1))]);
    rows.resize(static_cast<size_t>(rng.between(800, 900)));
    KernelRecorder recorder{Alu{AluOp::Add, true, static_cast<int16_t>(k - 5), {}}};
    for (uint32_t r : rows) recorder.push({r, r, 0});
    kernels.push_back(recorder.finish(config).value());
  }
  ASSERT_OK(queue.copy_in(from, 0, command_queue_bytes_of(want)));
  std::string bytes;
  const Module first = modules(config)[1], last = module_of(config, Insn{{}, Finish{}});
  const Module other = first == last ? Module::Load : last;
  for (int launch = 0; launch < 2; ++launch) {
    ASSERT_OK(queue.load_buffer_2d(from, row(Mem::Acc, 0, 0, kRows)));
    std::vector<int32_t> values = want;
    ASSERT_OK(queue.dep_push(first, other));
    for (size_t use = 0; use < 24; ++use) {
      const Kernel& kernel = kernels[use % 12];
      ASSERT_OK(queue.push(kernel));
      for (const Uop& uop : kernel.uops)
        for (size_t lane = 0; lane < 16; ++lane)
          values[uop.dst * 16 + lane] += static_cast<int32_t>(use % 12) - 5;
    }
    ASSERT_OK(queue.push(alu_kernel(config, AluOp::Max, 0, 0, kRows, int16_t{-128})));
    ASSERT_OK(queue.dep_push(last, Module::Store));
    ASSERT_OK(queue.dep_pop(last, Module::Store));
    ASSERT_OK(queue.store_buffer_2d(to, row(Mem::Out, 0, 0, kRows)));
    ASSERT_OK(queue.dep_pop(first, other));
    ASSERT_OK(queue.synchronize());
    std::string got(want.size(), '\0');
    ASSERT_OK(queue.copy_out(to, 0, got.data(), got.size()));
    bytes.clear();
    for (int32_t value : values) bytes.push_back(static_cast<char>(std::max(value, -128)));
    EXPECT_EQ(got, bytes) << "launch " << launch;
  }
  expect_replays(queue, to, bytes);
}

TEST(CommandQueue, MicroOpsMayWrapAroundInOneLaunch) { test_wrap(Config()); }
TEST(CommandQueue, MicroOpsMayWrapAroundWithAnAluModule) { test_wrap(four_stages()); }

std::vector<std::string> texts(const Config& config, const std::vector<Insn>& insns) {
  std::vector<std::string> out;
  for (const Insn& insn : insns) {
    constexpr std::string_view kModules[] = {"load", "compute", "alu", "store"};
    const auto* transfer = std::get_if<Transfer>(&insn.op);
    std::string text(kModules[static_cast<size_t>(module_of(config, insn))]);
    if (std::holds_alternative<Finish>(insn.op)) text = "finish";
    if (transfer != nullptr && !transfer->moves()) text += ".no-op";
    const Deps& deps = insn.deps;
    if (deps.pop_prev) text += " <prev";
    if (deps.pop_next) text += " <next";
    if (deps.push_prev) text += " >prev";
    if (deps.push_next) text += " >next";
    out.push_back(text);
  }
  return out;
}

/// The rules of pops, pushes, no-ops and the tail, one after the other.
TEST(CommandQueue, DependencesAreCarriedByCommandsWherePossible) {
  const Config config;
  const auto device = make_fsim(config, kCommandQueueDram);
  CommandQueue queue(*device, options_for());
  const Buffer buffer = queue.alloc(4096).value();
  const auto load = [&] { ASSERT_OK(queue.load_buffer_2d(buffer, row(Mem::Inp, 0, 0, 1))); };
  const auto store = [&] { ASSERT_OK(queue.store_buffer_2d(buffer, row(Mem::Out, 0, 8, 1))); };
  const Module l = Module::Load, c = Module::Compute, s = Module::Store;
  load();
  ASSERT_OK(queue.dep_push(l, c));  // on the load
  ASSERT_OK(queue.dep_push(l, c));  // a second one needs a no-op
  ASSERT_OK(queue.dep_push(l, c));  // and is not put on it: an empty load takes none
  ASSERT_OK(queue.dep_pop(l, c));
  ASSERT_OK(queue.dep_pop(l, c));  // the first one goes on a no-op
  ASSERT_OK(queue.push(alu_kernel(config, AluOp::Add, 0, 0, 4, int16_t{1})));  // LOAD UOP takes it
  ASSERT_OK(queue.dep_push(c, s));
  ASSERT_OK(queue.dep_pop(c, s));
  store();
  ASSERT_OK(queue.dep_push(s, c));
  load();
  ASSERT_OK(queue.dep_push(s, c));  // the last command is not the store: no-op
  ASSERT_OK(queue.dep_pop(s, c));
  ASSERT_OK(queue.dep_pop(l, c));
  ASSERT_OK(queue.dep_push(c, l));  // what compute waits for comes first
  ASSERT_OK(queue.dep_pop(c, l));
  ASSERT_OK(queue.dep_pop(s, c));
  EXPECT_EQ(texts(config, queue.pending()),
            (std::vector<std::string>{"load >next", "load.no-op >next", "load.no-op >next",
                                      "compute.no-op <prev", "compute <prev", "compute >next",
                                      "store <prev >prev", "load", "store.no-op >prev",
                                      "compute.no-op <prev <next", "compute.no-op >prev"}));
  ASSERT_OK(queue.synchronize());
  const std::vector<std::string> all = texts(config, queue.program().runs[0].insns);
  EXPECT_EQ(
      std::vector<std::string>(all.begin() + 11, all.end()),
      (std::vector<std::string>{"load.no-op <next", "compute.no-op <next", "store.no-op >prev",
                                "load.no-op >next", "compute.no-op <prev <next", "finish"}));
  for (const Finding& finding : check_program(queue.program()))
    if (finding.rule != Rule::Undefined && finding.rule != Rule::Race &&
        finding.rule != Rule::NotPortable)
      ADD_FAILURE() << name(finding.rule) << ": " << finding.text;
}

TEST(CommandQueue, TailIsTheKnownOne) {
  const Config config;
  const auto device = make_fsim(config, kCommandQueueDram);
  CommandQueue queue(*device, options_for());
  const Buffer buffer = queue.alloc(4096).value();
  ASSERT_OK(queue.push(alu_kernel(config, AluOp::Add, 0, 0, 4, int16_t{1})));
  ASSERT_OK(queue.dep_push(Module::Compute, Module::Store));
  ASSERT_OK(queue.dep_pop(Module::Compute, Module::Store));
  ASSERT_OK(queue.store_buffer_2d(buffer, row(Mem::Out, 0, 0, 4)));
  ASSERT_OK(queue.synchronize());
  EXPECT_EQ(texts(config, queue.program().runs[0].insns),
            (std::vector<std::string>{"compute", "compute >next", "store <prev >prev",
                                      "load.no-op >next", "compute.no-op <prev <next", "finish"}));
}

/// A device whose memory the host sees through a cache of its own.
class IncoherentDevice : public Device {
 public:
  explicit IncoherentDevice(const Config& config)
      : inner_(make_fsim(config, kCommandQueueDram)), cache_(kCommandQueueDram, '\x55') {}
  std::string name() const override { return "incoherent"; }
  const Config& config() const override { return inner_->config(); }
  Status write(uint64_t address, std::string_view bytes) override {
    cache_.replace(address, bytes.size(), bytes);
    return {};
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    std::memcpy(into, cache_.data() + address, bytes);
    return {};
  }
  Status flush(uint64_t address, uint64_t bytes) override {
    return inner_->write(address, std::string_view(cache_).substr(address, bytes));
  }
  Status invalidate(uint64_t address, uint64_t bytes) override {
    return inner_->read(address, cache_.data() + address, bytes);
  }
  Result<LaunchReport> launch(const std::vector<Insn>& insns,
                              const LaunchOptions& options) override {
    return inner_->launch(insns, options);
  }

 private:
  std::unique_ptr<Device> inner_;
  std::string cache_;
};

TEST(CommandQueue, FlushesAndInvalidates) {
  const Config config;
  IncoherentDevice device(config);
  CommandQueue queue(device, options_for());
  VectorAdd add(4);
  add.allocate(queue);
  add.emit(queue, config);
  ASSERT_OK(queue.synchronize());
  EXPECT_EQ(add.got(queue), add.want());
  const Buffer copy = queue.alloc(add.a.size()).value();
  ASSERT_OK(queue.copy(add.to, 16, copy, 32, 64));
  std::string bytes(64, '\0');
  ASSERT_OK(queue.copy_out(copy, 32, bytes.data(), 64));
  EXPECT_EQ(bytes, add.want().substr(16, 64));
}

template <class T>
void command_queue_expect_error(const Result<T>& result, ErrorKind kind, const std::string& text) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, kind);
  EXPECT_NE(to_string(result.error()).find(text), std::string::npos) << to_string(result.error());
}

TEST(CommandQueue, TimeoutIsAnError) {
  const Config config;
  const auto device = make_tsim(config, kCommandQueueDram);
  QueueOptions options = options_for();
  options.launch.max_cycles = 50;
  CommandQueue queue(*device, options);
  VectorAdd add(1);
  add.allocate(queue);
  add.emit(queue, config);
  command_queue_expect_error(queue.synchronize(), ErrorKind::Limit, "");
}

TEST(CommandQueue, UnmatchedTokensAreNotLaunched) {
  const Config config;
  const auto device = make_fsim(config, kCommandQueueDram);
  CommandQueue queue(*device, options_for());
  ASSERT_OK(queue.dep_push(Module::Load, Module::Compute));
  command_queue_expect_error(queue.synchronize(), ErrorKind::Invalid,
                             "1 tokens from load to compute");
  EXPECT_EQ(queue.program().runs.size(), 0u);
  ASSERT_OK(queue.dep_pop(Module::Load, Module::Compute));
  ASSERT_OK(queue.synchronize());
  ASSERT_OK(queue.dep_pop(Module::Store, Module::Compute));
  command_queue_expect_error(queue.synchronize(), ErrorKind::Invalid, "compute waits for 1 tokens");
}

TEST(CommandQueue, RefusesMisuse) {
  const Config config;
  const auto device = make_fsim(config, kCommandQueueDram);
  CommandQueue queue(*device, options_for());
  const Buffer buffer = queue.alloc(100 * 16).value();
  std::string bytes(16, '\0');
  command_queue_expect_error(queue.copy_in(buffer, 99 * 16 + 1, bytes), ErrorKind::Invalid,
                             "beyond the end");
  command_queue_expect_error(queue.copy_out(Buffer{4096 * 9, 5}, 0, bytes.data(), 5),
                             ErrorKind::Invalid, "not a buffer");
  command_queue_expect_error(queue.load_buffer_2d(buffer, row(Mem::Inp, 0, 99, 2)),
                             ErrorKind::Invalid, "allocated");
  command_queue_expect_error(queue.load_buffer_2d(buffer, row(Mem::Inp, 0, UINT32_MAX, 2)),
                             ErrorKind::Invalid, "beyond the end");
  command_queue_expect_error(queue.load_buffer_2d(buffer, row(Mem::Inp, 2047, 0, 2)),
                             ErrorKind::Capacity, "2048");
  command_queue_expect_error(queue.load_buffer_2d(buffer, row(Mem::Out, 0, 0, 2)),
                             ErrorKind::Invalid, "no load");
  command_queue_expect_error(queue.load_buffer_2d(buffer, row(Mem::Uop, 0, 0, 2)),
                             ErrorKind::Invalid, "micro-ops");
  command_queue_expect_error(queue.store_buffer_2d(buffer, row(Mem::Inp, 0, 0, 2)),
                             ErrorKind::Invalid, "no store");
  command_queue_expect_error(queue.dep_push(Module::Load, Module::Store), ErrorKind::Invalid,
                             "load to store");
  command_queue_expect_error(queue.dep_pop(Module::Alu, Module::Store), ErrorKind::Invalid,
                             "alu to store");
  ASSERT_OK(queue.load_buffer_2d(buffer, row(Mem::Inp, 0, 10, 2)));
  command_queue_expect_error(queue.copy_in(buffer, 11 * 16, bytes), ErrorKind::Invalid,
                             "synchronize first");
  command_queue_expect_error(queue.copy_out(buffer, 11 * 16, bytes.data(), 1), ErrorKind::Invalid,
                             "synchronize first");
  command_queue_expect_error(queue.free(buffer), ErrorKind::Invalid, "synchronize first");
  ASSERT_OK(queue.copy_in(buffer, 12 * 16, bytes));
  ASSERT_OK(queue.synchronize());
  ASSERT_OK(queue.free(buffer));
  command_queue_expect_error(queue.free(buffer), ErrorKind::Invalid, "already freed");
  command_queue_expect_error(queue.load_buffer_2d(buffer, row(Mem::Inp, 0, 0, 1)),
                             ErrorKind::Invalid, "already freed");
  CommandQueue tiny(*device, options_for(13));
  command_queue_expect_error(tiny.push(alu_kernel(config, AluOp::Add, 0, 0, 4, int16_t{1})),
                             ErrorKind::Capacity, "it holds 13");
}

}  // namespace
}  // namespace tilewright::vta
