// Dumps of programs as one input: the files one after the other, each but the first behind a line
// `%% NAME`; the first is the manifest.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "fuzz_common.h"
#include "tilewright/base/file.h"

namespace tilewright::fuzz {

namespace fs = std::filesystem;

/// Only names that stay in the folder.
inline std::map<std::string, std::string> files_in(std::string_view text) {
  constexpr std::string_view kMark = "\n%% ";
  std::map<std::string, std::string> files;
  std::string name = "manifest.json";
  for (;;) {
    const size_t mark = text.find(kMark);
    files[name] = text.substr(0, mark);
    if (mark == text.npos || files.size() > 8) return files;
    text.remove_prefix(mark + kMark.size());
    const size_t end = std::min(text.find('\n'), text.size());
    name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool plain = !name.empty() && name.size() < 40 &&
                       name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.") == name.npos &&
                       name[0] != '.';
    if (!plain) name = "other.bin";
  }
}

/// In memory if there is such a file system: thousands of folders a second.
inline const std::string& work_folder() {
  static const std::string folder =
      (fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path().string()) +
      std::string("/dump_fuzz.") + std::to_string(::getpid());
  return folder;
}

/// A folder with the files of `text`; empty if it cannot be written.
inline std::string unpacked(std::string_view text) {
  const std::string& folder = work_folder();
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& [name, contents] : files_in(text))
    if (!write_file(folder + "/" + name, contents)) return {};
  return folder;
}

/// What `read` accepts must `write` as a dump that it accepts again, with the same image. Returns
/// the dump, or nothing where it is refused.
template <class Read, class Write>
auto round_trip_dump(std::string_view text, Read&& read, Write&& write)
    -> decltype(read(std::string())) {
  const std::string folder = unpacked(text);
  auto dump = read(folder);
  if (!dump) {
    if (dump.error().what.empty()) report("an error without words");
    return dump;
  }
  const std::string copy = folder + ".copy";
  if (const Status status = write(copy, dump->program); !status)
    report_error("a dump cannot be written again", status.error());
  const auto again = read(copy);
  fs::remove_all(copy);
  if (!again) report_error("a dump is not read again", again.error());
  if (again->program.image != dump->program.image) report("another image");
  return dump;
}

}  // namespace tilewright::fuzz
