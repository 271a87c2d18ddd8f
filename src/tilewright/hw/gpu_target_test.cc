#include "tilewright/hw/gpu_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace tilewright::hw {
namespace {

TEST(GpuTarget, LimitsFitTogether) {
  std::set<std::string> names;
  for (const GpuTarget& target : all_gpu_targets()) {
    SCOPED_TRACE(target.name);
    EXPECT_TRUE(names.insert(target.name).second);
    EXPECT_EQ(target.arch.empty(), target.language == GpuLanguage::OpenCl);
    EXPECT_TRUE(target.name.starts_with(name(target.language)));
    EXPECT_EQ(target.max_threads % target.warp, 0);
    EXPECT_EQ(target.unit_threads % target.warp, 0);
    EXPECT_GE(target.unit_threads, target.max_threads);
    EXPECT_GT(target.units, 0);
    EXPECT_GE(target.unit_shared_bytes, target.shared_bytes);
    EXPECT_GE(target.unit_blocks, 1);
    EXPECT_GE(target.unit_registers, target.unit_threads * 16);
    // Nearer memories are faster, and a multiply-add needs more than one byte of none of them.
    EXPECT_GE(target.rates.shared, target.rates.l2);
    EXPECT_GT(target.rates.l2, target.rates.dram);
    EXPECT_GT(target.rates.f32, target.rates.dram);
    EXPECT_EQ(target.rates.f16 > 0, target.has_f16);
    const Result<GpuTarget> found = find_gpu_target(target.name);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->arch, target.arch);
    EXPECT_EQ(found->units, target.units);
  }
}

TEST(GpuTarget, CudaAloneIsTheNewest) {
  EXPECT_EQ(find_gpu_target("cuda")->arch, "sm_90a");
  EXPECT_EQ(find_gpu_target("cuda-sm_80")->arch, "sm_80");
  EXPECT_EQ(find_gpu_target("cuda-sm_80")->units, 108);
  EXPECT_TRUE(find_gpu_target("opencl-mali")->has_f16);
  EXPECT_FALSE(find_gpu_target("opencl-mali")->has_f64);
  EXPECT_FALSE(find_gpu_target("opencl")->has_f16);
}

TEST(GpuTarget, UnknownNamesGetTheList) {
  const Result<GpuTarget> target = find_gpu_target("cuda-sm_70");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().kind, ErrorKind::Device);
  EXPECT_THAT(to_string(target.error()),
              testing::HasSubstr("opencl, opencl-mali, cuda, cuda-sm_80, cuda-sm_86"));
}

}  // namespace
}  // namespace tilewright::hw
