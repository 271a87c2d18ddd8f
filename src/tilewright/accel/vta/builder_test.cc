#include "tilewright/accel/vta/builder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> random_values(Rng& rng, size_t count, int64_t low, int64_t high) {
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(rng.between(low, high));
  return values;
}

uint64_t allocate(Builder& builder, const std::string& name, uint64_t bytes) {
  const Result<uint64_t> address = builder.allocate(name, bytes);
  EXPECT_TRUE(address) << to_string(address.error());
  return address.value_or(0);
}

/// Writes `values` to new memory.
template <class T>
uint64_t put(Builder& builder, const std::string& name, const std::vector<T>& values) {
  const uint64_t address = allocate(builder, name, values.size() * sizeof(T));
  builder.write(address, bytes_of(values));
  return address;
}

#define EXPECT_OK(expr)                               \
  do {                                                \
    const auto status = (expr);                       \
    EXPECT_TRUE(status) << to_string(status.error()); \
  } while (false)

Transfer move(const Config& config, Mem mem, uint32_t sram, uint64_t address, uint32_t rows,
              uint32_t columns, uint32_t stride) {
  Transfer transfer;
  transfer.store = mem == Mem::Out;
  transfer.mem = mem;
  transfer.sram = sram;
  transfer.dram = static_cast<uint32_t>(address / static_cast<uint64_t>(config.element_bytes(mem)));
  transfer.y_size = rows;
  transfer.x_size = columns;
  transfer.x_stride = stride;
  return transfer;
}

/// The program is right by the checker, and the bytes it leaves at `address` on fsim.
std::string run(Builder& builder, uint64_t address, uint64_t bytes, Program* kept = nullptr) {
  Result<Program> program = builder.finish();
  EXPECT_TRUE(program) << to_string(program.error());
  if (!program) return {};
  for (const Finding& finding : check_program(*program))
    ADD_FAILURE() << name(finding.rule) << ": " << finding.text;
  const auto device = make_fsim(program->config, program->end());
  const auto report = execute(*device, *program);
  EXPECT_TRUE(report) << to_string(report.error());
  std::string out(bytes, '\0');
  EXPECT_OK(device->read(address, out.data(), bytes));
  if (kept != nullptr) *kept = std::move(*program);
  return out;
}

/// C = clip(A * B^T >> shift), all in tiles: A [m][k], B [n][k], C [m][n] of elements.
struct TiledGemm {
  uint32_t m = 0, n = 0, k = 0;     ///< elements
  uint32_t tm = 1, tn = 1, tk = 1;  ///< of a tile
  int copies = 2;                   ///< of each buffer
  uint64_t a = 0, b = 0, c = 0;

  Loops loops() const {
    Loops out;
    out.outer = tm;
    out.inner = tn;
    return out;
  }
  void emit(Builder& builder) const;
  void compute(Builder& builder, uint32_t acc, uint32_t inp, uint32_t wgt, bool reset) const;
};

void TiledGemm::compute(Builder& builder, uint32_t acc, uint32_t inp, uint32_t wgt,
                        bool reset) const {
  Loops all = loops();
  all.dst_outer = tn;
  all.dst_inner = 1;
  if (reset) {
    EXPECT_OK(builder.gemm({{acc, 0, 0}}, all, true));
    return;
  }
  all.src_outer = tk;
  all.wgt_inner = tk;
  // One instruction per k: equal destinations stay apart.
  for (uint32_t i = 0; i < tk; ++i) EXPECT_OK(builder.gemm({{acc, inp + i, wgt + i}}, all, false));
}

