// Options that have no effect: a package was compiled before they were given.
#pragma once

#include "tilewright/driver/subject.h"

namespace tilewright::driver {

/// A note for each package with the options, of those that say how a model is compiled, that it
/// cannot follow.
void note_ignored(const std::vector<Subject>& subjects, const SubjectOptions& options);

}  // namespace tilewright::driver
