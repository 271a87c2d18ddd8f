// Readings from many short bursts, of which those count that nothing interrupted. Both clocks must
// agree on a burst: the wall clock runs on while another program has the core, and the thread's own
// clock may run too short on a virtual machine, whose kernel takes stolen time off it when it
// learns of it, in whatever burst that is.
#pragma once

#include <functional>

namespace tilewright::measure {

/// What bursts are timed by. units: seconds.
struct Clocks {
  std::function<double()> wall;
  std::function<double()> own;  ///< CPU time of the calling thread
};
const Clocks& system_clocks();

/// One burst by both clocks. units: seconds.
struct BurstTime {
  double wall = 0, own = 0;
};
/// Whether both clocks agree within 5 %.
bool undisturbed(const BurstTime& time);
/// Runs `work` once.
BurstTime timed(const Clocks& clocks, const std::function<void()>& work);

/// What bursts say together.
struct BurstReading {
  double rate = 0;    ///< work per ns: of the undisturbed bursts the 99 % quantile; 0: busy
  double spread = 0;  ///< from the median to the rate, as a share of it
  int kept = 0;       ///< undisturbed bursts
  int all = 0;

  bool busy() const { return rate <= 0; }
};

/// Bursts of `work` each for about `seconds`, up to five times as long where fewer than 20 are
/// undisturbed; still fewer: busy. requires: `clocks.wall` goes on.
BurstReading read_bursts(const Clocks& clocks, double work, double seconds,
                         const std::function<BurstTime()>& burst);

/// One rate from two rounds: the larger if they agree within 10 %, else the median with a third.
/// Busy rounds (0) do not count; 0 if there is no other.
double settled(double first, double second, const std::function<double()>& third);

/// Whether two rates differ by no more than `share` of the larger.
bool agree(double a, double b, double share);

}  // namespace tilewright::measure
