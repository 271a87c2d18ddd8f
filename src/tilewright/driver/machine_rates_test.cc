// When kept rates are measured once more: a disturbed reading, some minutes old, not too often.
#include "tilewright/driver/machine_rates.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

namespace tilewright::driver {
namespace {

class KeptRates : public ::testing::Test {
 protected:
  KeptRates() {
    if (const char* value = std::getenv(kName)) before_ = value;
    ::setenv(kName, folder_.c_str(), 1);
    rates_.f32 = 100;
    rates_.l1 = rates_.l2 = rates_.l3 = rates_.dram = {20, 30};
    rates_.tiles = {{DType::F32, 14, 2, 0.78}};
  }
  ~KeptRates() override {
    before_ ? ::setenv(kName, before_->c_str(), 1) : ::unsetenv(kName);
    std::filesystem::remove_all(folder_);
  }
  /// Keeps the rates as if that long ago.
  void keep(std::chrono::minutes ago) {
    ASSERT_TRUE(keep_rates(rates_));
    std::filesystem::last_write_time(*rates_path(),
                                     std::filesystem::file_time_type::clock::now() - ago);
  }

  static constexpr const char* kName = "TILEWRIGHT_CACHE_DIR";
  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("rates_" + std::to_string(::getpid()));
  std::optional<std::string> before_;
  hw::CpuRates rates_;
};

TEST_F(KeptRates, DisturbedOnesAreMeasuredAgainAfterAWhile) {
  EXPECT_FALSE(worth_another_reading(rates_)) << "nothing is kept";
  keep(std::chrono::minutes(1));
  EXPECT_FALSE(worth_another_reading(*kept_rates()));
  keep(std::chrono::minutes(6));
  EXPECT_TRUE(worth_another_reading(*kept_rates()));
}

TEST_F(KeptRates, SoundOnesAndThoseOfManyReadingsStay) {
  rates_.readings = 4;
  keep(std::chrono::minutes(60));
  EXPECT_FALSE(worth_another_reading(*kept_rates()));
  rates_.readings = 1, rates_.tiles[0].share = 0.99;
  keep(std::chrono::minutes(60));
  EXPECT_FALSE(worth_another_reading(*kept_rates()));
}

}  // namespace
}  // namespace tilewright::driver
