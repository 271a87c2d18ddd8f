#include "tilewright/hw/target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace tilewright::hw {
namespace {

TEST(Target, HostFeaturesAgreeWithTheKernel) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) {
  }
  if (line.empty()) GTEST_SKIP() << "no flags line in /proc/cpuinfo on this architecture";
  std::istringstream words(line);
  std::vector<std::string> flags;
  for (std::string word; words >> word;) flags.push_back(word);
  auto in_kernel = [&](const std::string& flag) {
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  };
  auto in_host = [&](const std::string& feature) {
    const auto& all = host().features;
    return std::find(all.begin(), all.end(), feature) != all.end();
  };
  EXPECT_EQ(in_kernel("avx2"), in_host("+avx2"));
  EXPECT_EQ(in_kernel("fma"), in_host("+fma"));
  EXPECT_EQ(in_kernel("avx512f"), in_host("+avx512f"));
  EXPECT_EQ(in_kernel("avx512_vnni"), in_host("+avx512vnni"));
  EXPECT_EQ(in_kernel("avx512_bf16"), in_host("+avx512bf16"));
  EXPECT_EQ(host().vector_bytes, in_kernel("avx512f") ? 64 : in_kernel("avx2") ? 32 : 16);
}

TEST(Target, HostLacksNothingOfItsOwn) { EXPECT_TRUE(missing_features(host()).empty()); }

TEST(Target, OnlyThisMachineHasAFingerprint) {
  EXPECT_EQ(host().machine.size(), 8u);
  EXPECT_NE(host_text().find(" cores"), std::string::npos);
  for (const CpuTarget& target : all_targets()) {
    EXPECT_FALSE(target.isa.empty()) << target.name;
    EXPECT_EQ(target.machine.empty(), target.name != "cpu") << target.name;
  }
}

TEST(Target, UnknownNamesListTheClosedSet) {
  const auto target = find_target("x86-64-v9");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().kind, ErrorKind::Device);
  EXPECT_NE(target.error().why.find("x86-64-v3"), std::string::npos);
}

TEST(Target, AnotherArchitectureIsMissing) {
  const std::string other = host().triple.starts_with("x86") ? "aarch64" : "x86-64-v2";
  EXPECT_FALSE(missing_features(*find_target(other)).empty());
  EXPECT_EQ(why_not_here(*find_target(other)), "it is for " + find_target(other)->triple);
  EXPECT_EQ(why_not_here(host()), "");
  CpuTarget strange = host();
  strange.features.insert(strange.features.end(), {"+xyz", "+zyx"});
  EXPECT_EQ(why_not_here(strange), "it lacks +xyz, +zyx");
}

}  // namespace
}  // namespace tilewright::hw
