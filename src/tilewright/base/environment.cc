#include "tilewright/base/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>

#include "tilewright/base/names.h"

namespace tilewright {
namespace {

constexpr int kMostThreads = 1024;

bool is_count(const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && value >= 1 && value <= kMostThreads;
}

bool is_switch(const std::string& text) {
  const std::string word = lower_case(text);
  return word == "on" || word == "off";
}

/// What is wrong with the value of a variable, if anything is.
std::optional<Error> problem_of(const Variable& variable, const std::string& value) {
  const bool count = variable.takes == Variable::Takes::Count;
  if (variable.takes == Variable::Takes::Text || (count && is_count(value)) ||
      (!count && is_switch(value)))
    return std::nullopt;
  return Error{ErrorKind::Usage,
               fmt::format("the environment sets {} to '{}'", variable.name, value),
               {},
               count ? fmt::format("it takes a whole number from 1 to {}", kMostThreads)
                     : std::string("it takes on or off"),
               fmt::format("unset {}, or {}={}", variable.name, variable.name, count ? "2" : "off"),
               {}};
}

}  // namespace

const std::vector<Variable>& environment_variables() {
  using Takes = Variable::Takes;
  static const std::vector<Variable> variables = {
      {"TILEWRIGHT_BOARD_ROOT", Takes::Text},     {"TILEWRIGHT_CACHE_DIR", Takes::Text},
      {"TILEWRIGHT_CALIBRATE", Takes::Switch},    {"TILEWRIGHT_CUDA_DEVICE", Takes::Text},
      {"TILEWRIGHT_CUDA_DRIVER", Takes::Text},    {"TILEWRIGHT_LIBCRYPTO", Takes::Text},
      {"TILEWRIGHT_LIBPQ", Takes::Text},          {"TILEWRIGHT_NVDISASM", Takes::Text},
      {"TILEWRIGHT_NVRTC", Takes::Text},          {"TILEWRIGHT_OPENCL", Takes::Text},
      {"TILEWRIGHT_OPENCL_CACHE", Takes::Switch}, {"TILEWRIGHT_OPENCL_DEVICE", Takes::Text},
      {"TILEWRIGHT_PYTHON", Takes::Text},         {"TILEWRIGHT_RECORDS", Takes::Text},
      {"TILEWRIGHT_STORE", Takes::Text},          {"TILEWRIGHT_THREADS", Takes::Count},
      {"TILEWRIGHT_XCLBIN", Takes::Text},         {"TILEWRIGHT_XRT", Takes::Text}};
  return variables;
}

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == 0) return std::nullopt;
  return value;
}

bool environment_off(const std::string& name) {
  return lower_case(environment(name).value_or("")) == "off";
}

Status check_environment() {
  std::vector<Error> problems;
  for (const Variable& variable : environment_variables())
    if (const std::optional<std::string> value = environment(variable.name))
      if (std::optional<Error> problem = problem_of(variable, *value))
        problems.push_back(*std::move(problem));
  if (problems.empty()) return {};
  Error first = std::move(problems.front());
  first.others.assign(std::make_move_iterator(problems.begin() + 1),
                      std::make_move_iterator(problems.end()));
  return tl::unexpected<Error>(std::move(first));
}

std::vector<std::pair<std::string, std::string>> misspelt_variables(
    const std::vector<std::string>& set) {
  // Parts of names are no slips here: other programs of the project have variables of their own.
  constexpr size_t kSlip = 2;
  std::vector<std::string> known;
  for (const Variable& variable : environment_variables()) known.emplace_back(variable.name);
  std::vector<std::pair<std::string, std::string>> misspelt;
  for (const std::string& name : set) {
    if (!name.starts_with("TILEWRIGHT_")) continue;
    const std::string meant = nearest(name, known);
    const size_t distance = edit_distance(name, meant);
    if (distance > 0 && distance <= kSlip) misspelt.emplace_back(name, meant);
  }
  return misspelt;
}

}  // namespace tilewright
