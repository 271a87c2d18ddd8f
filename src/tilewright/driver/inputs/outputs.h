// Where the results of a run go, and the classes that score highest in them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/array.h"

namespace tilewright::driver {

using NamedArrays = std::vector<std::pair<std::string, Array>>;

struct OutputOptions {
  std::vector<std::string> files;  ///< each FILE.npy, FILE.npz or NAME=FILE.npy
  std::string folder;              ///< a FOLDER/NAME.npy for every output; empty: none
};

/// The paths among `files`, without names of outputs.
std::vector<std::string> output_paths(const OutputOptions& options);

/// What is written: by output, and all of them together.
struct OutputPlan {
  std::vector<std::string> files;  ///< of each output; empty: not written
  std::string archive;             ///< .npz of all outputs; empty: none
};
/// errors: Usage (unknown output, one file for several, a name that says no format), Io (the folder
/// cannot be made).
Result<OutputPlan> plan_outputs(const OutputOptions& options,
                                const std::vector<std::string>& names);
/// requires: `outputs` in the order of the plan's names. errors: Io, Unsupported (a type that NumPy
/// does not have).
Status write_outputs(const OutputPlan& plan, const NamedArrays& outputs);

/// One of the classes that score highest.
struct Score {
  int64_t row = 0;  ///< image of the batch
  int64_t index = 0;
  double value = 0;
};
/// The `count` highest values of each row of `value`, highest first; NaN last. Extents of 1 apart
/// it has one axis (the classes) or two (rows and classes). errors: Invalid (other shapes).
Result<std::vector<Score>> top_scores(const std::string& name, const Array& value, int64_t count);

/// One label per line of a text file. errors: Io, Parse (an empty file).
Result<std::vector<std::string>> read_labels(const std::string& path);

}  // namespace tilewright::driver
