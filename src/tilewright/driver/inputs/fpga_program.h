// A program for an FPGA as the user names it: a file or an operator, a device, perhaps steps.
#pragma once

#include <optional>
#include <string>

#include "tilewright/compile/fpga/program.h"
#include "tilewright/driver/subject.h"

namespace tilewright::driver {

struct FpgaProgramOptions {
  SubjectOptions subject;
  std::string hw = "vu9p", trace;
  bool is_package() const;  ///< a single file.twm
};

struct LoadedFpgaProgram {
  hw::FpgaDevice device;
  compile::FpgaProgram program;
  std::string steps;  ///< one per line; empty: the program is as it was written
};

/// With the steps of `options.trace`, or with those of the model's best design; says which those
/// are. errors: Usage (not one program), those of the files and of the steps.
Result<LoadedFpgaProgram> load_fpga_program(const FpgaProgramOptions& options);

/// `--trace`.
void add_trace_option(Verb verb, FpgaProgramOptions& options);

}  // namespace tilewright::driver
