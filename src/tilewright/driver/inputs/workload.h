// Operators of a workload file as subjects.
#pragma once

#include <vector>

#include "tilewright/driver/subject.h"

namespace tilewright::driver {

/// The cases that --suite and --id select: one-node graphs whose weights are constants made from
/// the seed. errors: Io, Parse, Usage (no such suite or id, with the nearest), Invalid.
Result<std::vector<Subject>> load_workload(const SubjectOptions& options);

}  // namespace tilewright::driver
