// What files of spaces and technologies have in common: names of those inside the program, heads,
// and what is said of words that nobody knows.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/file.h"
#include "tilewright/base/is_path.h"
#include "tilewright/base/toml_table.h"

namespace tilewright::codesign {

/// A file that travels inside the program.
struct BuiltinFile {
  std::string_view name, text;
};

/// Who reads what, for messages: `space`, in `spaces/`, shown by an example.
struct FileKind {
  const char* word;
  const char* folder;
  const char* example;
};

std::vector<std::string> names_of(std::span<const BuiltinFile> files);

/// "did you mean 'edge'?", or all there are.
std::string near_or_list(const std::string& text, const std::vector<std::string>& known);

/// The built-in file of that name. errors: Usage, with the nearest name.
Result<BuiltinFile> find_file(const FileKind& kind, std::span<const BuiltinFile> files,
                              const std::string& name);

/// A name of `files`, or the path of a file (`my.toml`). errors: Usage, Io, those of `read`.
template <class Read>
auto load_named(const FileKind& kind, std::span<const BuiltinFile> files,
                const std::string& name_or_path, const Read& read)
    -> decltype(read(std::string_view(), std::string())) {
  if (is_path(name_or_path)) return read(TW_TRY(read_file(name_or_path)), name_or_path);
  const BuiltinFile file = TW_TRY(find_file(kind, files, name_or_path));
  return read(file.text, fmt::format("{}/{}.toml", kind.folder, file.name));
}

/// The keys `kind`, `name` and `about`.
void read_file_head(TomlTable& table, const FileKind& kind, std::string& name, std::string& about);

}  // namespace tilewright::codesign
