// Whole programs as text: what `sim X --asm` prints and `sim F.asm` reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/spatial/program.h"

namespace tilewright::spatial {

/// Runs one after the other, each up to a line `END`. `# layer NAME` stands where a span begins.
std::string assembly(const std::vector<Run>& runs);

/// The instruction of a line. errors: Parse, everything that is wrong in it.
Result<Insn> parse_insn(std::string_view line);

/// The runs of a text as a program by itself: a span lasts to the next one of its run, and DRAM is
/// zeros, as far as the transfers reach. What `assembly` prints of it is the same text again.
/// errors: Parse, every line with what is wrong in it (text, fields, a run without END); Capacity
/// (more DRAM than a gigabyte).
Result<Program> parse_assembly(std::string_view text, const Design& design,
                               const std::string& place);

}  // namespace tilewright::spatial
