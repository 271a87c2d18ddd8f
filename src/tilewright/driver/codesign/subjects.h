// What the verbs of co-design work on: models, tensor expressions, operators of workload files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/codesign/workload.h"
#include "tilewright/driver/subject.h"

namespace tilewright::driver {

/// Exactly one of `graph` and `func` is set.
struct CodesignSubject {
  std::string name;
  std::optional<graph::Graph> graph;  ///< a model
  std::optional<Func> func;           ///< a tensor expression, or an operator by its definition
};

/// errors: as load_subjects; Usage (a package), Unsupported (an operator without a definition).
Result<std::vector<CodesignSubject>> codesign_subjects(const SubjectOptions& options);

/// The layers of all subjects. `order`: of products of three and more factors, from 1; 0: as they
/// are written.
/// errors: as codesign::workload_of; Usage (no such order).
Result<codesign::Workload> joined_workload(const std::vector<CodesignSubject>& subjects, int order);

/// Tells workloads apart: the files' contents and what is chosen of them. errors: Io.
Result<std::string> workload_digest(const SubjectOptions& options, int order);

}  // namespace tilewright::driver
