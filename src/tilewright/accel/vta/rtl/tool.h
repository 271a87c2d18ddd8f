// External tools: found on PATH, run without a shell, with a time limit.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::vta::rtl {

struct ToolResult {
  int status = 0;  ///< exit status; 128 + signal
  bool timed_out = false;
  std::string output;  ///< both streams
  double seconds = 0;
};

/// Runs argv[0] in `folder`. errors: Tool if it is not installed, with the package that has it; Io.
Result<ToolResult> run_tool(const std::vector<std::string>& argv, const std::string& folder,
                            double limit_seconds);

/// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make(const std::string& parent, const std::string& prefix);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  /// The folder stays, under another name.
  void release() { path_.clear(); }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// $TILEWRIGHT_CACHE_DIR, $XDG_CACHE_HOME/tilewright or ~/.cache/tilewright, with /rtl; created.
Result<std::string> cache_folder();

}  // namespace tilewright::vta::rtl
