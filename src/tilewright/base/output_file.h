// Outputs: files that appear whole or not at all; devices, pipes and stdout are written into.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright {

/// A file that is being written under a name that the user chose.
///
/// `-` is stdout. A link is followed: the file behind it is replaced, the link stays. A regular
/// file appears under its name when it is complete, with the permissions of the one it replaces;
/// until then nothing changes. Whatever else has the name (a device, a pipe) is written into.
class OutputFile {
 public:
  /// errors: Io.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept
      : path_(std::move(other.path_)),
        target_(std::move(other.target_)),
        temporary_(std::exchange(other.temporary_, {})),
        fd_(std::exchange(other.fd_, -1)) {}
  OutputFile& operator=(OutputFile&&) = delete;
  /// What was not published is removed.
  ~OutputFile();

  /// errors: Io.
  Status append(std::string_view bytes);
  /// The file is complete. requires: called once, last. errors: Io.
  Status publish();

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  Status create_temporary(const std::string& target);
  tl::unexpected<Error> error(const char* verb) const;

  std::string path_;       ///< as the user wrote it
  std::string target_;     ///< behind all links
  std::string temporary_;  ///< beside the target; empty if that is written into
  int fd_ = -1;            ///< -1: stdout
};

/// Whether `path` is written into (stdout, a device, a pipe) rather than replaced.
bool is_stream(const std::string& path);

/// Whether a file can be written at `path`, asked before work whose end would be too late to learn
/// it. An empty path is none. errors: Io (no folder, not allowed), Usage (it is one of `inputs`,
/// whatever either is called; those that do not exist are left to their readers).
Status check_output(const std::string& path, const std::vector<std::string>& inputs = {});

/// The same for a folder that will hold files: it may be made, with the folders above it.
/// errors: Io.
Status check_output_folder(const std::string& path);

}  // namespace tilewright
