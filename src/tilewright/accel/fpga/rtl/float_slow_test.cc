// The floating-point operators of the Verilog against the interpreter's arithmetic.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "tilewright/accel/common/rtl/lint.h"
#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/base/rng.h"
#include "tilewright/interp/scalar.h"

namespace tilewright::fpga {
namespace {

constexpr int64_t kBlock = 1024;
constexpr Op kOps[] = {Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max};
constexpr int kOpCount = 5;

Process around(const std::string& name, int64_t blocks, const std::vector<int>& channels,
               const Nest& nest) {
  Process process{name, {LoopBegin{blocks}}};
  for (const int channel : channels) process.items.push_back(Acquire{channel});
  process.items.push_back(nest);
  for (const int channel : channels) process.items.push_back(Release{channel});
  process.items.push_back(LoopEnd{});
  return process;
}

/// Two arguments through all operators into one argument each. Latencies are odd on purpose.
Design pairs_design(const Number& type, int64_t blocks) {
  const Place here{0, {}, {0, {}, {1}}};
  const auto in = [&](int memory) {
    Place place = here;
    place.memory = memory;
    return place;
  };
  Design design;
  design.name = "pairs";
  design.arguments = 2 + kOpCount;
  Nest compute{"compute", {kBlock}};
  std::vector<int> channels;
  for (int m = 0; m < design.arguments; ++m) {
    const bool writes = m >= 2;
    const std::string name = writes ? std::string(fpga::name(kOps[m - 2])) : m == 0 ? "a" : "b";
    channels.push_back(m);
    design.memories.push_back({name, type, 1, kBlock, 2});
    design.ports.push_back({name, writes, m, 0});
    Nest move{name, {kBlock}};
    const int64_t bytes = type.bytes();
    move.stream = {m, type, 1, {0, {kBlock * bytes}, {bytes}}, {}, false, {}};
    if (writes) {
      move.nodes = {{Op::Read, type, {}, 0, 0, 0, in(m)}};
      move.stream.nodes = {0};
      compute.nodes.push_back({kOps[m - 2], type, {0, 1}, m});
      compute.stores.push_back({in(m), m, {}});
    } else {
      move.nodes = {{Op::Stream, type, {}, 1}};
      move.stores = {{in(m), 0, {}}};
      compute.nodes.push_back({Op::Read, type, {}, 0, 0, 0, in(m)});
    }
    design.processes.push_back(around("move_" + name, blocks, {m}, move));
  }
  design.processes.push_back(around("compute", blocks, channels, compute));
  return design;
}

/// Two arguments, widened to f32, and their product. The one that is widened later makes the other
/// wait.
Design product_design(const Number& type, int64_t blocks) {
  const Number wide = number_of(DType::F32);
  Design design;
  design.name = "product";
  design.arguments = 3;
  Nest compute{"compute", {kBlock}};
  for (int m = 0; m < 3; ++m) {
    const bool writes = m == 2;
    const Number& element = writes ? wide : type;
    const char* name = std::array{"a", "b", "out"}[static_cast<size_t>(m)];
    const Place place{m, {}, {0, {}, {1}}};
    design.memories.push_back({name, element, 1, kBlock, 2});
    design.ports.push_back({name, writes, m, 0});
    Nest move{name, {kBlock}};
    const int64_t bytes = element.bytes();
    move.stream = {m, element, 1, {0, {kBlock * bytes}, {bytes}}, {}, false, {}};
    if (writes) {
      move.nodes = {{Op::Read, wide, {}, 0, 0, 0, place}};
      move.stream.nodes = {0};
    } else {
      move.nodes = {{Op::Stream, type, {}, 1}};
      move.stores = {{place, 0, {}}};
      compute.nodes.push_back({Op::Read, type, {}, 0, 0, 0, place});
    }
    design.processes.push_back(around(std::string("move_") + name, blocks, {m}, move));
  }
  compute.nodes.push_back({Op::Cast, wide, {0}, 1});
  compute.nodes.push_back({Op::Cast, wide, {1}, 3});
  compute.nodes.push_back({Op::Mul, wide, {2, 3}, 3});
  compute.stores.push_back({{2, {}, {0, {}, {1}}}, 4, {}});
  design.processes.push_back(around("compute", blocks, {0, 1, 2}, compute));
  return design;
}

/// 64 values where rules change: zeros, denormals, ends of ranges, ones, infinities, NaN.
std::vector<uint64_t> special_values(const Number& type, Rng& rng) {
  const int man = type.bits - 1 - type.exponent;
  const uint64_t infinite = ((uint64_t{1} << type.exponent) - 1) << man;
  const uint64_t one = ((uint64_t{1} << (type.exponent - 1)) - 1) << man;
  std::vector<uint64_t> values = {0,
                                  1,
                                  2,
                                  3,
                                  (uint64_t{1} << man) - 1,
                                  uint64_t{1} << man,
                                  (uint64_t{1} << man) + 1,
                                  one - 1,
                                  one,
                                  one + 1,
                                  infinite - 1,
                                  infinite - 2,
                                  infinite,
                                  infinite + 1,
                                  infinite | uint64_t{1} << (man - 1),
                                  one / 2};
  while (values.size() < 32) values.push_back(rng.next() % (infinite + 1));
  for (size_t i = 0; i < 32; ++i) values.push_back(values[i] | uint64_t{1} << (type.bits - 1));
  return values;
}

/// All pairs of special values, then random ones: of any bits, or near each other.
std::vector<std::string> operands(const Number& type, int64_t count, Rng& rng) {
  std::vector<std::string> out(2);
  const auto add = [&](size_t which, uint64_t bits) {
    out[which].append(reinterpret_cast<const char*>(&bits), static_cast<size_t>(type.bytes()));
  };
  const std::vector<uint64_t> special = special_values(type, rng);
  const int man = type.bits - 1 - type.exponent;
  for (int64_t i = 0; i < count; ++i) {
    if (i < 64 * 64) {
      add(0, special[static_cast<size_t>(i / 64)]);
      add(1, special[static_cast<size_t>(i % 64)]);
      continue;
    }
    const uint64_t a = rng.next(), b = rng.next();
    add(0, a);
    const uint64_t near = uint64_t(rng.below(32)) << man;  // exponents that differ by little
    add(1, rng.chance(0.5) ? b
                           : (a + near) ^ (b & ((uint64_t{1} << man) - 1)) ^
                                 (b & uint64_t{1} << (type.bits - 1)));
  }
  return out;
}

template <class T>
typename T::Repr expected(Op op, typename T::Repr a, typename T::Repr b) {
  switch (op) {
    case Op::Add:
      return interp::float_binary<T, BinaryOp::Add>(a, b);
    case Op::Sub:
      return interp::float_binary<T, BinaryOp::Sub>(a, b);
    case Op::Mul:
      return interp::float_binary<T, BinaryOp::Mul>(a, b);
    case Op::Min:
      return interp::float_binary<T, BinaryOp::Min>(a, b);
    default:
      return interp::float_binary<T, BinaryOp::Max>(a, b);
  }
}

template <class T>
void expect_equal(const std::vector<std::string>& arguments, int64_t count, const char* who) {
  const auto element = [&](size_t argument, int64_t i) {
    return interp::read_element<T>(reinterpret_cast<const std::byte*>(arguments[argument].data()),
                                   i);
  };
  for (size_t op = 0; op < kOpCount; ++op)
    for (int64_t i = 0; i < count; ++i) {
      const auto a = element(0, i), b = element(1, i), got = element(2 + op, i);
      const auto want = expected<T>(kOps[op], a, b);
      // The sign of a zero that min and max choose is open.
      const bool same = std::isnan(want)
                            ? std::isnan(got)
                            : got == want && (op > 2 || std::signbit(got) == std::signbit(want));
      ASSERT_TRUE(same) << who << " pair " << i << ": " << fpga::name(kOps[op]) << std::hexfloat
                        << " " << a << " " << b << " gives " << got << ", not " << want;
    }
}

/// On the simulator and as Verilog, in as many cycles.
void run_both(const Design& design, std::vector<std::string>& simulated,
              std::vector<std::string>& arguments) {
  const auto tsim = simulate(design, {}, simulated);
  ASSERT_TRUE(tsim) << to_string(tsim.error());
  const auto model = make_rtl(design, Numbers::Table);
  ASSERT_TRUE(model) << to_string(model.error());
  const auto rtl = (*model)->run(design, {}, arguments);
  ASSERT_TRUE(rtl) << to_string(rtl.error());
  EXPECT_EQ(tsim->cycles, rtl->cycles);
}

void expect_operators(DType dtype, int64_t blocks) {
  const Number type = number_of(dtype);
  const Design design = pairs_design(type, blocks);
  Rng rng(7);
  std::vector<std::string> arguments = operands(type, blocks * kBlock, rng);
  arguments.resize(static_cast<size_t>(design.arguments),
                   std::string(static_cast<size_t>(blocks * kBlock * type.bytes()), '\0'));
  std::vector<std::string> simulated = arguments;
  run_both(design, simulated, arguments);
  if (::testing::Test::HasFatalFailure()) return;
  interp::with_type(dtype, [&](auto t) {
    if constexpr (decltype(t)::kFloat) {
      expect_equal<decltype(t)>(simulated, blocks * kBlock, "tsim");
      expect_equal<decltype(t)>(arguments, blocks * kBlock, "Verilog");
    }
  });
}

/// Products of widened floats are those of f32, by a multiplier of the narrow digits.
void expect_products(DType dtype, int64_t blocks) {
  const Number type = number_of(dtype);
  const Design design = product_design(type, blocks);
  const std::string text = verilog(design, Numbers::Table).text;
  EXPECT_NE(text.find(fmt::format("OF_EXP({})", type.exponent)), std::string::npos);
  EXPECT_EQ(text.find("\n  fpga_fcast"), std::string::npos);
  Rng rng(9);
  std::vector<std::string> arguments = operands(type, blocks * kBlock, rng);
  arguments.push_back(std::string(static_cast<size_t>(blocks * kBlock * 4), '\0'));
  std::vector<std::string> simulated = arguments;
  run_both(design, simulated, arguments);
  if (::testing::Test::HasFatalFailure()) return;
  interp::with_type(dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (T::kFloat) {
      const auto factor = [&](size_t which, int64_t i) {
        const auto* bytes = reinterpret_cast<const std::byte*>(arguments[which].data());
        return static_cast<float>(interp::read_element<T>(bytes, i));
      };
      for (int64_t i = 0; i < blocks * kBlock; ++i) {
        float got = 0;
        std::memcpy(&got, arguments[2].data() + 4 * i, 4);
        const float want = factor(0, i) * factor(1, i);
        const bool same = std::isnan(want) ? std::isnan(got)
                                           : got == want && std::signbit(got) == std::signbit(want);
        ASSERT_TRUE(same) << std::hexfloat << factor(0, i) << " * " << factor(1, i) << " gives "
                          << got << ", not " << want;
      }
    }
  });
}

/// Blocks of all special pairs, and at least so many random ones.
constexpr int64_t blocks_of(int64_t random_pairs) { return 4 + random_pairs / kBlock + 1; }

TEST(FpgaFloatSlow, IsLintClean) {
  const Status status = accel::lint_clean(
      kTop, verilog(pairs_design(number_of(DType::BF16), 2), Numbers::Table).text);
  EXPECT_TRUE(status) << to_string(status.error());
}
TEST(FpgaFloatFull, ProductsOfWidenedBf16) { expect_products(DType::BF16, blocks_of(50'000)); }
TEST(FpgaFloatSlow, ProductsOfWidenedF16) { expect_products(DType::F16, blocks_of(50'000)); }
TEST(FpgaFloatSlow, Bf16) { expect_operators(DType::BF16, blocks_of(200'000)); }
TEST(FpgaFloatSlow, F16) { expect_operators(DType::F16, blocks_of(200'000)); }
TEST(FpgaFloatFull, F32) { expect_operators(DType::F32, blocks_of(1'000'000)); }
TEST(FpgaFloatFull, Bf16) { expect_operators(DType::BF16, blocks_of(1'000'000)); }
TEST(FpgaFloatFull, F16) { expect_operators(DType::F16, blocks_of(1'000'000)); }

}  // namespace
}  // namespace tilewright::fpga
