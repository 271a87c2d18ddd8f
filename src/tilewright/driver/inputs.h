// Values for a model's inputs: from files, or made up.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/base/array.h"

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
};

/// Floats: standard normal. Integers: 0 to 9 (valid as indices of most tables). Bool: fair.
Array random_array(DType dtype, const Shape& shape, uint64_t seed);

/// A value for every input; those not named in `specs` are random, each from its own stream of
/// `seed`. errors: Usage (unknown input, with the nearest), Io, Parse, Invalid (dtype or shape of a
/// file).
Result<std::map<std::string, Array>> make_inputs(const std::vector<InputType>& types,
                                                 const std::vector<InputSpec>& specs,
                                                 uint64_t seed);

}  // namespace tilewright::driver
