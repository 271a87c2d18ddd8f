// Code for devices other than the CPU: the runtime hands bytes and tensors over, the device's own
// library does the rest.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/base/result.h"
#include "tilewright/runtime/program.h"

namespace tilewright::runtime {

/// A program loaded on a device, with its constants.
class Launch {
 public:
  virtual ~Launch() = default;
  /// Dense arrays in the order of the step's arguments; outputs are written in place.
  /// errors: Device, Invalid, Limit.
  virtual Status run(const std::vector<Array>& inputs, std::vector<Array>& outputs) = 0;
};

/// Loads `code` for the device `info` names. errors: Device, Package.
using LaunchLoader = std::function<Result<std::unique_ptr<Launch>>(
    const std::string& name, const LaunchInfo& info, std::string_view code)>;
/// The bytes of a launch, valid as long as the session.
using LaunchCode = std::function<std::string_view(const std::string& name)>;

}  // namespace tilewright::runtime
