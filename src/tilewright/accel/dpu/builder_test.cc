#include "tilewright/accel/dpu/builder.h"

#include <gtest/gtest.h>

#include "tilewright/accel/dpu/check.h"
#include "tilewright/accel/dpu/testing/example_layer.h"

namespace tilewright::dpu {
namespace {

Load row(int bank, int address = 0) {
  Load load;
  load.bank_id = bank;
  load.bank_addr = address;
  load.jump_read = load.channel = 16;
  load.jump_write = 1;
  load.length = 4;
  return load;
}
Save saved(int bank, int ddr_addr) {
  Save save;
  save.bank_id = bank;
  save.jump_read = 1;
  save.jump_write = save.channel = 16;
  save.length = 4;
  save.reg_id = 1;
  save.ddr_addr = ddr_addr;
  return save;
}

std::string masks(const dpu::Run& run) {
  std::string text;
  for (const Insn& insn : run.insns)
    text += std::string(op_name(insn.op)) + " " + std::to_string(insn.dpon) + "/" +
            std::to_string(insn.dpby) + "; ";
  return text;
}

TEST(Builder, OrdersOnlyWhatMeets) {
  Builder builder({});
  for (const Op& op : std::vector<Op>{row(0), row(1), saved(0, 0), saved(1, 256), row(0)})
    ASSERT_TRUE(builder.add(op));
  // SAVE of bank 1 waits for its LOAD, which is behind the other; the last LOAD for the first SAVE.
  EXPECT_EQ(masks(builder.finish(true).value()),
            "LOAD 0/2; LOAD 0/2; SAVE 1/1; SAVE 1/0; LOAD 2/0; END 0/0; ");
}

TEST(Builder, BarriersOrderEverything) {
  Builder builder({});
  builder.barrier();  // nothing before: nothing to wait for
  ASSERT_TRUE(builder.add(row(0)));
  ASSERT_TRUE(builder.add(Nop{2}));
  builder.barrier();
  builder.barrier();
  ASSERT_TRUE(builder.add(Nop{3}));
  ASSERT_TRUE(builder.add(Nop{2}));
  ASSERT_TRUE(builder.add(Nop{3}));
  const dpu::Run run = builder.finish(true).value();
  // MISC waits for LOAD and CONV, CONV for LOAD; its own is before it anyway.
  EXPECT_EQ(masks(run), "LOAD 0/12; NOP 0/8; NOP 5/0; NOP 1/0; NOP 0/0; END 0/0; ");
}

TEST(Builder, GroupsWaitForTheGroupBefore) {
  Builder builder({});
  ASSERT_TRUE(builder.add(row(0)));
  ASSERT_TRUE(builder.add(row(1)));
  builder.begin_group();
  ASSERT_TRUE(builder.add(row(2)));
  ASSERT_TRUE(builder.add(saved(0, 0)));
  ASSERT_TRUE(builder.add(saved(1, 256)));
  builder.begin_group();
  builder.begin_group();
  ASSERT_TRUE(builder.add(Nop{2}));
  EXPECT_EQ(masks(builder.finish(false).value()),
            "LOAD 0/0; LOAD 0/2; LOAD 0/4; SAVE 1/0; SAVE 0/4; NOP 3/0; END 0/0; ");
}

TEST(Builder, SpansFollowTheirInstructions) {
  Builder builder({});
  builder.begin_span("a");
  ASSERT_TRUE(builder.add(row(0)));
  builder.begin_span("empty");
  builder.begin_span("b");
  ASSERT_TRUE(builder.add(saved(0, 0)));
  for (const bool addresses : {true, false}) {
    const dpu::Run run = builder.finish(addresses).value();
    ASSERT_EQ(run.spans.size(), 3u);
    EXPECT_EQ(run.spans[0].begin, 0u);
    EXPECT_EQ(run.spans[0].end, 1u);
    EXPECT_EQ(run.spans[1].begin, run.spans[1].end);
    EXPECT_EQ(run.spans[2].begin, 1u);
    EXPECT_EQ(run.spans[2].end, 2u);
  }
}

TEST(Builder, RefusesWhatIsWrong) {
  Builder builder({});
  EXPECT_EQ(builder.add(Load{}).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(builder.add(row(24)).error().kind, ErrorKind::Capacity);
  EXPECT_EQ(builder.add(row(16, 4096)).error().kind, ErrorKind::Capacity);
  EXPECT_EQ(builder.add(End{}).error().kind, ErrorKind::Invalid);
  Conv conv;
  conv.length = conv.out_groups = conv.valid_rows = 1;
  EXPECT_NE(builder.add(conv).error().what.find("before its INIT"), std::string::npos);
  ASSERT_TRUE(builder.add(ConvInit{}));
  ASSERT_TRUE(builder.add(conv));
  conv.pad_top = 1;
  EXPECT_NE(builder.add(conv).error().what.find("0 rows that exist"), std::string::npos);
  PoolInit init;
  init.kernel_w = init.kernel_h = 2;
  init.jump_write = 1;
  ASSERT_TRUE(builder.add(init));
  Pool pool;
  pool.length = 4;
  pool.channel_group = pool.valid_rows = 1;
  pool.pad_left = 2;
  EXPECT_NE(builder.add(pool).error().what.find("wholly in the padding"), std::string::npos);
  pool.pad_left = 0;
  init.jump_write = 0;
  ASSERT_TRUE(builder.add(init));
  EXPECT_NE(builder.add(pool).error().what.find("writes a word twice"), std::string::npos);
  EXPECT_EQ(builder.size(), 4u);
}

/// The more units, the fewer bits: tokens that others imply are left out.
TEST(Builder, ExampleLayerHasFewTokens) {
  const Program program = testing::example_layer(28, true);
  int tokens = 0;
  for (const Insn& insn : program.runs[0].insns) tokens += __builtin_popcount(insn.dpon);
  // Per tile: rows to the convolution, convolution to the pool, pools to the saves; and back, once
  // the windows wrap.
  EXPECT_LE(tokens, 28 * 8);
  EXPECT_GE(tokens, 28 * 3);
}

}  // namespace
}  // namespace tilewright::dpu
