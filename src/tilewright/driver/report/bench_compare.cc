#include "tilewright/driver/report/bench_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/base/check.h"

namespace tilewright::driver {
namespace {

/// The rank from either end between which the median lies with 95 %: the number of rounds below it
/// is a binomial count of fair coins.
size_t rank_of_interval(size_t rounds) {
  double share = std::pow(0.5, static_cast<double>(rounds)), below = 0;
  size_t rank = 0;
  for (; below + share <= 0.025; ++rank) {
    below += share;
    share *= static_cast<double>(rounds - rank) / static_cast<double>(rank + 1);
  }
  return rank - 1;
}

}  // namespace

Comparison compare_rounds(std::vector<double> ratios) {
  TW_CHECK(ratios.size() >= 6, "{} rounds say nothing", ratios.size());
  std::sort(ratios.begin(), ratios.end());
  const size_t rank = rank_of_interval(ratios.size()), middle = ratios.size() / 2;
  const double median =
      ratios.size() % 2 == 1 ? ratios[middle] : (ratios[middle - 1] + ratios[middle]) / 2;
  return {median, ratios[rank], ratios[ratios.size() - 1 - rank]};
}

std::string sentence(const Comparison& c) {
  return fmt::format("{}: {:.3f} of its time (95 %: {:.3f} to {:.3f})",
                     c.faster()   ? "faster"
                     : c.slower() ? "slower"
                                  : "no difference",
                     c.ratio, c.low, c.high);
}

nlohmann::ordered_json to_json(const Comparison& c) {
  return {{"verdict", c.faster()   ? "faster"
                      : c.slower() ? "slower"
                                   : "no difference"},
          {"ratio", c.ratio},
          {"interval", {c.low, c.high}},
          {"confidence", 0.95}};
}

}  // namespace tilewright::driver
