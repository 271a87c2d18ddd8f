// Quotas of control groups, from files as Linux lays them out.
#include "tilewright/base/available_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tilewright {
namespace {

namespace fs = std::filesystem;

class Groups : public ::testing::Test {
 protected:
  ~Groups() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  std::optional<double> quota() const { return cpu_quota(root_); }

  const std::string root_ = ::testing::TempDir() + "groups_" + std::to_string(::getpid());
};

TEST_F(Groups, WithoutFilesThereIsNoLimit) { EXPECT_EQ(quota(), std::nullopt); }

TEST_F(Groups, TheLeastOfAGroupAndThoseAboveCounts) {
  write("/proc/self/cgroup", "0::/user.slice/job");
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000");
  EXPECT_EQ(quota(), std::nullopt);
  write("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000");
  EXPECT_EQ(quota(), 1.5);
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "400000 100000");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(Groups, AContainerSeesItsOwnGroupAsTheRoot) {
  write("/proc/self/cgroup", "0::/");
  write("/sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(Groups, VersionOneIsReadToo) {
  write("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/0123");
  write("/sys/fs/cgroup/memory/x/cpu.cfs_quota_us", "1000");
  EXPECT_EQ(quota(), std::nullopt);
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), std::nullopt);
  // The path is the host's; the container's folder is the mount itself.
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000");
  EXPECT_EQ(quota(), 3);
}

TEST_F(Groups, BrokenLinesAreNoLimit) {
  write("/proc/self/cgroup", "nonsense\n0::/a\n::\n");
  write("/sys/fs/cgroup/a/cpu.max", "many");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST(UsableCpus, AreTheLesserOfAffinityAndQuota) {
  EXPECT_EQ(usable_cpus(8, std::nullopt), 8);
  EXPECT_EQ(usable_cpus(8, 2.4), 2);
  EXPECT_EQ(usable_cpus(8, 2.6), 3);
  EXPECT_EQ(usable_cpus(8, 0.1), 1);
  EXPECT_EQ(usable_cpus(2, 64), 2);
  EXPECT_EQ(usable_cpus(0, std::nullopt), 1);
}

TEST(UsableCpus, FollowTheAffinityOfTheThread) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  CPU_SET(allowed_cpus().front(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

}  // namespace
}  // namespace tilewright
