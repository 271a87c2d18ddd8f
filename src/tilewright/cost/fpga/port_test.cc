// The port model against bandwidths that AMD published for a U200 (XDMA 201830_2, DDR4-2400,
// 300 MHz; Vitis_Accel_Examples, performance/axi_burst_performance).
#include "tilewright/cost/fpga/port.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/hw/fpga_device_file.h"

namespace tilewright::cost {
namespace {

constexpr double kGiB = 1073741824.0;

struct Reading {
  int bits, beats, outstanding;
  double read, write;  ///< GiB/s
};

// The six constants of FpgaPort were fitted to these: 16 MB.
constexpr Reading kFitted[] = {
    {256, 4, 4, 2.02, 2.67},   {256, 16, 4, 6.81, 6.62},    {256, 32, 4, 8.60, 7.60},
    {256, 4, 32, 8.69, 4.47},  {256, 16, 32, 8.94, 7.15},   {256, 32, 32, 8.94, 7.95},
    {512, 4, 4, 3.93, 5.14},   {512, 16, 4, 13.11, 11.79},  {512, 32, 4, 16.82, 14.69},
    {512, 4, 32, 16.82, 8.94}, {512, 16, 32, 16.83, 14.30}, {512, 32, 32, 16.82, 15.16}};
// These were held out: 16 KB, where the latency of the first burst shows once.
constexpr Reading kHeldOut[] = {
    {256, 4, 4, 2.02, 2.56},   {256, 16, 4, 6.55, 6.31},    {256, 32, 4, 7.80, 6.84},
    {256, 4, 32, 7.79, 4.26},  {256, 16, 32, 7.80, 6.46},   {256, 32, 32, 7.80, 6.84},
    {512, 4, 4, 4.04, 5.18},   {512, 16, 4, 11.68, 8.23},   {512, 32, 4, 13.66, 11.53},
    {512, 4, 32, 13.66, 8.10}, {512, 16, 32, 13.66, 11.50}, {512, 32, 32, 13.66, 11.25}};
constexpr double kFittedBytes = 16 << 20, kHeldOutBytes = 16 << 10;

/// The model's error as a share of the reading, of reads and of writes.
std::pair<double, double> errors(const Reading& row, double bytes, bool first_burst) {
  hw::FpgaDevice u200 = *hw::load_fpga_device("vu9p");
  u200.clock_mhz = 300;
  u200.port.bytes = row.bits / 8;
  u200.port.burst_beats = row.beats;
  u200.port.outstanding = row.outstanding;
  const double once = first_burst ? u200.port.read_latency : 0;
  const auto rate = [&](double cycles) { return bytes * u200.clock_mhz * 1e6 / cycles / kGiB; };
  return {rate(read_runs(u200, 1, bytes).port + once) / row.read - 1,
          rate(write_runs(u200, 1, bytes).port + once) / row.write - 1};
}

TEST(FpgaPort, ReadingsThatItWasFittedTo) {
  for (const Reading& row : kFitted) {
    const auto [read, write] = errors(row, kFittedBytes, false);
    EXPECT_LE(std::abs(read), 0.05) << row.bits << " " << row.beats << "x" << row.outstanding;
    EXPECT_LE(std::abs(write), 0.10) << row.bits << " " << row.beats << "x" << row.outstanding;
  }
}

TEST(FpgaPort, ReadingsHeldOut) {
  for (const Reading& row : kHeldOut) {
    const auto [read, write] = errors(row, kHeldOutBytes, true);
    EXPECT_LE(std::abs(read), 0.10) << row.bits << " " << row.beats << "x" << row.outstanding;
    // The one reading that the form misses: 512 bits, four bursts of 16 beats. The hardware wrote
    // 8.23 GiB/s of 16 KB there, and 11.79 of 16 MB.
    const bool missed = row.bits == 512 && row.beats == 16 && row.outstanding == 4;
    if (missed)
      EXPECT_NEAR(write, 0.294, 0.01);
    else
      EXPECT_LE(std::abs(write), 0.10) << row.bits << " " << row.beats << "x" << row.outstanding;
  }
}

TEST(FpgaPort, RunsAreCutIntoBursts) {
  const hw::FpgaDevice vu9p = *hw::load_fpga_device("vu9p");
  // 33 beats: a burst of 32 and one of a single beat, which the latency of 32 at once covers.
  EXPECT_DOUBLE_EQ(read_runs(vu9p, 1, 33 * 64).port, 32 + 71.0 / 32);
  EXPECT_DOUBLE_EQ(read_runs(vu9p, 10, 64).port, 10 * 71.0 / 32);
  EXPECT_DOUBLE_EQ(write_runs(vu9p, 1, 64).port, 5);
  EXPECT_DOUBLE_EQ(read_runs(vu9p, 1, 1).channel, read_runs(vu9p, 1, 64).channel);
  EXPECT_EQ(read_runs(vu9p, 3, 0).port, 0);
}

}  // namespace
}  // namespace tilewright::cost
