// What `verify` says of each output: how far it is from a reference, or that one side lacks it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/driver/verify/known_differences.h"
#include "tilewright/driver/verify/rounding_limit.h"
#include "tilewright/measure/compare.h"

namespace tilewright::driver {

/// Values by name, in the order of the model.
using Named = std::vector<std::pair<std::string, Array>>;

/// One output of one subject against one reference.
struct Row {
  std::string subject, against, output;
  measure::Difference difference;
  std::vector<KnownCause> known;  ///< known differences of the references that it depends on
  std::string node;  ///< `node 'conv_3' (Conv)` that computes it; empty: an output of the model
};

/// How outputs are compared.
struct CompareSettings {
  std::set<std::string> required;               ///< outputs of the model: both sides must have them
  std::map<std::string, RoundingLimit> limits;  ///< by output; others have only their type's limit
  MathMode math = MathMode::Fast;
  bool first_only = false;  ///< stop at the first output that is off
};

/// A row for each value that both sides have, and for each required one that a side lacks (its
/// `problem` says which side).
std::vector<Row> compare_outputs(const std::string& subject, const std::string& against,
                                 const Named& actual, const Named& reference,
                                 const CompareSettings& settings);

}  // namespace tilewright::driver
