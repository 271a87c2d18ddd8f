// How the options of a verb say that models are imported.
#pragma once

#include "tilewright/driver/subject.h"

namespace tilewright::driver {

/// errors: Usage (what is not written as asked), and those of reading a file.
Result<graph::ImportOptions> import_options(const SubjectOptions& options);

}  // namespace tilewright::driver
