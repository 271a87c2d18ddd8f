// A schedule as code that this process cannot call, on a GPU or another machine: what a worker
// needs of devices, handed in from above.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/base/result.h"
#include "tilewright/hw/targets.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::measure {

/// One kernel with memory of its own. `operands`: values by parameter, without shape.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  /// Copies all operands to the device, results included. errors: Device.
  virtual Status write(const std::vector<Array>& operands) = 0;
  /// Runs `calls` times; the mean. units: ns by the device's clock. errors: Device.
  virtual Result<double> run(int64_t calls) = 0;
  /// Copies results back. errors: Device.
  virtual Status read(std::vector<Array>& operands) = 0;
};

/// `scheduled` for `target`, on so many `threads`, on `device` (an id). errors: what lowering and
/// emission report; Device, Capacity, Tool.
using LoadForDevice = std::function<Result<std::unique_ptr<DeviceKernel>>(
    const Func& scheduled, const hw::Target& target, int threads, const std::string& device)>;

}  // namespace tilewright::measure
