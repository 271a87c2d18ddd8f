// Folders that hold a program for other tools: a `manifest.json` and the files it names.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tilewright/base/result.h"

namespace tilewright::accel {

/// Writes all files, or nothing. A folder of the same format that is already there is replaced, any
/// other one with files in it is not. requires: `manifest.json` is among them and names `format`.
/// errors: Io.
Status write_dump_folder(const std::string& folder, std::string_view format,
                         const std::map<std::string, std::string>& files);

/// Reads files by the names that a manifest gives: inside of the folder, through no link.
class DumpFolder {
 public:
  explicit DumpFolder(std::string folder) : folder_(std::move(folder)) {}

  const std::string& path() const { return folder_; }
  /// The contents; valid as long as this is. errors: Io; Invalid (a name that leads elsewhere, a
  /// file of more than `most` bytes).
  Result<const std::string*> read(const std::string& name, uint64_t most);

 private:
  Status check_name(const std::string& name) const;

  std::string folder_;
  std::map<std::string, std::string> files_;
};

/// The most brackets open at once in a JSON text: printing a value of it recurses as deeply.
int json_depth(std::string_view text);

}  // namespace tilewright::accel
