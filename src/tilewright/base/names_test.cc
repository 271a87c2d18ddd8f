#include "tilewright/base/names.h"

#include <gtest/gtest.h>

#include "tilewright/base/is_path.h"

namespace tilewright {
namespace {

TEST(Names, SlipsOfTheKeyboardAreNear) {
  EXPECT_EQ(did_you_mean("vat", {"cpu", "vta", "cuda"}), "did you mean 'vta'?");
  EXPECT_EQ(did_you_mean("chek", {"check", "compile"}), "did you mean 'check'?");
  EXPECT_EQ(did_you_mean("--mathh", {"--math", "--hw"}), "did you mean '--math'?");
  EXPECT_EQ(did_you_mean("X86-64-V3", {"x86-64-v2", "x86-64-v3"}), "did you mean 'x86-64-v3'?");
}

TEST(Names, PartsOfNamesAreNear) {
  EXPECT_EQ(did_you_mean("n16", {"gemm/m8/n8", "gemm/m16/n16"}), "did you mean 'gemm/m16/n16'?");
  EXPECT_EQ(did_you_mean("clock", {"clock_mhz", "preset"}), "did you mean 'clock_mhz'?");
}

TEST(Names, OtherWordsAreNot) {
  EXPECT_EQ(did_you_mean("help", {"check", "opt"}), "");
  EXPECT_EQ(did_you_mean("version", {"verify", "inspect"}), "");
  EXPECT_EQ(did_you_mean("foo", {"name", "timing"}), "");
  EXPECT_EQ(did_you_mean("clock", {"empty", "finish"}), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
}

TEST(Names, PathsHaveASlashOrAnEnding) {
  for (const char* path : {"my.toml", "./my", "designs/my", "/my", "v8.2.json", "../a.b/c"})
    EXPECT_TRUE(is_path(path)) << path;
  for (const char* name : {"vta-paper", "aarch64-v8.2", "cuda-sm_90a", "", ".", "ends."})
    EXPECT_FALSE(is_path(name)) << name;
}

}  // namespace
}  // namespace tilewright
