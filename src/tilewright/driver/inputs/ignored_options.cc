#include "tilewright/driver/inputs/ignored_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "tilewright/driver/console.h"

namespace tilewright::driver {
namespace {

/// Those that differ from their defaults.
std::vector<std::string> options_of_compiling(const SubjectOptions& options) {
  const SubjectOptions usual{};
  const std::pair<const char*, bool> given[] = {
      {"--target", options.target != usual.target},
      {"--quantize", !options.quantize.empty()},
      {"--per-channel", options.per_channel},
      {"--fallback", options.fallback != usual.fallback},
      {"--designs", options.designs != usual.designs},
      {"--dim", !options.dims.empty()},
      {"--shape", !options.shapes.empty()},
      {"--const", !options.constants.empty()},
      {"--math", options.math != usual.math},
      {"--direct", options.direct},
      {"--tf32", options.tf32},
      {"--backend", !options.backend.empty() && options.backend != "llvm"},
      {"-O/--level", options.level != usual.level},
  };
  std::vector<std::string> names;
  for (const auto& [name, is] : given)
    if (is) names.emplace_back(name);
  return names;
}

}  // namespace

void note_ignored(const std::vector<Subject>& subjects, const SubjectOptions& options) {
  const std::vector<std::string> names = options_of_compiling(options);
  if (names.empty()) return;
  for (const Subject& subject : subjects)
    if (subject.package)
      say(
          fmt::format("note: '{}' is compiled already: {} {} nothing there; compile its model with "
                      "{}",
                      subject.path, fmt::join(names, ", "), names.size() > 1 ? "change" : "changes",
                      names.size() > 1 ? "them" : "it"));
}

}  // namespace tilewright::driver
