// What a device sees before launch: DRAM contents and instruction streams, with absolute addresses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/common/image.h"
#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {

using accel::Patch;
using accel::Region;
using accel::Span;
using Run = accel::Run<Insn>;  ///< the stream ends with FINISH

/// A self-contained program: what the format `vta-program-dump` holds. The image has weights,
/// biases, micro-ops and zeros.
struct Program : accel::Program<Insn> {
  Config config;
};

/// Base, size and everything that must lie inside of the image or a stream, and that every
/// instruction fits its encoding; says nothing about what the program does (check.h does).
/// errors: Invalid, Capacity, all problems at once.
Status validate(const Program& program);

/// Writes the dump directory (version 1; `PIPELINE: 4` and no version 1 for the extended design).
/// `final_image`: DRAM after the last run, or empty. A dump that is already there is replaced, any
/// other folder with files in it is not. Key `tilewright` has the configuration in full, and the
/// names of inputs and spans; `info.stats` has traffic and steps.
/// errors: Io; Invalid, Capacity (as `validate`). Nothing is left half written.
Status write_dump(const std::string& folder, const Program& program,
                  const std::string& final_image = {});
/// A dump with the results it carries.
struct Dump {
  Program program;
  std::string final_image;            ///< empty if not given
  std::vector<std::string> expected;  ///< per output; empty if not given
  std::vector<int> after_run;         ///< per output
};
/// A dump of another producer has the default name, clock and timing, and MUL and ACC_8BIT if
/// instructions use them. errors: Io, Parse, Invalid, all problems at once.
Result<Dump> read_dump(const std::string& folder);

/// One byte string for packages; `parse_program` reads it back. requires: a program that `validate`
/// accepts. errors (parse): Parse with the byte offset, Invalid. Memory is bounded by the input's.
std::string serialise(const Program& program);
Result<Program> parse_program(std::string_view bytes);

}  // namespace tilewright::vta
