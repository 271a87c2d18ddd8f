#include "tilewright/accel/spatial/sim/fsim.h"

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/assembly.h"
#include "tilewright/accel/spatial/sim/testing/random_data.h"
#include "tilewright/base/file.h"

namespace tilewright::spatial {
namespace {

constexpr int64_t kBase = 4096;

using testing::in_order;

/// DRAM after a launch that began with `image`.
Result<std::string> image_after(const Design& design, const std::string& image,
                                const std::vector<Insn>& insns, Counters* counters = nullptr) {
  const auto device = make_fsim(design);
  TW_TRY_STATUS(device->write(kBase, image));
  const LaunchReport report = TW_TRY(device->launch(insns));
  if (counters != nullptr) *counters = report.counters;
  std::string out(image.size(), '\0');
  TW_TRY_STATUS(device->read(kBase, out.data(), out.size()));
  return out;
}

TEST(SpatialFsimSlow, RandomProgramsDoWhatTheirTextSays) {
  std::array<int, 4> units{};
  for (uint64_t seed = 0; seed < 100; ++seed)
    ++units[static_cast<size_t>(testing::compare_with_text(seed, 25))];
  for (const int count : units) EXPECT_GT(count, 10);
}

/// A multiplication of matrices by hand: 3 rows of 5 numbers, 4 columns, on 2x3 weights that stay.
struct Product {
  Design design;
  std::string image;
  Load rows, weights;
  Compute compute;
  Store store;

  Product() {
    design.rows = 2;
    design.cols = 3;
    image = std::string(512, '\0');
    for (int n = 0; n < 15; ++n) image[static_cast<size_t>(n)] = static_cast<char>(n - 7);
    // Bias, then weights[k][j] as blocks: of j outside, of k inside, 2 x 3 each, zeros around.
    for (int j = 0; j < 4; ++j) {
      image[static_cast<size_t>(64 + 4 * j)] = static_cast<char>(10 * j);
      for (int k = 0; k < 5; ++k)
        image[static_cast<size_t>(80 + (j / 3 * 3 + k / 2) * 6 + k % 2 * 3 + j % 3)] =
            static_cast<char>(weight(k, j));
    }
    rows.dram = kBase;
    rows.axes[3] = {3, 0, 0, 5, 2};
    rows.axes[4] = {5, 0, 0, 1, 1};
    rows.run_axes = 2;
    rows.lane_axis = 4;
    rows.lanes = 2;
    rows.lane_pitch = 6;
    weights.dram = kBase + 80;
    weights.spad = 64;
    weights.axes[4] = {36, 0, 0, 1, 1};
    weights.run_axes = kAxes;
    weights.bias_words = 4;
    compute.begins = true;
    compute.block_loops = 2;
    compute.loops[0] = {2, false, {0, 18}, 3};
    compute.loops[1] = {3, true, {6, 6}, 0};
    compute.loops[2] = {3, false, {2, 0}, 1};
    compute.spad = {0, 64};
    compute.row_step = 3;
    compute.j = {0, 4};
    compute.k = {1, 5};
    store.dram = kBase + 256;
    store.axes[3] = {3, 4, 1, 0, 1};
    store.axes[4] = {4, 1, 3, 1, 3};
    store.run_axes = 2;
    store.bias_axis = 4;
    store.shift = 1;
  }
  static int weight(int k, int j) { return 3 * k - 5 * j + 1; }
  std::vector<Insn> insns() const {
    return in_order({{0, 0, rows}, {0, 0, weights}, {0, 0, compute}, {0, 0, store}});
  }
};

TEST(SpatialFsim, MultipliesMatrices) {
  const Product product;
  Counters counters;
  const auto out = image_after(product.design, product.image, product.insns(), &counters);
  ASSERT_TRUE(out) << to_string(out.error());
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) {
      int sum = 10 * j;
      for (int k = 0; k < 5; ++k) sum += (5 * i + k - 7) * Product::weight(k, j);
      EXPECT_EQ(static_cast<int8_t>((*out)[static_cast<size_t>(256 + 4 * i + j)]),
                std::clamp((sum + 1) >> 1, -128, 127));
    }
  EXPECT_EQ(counters.insns, 4);
  EXPECT_EQ(counters.macs, 3 * 4 * 5);
  EXPECT_EQ(counters.steps, 18);
  EXPECT_EQ(counters.load_bytes, 15 + 16 + 36);
  EXPECT_EQ(counters.load_bursts, 2);
  EXPECT_EQ(counters.store_bytes, 12);
  EXPECT_EQ(counters.store_bursts, 1);
  EXPECT_EQ(counters.first_bytes, 18 * 2);
  EXPECT_EQ(counters.second_bytes, 6 * 2 * 3);
  EXPECT_EQ(counters.zero_bytes, 0);
}

/// Sums and their sum with the bias wrap around; rounding does not.
TEST(SpatialFsim, WrapsAroundAtTheBias) {
  Product product;
  for (int j = 0; j < 4; ++j)
    for (int b = 0; b < 4; ++b)
      product.image[static_cast<size_t>(64 + 4 * j + b)] = static_cast<char>(b < 3 ? -1 : 0x7f);
  product.store.wide = true;
  product.store.shift = 0;
  product.store.axes[3].dram_step = 16;
  product.store.axes[4].dram_step = 4;
  const auto wide = image_after(product.design, product.image, product.insns());
  ASSERT_TRUE(wide) << to_string(wide.error());
  product.store.wide = false;
  product.store.shift = 31;
  product.store.axes[3].dram_step = 4;
  product.store.axes[4].dram_step = 1;
  const auto narrow = image_after(product.design, product.image, product.insns());
  ASSERT_TRUE(narrow) << to_string(narrow.error());
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) {
      uint32_t sum = 0x7fffffff, word = 0;
      for (int k = 0; k < 5; ++k)
        sum += static_cast<uint32_t>((5 * i + k - 7) * Product::weight(k, j));
      for (int b = 0; b < 4; ++b)
        word |=
            uint32_t{static_cast<uint8_t>((*wide)[static_cast<size_t>(256 + 16 * i + 4 * j + b)])}
            << 8 * b;
      EXPECT_EQ(word, sum);
      const bool positive = sum <= 0x7fffffff;
      EXPECT_EQ((*narrow)[static_cast<size_t>(256 + 4 * i + j)], positive ? 1 : -1) << sum;
    }
}