void TiledGemm::emit(Builder& builder) const {
  const Config& config = builder.config();
  uint32_t turn = 0, tile = 0;
  for (uint32_t i = 0; i < m; i += tm)
    for (uint32_t j = 0; j < n; j += tn, ++tile) {
      const uint32_t acc = tile % static_cast<uint32_t>(copies) * tm * tn;
      compute(builder, acc, 0, 0, true);
      for (uint32_t p = 0; p < k; p += tk, ++turn) {
        const uint32_t copy = turn % static_cast<uint32_t>(copies);
        const uint32_t inp = copy * tm * tk, wgt = copy * tn * tk;
        const auto place = [&](Mem mem, uint64_t base, uint32_t row) {
          return base + static_cast<uint64_t>(config.element_bytes(mem)) * (row * k + p);
        };
        EXPECT_OK(builder.transfer(move(config, Mem::Inp, inp, place(Mem::Inp, a, i), tm, tk, k)));
        EXPECT_OK(builder.transfer(move(config, Mem::Wgt, wgt, place(Mem::Wgt, b, j), tn, tk, k)));
        compute(builder, acc, inp, wgt, false);
      }
      Loops all = loops();
      all.dst_outer = all.src_outer = tn;
      all.dst_inner = all.src_inner = 1;
      EXPECT_OK(builder.alu(AluOp::Shr, {{acc, acc, 0}}, all, int16_t{5}));
      EXPECT_OK(builder.alu(AluOp::Min, {{acc, acc, 0}}, all, int16_t{127}));
      EXPECT_OK(builder.alu(AluOp::Max, {{acc, acc, 0}}, all, int16_t{-128}));
      const uint64_t out = c + static_cast<uint64_t>(config.element_bytes(Mem::Out)) * (i * n + j);
      EXPECT_OK(builder.transfer(move(config, Mem::Out, acc, out, tm, tn, n)));
    }
}

/// The same on plain arrays of tiles [rows][columns][batch or block][block].
std::vector<int8_t> reference(const Config& config, const TiledGemm& shape,
                              const std::vector<int8_t>& a, const std::vector<int8_t>& b) {
  const auto batch = static_cast<size_t>(config.batch());
  const auto in = static_cast<size_t>(config.block_in());
  const auto out = static_cast<size_t>(config.block_out());
  std::vector<int8_t> c(shape.m * shape.n * batch * out);
  for (size_t i = 0; i < shape.m; ++i)
    for (size_t j = 0; j < shape.n; ++j)
      for (size_t r = 0; r < batch; ++r)
        for (size_t o = 0; o < out; ++o) {
          int32_t sum = 0;
          for (size_t p = 0; p < shape.k; ++p)
            for (size_t q = 0; q < in; ++q)
              sum += a[((i * shape.k + p) * batch + r) * in + q] *
                     b[((j * shape.k + p) * out + o) * in + q];
          c[((i * shape.n + j) * batch + r) * out + o] =
              static_cast<int8_t>(std::clamp(sum >> 5, -128, 127));
        }
  return c;
}

void test_gemm(const Config& config, const BuilderOptions& options, uint64_t seed) {
  SCOPED_TRACE(fmt::format("{} seed {}", label(config), seed));
  Rng rng(seed);
  TiledGemm shape;
  shape.tm = static_cast<uint32_t>(rng.between(3, 4));
  shape.tn = static_cast<uint32_t>(rng.between(1, 3));
  shape.tk = static_cast<uint32_t>(rng.between(1, 3));
  shape.m = shape.tm * static_cast<uint32_t>(rng.between(1, 3));
  shape.n = shape.tn * static_cast<uint32_t>(rng.between(1, 3));
  shape.k = shape.tk * static_cast<uint32_t>(rng.between(1, 4));
  shape.copies = static_cast<int>(rng.between(1, 3));
  Builder builder(config, options);
  const auto scalars = [&](Mem mem) { return static_cast<size_t>(config.element_scalars(mem)); };
  const auto a = random_values<int8_t>(rng, shape.m * shape.k * scalars(Mem::Inp), -128, 127);
  const auto b = random_values<int8_t>(rng, shape.n * shape.k * scalars(Mem::Wgt), -128, 127);
  shape.a = put(builder, "a", a);
  shape.b = put(builder, "b", b);
  const uint64_t bytes = shape.m * shape.n * scalars(Mem::Out);
  shape.c = allocate(builder, "c", bytes);
  shape.emit(builder);
  EXPECT_EQ(run(builder, shape.c, bytes), bytes_of(reference(config, shape, a, b)));
}

