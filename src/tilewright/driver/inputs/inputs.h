// Values for a model's inputs: from files, or made up.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/driver/inputs/image.h"
#include "tilewright/driver/inputs/input_limits.h"

namespace tilewright::driver {

/// One `--input NAME=VALUE`; VALUE is `@FILE`, `random`, `zeros` or `ones`. NAME may be the
/// position of the input, from 0; without `NAME=` (an empty name) inputs are meant in turn.
struct InputSpec {
  std::string name, value;
};
/// errors: Usage.
Result<std::vector<InputSpec>> parse_input_specs(const std::vector<std::string>& texts);

/// How the contents of files become values.
struct FileOptions {
  bool cast =
      false;  ///< convert to the input's element type where no value is lost but by rounding
  ImageOptions image;
};

struct InputType {
  std::string name;
  DType dtype;
  Shape shape;
  std::optional<InputLimits> limits = {};  ///< of made-up values
};

/// Within `limits`, whole numbers. Without: floats standard normal, integers 0 to 9, bool fair.
Array random_array(DType dtype, const Shape& shape, uint64_t seed,
                   const std::optional<InputLimits>& limits = {});

/// The inputs that `specs` name. Files are known by how they begin: .npy, .npz, PNG, JPEG. Of an
/// .npz an input takes the array of its name, `arr_N` by its position, or the only one; an .npz
/// without a name gives all inputs that it has arrays for. errors: Usage (unknown input, with the
/// nearest; one given twice; options for files of a kind that none is), Io, Parse, Invalid (dtype
/// or shape of a file).
Result<std::map<std::string, Array>> given_inputs(const std::vector<InputType>& types,
                                                  const std::vector<InputSpec>& specs,
                                                  uint64_t seed, const FileOptions& files = {});

/// Adds random values for the inputs that are not in `inputs`, each from its own stream of `seed`;
/// returns their names.
std::vector<std::string> make_up(const std::vector<InputType>& types,
                                 std::map<std::string, Array>& inputs, uint64_t seed);

/// A value for every input: `given_inputs`, then `make_up`. errors: as given_inputs.
Result<std::map<std::string, Array>> make_inputs(const std::vector<InputType>& types,
                                                 const std::vector<InputSpec>& specs, uint64_t seed,
                                                 const FileOptions& files = {});

/// The position of the value called `name`, or of that number. errors: Usage, with the nearest;
/// `what` says what it is ("input").
Result<size_t> find_named(const std::vector<std::string>& names, const std::string& name,
                          const char* what);

}  // namespace tilewright::driver
