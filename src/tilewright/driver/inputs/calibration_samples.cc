#include "tilewright/driver/inputs/calibration_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "tilewright/base/names.h"
#include "tilewright/driver/inputs/inputs.h"
#include "tilewright/driver/inputs/npz.h"

namespace tilewright::driver {
namespace {

constexpr int kRandomSamples = 8;

const tensor::TensorType& type_of(const graph::Graph& graph, graph::ValueId id) {
  return graph.values[static_cast<size_t>(id)].type;
}

/// N of `random:N`; nothing if `source` is a file.
Result<std::optional<int>> random_count(const std::string& source) {
  if (source == "random") return std::optional<int>(kRandomSamples);
  if (!source.starts_with("random:")) return std::optional<int>();
  const std::string_view digits = std::string_view(source).substr(7);
  int count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || count < 1 || count > 100000)
    return fail(ErrorKind::Usage, fmt::format("--quantize {} is not random:N", source), {},
                "--quantize random:8");
  return std::optional<int>(count);
}

compile::Samples random_samples(const graph::Graph& graph, int count, uint64_t seed) {
  compile::Samples samples(static_cast<size_t>(count));
  const std::map<std::string, InputLimits> limits = input_limits(graph);
  for (size_t s = 0; s < samples.size(); ++s)
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const auto& value = graph.values[static_cast<size_t>(graph.inputs[i])];
      const auto found = limits.find(value.name);
      samples[s][value.name] =
          random_array(value.type.dtype, value.type.shape, seed * 1000003 + s * 1009 + i,
                       found == limits.end() ? std::optional<InputLimits>() : found->second);
    }
  return samples;
}

/// The shape of one sample as files may hold it: with or without a batch axis of 1.
bool is_sample_of(const Shape& sample, const Shape& input) {
  if (sample == input) return true;
  return !input.empty() && input[0] == 1 && Shape(input.begin() + 1, input.end()) == sample;
}

Error wrong(std::string what, std::string why = {}, std::string fix = {}) {
  return Error{ErrorKind::Invalid, std::move(what), {}, std::move(why), std::move(fix), {}};
}

/// Cuts the arrays of a file along their first axis; problems are collected.
compile::Samples cut_samples(const graph::Graph& graph, const std::map<std::string, Array>& arrays,
                             std::vector<Error>& problems) {
  compile::Samples samples;
  std::vector<std::string> names;
  for (graph::ValueId id : graph.inputs) {
    const std::string& input = graph.values[static_cast<size_t>(id)].name;
    const tensor::TensorType& type = type_of(graph, id);
    names.push_back(input);
    const auto it = arrays.find(input);
    if (it == arrays.end()) {
      problems.push_back(wrong(fmt::format("there is no array for input '{}'", input)));
      continue;
    }
    const Array& array = it->second;
    const Shape rest(array.shape().begin() + !array.shape().empty(), array.shape().end());
    if (array.shape().empty() || !is_sample_of(rest, type.shape) || array.dtype() != type.dtype) {
      problems.push_back(
          wrong(fmt::format("array '{}' does not hold samples of the input", input),
                fmt::format("it is {} {}, samples of {} {} are needed", name(array.dtype()),
                            to_string(array.shape()), name(type.dtype), to_string(type.shape)),
                "the first axis counts samples"));
      continue;
    }
    int64_t nonfinite = 0;
    for (int64_t i = 0; is_float(array.dtype()) && i < array.size(); ++i)
      nonfinite += !std::isfinite(array.get(i));
    if (nonfinite > 0) {
      problems.push_back(wrong(
          fmt::format("array '{}' has {} elements that are not finite numbers", input, nonfinite)));
      continue;
    }
    const auto count = static_cast<size_t>(array.shape()[0]);
    if (samples.empty()) samples.resize(count);
    if (samples.size() != count) {
      problems.push_back(wrong(
          fmt::format("array '{}' has {} samples, others have {}", input, count, samples.size())));
      continue;
    }
    for (size_t s = 0; s < count; ++s) {
      Array sample(type.dtype, type.shape);
      std::memcpy(sample.data(),
                  static_cast<const char*>(array.data()) + s * static_cast<size_t>(sample.bytes()),
                  static_cast<size_t>(sample.bytes()));
      samples[s][input] = std::move(sample);
    }
  }
  for (const auto& [array, value] : arrays)
    if (std::find(names.begin(), names.end(), array) == names.end())
      problems.push_back(
          wrong(fmt::format("the model has no input '{}'", array), {}, did_you_mean(array, names)));
  return samples;
}

}  // namespace

Result<compile::Samples> load_samples(const std::string& source, uint64_t seed,
                                      const graph::Graph& graph) {
  if (const std::optional<int> count = TW_TRY(random_count(source)))
    return random_samples(graph, *count, seed);
  std::vector<Error> problems;
  compile::Samples samples = cut_samples(graph, TW_TRY(read_npz(source)), problems);
  if (problems.empty() && samples.empty()) problems.push_back(wrong("there are no samples"));
  if (problems.empty()) return samples;
  Error first = std::move(problems.front());
  first.others.assign(std::make_move_iterator(problems.begin() + 1),
                      std::make_move_iterator(problems.end()));
  return tl::unexpected<Error>(std::move(first).at(source));
}

}  // namespace tilewright::driver
