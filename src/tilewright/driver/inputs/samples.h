// Sample inputs and the outputs expected for them, kept in a package: whoever has the package can
// check that it computes the right numbers on his machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/compile/compile.h"
#include "tilewright/driver/inputs/inputs.h"
#include "tilewright/driver/subject.h"
#include "tilewright/driver/verify/rounding_limit.h"
#include "tilewright/measure/compare.h"
#include "tilewright/runtime/package.h"

namespace tilewright::driver {

/// An input that is made anew from a few numbers, by integer arithmetic, so that it is the same on
/// every machine: whole numbers from `low` to `high`, or, where those are absent, multiples of 1/64
/// from -2 up to 2.
struct SampleInput {
  std::string name;
  uint64_t seed = 0;
  std::optional<int64_t> low = {}, high = {};
};
Array sample_array(const SampleInput& input, DType dtype, const Shape& shape);

/// What an output must be: its elements 0, stride, 2 stride, ... in row-major order.
struct SampleOutput {
  std::string name;
  Shape shape;
  int64_t stride = 1;
  Array values;         ///< rank 1, of the output's element type
  RoundingLimit limit;  ///< what they may differ by besides the rounding of floats
};

struct PackageSamples {
  std::string source;  ///< who computed the outputs: `interpreter` or `package`
  std::vector<SampleInput> inputs;
  std::vector<SampleOutput> outputs;
};

/// PackageSamples of a model that was just compiled. `by`: `interp`, `package`, or `auto`: by the
/// interpreter where that takes no more than about a tenth of a second, else by the compiled code
/// if it runs on this CPU or on the accelerator's functional simulator. Absent where neither can.
/// errors: what running reports.
Result<std::optional<PackageSamples>> make_samples(const Subject& subject,
                                                   const compile::CompiledModel& model,
                                                   const compile::CompileOptions& options,
                                                   const std::string& by);

/// Members of a package, by name, and back. errors: Package (damaged).
Result<std::map<std::string, std::string>> sample_members(const PackageSamples& samples);
Result<std::optional<PackageSamples>> read_samples(const runtime::Package& package);

/// Limits of whole numbers in a package's sample inputs, by input: those of the model it was made
/// from. Nothing for a package without samples.
std::map<std::string, InputLimits> sample_limits(const runtime::Package& package);

/// How far one output is from what is expected.
struct SampleResult {
  std::string output;
  measure::Difference difference;
};
/// Runs the samples. errors: what running reports, Package (they do not fit the program).
Result<std::vector<SampleResult>> check_samples(runtime::Session& session,
                                                const PackageSamples& samples);

/// Writes the package with its samples; says so where it can have none. `by` as above, or `none`.
/// errors: Io, Interrupted.
Status save_with_samples(const std::string& path, const Subject& subject,
                         const compile::CompiledModel& model,
                         const compile::CompileOptions& options, const std::string& by);

}  // namespace tilewright::driver
