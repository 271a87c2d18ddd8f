#include "tilewright/hw/gpu_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::hw {
namespace {

GpuRates sample() {
  GpuRates rates;
  rates.f32 = 123.456;
  rates.f16 = 0;
  rates.shared = 700;
  rates.l2 = 350;
  rates.dram = 25.5;
  rates.launch_ns = 4321;
  rates.sync_ns = 12;
  return rates;
}

TEST(GpuRates, ATextSaysWhatWasMeasured) {
  GpuRates base;
  base.f64 = 7;
  base.latency_ns = 333;
  const std::string text = gpu_rates_to_json(sample(), "a device");
  const Result<GpuRates> read = gpu_rates_from_json(text, "a device", base);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->known && read->measured);
  EXPECT_DOUBLE_EQ(read->f32, 123.5);  // four digits
  EXPECT_EQ(read->f16, 0);
  EXPECT_EQ(read->launch_ns, 4321);
  EXPECT_EQ(read->f64, 7);
  EXPECT_EQ(read->latency_ns, 333);
  EXPECT_EQ(gpu_rates_to_json(*read, "a device"), text);
}

TEST(GpuRates, RatesOfAnotherDeviceDoNotCount) {
  const Result<GpuRates> read =
      gpu_rates_from_json(gpu_rates_to_json(sample(), "one"), "another", {});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::Package);
}

TEST(GpuRates, BrokenFilesAreRefused) {
  const std::string good = gpu_rates_to_json(sample(), "d");
  const auto without = [&](const std::string& piece, const std::string& instead) {
    std::string text = good;
    text.replace(text.find(piece), piece.size(), instead);
    return text;
  };
  for (const std::string& text :
       {std::string(), std::string("[1]"), good.substr(0, good.size() / 2),
        without("tilewright.gpu_rates", "other"), without("\"rates\"", "\"prices\""),
        without("\"dram\"", "\"tape\""), without("25.5", "-1"), without("25.5", "0"),
        without("25.5", "1e30"), without("25.5", "\"fast\"")}) {
    const Result<GpuRates> read = gpu_rates_from_json(text, "d", {});
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().kind, ErrorKind::Parse) << text;
  }
}

TEST(GpuRates, NarrowFloatsAreComputedInF32) {
  GpuRates rates;
  rates.f32 = 10;
  rates.f64 = 5;
  rates.f16 = 20;
  EXPECT_EQ(rates.peak(DType::F32), 10);
  EXPECT_EQ(rates.peak(DType::F16), 10);
  EXPECT_EQ(rates.peak(DType::F64), 5);
  rates.f64 = 0;
  EXPECT_EQ(rates.peak(DType::F64), 5);
}

}  // namespace
}  // namespace tilewright::hw
