// Dumps of DPU programs: an error, or a program that is written and read back and does no harm. An
// input is the files of a dump one after the other, each but the first behind a line `%% NAME`; the
// first is the manifest.
#include <unistd.h>

#include <filesystem>
#include <map>

#include "dpu_common.h"
#include "tilewright/base/file.h"

namespace {

using namespace tilewright;
namespace fs = std::filesystem;

/// Only names that stay in the folder.
std::map<std::string, std::string> files_in(std::string_view text) {
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
const std::string& work_folder() {
  static const std::string folder =
      (fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path().string()) +
      std::string("/dpu_dump_fuzz.") + std::to_string(::getpid());
  return folder;
}

void try_dump(std::string_view text) {
  const std::string folder = work_folder();
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& [name, contents] : files_in(text))
    if (!write_file(folder + "/" + name, contents)) return;
  const auto dump = dpu::read_dump(folder);
  if (!dump) {
    if (dump.error().what.empty()) fuzz::report("an error without words");
    return;
  }
  const std::string copy = folder + ".copy";
  if (const Status status = dpu::write_dump(copy, dump->program); !status)
    fuzz::report_error("a dump cannot be written again", status.error());
  const auto again = dpu::read_dump(copy);
  fs::remove_all(copy);
  if (!again) fuzz::report_error("a dump is not read again", again.error());
  if (again->program.image != dump->program.image) fuzz::report("another image");
  fuzz::try_program(dump->program);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try_dump(fuzz::as_text(data, size));
  return 0;
}
