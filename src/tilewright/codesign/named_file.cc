#include "tilewright/codesign/named_file.h"

#include <fmt/ranges.h>

#include "tilewright/base/names.h"

namespace tilewright::codesign {

std::vector<std::string> names_of(std::span<const BuiltinFile> files) {
  std::vector<std::string> names;
  for (const BuiltinFile& file : files) names.emplace_back(file.name);
  return names;
}

std::string near_or_list(const std::string& text, const std::vector<std::string>& known) {
  std::string fix = did_you_mean(text, known);
  return fix.empty() ? fmt::format("it is one of {}", fmt::join(known, ", ")) : fix;
}

Result<BuiltinFile> find_file(const FileKind& kind, std::span<const BuiltinFile> files,
                              const std::string& name) {
  for (const BuiltinFile& file : files)
    if (file.name == name) return file;
  const std::vector<std::string> known = names_of(files);
  std::string fix = did_you_mean(name, known);
  if (fix.empty()) fix = fmt::format("it is one of {}, or a file", fmt::join(known, ", "));
  return fail(ErrorKind::Usage, fmt::format("there is no {} `{}`", kind.word, name), {}, fix);
}

void read_file_head(TomlTable& table, const FileKind& kind, std::string& name, std::string& about) {
  std::string is;
  if (table.read_text("kind", is) && is != kind.word)
    table.problem("kind", fmt::format("`kind` must be \"{}\"", kind.word), kind.example);
  if (table.read_text("name", name) && name.empty())
    table.problem("name", fmt::format("a {} needs a `name`", kind.word), kind.example);
  table.read_text("about", about);
}

}  // namespace tilewright::codesign
