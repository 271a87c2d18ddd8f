// What an accelerator `spatial` sees before a launch: an image of DRAM and streams of instructions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/common/device.h"
#include "tilewright/accel/spatial/isa.h"

namespace tilewright::spatial {

using accel::Patch;
using accel::Region;
using accel::Span;
using Run = accel::Run<Insn>;

/// Nothing on chip lives on between runs.
struct Program : accel::Program<Insn> {
  Design design;
};

/// Most bytes of DRAM that instructions can address.
inline constexpr uint64_t kDramBytes = uint64_t{1} << 40;

/// The image, regions and patches, and the fields of every instruction; says nothing about what
/// the program does (check.h does). errors: Invalid, all problems at once.
Status validate(const Program& program);

/// One byte string for packages. requires: `validate` accepts it.
/// errors (parse): Parse with the byte offset, Invalid. Memory is bounded by the input's.
std::string serialise(const Program& program);
Result<Program> parse_program(std::string_view bytes);

/// A folder of the format `spatial-program-dump`, version 1 (docs/spatial.md). A dump that is
/// already there is replaced, any other folder with files in it is not. `final_image`: DRAM after
/// the last run, or empty. errors: Io; Invalid. Nothing is left half written.
Status write_dump(const std::string& folder, const Program& program,
                  const std::string& final_image = {});
struct Dump {
  Program program;
  std::vector<std::string> expected;  ///< per output, empty if not given
};
/// errors: Io, Parse, Invalid, all problems at once.
Result<Dump> read_dump(const std::string& folder);

}  // namespace tilewright::spatial
