#include "tilewright/driver/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/names.h"
#include "tilewright/base/rng.h"

namespace tilewright::driver {
namespace {

Result<Array> make_input(const InputType& type, const std::string& spec, uint64_t seed) {
  if (spec == "random") return random_array(type.dtype, type.shape, seed, type.limits);
  if (spec == "zeros" || spec == "ones") {
    Array array(type.dtype, type.shape);
    if (spec == "ones")
      for (int64_t i = 0; i < array.size(); ++i) array.set(i, 1);
    return array;
  }
  if (!spec.starts_with("@"))
    return fail(ErrorKind::Usage, fmt::format("input {} has the value '{}'", type.name, spec),
                "a value is @file.npy, random, zeros or ones");
  Array array = TW_TRY(read_npy(spec.substr(1)));
  if (array.dtype() != type.dtype || array.shape() != type.shape)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' does not fit input {}", spec.substr(1), type.name),
                fmt::format("the file has {} {}, the model wants {} {}", name(array.dtype()),
                            to_string(array.shape()), name(type.dtype), to_string(type.shape)));
  return array;
}

}  // namespace

Result<std::vector<InputSpec>> parse_input_specs(const std::vector<std::string>& texts) {
  std::vector<InputSpec> specs;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(ErrorKind::Usage, fmt::format("--input '{}' is not NAME=VALUE", text), {},
                  "--input x=@file.npy, or --input x=random");
    specs.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return specs;
}

Array random_array(DType dtype, const Shape& shape, uint64_t seed,
                   const std::optional<InputLimits>& limits) {
  Array array(dtype, shape);
  Rng rng(seed);
  for (int64_t i = 0; i < array.size(); ++i) {
    if (limits) {
      array.set(i,
                static_cast<double>(rng.between(limits->low, std::max(limits->low, limits->high))));
    } else if (is_float(dtype)) {
      array.set(i, rng.normal());
    } else {
      array.set_int(i, rng.below(dtype == DType::Bool ? 2 : 10));
    }
  }
  return array;
}

Result<std::map<std::string, Array>> make_inputs(const std::vector<InputType>& types,
                                                 const std::vector<InputSpec>& specs,
                                                 uint64_t seed) {
  std::vector<std::string> names;
  for (const InputType& type : types) names.push_back(type.name);
  for (const InputSpec& spec : specs)
    if (std::find(names.begin(), names.end(), spec.name) == names.end())
      return fail(ErrorKind::Usage, fmt::format("there is no input '{}'", spec.name),
                  fmt::format("the inputs are {}", fmt::join(names, ", ")),
                  did_you_mean(spec.name, names));
  std::map<std::string, Array> inputs;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string value = "random";
    for (const InputSpec& spec : specs)
      if (spec.name == types[i].name) value = spec.value;
    inputs[types[i].name] = TW_TRY(make_input(types[i], value, seed * 1000003 + i));
  }
  return inputs;
}

}  // namespace tilewright::driver
