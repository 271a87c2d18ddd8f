// What commands ask of a device of the fleet, whatever --worker says: `any` is nothing that could
// not do the work.
//
// Example: `run vta.twm --worker any` takes no processor, since the package's code is for VTA, and
// `run M.onnx --worker any` no device `model`, which runs nothing.
#pragma once

#include "tilewright/driver/subject.h"
#include "tilewright/fleet/device_spec.h"

namespace tilewright::driver {

/// To run packages: those that the options name, or what is compiled for their target. Files that
/// cannot be opened ask nothing: who reads them reports it.
fleet::Need package_need(const SubjectOptions& options);
/// Whether a device answers by a model: it measures candidates, and runs no packages.
bool is_model(const fleet::Device& device);
/// To measure candidates of a search.
fleet::Need measuring_need(const SubjectOptions& options);

}  // namespace tilewright::driver
