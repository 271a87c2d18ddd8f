// ONNX Runtime, asked through a process of its own (scripts/ort_peer.py, carried inside the
// program).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/driver/verify/process.h"

namespace tilewright::driver {

/// The interpreter that has onnxruntime: $TILEWRIGHT_PYTHON, else the checkout's .venv, else
/// python3.
std::string python_program();

class OrtPeer {
 public:
  struct LoadOptions {
    int threads = 1;
    bool profile = false;
    bool intermediates = false;  ///< every value becomes an output; no optimisation then
    bool optimise = true;        ///< false: every operator as the model says
    std::map<std::string, int64_t> dims;
  };

  /// errors: Tool, with what to install.
  static Result<std::unique_ptr<OrtPeer>> start();
  Status load(const std::string& model, const LoadOptions& options);
  Status set_inputs(const std::map<std::string, Array>& inputs);
  /// All outputs by name, in the model's order.
  Result<std::vector<std::pair<std::string, Array>>> run();
  /// Wall time of each run in nanoseconds, for about `seconds`.
  Result<std::vector<int64_t>> bench(double seconds, int min_runs);
  /// Ends profiling: per run, nanoseconds of the operator's own nodes.
  Result<std::vector<int64_t>> own_times();
  const std::string& version() const { return version_; }

 private:
  explicit OrtPeer(TemporaryFolder folder) : folder_(std::move(folder)) {}
  /// `done` is what ONNX Runtime does not do with the model. errors: Tool, with its reason.
  Result<nlohmann::json> ask(const char* done, const nlohmann::json& request);
  std::unique_ptr<JsonProcess> process_;
  TemporaryFolder folder_;
  std::string version_;
};

}  // namespace tilewright::driver
