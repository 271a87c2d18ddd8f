#include "tilewright/driver/fleet/device_use.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tilewright/base/process.h"

namespace tilewright::driver {
namespace {

/// Locks of a cache folder of its own.
class DeviceUseTest : public testing::Test {
 protected:
  DeviceUseTest() {
    if (const char* before = std::getenv("TILEWRIGHT_CACHE_DIR")) before_ = before;
    ::setenv("TILEWRIGHT_CACHE_DIR", folder_.path().c_str(), 1);
  }
  ~DeviceUseTest() override {
    before_ ? ::setenv("TILEWRIGHT_CACHE_DIR", before_->c_str(), 1)
            : ::unsetenv("TILEWRIGHT_CACHE_DIR");
  }

  const TemporaryFolder folder_ = *TemporaryFolder::create();
  std::optional<std::string> before_;
};

TEST_F(DeviceUseTest, CommandsShareADeviceAndWorkersDoNot) {
  {
    const auto first = use_device("cpu"), second = use_device("x86-64-v3");
    ASSERT_TRUE(first && second);
    EXPECT_EQ(take_device("cpu"), nullptr);
    EXPECT_NE(take_device("opencl:0"), nullptr);  // another device
  }
  const auto lease = take_device("cpu");
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(take_device("cpu"), nullptr);
  const auto gpu = use_device("cuda:1");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(take_device("cuda-sm_80"), nullptr);
}

TEST_F(DeviceUseTest, WhoWaitsIsNext) {
  auto lease = take_device("cpu");
  ASSERT_NE(lease, nullptr);
  std::atomic<bool> done = false;
  std::thread command([&] {
    const auto use = use_device("cpu");
    EXPECT_TRUE(use && use->use);
    while (!done) std::this_thread::yield();
  });
  const std::string wish = folder_.file("locks/cpu.wish");
  const auto waiting = [&] {
    const auto lock = LockedFile::try_lock(wish, LockKind::Exclusive);
    return lock && !*lock;
  };
  while (!waiting()) std::this_thread::yield();
  lease.reset();
  EXPECT_EQ(take_device("cpu"), nullptr);
  done = true;
  command.join();
  EXPECT_NE(take_device("cpu"), nullptr);
}

}  // namespace
}  // namespace tilewright::driver
