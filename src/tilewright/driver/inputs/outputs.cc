#include "tilewright/driver/inputs/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "tilewright/base/file.h"
#include "tilewright/base/npy.h"
#include "tilewright/driver/inputs/inputs.h"
#include "tilewright/driver/inputs/npz.h"

namespace tilewright::driver {
namespace {

namespace fs = std::filesystem;

/// A file name for an output: characters that files dislike are replaced.
std::string file_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.') c = '_';
  return name + ".npy";
}

/// A name that does not say what to write is refused, but for pipes and devices: they get .npy.
Status check_file(const std::string& path) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (fs::is_directory(there))
    return fail(ErrorKind::Usage, fmt::format("'{}' is a folder", path), {},
                fmt::format("--output-dir {} writes every output there", path));
  const bool special = path == "-" || (fs::exists(there) && !fs::is_regular_file(there));
  if (special || path.ends_with(".npy") || path.ends_with(".npz")) return {};
  return fail(ErrorKind::Usage, fmt::format("'{}' does not say what to write", path), {},
              fmt::format("-o FILE.npy, -o FILE.npz, or --output-dir {}", path));
}

/// `NAME=FILE` in two; without a name the first is empty.
std::pair<std::string, std::string> split_name(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// One file for each output: of two, one would be left without a word.
Status set_once(std::string& file, const std::string& path, const std::string& what) {
  if (!file.empty())
    return fail(ErrorKind::Usage, fmt::format("-o names two files for {}", what),
                fmt::format("they are '{}' and '{}'", file, path), "leave one of them out");
  file = path;
  return {};
}

}  // namespace

std::vector<std::string> output_paths(const OutputOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& text : options.files) paths.push_back(split_name(text).second);
  return paths;
}

Result<OutputPlan> plan_outputs(const OutputOptions& options,
                                const std::vector<std::string>& names) {
  OutputPlan plan;
  plan.files.resize(names.size());
  for (const std::string& text : options.files) {
    const auto [name, path] = split_name(text);
    TW_TRY_STATUS(check_file(path));
    if (!name.empty()) {
      const size_t i = TW_TRY(find_named(names, name, "output"));
      if (path.ends_with(".npz"))
        return fail(ErrorKind::Usage,
                    fmt::format("a .npz file takes all outputs, not '{}' alone", name), {},
                    fmt::format("-o {}", path));
      TW_TRY_STATUS(set_once(plan.files[i], path, "output " + names[i]));
    } else if (path.ends_with(".npz")) {
      TW_TRY_STATUS(set_once(plan.archive, path, "all outputs"));
    } else if (names.size() == 1) {
      TW_TRY_STATUS(set_once(plan.files[0], path, "output " + names[0]));
    } else {
      return fail(ErrorKind::Usage,
                  fmt::format("there are {} outputs, '{}' holds one", names.size(), path), {},
                  fmt::format("-o {}={}, -o FILE.npz for all, or --output-dir FOLDER",
                              names.empty() ? "NAME" : names[0], path));
    }
  }
  if (options.folder.empty()) return plan;
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error)
    return fail(ErrorKind::Io, fmt::format("cannot make the folder '{}'", options.folder),
                error.message());
  std::set<std::string> used;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string file = file_name(names[i]);
    while (!used.insert(file).second) file = "_" + file;
    if (plan.files[i].empty()) plan.files[i] = options.folder + "/" + file;
  }
  return plan;
}

Status write_outputs(const OutputPlan& plan, const NamedArrays& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!plan.files[i].empty()) TW_TRY_STATUS(write_npy(plan.files[i], outputs[i].second));
  if (plan.archive.empty()) return {};
  return write_file(plan.archive, TW_TRY(npz_bytes({outputs.begin(), outputs.end()})));
}

Result<std::vector<Score>> top_scores(const std::string& name, const Array& value, int64_t count) {
  Shape shape = value.shape();
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  if (shape.empty() || shape.size() > 2)
    return fail(ErrorKind::Invalid, fmt::format("output {} holds no scores of classes", name),
                fmt::format("its shape is {}", to_string(value.shape())));
  const int64_t rows = shape.size() == 2 ? shape[0] : 1, classes = shape.back();
  std::vector<Score> scores;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<Score> all(static_cast<size_t>(classes));
    for (int64_t i = 0; i < classes; ++i)
      all[static_cast<size_t>(i)] = {row, i, value.get(row * classes + i)};
    const auto better = [](const Score& a, const Score& b) {
      if (std::isnan(a.value) != std::isnan(b.value)) return std::isnan(b.value);
      return a.value != b.value && !std::isnan(a.value) ? a.value > b.value : a.index < b.index;
    };
    const auto end = all.begin() + std::min(count, classes);
    std::partial_sort(all.begin(), end, all.end(), better);
    scores.insert(scores.end(), all.begin(), end);
  }
  return scores;
}

Result<std::vector<std::string>> read_labels(const std::string& path) {
  const std::string text = TW_TRY(read_file(path));
  std::vector<std::string> labels;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    labels.push_back(text.substr(start, end - start));
    if (labels.back().ends_with('\r')) labels.back().pop_back();
    start = end + 1;
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  if (labels.empty())
    return fail(ErrorKind::Parse, fmt::format("'{}' has no labels", path), {},
                "one label per line");
  return labels;
}

}  // namespace tilewright::driver
