// What Gemmini sees before a launch: an image of DRAM and commands, in order. There are no tokens:
// the hardware keeps moves and products in order where they touch the same rows. It does not look
// at DRAM: what reads bytes that were written before is in another run, behind a fence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/common/device.h"
#include "tilewright/accel/gemmini/isa.h"

namespace tilewright::gemmini {

using accel::Patch;
using accel::Region;
using accel::Span;
using Run = accel::Run<Insn>;

/// Nothing on chip lives on between runs.
struct Program : accel::Program<Insn> {
  Config config;
};

/// Most bytes of DRAM.
inline constexpr uint64_t kDramBytes = uint64_t{1} << 32;

/// The image, regions and patches; says nothing about what the commands do (check.h does).
/// errors: Invalid, all problems at once.
Status validate(const Program& program);

/// One byte string for packages. requires: `validate` accepts it.
/// errors (parse): Parse with the byte offset, Invalid. Memory is bounded by the input's.
std::string serialise(const Program& program);
Result<Program> parse_program(std::string_view bytes);

/// All runs as lines (isa.h), `fence` between them, with the names of layers as comments.
std::string assembly(const Program& program);

/// A folder of the format `gemmini-program-dump`, version 1 (docs/gemmini.md). A dump that is
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

}  // namespace tilewright::gemmini
