#include "tilewright/accel/vta/rtl/rtl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <set>

namespace tilewright::vta {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Config small() {
  Config config;
  config.log_block_in = config.log_block_out = 2;
  config.log_uop_buff = config.log_inp_buff = config.log_wgt_buff = 12;
  config.log_acc_buff = 13;
  return config;
}

std::set<std::string> words_after(const std::string& text, const std::string& keyword) {
  std::set<std::string> out;
  const std::regex pattern("(?:^|\n)\\s*" + keyword + " (\\w+)");
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    out.insert((*it)[1]);
  return out;
}

TEST(Verilog, HasEveryModuleAndNoPlaceIsLeft) {
  const std::string text = verilog(small());
  EXPECT_THAT(text, Not(HasSubstr("${")));
  const std::set<std::string> modules = words_after(text, "module");
  for (const char* module : {"vta", "vta_fetch", "vta_load", "vta_compute", "vta_gemm", "vta_alu",
                             "vta_store", "vta_fifo", "vta_tokens", "vta_dma", "vta_registers"})
    EXPECT_TRUE(modules.count(module)) << module;
  EXPECT_FALSE(modules.count("vta_sram_two_writers"));
}

TEST(Verilog, IsPlainVerilog2005) {
  Config config = small();
  config.extensions = {true, true, true};
  const std::string text = verilog(config);
  for (const char* word : {"\\blogic\\b", "always_ff", "always_comb", "\\bimport\\b", "\"DPI",
                           "\\btypedef\\b", "\\$dpi"})
    EXPECT_FALSE(std::regex_search(text, std::regex(word))) << word;
  EXPECT_THAT(text, HasSubstr("vta_sram_two_writers"));
}

TEST(Verilog, TakesFieldsFromTheEncoding) {
  const std::string text = verilog(Config{});
  EXPECT_THAT(text, HasSubstr(".uop_end(insn[34:21])"));
  EXPECT_THAT(text, HasSubstr(".wgt_inner(insn[127:118])"));
  EXPECT_THAT(text, HasSubstr("parameter LOG_BLOCK_IN = 4"));
  EXPECT_THAT(verilog(small()), HasSubstr("parameter LOG_BLOCK_IN = 2"));
}

TEST(Supports, NamesAllReasons) {
  Config config;
  config.timing.gemm_ii = 2;
  config.timing.loop_fill = 6;
  config.timing.alu_overhead = 3;
  const Status status = rtl_supports(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Unsupported);
  EXPECT_THAT(status.error().why, HasSubstr("gemm_ii is 2"));
  EXPECT_THAT(status.error().why, HasSubstr("loop_fill is 6"));
  EXPECT_THAT(status.error().why, HasSubstr("alu_overhead is 3"));
}

TEST(Supports, RefusesWhatDoesNotFitTheEncoding) {
  Config config;
  config.log_acc_buff = 20;
  const Status status = rtl_supports(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Invalid);
}

TEST(Device, RefusesDramBeyondTheAddressSpace) {
  const auto device = make_rtl(small(), uint64_t{1} << 32);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().kind, ErrorKind::Capacity);
}

TEST(Tools, MissingToolSaysHowToGetIt) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);
  const Status status = lint(small());
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Tool);
  EXPECT_THAT(status.error().what, HasSubstr("verilator"));
  EXPECT_THAT(status.error().fix, HasSubstr("scripts/setup"));
}

TEST(Lint, SmallDesignIsClean) {
  const Status status = lint(small());
  if (!status && status.error().kind == ErrorKind::Tool) GTEST_SKIP() << status.error().what;
  EXPECT_TRUE(status) << to_string(status.error());
}

}  // namespace
}  // namespace tilewright::vta
