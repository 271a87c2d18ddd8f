// One design of the front of a search: which one is meant, and the folder that it is written to.
#pragma once

#include <string>
#include <vector>

#include "tilewright/driver/codesign/search_run.h"

namespace tilewright::driver {

/// Its place in `front`. `pick`: `knee`, `min:latency`, or the number of an evaluation.
///   errors: Usage.
Result<size_t> picked(const std::string& pick, const std::vector<FrontPoint>& front,
                      const std::vector<std::string>& objectives);

struct PickedOutput {
  std::string folder;
  std::string command;      ///< as typed: packages say it
  bool no_package = false;  ///< the design alone
};

/// The design with what runs on it: hw.toml, technology.toml, rtl/, packages, report.html. `study`:
/// the folder of the search, `key` what it was searched with.
///   errors: Package (the model or the space changed since), Io, Interrupted.
Status write_picked(const std::string& study, const FrontPoint& point,
                    const codesign::StudyKey& key, const PickedOutput& output);

}  // namespace tilewright::driver
