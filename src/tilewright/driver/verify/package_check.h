// What `verify` compares a package with.
#pragma once

#include <vector>

#include "tilewright/driver/subject.h"
#include "tilewright/driver/verify/compare_outputs.h"

namespace tilewright::driver {

/// The package against the outputs that it carries. errors: Usage (it carries none), what running
/// reports.
Result<std::vector<Row>> verify_by_samples(const Subject& subject, const SubjectOptions& options);

/// Whether the package has the inputs and outputs of the model. errors: Package, with the first
/// that differs; Usage (`model` is no ONNX model).
Status check_made_from(const Subject& package, const Subject& model);

}  // namespace tilewright::driver