void expect_error(const Product& product, const std::vector<Insn>& insns, const std::string& part) {
  const auto out = image_after(product.design, product.image, insns);
  ASSERT_FALSE(out) << part;
  EXPECT_NE(to_string(out.error()).find(part), std::string::npos) << to_string(out.error());
}

TEST(SpatialFsim, ErrorsNameTheInstruction) {
  const Product p;
  expect_error(p, in_order({{0, 0, p.rows}, {0, 0, p.compute}}), "reads byte 64, which nothing");
  expect_error(p, in_order({{0, 0, p.rows}, {0, 0, p.compute}}), "instruction 1 (COMPUTE");
  expect_error(p, {{0, 0, p.store}}, "reads part 0, sum 0, which nothing");
  Product other = p;
  other.compute.begins = false;
  expect_error(other, other.insns(), "reads part 0, sum 0, which nothing");
  other = p;
  other.weights.bias_words = 3;
  expect_error(other, other.insns(), "reads bias 3, which nothing");
  other = p;
  other.weights.spad = 256 * 1024 - 35;
  expect_error(other, other.insns(), "there are 262144");
  other = p;
  other.rows.dram += 500;
  expect_error(other, other.insns(), "but the host wrote 4096..4607");
  other.rows.dram = kBase - 1;
  expect_error(other, other.insns(), "but the host wrote 4096..4607");
}

