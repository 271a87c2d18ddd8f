#include "tilewright/accel/spatial/isa.h"

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/fields.h"
#include "tilewright/accel/spatial/program.h"
#include "tilewright/accel/spatial/testing/random_insn.h"

namespace tilewright::spatial {
namespace {

TEST(SpatialIsa, RandomInstructionsReadBack) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    testing::RandomInsns random(testing::small_design(rng), 4096, rng);
    for (int n = 0; n < 20; ++n) {
      Insn insn = random.next();
      insn.takes = static_cast<uint8_t>(rng.below(8));
      insn.gives = static_cast<uint8_t>(rng.below(8));
      const std::string bytes = encode(insn);
      ASSERT_EQ(bytes.size(), kInsnBytes);
      ASSERT_EQ(decode(bytes).value(), insn);
    }
  }
}

/// Fields lie beside each other in the encoding, and keep all their bits.
template <class Work>
void expect_own_bytes() {
  std::array<int, kInsnBytes> owner{};
  Work work;
  int field = 0;
  each_field(work, [&](std::string_view, int at, auto& number) {
    ++field;
    using T = std::decay_t<decltype(number)>;
    EXPECT_EQ(at % static_cast<int>(sizeof(T)), 0);
    EXPECT_GE(at, 4 - (sizeof(T) == 1));
    for (size_t b = 0; b < sizeof(T); ++b)
      EXPECT_EQ(std::exchange(owner[static_cast<size_t>(at) + b], field), 0);
    number = std::numeric_limits<T>::min();
    EXPECT_EQ(decode(encode({0, 0, work})).value().work, decltype(Insn::work){work});
    number = std::numeric_limits<T>::max();
    EXPECT_EQ(decode(encode({0, 0, work})).value().work, decltype(Insn::work){work});
  });
}

TEST(SpatialIsa, EveryFieldHasItsBytes) {
  expect_own_bytes<Load>();
  expect_own_bytes<Compute>();
  expect_own_bytes<Store>();
}

/// What docs/spatial.md says of a few bytes.
TEST(SpatialIsa, EncodingStays) {
  Load load;
  load.spad = 0x01020304;
  load.dram = 0x0a0b0c0d0e;
  load.lane_axis = 4;
  load.axes[4] = {0x11223344, 5, 6, -1, 7};
  const std::string bytes = encode({2, 4, load});
  EXPECT_EQ(bytes.substr(0, 16), std::string("\0\2\4\0\4\3\2\1\x0e\x0d\x0c\x0b\x0a\0\0\0", 16));
  EXPECT_EQ(bytes.substr(16, 4), std::string("\1\4\1\0", 4));
  EXPECT_EQ(bytes.substr(96, 16),
            std::string("\x44\x33\x22\x11\5\0\6\0\xff\xff\xff\xff\7\0\0\0", 16));
}

TEST(SpatialIsa, BytesThatMeanNothingAreErrors) {
  const std::string load = encode({0, 0, Load{}}), compute = encode({0, 0, Compute{}});
  EXPECT_FALSE(decode(load.substr(1)));
  EXPECT_FALSE(decode(load + load));
  const auto changed = [](std::string bytes, size_t at, char to) {
    bytes[at] = to;
    return bytes;
  };
  EXPECT_FALSE(decode(changed(load, 0, 3)));
  EXPECT_FALSE(decode(changed(load, 1, 8)));
  EXPECT_FALSE(decode(changed(load, 127, 1)));
  EXPECT_FALSE(decode(changed(compute, 18, 2)));  // neither yes nor no
  EXPECT_FALSE(decode_all(load + compute.substr(1)));
  EXPECT_EQ(decode_all(load + compute).value().size(), 2);
}

void expect_field_error(const Insn& insn, const std::string& part, Design design = {}) {
  const Status status = check_fields(design, insn);
  ASSERT_FALSE(status) << part;
  EXPECT_NE(to_string(status.error()).find(part), std::string::npos) << to_string(status.error());
}

TEST(SpatialIsa, LoadsThatADesignCannotDo) {
  const auto bad = [](auto change, const std::string& part) {
    Load load;
    load.dram = 4096;
    load.axes[3] = {4, 0, 0, 100, 16};
    load.axes[4] = {16, 0, 0, 1, 1};
    EXPECT_TRUE(check_fields({}, {0, 0, load}));
    change(load);
    expect_field_error({0, 0, load}, part);
  };
  bad([](Load& l) { l.axes[0].count = 0; }, "axis 0 has no positions");
  bad([](Load& l) { l.axes[3].count = 1 << 20; }, "more positions than the 262144");
  bad([](Load& l) { l.axes[4].before = l.axes[4].after = 9; }, "9 + 9 zeros in 16");
  bad([](Load& l) { l.run_axes = 0; }, "run_axes is 0");
  bad([](Load& l) { l.run_axes = 6; }, "run_axes is 6");
  bad([](Load& l) { l.run_axes = 2; }, "axis 3 of a run steps 100 bytes in DRAM, but the next");
  bad([](Load& l) { l.axes[4].dram_step = 2; }, "the last axis steps 2");
  bad([](Load& l) { l.lane_axis = 5; }, "lane_axis is 5");
  bad([](Load& l) { l.lanes = 0; }, "lanes is 0");
  bad([](Load& l) { l.spad = 262144 - 63; }, "there are 262144");
  bad(
      [](Load& l) {
        l.dram = 0;
        l.axes[3].dram_step = -1;
      },
      "bytes of DRAM -3..15");
  bad([](Load& l) { l.dram = kDramBytes - 315; }, "bytes of DRAM");
  bad([](Load& l) { l.dram = kDramBytes; }, "beyond DRAM");
  bad([](Load& l) { l.bias_words = 4; }, "bias stands before one run of all axes");
  bad(
      [](Load& l) {
        l.bias_words = 1;
        l.bias = 1024;
        l.axes[3].count = 1;
        l.run_axes = 5;
      },
      "words of bias 1024..1024");
}

