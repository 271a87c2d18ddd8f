// External tools: found on PATH, run without a shell, in folders of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright {

/// Set by whoever handles Ctrl-C: tools that run are ended.
inline std::atomic<bool> interrupt_requested = false;

/// Where the shell would find a program; empty if nowhere.
std::string find_program(const std::string& name);

struct ToolOptions {
  std::string folder = ".";  ///< where it runs
  double limit_seconds = std::numeric_limits<double>::infinity();
};
struct ToolResult {
  int status = 0;  ///< exit status, or 128 + signal
  bool timed_out = false;
  std::string output;  ///< both streams
  double seconds = 0;
  int64_t peak_bytes = 0;  ///< memory of the largest process among it and those it waited for
  /// Whether somebody else ended it by SIGKILL, as the system does when memory runs out.
  bool killed() const { return status == 128 + 9 && !timed_out; }
};
/// Runs argv[0] to its end, or to its limit (with everything it started).
/// errors: Tool (not on PATH, with what to install), Interrupted, Io.
Result<ToolResult> run_tool(const std::vector<std::string>& argv, const ToolOptions& options = {});
/// The error of a tool that was killed. requires: result.killed().
tl::unexpected<Error> killed_tool(const std::string& name, const ToolResult& result);
/// The same for tools that must succeed. errors: also Tool, with status and the end of the output;
/// Limit (killed, with the memory it had).
Result<ToolResult> run_checked(const std::vector<std::string>& argv,
                               const ToolOptions& options = {});

/// A folder that is removed with its contents at the end of the scope.
class TemporaryFolder {
 public:
  /// In `parent`, or where the system keeps temporary files. errors: Io; Interrupted (after
  /// remove_temporary_folders).
  static Result<TemporaryFolder> create(const std::string& parent = {});
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// The folder stays: somebody else has it now.
  void release();

 private:
  explicit TemporaryFolder(std::string path);
  std::string path_;
};

/// Removes the temporary folders that are there, for whoever ends the process from another thread.
/// Nobody gets another one then.
void remove_temporary_folders();

}  // namespace tilewright
