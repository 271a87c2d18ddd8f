#include "tilewright/accel/dpu/sim/tsim.h"

#include <gtest/gtest.h>

#include "tilewright/accel/dpu/builder.h"
#include "tilewright/accel/dpu/sim/testing/random_data.h"
#include "tilewright/accel/dpu/sim/testing/random_times.h"
#include "tilewright/accel/dpu/testing/example_layer.h"

namespace tilewright::dpu {
namespace {

TEST(Tsim, IsEqualToAMachineThatStepsCycleByCycle) {
  for (uint64_t seed = 0; seed < 60; ++seed) testing::compare_times(seed);
}

/// A convolution of 3x3 with a pool on 224x224 rows of 64 channels, in tiles of eight rows.
TEST(Tsim, ExampleLayerTakesWhatTheDocumentSays) {
  const auto cycles = [](bool addresses) {
    const Result<LaunchReport> report = simulate_time(
        testing::no_latencies(), testing::example_layer(28, addresses).runs[0].insns, {});
    EXPECT_TRUE(report) << to_string(report.error());
    return report ? report->cycles : 0;
  };
  EXPECT_EQ(cycles(false), 916'608u);
  EXPECT_EQ(cycles(true), 915'712u);
  const Result<LaunchReport> serial =
      simulate_time(testing::no_latencies(), testing::example_layer_in_turn(28).runs[0].insns, {});
  ASSERT_TRUE(serial) << to_string(serial.error());
  EXPECT_EQ(serial->cycles, 1'254'400u);
  // Every unit is busy for the sum of its costs, less the loads of weights.
  EXPECT_EQ(serial->counters.conv_busy, 28u * 32256);
  EXPECT_EQ(serial->counters.misc_busy, 28u * 3584);
  EXPECT_EQ(serial->counters.save_busy, 28u * 1792);
  EXPECT_EQ(serial->counters.load_busy, 224u * 224 * 4);
}

TEST(Tsim, FirstGroupsOfTheExampleLayer) {
  const Program program = testing::example_layer(28, false);
  const Result<LaunchReport> report =
      simulate_time(testing::no_latencies(), program.runs[0].insns, {.record_times = true});
  ASSERT_TRUE(report);
  std::vector<std::pair<uint64_t, uint64_t>> convs;
  for (const InsnTime& time : report->times)
    if (std::holds_alternative<Conv>(program.runs[0].insns[time.insn].op))
      convs.emplace_back(time.begin, time.end);
  ASSERT_EQ(convs.size(), 28u);
  EXPECT_EQ(convs[0], std::pair(uint64_t{8064}, uint64_t{40320}));
  EXPECT_EQ(convs[1], std::pair(uint64_t{40320}, uint64_t{72576}));
  EXPECT_EQ(convs[2], std::pair(uint64_t{72576}, uint64_t{104832}));
}

/// L, C, P and S of 4, 6, 3 and 2 cycles, in groups; for few tiles, too, where units are missing.
TEST(Tsim, SmallTableOfGroups) {
  const auto cycles = [](int tiles) {
    Builder builder(testing::no_latencies());
    testing::add_small_pipeline(builder, tiles);
    const dpu::Run run = builder.finish(false).value();
    const Result<LaunchReport> report = simulate_time(testing::no_latencies(), run.insns, {});
    EXPECT_TRUE(report) << to_string(report.error());
    return report ? report->cycles : 0;
  };
  EXPECT_EQ(cycles(5), 39u);
  EXPECT_EQ(cycles(1), 4u + 6 + 3 + 2);
  EXPECT_EQ(cycles(2), 4u + 6 + 6 + 3 + 2);
  EXPECT_EQ(cycles(3), 4u + 6 + 6 + 6 + 3 + 2);
  EXPECT_EQ(cycles(4), 4u + 6 + 6 + 6 + 6 + 3 + 2);
}

TEST(Tsim, ComputesWhatFsimDoesUnderAnyTime) {
  uint64_t shared = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) shared += testing::compare_under_jitter(seed);
  EXPECT_GT(shared, 0u);
}

/// Without a token, a convolution sees what was there before the load behind its back is done.
TEST(Tsim, AMissingTokenIsSeen) {
  Rng rng(1);
  Config config;
  config.timing.lat_conv = 0;
  Program program = testing::empty_program(config, rng);
  const auto image = [&](const std::string& pool_masks) {
    program.runs = {
        dpu::Run{{},
                 parse_asm("LOAD jump_read=16 jump_write=1 length=4 channel=16\n"
                           "POOLINIT type=2 kernel_w=1 kernel_h=1 stride_w=1 stride_h=1 "
                           "jump_read=1 jump_write=1\n"
                           "LOAD dpby=P jump_read=16 jump_write=1 length=4 channel=16 "
                           "ddr_addr=4096\n"
                           "POOL " +
                               pool_masks +
                               " dpby=S length=4 channel_group=1 valid_rows=1 bank_id_out=8\n"
                               "NOP queue=3 " +
                               (pool_masks.empty() ? "dpon=L" : "") +
                               "\n"
                               "SAVE dpon=P bank_id=8 jump_read=1 jump_write=16 length=4 "
                               "channel=16 reg_id=1\nEND",
                           "")
                     .value(),
                 {}}};
    return testing::tsim_image(program);
  };
  ASSERT_TRUE(image("dpon=L"));
  const Result<std::string> racing = image("");
  ASSERT_FALSE(racing);
  EXPECT_NE(to_string(racing.error()).find("nothing wrote"), std::string::npos);
}

TEST(Tsim, LimitsAndErrors) {
  const std::vector<Insn> insns = parse_asm("NOP dpby=C\nNOP queue=2 dpon=L\nEND", "").value();
  EXPECT_EQ(simulate_time({}, insns, {})->cycles, 20u);
  const auto late = simulate_time({}, insns, {.max_cycles = 5});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::Limit);
  EXPECT_FALSE(simulate_time({}, parse_asm("NOP dpby=C\nEND", "").value(), {}));
  EXPECT_FALSE(simulate_time({}, parse_asm("NOP dpon=C\nEND", "").value(), {}));
  EXPECT_FALSE(simulate_time({}, parse_asm("CONV\nEND", "").value(), {}));
  // Tokens that nobody takes until all are given: as many as counters hold, and one more.
  const auto held = [](int count) {
    std::string text = "NOP queue=2 dpon=S\n";
    for (int i = 0; i < count; ++i) text += "NOP dpby=C\n";
    text += "NOP dpby=S\nNOP queue=1 dpon=L dpby=C\n";
    for (int i = 0; i < count; ++i) text += "NOP queue=2 dpon=L\n";
    return simulate_time({}, parse_asm(text + "END", "").value(), {}).has_value();
  };
  EXPECT_TRUE(held(255));
  EXPECT_FALSE(held(256));
}

}  // namespace
}  // namespace tilewright::dpu