TEST(Builder, TiledGemmIsRight) {
  Config narrow;
  narrow.log_batch = 1;
  narrow.log_block_in = narrow.log_block_out = 3;
  narrow.log_inp_buff = narrow.log_wgt_buff = 14;
  narrow.log_acc_buff = 16;
  ASSERT_TRUE(check(narrow));
  for (uint64_t seed = 1; seed <= 12; ++seed) test_gemm(seed % 2 ? Config() : narrow, {}, seed);
}

TEST(Builder, SerialGivesTheSame) {
  BuilderOptions options;
  options.serial = true;
  options.base = 1 << 20;
  for (uint64_t seed = 1; seed <= 3; ++seed) test_gemm(Config(), options, seed);
}

TEST(Builder, OneLoadPerKernelGivesTheSame) {
  BuilderOptions options;
  options.merge_uops = false;
  for (uint64_t seed = 1; seed <= 3; ++seed) test_gemm(Config(), options, seed);
}

TEST(Builder, FourStagePipelineIsRight) {
  Config config;
  config.extensions.pipeline4 = true;
  for (uint64_t seed = 20; seed <= 26; ++seed) test_gemm(config, {}, seed);
}

/// The first product replaces instead of adding: no reset.
TEST(Builder, FusedResetReplaces) {
  Config config;
  config.extensions.fused_reset = true;
  Rng rng(8);
  Builder builder(config);
  const auto a = random_values<int8_t>(rng, 4 * 2 * 16, -9, 9);
  const auto b = random_values<int8_t>(rng, 2 * 256, -9, 9);
  const TiledGemm shape{4,
                        1,
                        2,
                        4,
                        1,
                        2,
                        1,
                        put(builder, "a", a),
                        put(builder, "b", b),
                        allocate(builder, "c", 4 * 16)};
  EXPECT_OK(builder.transfer(move(config, Mem::Inp, 0, shape.a, 1, 8, 8)));
  EXPECT_OK(builder.transfer(move(config, Mem::Wgt, 0, shape.b, 1, 2, 2)));
  Loops loops;
  loops.outer = 2;
  loops.inner = 4;
  loops.dst_inner = 1;
  loops.src_outer = loops.wgt_outer = 1;
  loops.src_inner = 2;
  // Twice: what the first left behind must not matter to the second.
  for (int time = 0; time < 2; ++time) EXPECT_OK(builder.gemm({{0, 0, 0}}, loops, false, true));
  Loops all;
  all.outer = 4;
  all.dst_outer = all.src_outer = 1;
  EXPECT_OK(builder.alu(AluOp::Shr, {{0, 0, 0}}, all, int16_t{5}));
  EXPECT_OK(builder.transfer(move(config, Mem::Out, 0, shape.c, 1, 4, 4)));
  EXPECT_EQ(run(builder, shape.c, 4 * 16), bytes_of(reference(config, shape, a, b)));
}

/// Layers that read what the one before stored: loads wait for stores through compute.
TEST(Builder, ChainOfLayersIsRight) {
  for (bool pipeline4 : {false, true}) {
    Config config;
    config.extensions.pipeline4 = pipeline4;
    Rng rng(9);
    Builder builder(config);
    TiledGemm shape{8, 4, 4, 4, 2, 2, 2, 0, 0, 0};
    auto value = random_values<int8_t>(rng, 8 * 4 * 16, -128, 127);
    shape.c = put(builder, "x", value);
    for (int layer = 0; layer < 4; ++layer) {
      builder.begin_span(fmt::format("layer{}", layer));
      const auto weights = random_values<int8_t>(rng, 4 * 4 * 256, -20, 20);
      shape.a = shape.c;
      shape.b = put(builder, "w", weights);
      shape.c = allocate(builder, "y", value.size());
      shape.emit(builder);
      value = reference(config, shape, value, weights);
    }
    Program program;
    EXPECT_EQ(run(builder, shape.c, value.size(), &program), bytes_of(value));
    const std::vector<Span>& spans = program.runs[0].spans;
    ASSERT_EQ(spans.size(), 4u);
    EXPECT_EQ(spans[0].begin, 0u);
    EXPECT_EQ(spans[3].name, "layer3");
    EXPECT_EQ(spans[3].end, program.runs[0].insns.size());
    for (size_t i = 1; i < 4; ++i) EXPECT_EQ(spans[i].begin, spans[i - 1].end);
  }
}

