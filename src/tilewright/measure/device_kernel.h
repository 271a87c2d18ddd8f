// A schedule as code on a GPU: what a worker needs of devices, handed in from above.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/base/result.h"
#include "tilewright/hw/gpu_target.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::measure {

/// One kernel with memory of its own. `operands`: values by parameter, without shape.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  /// Copies all operands to the device, results included. errors: Device.
  virtual Status write(const std::vector<Array>& operands) = 0;
  /// Runs once. units: ns by the device's clock. errors: Device.
  virtual Result<double> run() = 0;
  /// Copies results back. errors: Device.
  virtual Status read(std::vector<Array>& operands) = 0;
};

/// `scheduled` for `target` on `device` (an id). errors: what lowering and emission report; Device,
/// Capacity, Tool.
using LoadForDevice = std::function<Result<std::unique_ptr<DeviceKernel>>(
    const Func& scheduled, const hw::GpuTarget& target, const std::string& device)>;

}  // namespace tilewright::measure
