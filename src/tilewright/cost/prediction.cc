#include "tilewright/cost/prediction.h"

#include <algorithm>

namespace tilewright::cost {

double Prediction::total() const { return std::max({compute, l1, l2, l3, dram}) + pack + join; }

std::string Prediction::bound() const {
  const double most = std::max({compute, l1, l2, l3, dram});
  if (most == compute) return "compute";
  if (most == l1) return "l1";
  if (most == l2) return "l2";
  return most == l3 ? "l3" : "dram";
}

}  // namespace tilewright::cost