std::vector<Transfer> uop_loads(const Program& program) {
  std::vector<Transfer> loads;
  for (const Insn& insn : program.runs[0].insns) {
    const auto* transfer = std::get_if<Transfer>(&insn.op);
    if (transfer != nullptr && transfer->mem == Mem::Uop && transfer->moves())
      loads.push_back(*transfer);
  }
  return loads;
}

/// Twelve kernels of 800 to 900 micro-ops, each used twice, in a memory of 8192: more than fit.
/// Gives the number of LOAD UOP.
size_t test_wrap(const Config& config, const BuilderOptions& options) {
  SCOPED_TRACE(fmt::format("{} merge {}", label(config), options.merge_uops));
  Rng rng(4);
  Builder builder(config, options);
  constexpr uint32_t kRows = 1024;
  const auto start = random_values<int32_t>(rng, kRows * 16, -30, 30);
  const uint64_t from = put(builder, "from", start);
  const uint64_t to = allocate(builder, "to", kRows * 16);
  EXPECT_OK(builder.transfer(move(config, Mem::Acc, 0, from, 1, kRows, kRows)));
  std::vector<int32_t> want = start;
  std::vector<std::vector<Uop>> kernels(12);
  for (auto& kernel : kernels) {
    std::vector<uint32_t> rows(kRows);
    for (uint32_t i = 0; i < kRows; ++i) rows[i] = i;
    for (uint32_t i = kRows - 1; i > 0; --i)
      std::swap(rows[i], rows[static_cast<size_t>(rng.below(i + 1))]);
    rows.resize(static_cast<size_t>(rng.between(800, 900)));
    for (uint32_t row : rows) kernel.push_back({row, row, 0});
  }
  for (int round = 0; round < 2; ++round)
    for (size_t k = 0; k < kernels.size(); ++k) {
      Loops once;
      const auto amount = static_cast<int16_t>(rng.between(-3, 3));
      EXPECT_OK(builder.alu(AluOp::Add, kernels[k], once, amount));
      for (const Uop& uop : kernels[k])
        for (size_t lane = 0; lane < 16; ++lane) want[uop.dst * 16 + lane] += amount;
    }
  Loops all;
  all.outer = kRows;
  all.dst_outer = all.src_outer = 1;
  EXPECT_OK(builder.alu(AluOp::Min, {{0, 0, 0}}, all, int16_t{127}));
  EXPECT_OK(builder.transfer(move(config, Mem::Out, 0, to, 1, kRows, kRows)));
  std::vector<int8_t> bytes;
  for (int32_t value : want) bytes.push_back(static_cast<int8_t>(value));
  Program program;
  EXPECT_EQ(run(builder, to, kRows * 16, &program), bytes_of(bytes));
  const std::vector<Transfer> loads = uop_loads(program);
  for (const Transfer& load : loads) {
    EXPECT_EQ(load.y_size, 1u);
    EXPECT_EQ(load.dram % 16, 0u) << "begins in the middle of a line";
  }
  return loads.size();
}

TEST(Builder, MicroOpsMayWrapAroundInOneLaunch) {
  Config config;
  BuilderOptions single;
  single.merge_uops = false;
  EXPECT_EQ(test_wrap(config, single), 25u);
  EXPECT_EQ(test_wrap(config, {}), 3u);
  config.extensions.pipeline4 = true;
  EXPECT_EQ(test_wrap(config, {}), 3u);
}

