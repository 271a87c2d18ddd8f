#include "tilewright/accel/dpu/sim/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/accel/dpu/sim/conv_kernel.h"
#include "tilewright/accel/dpu/sim/testing/naive_machine.h"
#include "tilewright/base/rng.h"

namespace tilewright::dpu {
namespace {

TEST(Arithmetic, RoundsToTheNearestTiesUp) {
  for (int shift = 0; shift <= 12; ++shift)
    for (int value = -32768; value <= 32767; ++value) {
      // floor(value / 2^shift + 1/2) in integers.
      const int doubled = 2 * value + (1 << shift), whole = 2 << shift;
      int expected = doubled / whole - (doubled % whole < 0 ? 1 : 0);
      expected = std::min(127, std::max(-128, expected));
      ASSERT_EQ(round_shifted(value, shift), expected) << value << " " << shift;
    }
}

constexpr int kActs[] = {kNone, kRelu, kLeaky, kRelu6};

TEST(Arithmetic, ConvolutionsMatchTheFormulas) {
  Rng rng(1);
  int fast = 0;
  for (int i = 0; i < 400'000; ++i) {
    const ConvRounding rounding{static_cast<int>(rng.between(-32, 31)),
                                static_cast<int>(rng.between(-32, 31)), kActs[rng.below(4)],
                                static_cast<int>(rng.between(-32, 31))};
    // Often near what does not saturate.
    const int size = static_cast<int>(rng.between(0, 40));
    const int64_t acc = rng.between(-(int64_t{1} << size), int64_t{1} << size);
    const auto bias =
        static_cast<int32_t>(rng.next() >> rng.between(32, 63)) * (rng.chance(0.5) ? 1 : -1);
    const long double sum = 2.0L * acc + std::floor(std::ldexp(2.0L * bias, rounding.shift_bias));
    const long double t = std::ldexp(sum, -(rounding.shift_cut + 1));
    const int8_t expected =
        testing::naive_round(testing::naive_act(t, rounding.act_type, rounding.fp_out));
    ASSERT_EQ(round_conv(rounding, acc, bias), expected)
        << acc << " " << bias << " cut " << rounding.shift_cut << " bias " << rounding.shift_bias
        << " act " << rounding.act_type << " " << rounding.fp_out;
    const auto parameters = narrow(rounding);
    const auto term = narrow_bias(rounding, bias);
    if (!parameters || !term || acc != static_cast<int32_t>(acc)) continue;
    ++fast;
    ASSERT_EQ(round_narrow(*parameters, static_cast<int32_t>(acc), *term), expected)
        << acc << " " << bias << " cut " << rounding.shift_cut << " act " << rounding.act_type;
  }
  EXPECT_GT(fast, 50'000);
}

TEST(Arithmetic, SumsMatchTheFormulas) {
  Rng rng(2);
  for (int i = 0; i < 20'000; ++i) {
    ElewInit init;
    init.num = 2;
    init.act_type = kActs[rng.below(4)];
    init.fp_out = static_cast<int>(rng.between(-32, 31));
    init.shift_read_a = static_cast<int>(rng.below(32));
    init.shift_read_b = static_cast<int>(rng.below(6));
    init.shift_write =
        static_cast<int>(rng.chance(0.5) ? rng.between(-32, 31) : rng.between(-4, 4));
    const auto a = static_cast<int8_t>(rng.next()), b = static_cast<int8_t>(rng.next());
    const int u = ElewTable::term(a, init.shift_read_a) + ElewTable::term(b, init.shift_read_b);
    const long double exact = std::floor(std::ldexp(4.0L * a, -init.shift_read_a)) +
                              std::floor(std::ldexp(4.0L * b, -init.shift_read_b));
    ASSERT_EQ(u, exact);
    if (i % 20 != 0) continue;  // a table has 2049 entries
    const ElewTable table(init);
    ASSERT_EQ(table[u], testing::naive_round(testing::naive_act(
                            std::ldexp(exact, init.shift_write - 2), init.act_type, init.fp_out)));
  }
}

/// The loop for this machine's instructions and the one for any machine make the same sums.
TEST(ConvKernel, BothLoopsAreEqual) {
  Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    ConvSums job;
    job.kernel_h = static_cast<int>(rng.between(1, 4));
    job.kernel_w = static_cast<int>(rng.between(1, 4));
    job.groups = static_cast<int>(rng.between(1, 5));
    const int pixels = static_cast<int>(rng.between(1, 21)),
              stride = static_cast<int>(rng.between(1, 3));
    job.column_step = job.groups * 16;
    job.pixel_step = stride * job.column_step;
    job.row_step = (pixels * stride + job.kernel_w) * job.column_step;
    std::vector<uint8_t> input(static_cast<size_t>(job.row_step * job.kernel_h));
    std::vector<int8_t> weights(static_cast<size_t>(job.kernel_h * job.kernel_w * job.groups) *
                                256);
    std::vector<int8_t> packed(weights.size());
    for (uint8_t& x : input) x = static_cast<uint8_t>(rng.chance(0.1) ? 255 : rng.next());
    for (int8_t& w : weights) w = static_cast<int8_t>(rng.chance(0.1) ? -128 : rng.next());
    for (size_t w = 0; w < weights.size(); w += 256) pack_weights(&weights[w], &packed[w]);
    job.input = input.data();
    job.weights = packed.data();
    int32_t offset[16];
    offset_sums(job, offset);
    const auto count = static_cast<size_t>(pixels) * 16;
    std::vector<int32_t> sums(count), portable(count), plain(count);
    conv_sums(job, offset, pixels, sums.data());
    conv_sums_portable(job, offset, pixels, portable.data());
    for (int p = 0; p < pixels; ++p)
      for (int oc = 0; oc < 16; ++oc)
        for (int ky = 0; ky < job.kernel_h; ++ky)
          for (int kx = 0; kx < job.kernel_w; ++kx)
            for (int ic = 0; ic < 16 * job.groups; ++ic) {
              const int word = (ky * job.kernel_w + kx) * job.groups + ic / 16;
              plain[static_cast<size_t>(p * 16 + oc)] +=
                  (input[static_cast<size_t>(p * job.pixel_step + ky * job.row_step +
                                             kx * job.column_step + ic)] -
                   128) *
                  weights[static_cast<size_t>(word * 256 + oc * 16 + ic % 16)];
            }
    ASSERT_EQ(sums, plain);
    ASSERT_EQ(portable, plain);

    ConvRounding rounding{static_cast<int>(rng.between(0, 14)), -2, kActs[rng.below(4)],
                          static_cast<int>(rng.between(0, 4))};
    const auto parameters = narrow(rounding);
    ASSERT_TRUE(parameters);
    int64_t terms[16];
    for (int64_t& term : terms) term = rng.between(-100000, 100000);
    std::vector<uint8_t> rounded(count * 2), slow(count * 2);
    round_sums(*parameters, terms, pixels, sums.data(), 32, rounded.data());
    round_sums_portable(*parameters, terms, pixels, sums.data(), 32, slow.data());
    ASSERT_EQ(rounded, slow);
  }
}

}  // namespace
}  // namespace tilewright::dpu
