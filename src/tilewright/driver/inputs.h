// Values for a model's inputs: from files, or made up.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/driver/input_limits.h"

namespace tilewright::driver {

/// One `--input NAME=SPEC`; SPEC is `@file.npy`, `random`, `zeros` or `ones`.
struct InputSpec {
  std::string name, value;
};
/// errors: Usage.
Result<std::vector<InputSpec>> parse_input_specs(const std::vector<std::string>& texts);

struct InputType {
  std::string name;
  DType dtype;
  Shape shape;
  std::optional<InputLimits> limits = {};  ///< of made-up values
};

/// Within `limits`, whole numbers. Without: floats standard normal, integers 0 to 9, bool fair.
Array random_array(DType dtype, const Shape& shape, uint64_t seed,
                   const std::optional<InputLimits>& limits = {});

/// A value for every input; those not named in `specs` are random, each from its own stream of
/// `seed`. errors: Usage (unknown input, with the nearest), Io, Parse, Invalid (dtype or shape of a
/// file).
Result<std::map<std::string, Array>> make_inputs(const std::vector<InputType>& types,
                                                 const std::vector<InputSpec>& specs,
                                                 uint64_t seed);

}  // namespace tilewright::driver
