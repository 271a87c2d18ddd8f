#include "tilewright/driver/inputs/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "tilewright/base/counted.h"
#include "tilewright/base/file.h"
#include "tilewright/base/names.h"
#include "tilewright/base/npy.h"
#include "tilewright/base/rng.h"
#include "tilewright/driver/inputs/npz.h"
#include "tilewright/driver/inputs/zip.h"

namespace tilewright::driver {
namespace {

using Arrays = std::map<std::string, Array>;

uint64_t seed_of(uint64_t seed, size_t position) { return seed * 1000003 + position; }

bool is_generated(const std::string& value) {
  return value == "random" || value == "zeros" || value == "ones";
}

Array generate(const InputType& type, const std::string& value, uint64_t seed) {
  if (value == "random") return random_array(type.dtype, type.shape, seed, type.limits);
  Array array(type.dtype, type.shape);
  if (value == "ones")
    for (int64_t i = 0; i < array.size(); ++i) array.set(i, 1);
  return array;
}

/// `array` in the input's element type. errors: Invalid (a value that it cannot hold).
Result<Array> cast_to(const InputType& type, const Array& array, const std::string& place) {
  Array result = array.cast(type.dtype);
  for (int64_t i = 0; i < array.size(); ++i) {
    const double from = array.get(i), to = result.get(i);
    const bool rounded = is_float(type.dtype) && (std::isfinite(to) || !std::isfinite(from));
    if (rounded || from == to) continue;
    return fail(
        ErrorKind::Invalid,
        fmt::format("'{}' has the value {}, which {} cannot hold", place, from, name(type.dtype)),
        fmt::format("input {} is {}", type.name, name(type.dtype)));
  }
  return result;
}

/// What would give an array of `shape` the shape `wanted`, if that is simple.
std::string shape_fix(const Shape& shape, const Shape& wanted) {
  Shape longer = shape;
  longer.insert(longer.begin(), 1);
  if (longer == wanted) return "numpy.save(FILE, ARRAY[None]) adds the leading 1";
  if (element_count(shape) == element_count(wanted))
    return "the counts are equal: numpy's transpose or reshape brings them into that order";
  return {};
}

Result<Array> fitted(const InputType& type, Array array, const std::string& place, bool cast) {
  if (array.shape() != type.shape)
    return fail(ErrorKind::Invalid, fmt::format("'{}' does not fit input {}", place, type.name),
                fmt::format("the file has {} {}, the model wants {} {}", name(array.dtype()),
                            to_string(array.shape()), name(type.dtype), to_string(type.shape)),
                shape_fix(array.shape(), type.shape));
  if (array.dtype() == type.dtype) return array;
  if (!cast)
    return fail(
        ErrorKind::Invalid, fmt::format("'{}' does not fit input {}", place, type.name),
        fmt::format("the file has {}, the model wants {}", name(array.dtype()), name(type.dtype)),
        "--cast converts it");
  return cast_to(type, array, place);
}

/// The array of an archive that is meant for an input; nullptr if none is.
const Array* choose(const Arrays& arrays, const InputType& type, size_t position) {
  for (const std::string& name : {type.name, fmt::format("arr_{}", position)})
    if (const auto it = arrays.find(name); it != arrays.end()) return &it->second;
  return nullptr;
}

tl::unexpected<Error> lacks(const std::string& path, const Arrays& arrays,
                            const std::string& wanted) {
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays) names.push_back(name);
  return fail(ErrorKind::Invalid, fmt::format("'{}' has no array for {}", path, wanted),
              fmt::format("its arrays are: {}", fmt::join(names, ", ")),
              "name the arrays as the inputs: numpy.savez(FILE, NAME=ARRAY)");
}

/// What was read of files: options about the other do nothing.
struct ReadKinds {
  bool images = false, arrays = false;
};

Status check_used(const FileOptions& files, const ReadKinds& read) {
  const ImageOptions usual;
  const auto idle = [](const char* option, const char* kind) {
    return fail(ErrorKind::Usage, fmt::format("{} is for {}, and no input is one", option, kind),
                {}, fmt::format("leave {} out", option));
  };
  for (const auto& [option, given] : {std::pair{"--mean", !files.image.mean.empty()},
                                      std::pair{"--scale", !files.image.scale.empty()},
                                      std::pair{"--layout", files.image.layout != usual.layout},
                                      std::pair{"--resize", files.image.resize}})
    if (given && !read.images) return idle(option, "images (.png, .jpg)");
  if (files.cast && !read.arrays) return idle("--cast", "arrays of files (.npy, .npz)");
  return {};
}

/// The value that a file holds for one input.
Result<Array> from_file(const InputType& type, size_t position, const std::string& path,
                        const FileOptions& files, ReadKinds& read) {
  const std::string bytes = TW_TRY(read_file(path));
  (is_image(bytes) ? read.images : read.arrays) = true;
  if (is_image(bytes)) return image_array(bytes, path, type.dtype, type.shape, files.image);
  if (is_zip(bytes)) {
    const Arrays arrays = TW_TRY(parse_npz(bytes, path));
    const Array* array = choose(arrays, type, position);
    if (array == nullptr && arrays.size() == 1) array = &arrays.begin()->second;
    if (array == nullptr) return lacks(path, arrays, fmt::format("input '{}'", type.name));
    return fitted(type, *array, path, files.cast);
  }
  if (!bytes.starts_with("\x93NUMPY"))
    return fail(ErrorKind::Parse, fmt::format("the format of '{}' is unknown", path), {},
                "give a .npy, .npz, .png or .jpg file");
  return fitted(type, TW_TRY(parse_npy(bytes, path)), path, files.cast);
}

/// All inputs that an archive has arrays for.
Result<Arrays> from_archive(const std::vector<InputType>& types, const std::string& path,
                            const FileOptions& files) {
  const Arrays arrays = TW_TRY(read_npz(path));
  Arrays inputs;
  for (size_t i = 0; i < types.size(); ++i) {
    const Array* array = choose(arrays, types[i], i);
    if (array == nullptr && types.size() == 1 && arrays.size() == 1)
      array = &arrays.begin()->second;
    if (array != nullptr)
      inputs[types[i].name] =
          TW_TRY(fitted(types[i], *array, path + ":" + types[i].name, files.cast));
  }
  if (inputs.empty()) return lacks(path, arrays, "any input");
  return inputs;
}

}  // namespace

