// A child process that answers JSON lines: how ONNX Runtime is asked without being linked.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/base/process.h"

namespace tilewright::driver {

/// The child; ended when destroyed.
class JsonProcess {
 public:
  static Result<std::unique_ptr<JsonProcess>> start(const std::vector<std::string>& argv);
  ~JsonProcess();
  /// Sends one request and waits for its reply, which may say "ok": false and why as "error".
  /// errors: Tool (the child died).
  Result<nlohmann::json> ask(const nlohmann::json& request);

 private:
  JsonProcess() = default;
  int pid_ = -1, in_ = -1, out_ = -1;
  std::string buffer_, name_;
};

}  // namespace tilewright::driver
