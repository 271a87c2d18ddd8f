// The launch loop on a device with a cache: what the host does not flush, it does not see.
#include "tilewright/accel/common/device.h"

#include <gtest/gtest.h>

#include <tuple>

namespace tilewright::accel {
namespace {

struct Counts {
  uint64_t insns = 0, sum = 0;
  static constexpr auto fields() {
    return std::tuple{field("insns", &Counts::insns), field("sum", &Counts::sum)};
  }
};

/// An instruction adds a byte of DRAM to the next one, and sums up what it reads.
class CachedDevice : public Device<uint64_t, Counts> {
 public:
  std::string name() const override { return "cached"; }
  Status write(uint64_t address, std::string_view bytes) override {
    cache_.replace(address, bytes.size(), bytes);
    return {};
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    cache_.copy(into, bytes, address);
    return {};
  }
  Status flush(uint64_t address, uint64_t bytes) override {
    dram_.replace(address, bytes, cache_, address, bytes);
    return {};
  }
  Status invalidate(uint64_t address, uint64_t bytes) override {
    cache_.replace(address, bytes, dram_, address, bytes);
    return {};
  }
  Result<LaunchReport<Counts>> launch(const std::vector<uint64_t>& insns,
                                      const LaunchOptions& options) override {
    if (insns.empty()) return fail(ErrorKind::Invalid, "nothing to do");
    LaunchReport<Counts> report;
    for (const uint64_t at : insns) {
      report.counters.sum += static_cast<uint64_t>(dram_[at]);
      dram_[at + 1] = static_cast<char>(dram_[at + 1] + dram_[at]);
    }
    report.counters.insns = insns.size();
    report.cycles = 10 * insns.size();
    if (options.record_times) report.times.resize(insns.size());
    return report;
  }

 private:
  std::string cache_ = std::string(3 * kPage, '\0'), dram_ = cache_;
};

Program<uint64_t> two_runs() {
  Program<uint64_t> program;
  program.image = std::string("\x05\x07\x00\x00", 4);
  program.runs = {{{}, {kPage, kPage + 1}, {}}, {{{kPage + 1, "\x20"}}, {kPage + 1}, {}}};
  return program;
}

TEST(LaunchRuns, FlushesPatchesAddsUpAndReadsBack) {
  CachedDevice device;
  const Program<uint64_t> program = two_runs();
  ASSERT_TRUE(write_image(device, program));
  std::vector<std::string> seen;
  const auto report = launch_runs(device, program, {.record_times = true}, [&](size_t run) {
    EXPECT_EQ(run, seen.size());
    seen.emplace_back(4, '\0');
    return device.read(kPage, seen.back().data(), 4);
  });
  ASSERT_TRUE(report) << to_string(report.error());
  // 5 + 7 = 12, 0 + 12; then the patch: 12 + 32.
  const std::vector<std::string> expected = {std::string("\x05\x0c\x0c\0", 4),
                                             std::string("\x05\x20\x2c\0", 4)};
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(report->counters.insns, 3u);
  EXPECT_EQ(report->counters.sum, 5u + 12 + 32);
  EXPECT_EQ(report->cycles, 30u);
  EXPECT_EQ(report->times.size(), 1u) << "of the last run";
}

TEST(LaunchRuns, ErrorsNameTheRun) {
  CachedDevice device;
  Program<uint64_t> program = two_runs();
  program.runs[1].insns.clear();
  const auto report = launch_runs(device, program);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().place, "run 1");
  const auto stopped = launch_runs(device, two_runs(), {},
                                   [](size_t) -> Status { return fail(ErrorKind::Io, "enough"); });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().what, "enough");
}

}  // namespace
}  // namespace tilewright::accel
