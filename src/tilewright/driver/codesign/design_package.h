// The programs of what was searched for, compiled for one design that was found.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/compile/compile.h"
#include "tilewright/driver/codesign/search_inputs.h"

namespace tilewright::driver {

struct DesignPackage {
  std::string file;     ///< inside of the folder
  std::string problem;  ///< empty: it is there
};

/// The packages of all subjects of a search: models are quantised with `random:4`, what the
/// hardware lacks runs on the processor.
class DesignPackages {
 public:
  /// Compiles for the design of `toml`. What cannot be compiled is a problem of its package.
  /// errors: Interrupted; those of files.
  static Result<DesignPackages> compile(const SearchInputs& inputs, const std::string& toml,
                                        const std::string& command);
  /// Those that could be compiled, with samples to verify them by. errors: Io, Interrupted.
  Status write(const std::string& folder) const;
  const std::vector<DesignPackage>& list() const { return packages_; }

 private:
  struct Compiled {
    Subject subject;
    compile::CompileOptions options;
    compile::CompiledModel model;
  };
  std::vector<DesignPackage> packages_;
  std::vector<std::shared_ptr<const Compiled>> compiled_;  ///< like `packages_`; null: a problem
};

}  // namespace tilewright::driver