TEST(SpatialIsa, ComputesThatADesignCannotDo) {
  const auto bad = [](auto change, const std::string& part) {
    Compute compute;
    compute.block_loops = 1;
    compute.loops[0] = {3, true, {64, 256}, 0};
    compute.loops[1] = {4, false, {16, 0}, 1};
    compute.k = {0, 40};
    compute.j.count = 16;
    compute.row_step = 16;
    EXPECT_TRUE(check_fields({}, {0, 0, compute}));
    change(compute);
    expect_field_error({0, 0, compute}, part);
  };
  bad([](Compute& c) { c.loops[2].count = 0; }, "loop 2 has no steps");
  bad(
      [](Compute& c) {
        for (ComputeLoop& l : c.loops) l.count = 65535;
      },
      "2^32 steps");
  bad([](Compute& c) { c.tap_loops = 1; }, "no other unit than conv2d has taps");
  bad([](Compute& c) { c.block_loops = 7; }, "7 + 0 loops");
  bad([](Compute& c) { c.loops[1].spad_step[1] = 1; }, "loop 1 moves the weights");
  bad([](Compute& c) { c.k.count = 32; }, "the count of lanes k is 32, but must be in 33");
  bad([](Compute& c) { c.k = {-1, 17}; }, "the count of lanes k is 17");
  bad([](Compute& c) { c.k = {1, 64}; }, "chooses no block");
  bad([](Compute& c) { c.k.loop = 6; }, "the loop of lanes k is 6");
  bad([](Compute& c) { c.i.count = 2; }, "the count of lanes i is 2");
  bad([](Compute& c) { c.i.loop = 1; }, "role i has no lanes");
  bad([](Compute& c) { c.spad[0] = 262144 - 183; }, "factor 0 lies in bytes");
  bad([](Compute& c) { c.spad[1] = 262144 - 639; }, "factor 1 lies in bytes");
  bad([](Compute& c) { c.sum = 1017; }, "sums of a part 1017..1020, but there are 1020");
  Design os;
  os.dataflow = Dataflow::OutputStationary;
  Compute blocks;
  blocks.block_loops = 1;
  expect_field_error({0, 0, blocks}, "no blocks of weights stay", os);
}

TEST(SpatialIsa, RaggedLanesReachNoFurther) {
  Compute compute;
  compute.block_loops = 1;
  compute.loops[0] = {3, true, {64, 256}, 0};
  compute.k = {0, 40};
  compute.j.count = 16;
  compute.row_step = 16;
  compute.spad = {262144 - 136, 262144 - 640};  // 8 lanes in the last block
  EXPECT_TRUE(check_fields({}, {0, 0, compute}));
  ++compute.spad[0];
  expect_field_error({0, 0, compute}, "factor 0");
}

TEST(SpatialIsa, StoresThatADesignCannotDo) {
  const auto bad = [](auto change, const std::string& part) {
    Store store;
    store.dram = 4096;
    store.axes[3] = {4, 100, 1, 0, 1};
    store.axes[4] = {16, 1, 16, 1, 0};
    EXPECT_TRUE(check_fields({}, {0, 0, store}));
    change(store);
    expect_field_error({0, 0, store}, part);
  };
  bad([](Store& s) { s.axes[0].count = 0; }, "axis 0 has no positions");
  bad([](Store& s) { s.axes[3].count = 1025; }, "more positions than the 16384");
  bad(
      [](Store& s) {
        s.axes[4].lanes = 17;
        s.axes[4].count = 17;
      },
      "parts of the private");
  bad([](Store& s) { s.axes[2].lanes = 0; }, "lanes of axis 2 is 0");
  bad([](Store& s) { s.sum = 1021; }, "sums of a part 1021..1024");
  bad([](Store& s) { s.shift = 32; }, "shift is 32");
  bad(
      [](Store& s) {
        s.low = 5;
        s.high = 4;
      },
      "clips to 5..4");
  bad(
      [](Store& s) {
        s.bias_axis = 4;
        s.bias = 1009;
      },
      "words of bias 1009..1024");
  bad([](Store& s) { s.wide = true; }, "the last axis steps 1 bytes in DRAM, but must step 4");
  bad([](Store& s) { s.run_axes = 2; }, "axis 3 of a run steps 100");
  bad(
      [](Store& s) {
        s.dram = 0;
        s.axes[3].dram_step = -100;
      },
      "bytes of DRAM -300..15");
}

}  // namespace
}  // namespace tilewright::spatial
