// What drivers on a worker keep from run to run: kernels that they compiled for a package.
//
// A child's home is the folder of its job, which is removed after it; an OpenCL driver would
// compile every kernel of a package in each run. So `.cache` of that folder stays behind and is put
// into the next child's folder, if that runs for the same login: code of one login is never run for
// another.
#pragma once

#include <list>
#include <string>
#include <utility>

#include "tilewright/base/process.h"

namespace tilewright::fleet {

class KeptCaches {
 public:
  /// Moves what `login` has into `folder`, the home of a child that begins.
  void give(const std::string& login, const std::string& folder);
  /// Keeps what that child leaves. Nothing of it is believed: it is read by confined children of
  /// the same login only. One that is too large, or more than plain files, goes with the job's.
  void take(const std::string& login, const std::string& folder);

 private:
  std::list<std::pair<std::string, TemporaryFolder>> kept_;  ///< by login, the latest last
};

}  // namespace tilewright::fleet
