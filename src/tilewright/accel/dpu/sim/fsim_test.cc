#include "tilewright/accel/dpu/sim/fsim.h"

#include <gtest/gtest.h>

#include "tilewright/accel/dpu/sim/testing/random_data.h"
#include "tilewright/accel/dpu/testing/random_program.h"

namespace tilewright::dpu {
namespace {

using testing::Scheme;

TEST(FsimSlow, RandomProgramsMatchTheFormulas) {
  for (uint64_t seed = 0; seed < 3; ++seed) testing::compare_with_formulas(seed);
}

/// A program of one hand-written stream on random data.
Result<std::string> run_text(const std::string& text, const Config& config = {}) {
  Rng rng(1);
  Program program = testing::empty_program(config, rng);
  dpu::Run run;
  run.insns = TW_TRY(parse_asm(text, "text"));
  program.runs = {run};
  return testing::fsim_image(program);
}

void expect_error(const std::string& text, const std::string& part) {
  const Result<std::string> image = run_text(text);
  ASSERT_FALSE(image) << part;
  EXPECT_NE(to_string(image.error()).find(part), std::string::npos) << to_string(image.error());
}

TEST(Fsim, ErrorsNameTheInstruction) {
  const std::string load = "LOAD bank_id=1 jump_read=16 jump_write=1 length=4 channel=16\n";
  expect_error(load +
                   "SAVE dpon=L bank_id=1 jump_read=1 jump_write=16 length=5 channel=16 "
                   "reg_id=1\nEND",
               "instruction 1 (SAVE");
  expect_error(
      "SAVE bank_id=1 bank_addr=4 jump_read=1 jump_write=16 length=1 channel=16 reg_id=1\n"
      "END",
      "nothing wrote");
  expect_error("CONV length=1 out_groups=1 valid_rows=1\nEND", "before its INIT");
  expect_error("NOP dpon=C\nEND", "deadlock: LOAD waits for a token of CONV");
  expect_error("NOP dpby=C\nEND", "1 tokens from LOAD to CONV are left");
  expect_error("NOP\n", "END");
  expect_error("END\nNOP\nEND\n", "2 follow");
  expect_error("LOAD jump_read=16 jump_write=1 length=4 channel=16 reg_id=2 ddr_addr=16192\nEND",
               "which has 16384");
  expect_error("LOAD jump_read=16 jump_write=1 length=4 channel=16 ddr_addr=32\nEND", "multiple");
  expect_error("LOAD bank_id=24 length=1 channel=1\nEND", "there are 24");
  expect_error("LOAD bank_id=16 bank_addr=4096 length=1 channel=1\nEND", "4096 words");
  expect_error("LOAD jump_read=16 length=2 channel=1\nEND", "twice");
  expect_error("LOAD mode=1 bank_id=1 length=1 channel=1\nEND", "bank 1 of PM");
}

TEST(Fsim, MemoriesAreUndefinedInEachLaunch) {
  Rng rng(1);
  Program program = testing::empty_program({}, rng);
  const auto insns = [](const char* text) { return dpu::Run{{}, parse_asm(text, "").value(), {}}; };
  program.runs = {
      insns("LOAD jump_read=16 jump_write=1 length=1 channel=16\nEND"),
      insns("SAVE jump_read=1 jump_write=16 length=1 channel=16 reg_id=1\nEND"),
  };
  const Result<std::string> image = testing::fsim_image(program);
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().place.find("run 1: instruction 0"), std::string::npos);
}

TEST(Fsim, FormatUnitFoldsTheKernelIntoChannels) {
  Rng rng(7);
  for (int i = 0; i < 30; ++i) {
    Config config;
    config.pe = static_cast<int>(rng.between(1, 4));
    Program program = testing::empty_program(config, rng);
    FormatJob job;
    job.channels = static_cast<int>(rng.between(1, 8));
    job.height = static_cast<int>(rng.between(1, 4));
    job.width = static_cast<int>(rng.between(3, 9));
    job.kernel_w = static_cast<int>(rng.between(1, 3));
    job.stride_w = static_cast<int>(rng.between(1, 3));
    job.pad_left = static_cast<int>(rng.below(3));
    job.pad_right = static_cast<int>(rng.below(3));
    job.source = static_cast<uint64_t>(rng.below(100));
    job.target = 64;
    program.formats = {job};
    // The source is behind the other regions.
    program.regions[4] = {"format", program.end(), 8192};
    for (int b = 0; b < 8192; ++b) program.image += static_cast<char>(rng.next());
    program.runs = {dpu::Run{{}, {{0, 0, End{}}}, {}}};
    const Result<std::string> image = testing::fsim_image(program);
    ASSERT_TRUE(image) << to_string(image.error());
    const int columns =
        (job.width + job.pad_left + job.pad_right - job.kernel_w) / job.stride_w + 1;
    const int words = (job.kernel_w * job.channels + 15) / 16;
    for (int b = 0; b < config.pe; ++b)
      for (int h = 0; h < job.height; ++h)
        for (int x = 0; x < columns; ++x)
          for (int c = 0; c < words * 16; ++c) {
            const int kx = c / job.channels, at = x * job.stride_w - job.pad_left + kx;
            char expected = 0;
            if (kx < job.kernel_w && at >= 0 && at < job.width)
              expected = program.image[program.regions[4].address - program.base + job.source +
                                       static_cast<size_t>(((b * job.height + h) * job.width + at) *
                                                               job.channels +
                                                           c % job.channels)];
            const size_t word = static_cast<size_t>((h * columns + x) * words + c / 16);
            ASSERT_EQ(
                (*image)[job.target +
                         (word * static_cast<size_t>(config.pe) + static_cast<size_t>(b)) * 16 +
                         static_cast<size_t>(c % 16)],
                expected);
          }
  }
}

/// Sums beyond 32 bits: the weights of PM are read again and again.
TEST(Fsim, SumsAreExact) {
  Config config;
  config.fm_depth = {64, 64, 64};
  config.pm_depth = 64;
  config.pe = 1;
  Rng rng(1);
  Program program = testing::empty_program(config, rng);
  std::fill(program.image.begin(), program.image.end(), static_cast<char>(0x80));
  std::vector<Op> ops;
  Load row;
  row.jump_read = row.channel = 16;
  row.jump_write = 1;
  row.length = 64;
  for (int bank = 0; bank < 8; ++bank) {
    row.bank_id = bank;
    ops.push_back(row);
  }
  row.mode = 1;
  row.bank_id = 0;
  row.reg_id = 3;
  ops.push_back(row);
  ConvInit init;
  init.kernel_w = init.kernel_h = 16;
  init.in_groups = 511;
  init.jump_read = 1;
  init.jump_write = 1;
  // 16 * 16 * 511 * 16 products of 2^14 are 511 * 2^26, far beyond 32 bits.
  init.shift_cut = 31;
  init.shift_bias = -31;
  ops.push_back(init);
  Conv conv;
  conv.bank_id_out = 8;
  conv.length = conv.out_groups = conv.valid_rows = 1;
  ops.push_back(conv);
  Save save;
  save.bank_id = 8;
  save.length = 1;
  save.channel = 16;
  save.reg_id = 1;
  ops.push_back(save);
  program = testing::program_of(std::move(program), ops, Scheme::Addresses);
  const Result<std::string> image = testing::fsim_image(program);
  ASSERT_TRUE(image) << to_string(image.error());
  const size_t at = program.regions[1].address - program.base;
  // 511 * 2^26 / 2^31 is a little less than 16; the bias takes almost nothing away.
  EXPECT_EQ((*image)[at], 16);
}

}  // namespace
}  // namespace tilewright::dpu