TEST(SpatialFsim, TokensOrderQueues) {
  const Product p;
  expect_error(p, {{0b010, 0, p.rows}}, "deadlock: queue load waits for a token of compute");
  expect_error(p, {{0, 0b100, p.rows}}, "1 tokens from load to store are left");
  expect_error(p, {{0, 0b001, p.rows}}, "tokens of its own queue");
  expect_error(p, {{0, 0b1000, p.rows}}, "tokens of its own queue");
  // A queue that is full keeps the instruction that it waits for from being fetched.
  Product shallow = p;
  shallow.design.timing.command_queue = 1;
  const std::vector<Insn> insns = {
      {0b010, 0, p.rows}, {0, 0, p.rows}, {0, 0, p.weights}, {0, 0b001, p.compute}};
  expect_error(shallow, insns, "deadlock");
}

TEST(SpatialFsim, NothingOnChipLivesOn) {
  const Product p;
  const auto device = make_fsim(p.design);
  ASSERT_TRUE(device->write(kBase, p.image));
  ASSERT_TRUE(device->launch(p.insns()));
  EXPECT_FALSE(device->launch({{0, 0, p.store}}));
  EXPECT_FALSE(device->launch(in_order({{0, 0, p.weights}, {0, 0, p.compute}})));
  EXPECT_TRUE(device->launch(p.insns()));
}

/// The text between the first fence of section 8 of docs/spatial.md and the next.
std::string worked_example() {
  const std::string page = read_file(std::string(TILEWRIGHT_ROOT_DIR) + "/docs/spatial.md").value();
  const size_t section = page.find("## 8. A worked example"),
               begin = page.find("```\n", section) + 4;
  return page.substr(begin, page.find("```", begin) - begin);
}

TEST(SpatialFsim, WorkedExampleOfTheManual) {
  Result<Program> program = parse_assembly(worked_example(), {}, "spatial.md");
  ASSERT_TRUE(program) << to_string(program.error());
  EXPECT_EQ(assembly(program->runs), worked_example());
  EXPECT_TRUE(check_program(*program).empty());
  EXPECT_EQ(with_tokens({}, program->runs[0].insns).value(), program->runs[0].insns);
  ASSERT_EQ(program->base, 4096);
  Rng rng(1);
  std::string& image = program->image;
  for (char& byte : image) byte = static_cast<char>(rng.between(-9, 9));
  const auto at = [&](size_t address) { return static_cast<int8_t>(image[address - 4096]); };
  Counters counters;
  const std::string out = testing::fsim_image(*program, &counters).value();
  EXPECT_EQ(counters.steps, 8);
  EXPECT_EQ(counters.load_bytes, 128 + 64 + 512);
  for (size_t row = 0; row < 4; ++row)
    for (size_t j = 0; j < 16; ++j) {
      uint32_t bias = 0;
      for (size_t b = 0; b < 4; ++b)
        bias |= uint32_t{static_cast<uint8_t>(at(4224 + 4 * j + b))} << 8 * b;
      auto sum = static_cast<int32_t>(bias);
      for (size_t k = 0; k < 32; ++k)
        sum += at(4096 + 32 * row + k) * at(4288 + 256 * (k / 16) + 16 * (k % 16) + j);
      EXPECT_EQ(static_cast<int8_t>(out[4800 - 4096 + 16 * row + j]),
                std::clamp((sum + 64) >> 7, -128, 127));
    }
}

TEST(SpatialFsim, DramGrowsBothWays) {
  const auto device = make_fsim({});
  ASSERT_TRUE(device->write(kDramBytes - 4, "last"));
  ASSERT_TRUE(device->write(kDramBytes - 8, "more"));
  std::string out(12, 'x');
  ASSERT_TRUE(device->read(kDramBytes - 12, out.data(), out.size()));
  EXPECT_EQ(out, std::string(4, '\0') + "morelast");
  EXPECT_FALSE(device->write(kDramBytes - 3, "last"));
  EXPECT_FALSE(device->write(0, "far"));  // more between than the simulator holds
  EXPECT_FALSE(device->read(kDramBytes - 3, out.data(), 4));
}

}  // namespace
}  // namespace tilewright::spatial
