// What `verify` prints: a row per compared output, and what all of them say together.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tilewright/driver/verify/compare_outputs.h"
#include "tilewright/driver/verify/quantization_loss.h"

namespace tilewright::driver {

class VerifyReport {
 public:
  /// `per_node`: every node of a model is a row; those that agree are only counted.
  explicit VerifyReport(bool per_node);

  /// `place`: the device of a fleet that computed it; empty: this machine.
  void add(const Row& row, const std::string& place);
  void add(const QuantizationLoss& loss, const std::string& subject);

  /// Whether all rows agree.
  bool good() const { return good_; }
  nlohmann::ordered_json document();
  /// `losses_only`: nothing else was asked for.
  std::string text(bool losses_only) const;

 private:
  void add_notes(const Row& row);

  bool per_node_, good_ = true;
  nlohmann::ordered_json json_;
  std::vector<std::vector<std::string>> rows_;
  std::set<std::string> notes_;
  std::string losses_;
  std::vector<std::string> first_off_;
  std::map<std::string, int> compared_;  ///< values, by what they were compared with
};

}  // namespace tilewright::driver
