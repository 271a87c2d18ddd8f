// Processors by tables of facts, as CPUID would give them; no real CPUID but for one test.
#include "tilewright/hw/processor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tilewright::hw {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kIntelName = "GenuineIntel";
constexpr const char* kAmdName = "AuthenticAMD";

/// A processor of that level (0: the baseline, 2 to 4) with some more features.
CpuFacts facts(const std::string& vendor, unsigned family, unsigned model, int level, Names more) {
  CpuFacts made{vendor, family, model, 1, std::move(more)};
  if (level > 0) {
    const Names& all = cpu_levels().at(static_cast<size_t>(level) - 2).features;
    made.features.insert(made.features.end(), all.begin(), all.end());
  }
  std::sort(made.features.begin(), made.features.end());
  return made;
}

const Names kIceLake = {"+avx512vbmi", "+avx512vbmi2", "+avx512vnni", "+vaes", "+clwb"};
const Names kGolden = {"+avx512vbmi", "+avx512vbmi2", "+avx512vnni", "+vaes",
                       "+clwb",       "+avx512bf16",  "+avxvnni",    "+avx512fp16"};
const Names kZen4 = {"+avx512vbmi", "+avx512vbmi2", "+avx512vnni", "+vaes", "+clwb", "+avx512bf16"};

struct Case {
  CpuFacts facts;
  const char *model, *level;
};

TEST(Processor, FeaturesDecideAndNotTheModelNumber) {
  Names future = kGolden;
  future.insert(future.end(), {"+amx-fp16", "+avx10.1", "+movrs"});
  const Case cases[] = {
      {facts(kIntelName, 6, 0x8f, 4, kGolden), "sapphirerapids", "x86-64-v4"},
      {facts(kIntelName, 6, 207, 4, kGolden), "sapphirerapids", "x86-64-v4"},  // Emerald Rapids
      {facts(kIntelName, 6, 173, 4, future), "sapphirerapids", "x86-64-v4"},   // Granite Rapids
      {facts(kIntelName, 19, 1, 4, future), "sapphirerapids", "x86-64-v4"},    // another family
      {facts(kIntelName, 6, 0x6a, 4, kIceLake), "icelake-server", "x86-64-v4"},
      {facts(kIntelName, 6, 0x55, 4, {"+avx512vnni"}), "cascadelake", "x86-64-v4"},
      {facts(kIntelName, 6, 0x55, 4, {}), "skylake-avx512", "x86-64-v4"},
      {facts(kIntelName, 6, 0xb7, 3, {"+avxvnni", "+vaes", "+clflushopt"}), "alderlake",
       "x86-64-v3"},
      {facts(kIntelName, 6, 0x9e, 3, {"+clflushopt"}), "skylake", "x86-64-v3"},
      {facts(kIntelName, 6, 0x3f, 3, {}), "haswell", "x86-64-v3"},
      {facts(kIntelName, 6, 0x2d, 2, {"+avx"}), "x86-64-v2", "x86-64-v2"},
      {facts(kAmdName, 0x19, 0x11, 4, kZen4), "znver4", "x86-64-v4"},
      {facts(kAmdName, 0x1a, 0x02, 4, kGolden), "znver5", "x86-64-v4"},
      {facts(kAmdName, 0x1a, 0x50, 4, future), "znver5", "x86-64-v4"},  // Zen 6
      {facts(kAmdName, 0x19, 0x01, 3, {"+vaes", "+clwb"}), "znver3", "x86-64-v3"},
      {facts(kAmdName, 0x17, 0x31, 3, {"+clwb"}), "znver2", "x86-64-v3"},
      {facts("HygonGenuine", 0x18, 0, 3, {}), "znver1", "x86-64-v3"},
      {facts("CentaurHauls", 7, 0x5b, 3, {"+clflushopt"}), "skylake", "x86-64-v3"},
      {facts("", 0, 0, 4, kIceLake), "icelake-server", "x86-64-v4"},
      {facts(kIntelName, 6, 0x1c, 0, {"+sse3"}), "x86-64", "x86-64"}};
  for (const Case& c : cases) {
    EXPECT_EQ(scheduling_model(c.facts), c.model) << c.facts.vendor << " " << c.facts.model;
    EXPECT_EQ(level_of(c.facts).name, c.level) << c.facts.vendor << " " << c.facts.model;
  }
}

TEST(Processor, WhatAHypervisorHidesIsNotAssumed) {
  // A Sapphire Rapids without AVX-512, one without VNNI, a Zen 4 without BF16 and without AVX-512.
  EXPECT_EQ(scheduling_model(facts(kIntelName, 6, 0x8f, 3, {"+avxvnni", "+vaes"})), "alderlake");
  EXPECT_EQ(level_of(facts(kIntelName, 6, 0x8f, 3, {"+avxvnni"})).vector_bytes, 32);
  EXPECT_EQ(scheduling_model(facts(kIntelName, 6, 0x8f, 4, {})), "skylake-avx512");
  EXPECT_EQ(scheduling_model(facts(kAmdName, 0x19, 0x11, 4, {"+clwb", "+vaes"})), "znver3");
  EXPECT_EQ(scheduling_model(facts(kAmdName, 0x19, 0x11, 3, {"+clwb", "+vaes"})), "znver3");
}

TEST(Processor, AnyDifferenceMakesAnotherFingerprint) {
  const Fingerprint base{facts(kAmdName, 0x19, 0x11, 4, kZen4), 32 << 10, 1 << 20, 32 << 20, 2};
  const std::string key = fingerprint_key(base);
  EXPECT_EQ(key.size(), 8u);
  EXPECT_EQ(fingerprint_key(base), key);
  Fingerprint other = base;
  other.cores = 1;
  EXPECT_NE(fingerprint_key(other), key);
  other = base, other.l3_bytes = 16 << 20;
  EXPECT_NE(fingerprint_key(other), key);
  other = base, other.facts.stepping = 2;
  EXPECT_NE(fingerprint_key(other), key);
  other = base, other.facts.features.pop_back();
  EXPECT_NE(fingerprint_key(other), key);
}

TEST(Processor, ThisOneHasTheFeaturesOfItsLevel) {
  const CpuFacts& here = cpu_facts();
  EXPECT_TRUE(std::is_sorted(here.features.begin(), here.features.end()));
  EXPECT_FALSE(here.vendor.empty());
}

}  // namespace
}  // namespace tilewright::hw
