#include "tilewright/cost/prediction.h"

#include <algorithm>
#include <array>

namespace tilewright::cost {

double Prediction::total() const {
  std::array<double, 4> times = {compute, l2, l3, dram};
  std::sort(times.begin(), times.end());
  const double together = times[3] + kUnhidden * (times[0] + times[1] + times[2]);
  return std::max(l1, together) + pack + join;
}

std::string Prediction::bound() const {
  const double most = std::max({compute, l1, l2, l3, dram});
  if (most == compute) return "compute";
  if (most == l1) return "l1";
  if (most == l2) return "l2";
  return most == l3 ? "l3" : "dram";
}

}  // namespace tilewright::cost
