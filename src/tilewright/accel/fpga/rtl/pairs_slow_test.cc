// Two products in one multiplier against products of whole numbers, and as Yosys has them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tilewright/accel/common/rtl/synth.h"
#include "tilewright/accel/fpga/pairs.h"
#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/base/rng.h"

namespace tilewright::fpga {
namespace {

constexpr int64_t kWords = 1024;

/// Arguments a, b and common into a · common and b · common, of 8 bits into 32.
Design both_products(const Number& other, const Number& common, int bits, int64_t blocks) {
  Design design;
  design.name = "both";
  design.arguments = 5;
  design.multiplier_bits = bits;
  const Number sum{Number::Kind::Signed, 32};
  const auto word = [](int memory) { return Place{memory, {}, {0, {}, {1}}}; };
  Nest compute{"compute", {kWords}};
  Process all{"compute", {LoopBegin{blocks}}};
  for (int m = 0; m < 5; ++m) {
    const bool writes = m >= 3;
    const Number type = writes ? sum : m == 2 ? common : other;
    const std::string name(1, "abcxy"[m]);
    design.memories.push_back({name, type, 1, kWords, 2});
    design.ports.push_back({name, writes, m, 0});
    Nest move{name, {kWords}};
    const int64_t bytes = type.bytes();
    move.stream = {m, type, 1, {0, {kWords * bytes}, {bytes}}, {}, false, {}};
    if (writes) {
      move.nodes = {{Op::Read, type, {}, 0, 0, 0, word(m)}};
      move.stream.nodes = {0};
      compute.nodes.push_back({Op::Mul, sum, {m - 3, 2}, 2});
      compute.stores.push_back({word(m), m, {}});
    } else {
      move.nodes = {{Op::Stream, type, {}, 1}};
      move.stores = {{word(m), 0, {}}};
      compute.nodes.push_back({Op::Read, type, {}, 0, 0, 0, word(m)});
    }
    design.processes.push_back(
        {"move_" + name, {LoopBegin{blocks}, Acquire{m}, move, Release{m}, LoopEnd{}}});
    all.items.push_back(Acquire{m});
  }
  all.items.push_back(compute);
  for (int m = 0; m < 5; ++m) all.items.push_back(Release{m});
  all.items.push_back(LoopEnd{});
  design.processes.push_back(all);
  return design;
}

int64_t value_of(const Number& type, char byte) {
  return type.is_signed() ? static_cast<signed char>(byte) : static_cast<unsigned char>(byte);
}

void expect_products(const Number& other, const Number& common, int bits) {
  // Ends of the range and what is beside them in all combinations, then random bytes.
  const int ends[] = {0, 1, 2, 3, 63, 64, 65, 126, 127, 128, 129, 130, 191, 192, 254, 255};
  std::vector<std::string> in(3);
  for (const int a : ends)
    for (const int b : ends)
      for (const int c : ends)
        for (const auto& [at, byte] : {std::pair{0, a}, std::pair{1, b}, std::pair{2, c}})
          in[static_cast<size_t>(at)].push_back(static_cast<char>(byte));
  Rng rng(5);
  for (std::string& argument : in)
    while (argument.size() < 64 * kWords) argument.push_back(static_cast<char>(rng.next()));
  const auto count = static_cast<int64_t>(in[0].size());
  const Design design = both_products(other, common, bits, count / kWords);
  const auto& nest = std::get<Nest>(design.processes.back().items[6]);
  ASSERT_EQ(product_pairs(design, nest, times_of(design, nest)).size(), 1U);
  std::vector<std::string> simulated = in;
  simulated.resize(5, std::string(in[0].size() * 4, '\0'));
  std::vector<std::string> run = simulated;
  const auto tsim = simulate(design, {}, simulated);
  ASSERT_TRUE(tsim) << to_string(tsim.error());
  const auto model = make_rtl(design, Numbers::Fixed);
  ASSERT_TRUE(model) << to_string(model.error());
  const auto rtl = (*model)->run(design, {}, run);
  ASSERT_TRUE(rtl) << to_string(rtl.error());
  EXPECT_EQ(tsim->cycles, rtl->cycles);
  EXPECT_TRUE(simulated == run);
  for (size_t i = 0; i < in[0].size(); ++i)
    for (const size_t which : {0, 1}) {
      int32_t got = 0;
      std::memcpy(&got, run[3 + which].data() + 4 * i, 4);
      ASSERT_EQ(got, value_of(other, in[which][i]) * value_of(common, in[2][i])) << i;
    }
}

constexpr Number kI8{Number::Kind::Signed, 8}, kU8{Number::Kind::Unsigned, 8};

TEST(FpgaPairsSlow, AreThoseOfWholeNumbers) { expect_products(kI8, kI8, 25); }
TEST(FpgaPairsFull, AreThoseOfWholeNumbersWithoutSignsToo) { expect_products(kI8, kU8, 27); }

TEST(FpgaPairsSlow, TakeOneMultiplier) {
  const auto made =
      accel::synthesise({.top = kKernel,
                         .verilog = verilog(both_products(kI8, kI8, 25, 2), Numbers::Fixed).text,
                         .boxed = {},
                         .library = {}});
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(made->cells().dsp, 1);
}

}  // namespace
}  // namespace tilewright::fpga
