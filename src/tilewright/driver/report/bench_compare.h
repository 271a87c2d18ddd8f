// Which of two is faster, and how sure that is.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tilewright::driver {

/// Time of one side as a share of the other's, over rounds in which both ran in turn.
struct Comparison {
  double ratio = 1;          ///< median; below 1: the new side is faster
  double low = 1, high = 1;  ///< 95 % interval of the median
  bool faster() const { return high < 1; }
  bool slower() const { return low > 1; }
};

/// `ratios`: new over old, one per round. By ranks alone, so that a disturbed round counts as one.
/// requires: at least 6 of them.
Comparison compare_rounds(std::vector<double> ratios);

/// One sentence: `faster: 0.912 of its time (95 %: 0.903 to 0.921)`.
std::string sentence(const Comparison& comparison);
nlohmann::ordered_json to_json(const Comparison& comparison);

}  // namespace tilewright::driver
