// The C interface with owners and Results: all that tilewright-runner sees of a package.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/base/result.h"
#include "tilewright/runtime.h"

namespace tilewright::runner {

struct TensorName {
  std::string name;
  DType dtype;
};

/// Times of one step of the program over all runs.
struct Step {
  std::string name, callee;
  int64_t calls = 0, total_ns = 0, min_ns = 0, last_ns = 0;
};

/// A package that is open, and one instance of it. All functions: errors of the runtime, each with
/// the kind of its code. A bug of the runtime is thrown.
class PackageSession {
 public:
  /// `device`: as tw_session_options has it; empty: its default.
  static Result<PackageSession> open(const std::string& path, const std::string& device,
                                     int threads);

  const std::vector<TensorName>& inputs() const { return inputs_; }
  const std::vector<TensorName>& outputs() const { return outputs_; }
  Status set_input(size_t index, const Array& value);
  Status run();
  /// A view that is valid until the next run.
  Result<Array> output(size_t index) const;
  Result<std::vector<Step>> steps() const;

 private:
  struct Close {
    void operator()(tw_module* module) const { tw_module_close(module); }
    void operator()(tw_session* session) const { tw_session_close(session); }
  };

  std::unique_ptr<tw_module, Close> module_;
  std::unique_ptr<tw_session, Close> session_;
  std::vector<TensorName> inputs_, outputs_;
};

}  // namespace tilewright::runner