/// Layers whose micro-ops fit together need one load, in front of the first of their users.
TEST(Builder, MicroOpsThatFitAreLoadedOnce) {
  std::vector<Program> programs(2);
  for (const bool merge : {false, true}) {
    Rng rng(10);
    BuilderOptions options;
    options.merge_uops = merge;
    Builder builder(Config(), options);
    TiledGemm shape{8, 4, 4, 4, 2, 2, 2, 0, 0, 0};
    shape.c = put(builder, "x", random_values<int8_t>(rng, 8 * 4 * 16, -128, 127));
    for (int layer = 0; layer < 2; ++layer) {
      builder.begin_span(fmt::format("layer{}", layer));
      shape.a = shape.c;
      shape.b = put(builder, "w", random_values<int8_t>(rng, 4 * 4 * 256, -20, 20));
      shape.c = allocate(builder, "y", 8 * 4 * 16);
      shape.emit(builder);
    }
    run(builder, shape.c, 8 * 4 * 16, &programs[merge ? 1 : 0]);
  }
  const std::vector<Transfer> single = uop_loads(programs[0]), merged = uop_loads(programs[1]);
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(merged[0].sram, 0u);
  EXPECT_EQ(merged[0].y_size, 1u);
  uint32_t words = 0;
  for (const Transfer& load : single) words += load.x_size;
  EXPECT_GT(single.size(), 4u);
  EXPECT_EQ(merged[0].x_size, words) << "every kernel once, without gaps";
  const std::vector<Insn>& insns = programs[1].runs[0].insns;
  const auto is_gemm = [](const Insn& insn) { return std::holds_alternative<Gemm>(insn.op); };
  const auto first = std::find_if(insns.begin(), insns.end(), is_gemm);
  ASSERT_TRUE(first != insns.end() && first != insns.begin());
  const auto* load = std::get_if<Transfer>(&std::prev(first)->op);
  ASSERT_NE(load, nullptr);
  EXPECT_EQ(*load, merged[0]);
  EXPECT_EQ(programs[1].runs[0].spans[0].begin, 0u) << "the load is part of the first layer";
}

/// Rows of zeros before and after, more than the fields hold.
TEST(Builder, SplitsTransfersWhoseFieldsAreTooSmall) {
  const Config config;
  Rng rng(6);
  Builder builder(config);
  const auto start = random_values<int32_t>(rng, 5 * 2 * 16, -100, 100);
  const uint64_t from = put(builder, "from", start);
  constexpr uint32_t kRows = 20 + 5 + 33, kWidth = 1 + 2 + 3;
  const uint64_t to = allocate(builder, "to", kRows * kWidth * 16);
  Transfer padded = move(config, Mem::Acc, 7, from, 5, 2, 2);
  padded.y_pad_top = 20;
  padded.y_pad_bottom = 33;
  padded.x_pad_left = 1;
  padded.x_pad_right = 3;
  EXPECT_OK(builder.transfer(padded));
  Loops all;
  all.outer = kRows * kWidth;
  all.dst_outer = all.src_outer = 1;
  EXPECT_OK(builder.alu(AluOp::Add, {{7, 7, 0}}, all, int16_t{1}));
  EXPECT_OK(builder.transfer(move(config, Mem::Out, 7, to, kRows, kWidth, kWidth)));
  std::vector<int8_t> want(kRows * kWidth * 16, 1);
  for (size_t row = 0; row < 5; ++row)
    for (size_t i = 0; i < 2 * 16; ++i)
      want[((row + 20) * kWidth + 1) * 16 + i] = static_cast<int8_t>(start[row * 32 + i] + 1);
  EXPECT_EQ(run(builder, to, want.size()), bytes_of(want));
}

