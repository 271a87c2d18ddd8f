#include "tilewright/measure/bursts.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tilewright::measure {
namespace {

constexpr double kDisturbed = 0.05;  ///< clocks that differ by more were not on the same work
constexpr size_t kEnough = 20;       ///< undisturbed bursts of a reading
constexpr double kMostTimes = 5;     ///< the time a reading may take where few are undisturbed
constexpr double kQuantile = 0.99;
constexpr double kRounds = 0.10;  ///< two rounds of a quiet machine differ by less

double seconds_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// requires: values are sorted, and there are some.
double quantile(const std::vector<double>& values, double share) {
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace

const Clocks& system_clocks() {
  static const Clocks clocks{[] { return seconds_of(CLOCK_MONOTONIC); },
                             [] { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }};
  return clocks;
}

bool agree(double a, double b, double share) {
  return std::abs(a - b) <= share * std::max(std::abs(a), std::abs(b));
}

bool undisturbed(const BurstTime& time) {
  return time.wall > 0 && time.own > 0 && agree(time.wall, time.own, kDisturbed);
}

BurstTime timed(const Clocks& clocks, const std::function<void()>& work) {
  const double wall = clocks.wall(), own = clocks.own();
  work();
  const double own_end = clocks.own();
  return {clocks.wall() - wall, own_end - own};
}

BurstReading read_bursts(const Clocks& clocks, double work, double seconds,
                         const std::function<BurstTime()>& burst) {
  std::vector<double> rates;
  BurstReading reading;
  const double start = clocks.wall();
  for (double spent = 0;
       spent < seconds || (rates.size() < kEnough && spent < kMostTimes * seconds);
       spent = clocks.wall() - start) {
    const BurstTime time = burst();
    ++reading.all;
    if (undisturbed(time)) rates.push_back(work / (1e9 * std::max(time.wall, time.own)));
  }
  reading.kept = static_cast<int>(rates.size());
  if (rates.size() < kEnough) return reading;
  std::sort(rates.begin(), rates.end());
  reading.rate = quantile(rates, kQuantile);
  reading.spread = 1 - quantile(rates, 0.5) / reading.rate;
  return reading;
}

double settled(double first, double second, const std::function<double()>& third) {
  if (first > 0 && second > 0 && agree(first, second, kRounds)) return std::max(first, second);
  std::vector<double> rounds;
  for (const double round : {first, second, third()})
    if (round > 0) rounds.push_back(round);
  if (rounds.empty()) return 0;
  std::sort(rounds.begin(), rounds.end());
  return quantile(rounds, 0.5);
}

}  // namespace tilewright::measure
