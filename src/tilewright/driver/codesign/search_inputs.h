// What a search was given: kept beside its results, so that reports can be made of them later.
#pragma once

#include <optional>
#include <string>

#include "tilewright/driver/codesign/search_run.h"
#include "tilewright/driver/subject.h"

namespace tilewright::driver {

struct SearchInputs {
  ModelOptions model;
  int order = 0;      ///< of contraction
  std::string space;  ///< a name or a file
  tune::MappingSearch mapping;
};

/// Its workload and its space; goals are those of nobody yet.
/// errors: as codesign_subjects, joined_workload, codesign::load_space.
Result<SearchSubject> load_search(const SearchInputs& inputs);

/// `folder`/run.json; paths of models, workload and space become absolute. errors: Io.
Status write_inputs(const SearchInputs& inputs, const std::string& folder);
/// errors: Io (none: the search did not end), Parse.
Result<SearchInputs> read_inputs(const std::string& folder);
/// The technology of this name by which the search in `folder` judged. One of the user's own is
/// read from the space's file; none if that is gone or names another one now.
std::optional<codesign::Technology> technology_of(const std::string& folder,
                                                  const std::string& name);

}  // namespace tilewright::driver