TEST(Builder, SplitsRowsThatAreFarApart) {
  const Config config;
  Builder builder(config);
  constexpr uint32_t kStride = 70000;
  const uint64_t from = allocate(builder, "from", uint64_t{2 * kStride + 1} * 64);
  for (int32_t row = 0; row < 3; ++row)
    builder.write(from + static_cast<uint64_t>(row) * kStride * 64,
                  bytes_of(std::vector<int32_t>(16, row + 5)));
  const uint64_t to = allocate(builder, "to", 3 * 16);
  EXPECT_OK(builder.transfer(move(config, Mem::Acc, 0, from, 3, 1, kStride)));
  Loops all;
  all.outer = 3;
  all.dst_outer = all.src_outer = 1;
  EXPECT_OK(builder.alu(AluOp::Add, {{0, 0, 0}}, all, int16_t{1}));
  EXPECT_OK(builder.transfer(move(config, Mem::Out, 0, to, 1, 3, 3)));
  std::vector<int8_t> want;
  for (int row = 0; row < 3; ++row) want.insert(want.end(), 16, static_cast<int8_t>(row + 6));
  EXPECT_EQ(run(builder, to, want.size()), bytes_of(want));
}

TEST(Builder, NothingIsAProgramToo) {
  Builder builder{Config()};
  EXPECT_OK(builder.gemm({{0, 0, 0}}, Loops{.outer = 0}, false));
  EXPECT_OK(builder.transfer(Transfer{}));
  const Result<Program> program = builder.finish();
  ASSERT_TRUE(program);
  EXPECT_EQ(program->runs[0].insns.size(), 1u);
}

template <class T>
void expect_error(const Result<T>& result, ErrorKind kind, const std::string& text) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, kind);
  EXPECT_NE(to_string(result.error()).find(text), std::string::npos) << to_string(result.error());
}

TEST(Builder, RefusesWhatDoesNotFit) {
  const Config config;
  Builder builder(config);
  const uint64_t from = allocate(builder, "from", 4096);
  expect_error(builder.allocate("huge", uint64_t{1} << 32), ErrorKind::Capacity, "huge");
  expect_error(builder.transfer(move(config, Mem::Inp, 2040, from, 3, 3, 3)), ErrorKind::Capacity,
               "the memory has 2048");
  expect_error(builder.transfer(move(config, Mem::Inp, 0, from, 100, 3, 3)), ErrorKind::Invalid,
               "allocated");
  expect_error(builder.transfer(move(config, Mem::Inp, 0, 0, 1, 1, 1)), ErrorKind::Invalid,
               "allocated");
  expect_error(builder.transfer(move(config, Mem::Uop, 0, from, 1, 1, 1)), ErrorKind::Invalid,
               "micro-ops");
  Transfer padded = move(config, Mem::Inp, 0, from, 1, 1, 1);
  padded.x_pad_left = 16;
  expect_error(builder.transfer(padded), ErrorKind::Capacity, "16 left");
  Transfer store = move(config, Mem::Out, 0, from, 1, 1, 1);
  store.y_pad_top = 1;
  expect_error(builder.transfer(store), ErrorKind::Invalid, "padding");
  store = move(config, Mem::Acc, 0, from, 1, 1, 1);
  store.store = true;
  expect_error(builder.transfer(store), ErrorKind::Invalid, "no store");
  Loops loops;
  loops.outer = 2048;
  loops.dst_outer = 1;
  expect_error(builder.gemm({{1, 0, 0}}, loops, false), ErrorKind::Capacity, "destination");
  loops = {};
  loops.inner = 3;
  loops.src_inner = 1024;
  expect_error(builder.gemm({{1, 0, 0}}, loops, false), ErrorKind::Capacity, "source");
  loops.src_inner = 0;
  loops.wgt_inner = 512;
  expect_error(builder.gemm({{1, 0, 0}}, loops, false), ErrorKind::Capacity, "weight");
  loops = {};
  loops.outer = 16384;
  expect_error(builder.gemm({{1, 0, 0}}, loops, false), ErrorKind::Capacity, "outer");
  expect_error(builder.gemm(std::vector<Uop>(8193), Loops(), false), ErrorKind::Capacity, "8193");
  expect_error(builder.gemm({{0, 0, 0}}, Loops(), false, true), ErrorKind::Capacity,
               "replace_first");
}

}  // namespace
}  // namespace tilewright::vta
