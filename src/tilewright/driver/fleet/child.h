// The children that a worker starts for jobs: which program runs a package or measures schedules,
// and how it is confined.
#pragma once

#include <functional>
#include <string>

#include "tilewright/base/process.h"
#include "tilewright/fleet/jobs.h"
#include "tilewright/fleet/open_package.h"
#include "tilewright/fleet/sandbox.h"
#include "tilewright/measure/running_worker.h"

namespace tilewright::driver {

/// Whether the file of this program is still there: all children are started from it.
bool program_is_there();

class ChildRunner {
 public:
  /// `sandbox`: auto, bwrap, landlock or none. errors: Tool (what this machine refuses, and why).
  static Result<ChildRunner> create(const std::string& sandbox);

  /// Its name, for people.
  std::string sandbox() const;
  /// To the end of the child, `limit_s`, or until `stop` is true. errors: those of the sandbox.
  Result<ToolResult> run(const fleet::Offer& offer, const std::string& folder, double limit_s,
                         const std::function<bool()>& stop) const;
  /// Starts what keeps a package open on a device. Empty: it cannot be kept there.
  fleet::PackageOpener opening(const fleet::Offer& offer) const;
  /// Starts what measures schedules on a device of this machine.
  measure::StartWorker measuring(const fleet::Offer& offer) const;

 private:
  explicit ChildRunner(fleet::SandboxKind kind) : kind_(kind) {}
  fleet::OpenChild runner(const std::string& device) const;

  fleet::SandboxKind kind_;
};

}  // namespace tilewright::driver