Result<std::vector<InputSpec>> parse_input_specs(const std::vector<std::string>& texts) {
  std::vector<InputSpec> specs;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (text.starts_with("@") || is_generated(text)) {
      specs.push_back({"", text});
      continue;
    }
    if (equals == std::string::npos || equals == 0)
      return fail(ErrorKind::Usage, fmt::format("'{}' is not NAME=VALUE", text), {},
                  "--input x=@file.npy, --input @file.npy, or --input x=random");
    specs.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return specs;
}

Result<size_t> find_named(const std::vector<std::string>& names, const std::string& name,
                          const char* what) {
  if (const auto it = std::find(names.begin(), names.end(), name); it != names.end())
    return static_cast<size_t>(it - names.begin());
  size_t position = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), position);
  const bool number = error == std::errc() && end == name.data() + name.size();
  if (number && position < names.size()) return position;
  return fail(ErrorKind::Usage, fmt::format("there is no {} '{}'", what, name),
              number ? fmt::format("the model has {}, counted from 0: {}",
                                   counted(names.size(), what), fmt::join(names, ", "))
                     : fmt::format("the {}s are {}", what, fmt::join(names, ", ")),
              number ? "" : did_you_mean(name, names));
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

Result<std::map<std::string, Array>> given_inputs(const std::vector<InputType>& types,
                                                  const std::vector<InputSpec>& specs,
                                                  uint64_t seed, const FileOptions& files) {
  std::vector<std::string> names;
  for (const InputType& type : types) names.push_back(type.name);
  Arrays inputs;
  ReadKinds read;
  const auto add = [&](const std::string& name, Array value) -> Status {
    if (!inputs.emplace(name, std::move(value)).second)
      return fail(ErrorKind::Usage, fmt::format("input '{}' is given twice", name));
    return {};
  };
  size_t in_turn = 0;
  for (const InputSpec& spec : specs) {
    const bool from_disk = spec.value.starts_with("@");
    const std::string path = from_disk ? spec.value.substr(1) : "";
    if (spec.name.empty() && from_disk && is_zip(TW_TRY(read_file(path)))) {
      read.arrays = true;
      for (auto& [name, value] : TW_TRY(from_archive(types, path, files)))
        TW_TRY_STATUS(add(name, value));
      continue;
    }
    const size_t i = TW_TRY(
        find_named(names, spec.name.empty() ? std::to_string(in_turn++) : spec.name, "input"));
    if (!from_disk && !is_generated(spec.value))
      return fail(ErrorKind::Usage,
                  fmt::format("input {} has the value '{}'", names[i], spec.value),
                  "a value is @FILE, random, zeros or ones",
                  std::filesystem::exists(spec.value)
                      ? fmt::format("--input {}=@{} reads that file", names[i], spec.value)
                      : "");
    TW_TRY_STATUS(add(names[i], from_disk ? TW_TRY(from_file(types[i], i, path, files, read))
                                          : generate(types[i], spec.value, seed_of(seed, i))));
  }
  TW_TRY_STATUS(check_used(files, read));
  return inputs;
}

std::vector<std::string> make_up(const std::vector<InputType>& types,
                                 std::map<std::string, Array>& inputs, uint64_t seed) {
  std::vector<std::string> made;
  for (size_t i = 0; i < types.size(); ++i) {
    if (inputs.count(types[i].name) > 0) continue;
    inputs[types[i].name] = generate(types[i], "random", seed_of(seed, i));
    made.push_back(types[i].name);
  }
  return made;
}

Result<std::map<std::string, Array>> make_inputs(const std::vector<InputType>& types,
                                                 const std::vector<InputSpec>& specs, uint64_t seed,
                                                 const FileOptions& files) {
  Arrays inputs = TW_TRY(given_inputs(types, specs, seed, files));
  make_up(types, inputs, seed);
  return inputs;
}

}  // namespace tilewright::driver
