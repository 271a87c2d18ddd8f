// A child process that answers JSON lines: how ONNX Runtime is asked without being linked.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::driver {

/// Runs a program to its end, its stderr captured. errors: Tool, with exit status and the last
/// lines.
Status run_tool(const std::vector<std::string>& argv);

/// Where the shell would find a program; empty if nowhere.
std::string find_program(const std::string& name);

/// A folder under the system's temporary directory, removed with its contents at the end of the
/// scope.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// The child; ended when destroyed.
class JsonProcess {
 public:
  static Result<std::unique_ptr<JsonProcess>> start(const std::vector<std::string>& argv);
  ~JsonProcess();
  /// Sends one request and waits for its reply. errors: Tool (the child died or replied "ok":
  /// false).
  Result<nlohmann::json> ask(const nlohmann::json& request);

 private:
  JsonProcess() = default;
  int pid_ = -1, in_ = -1, out_ = -1;
  std::string buffer_, name_;
};

}  // namespace tilewright::driver
