// Whole programs as text: what `sim X --asm` prints and `sim F.asm` reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/dpu/program.h"

namespace tilewright::dpu {

/// Streams one after the other, each to its END. `# layer NAME` stands where a span begins.
std::string assembly(const std::vector<Run>& runs);

/// The streams of a text as a program by itself: a span lasts to the next one of its stream, and
/// DDR is zeros, as far as the transfers reach. What `assembly` prints of it is the same text
/// again. errors: Parse, every line with what is wrong in it (text, fields, a stream without END);
/// Capacity (more DDR than a gigabyte).
Result<Program> parse_assembly(std::string_view text, const Config& config,
                               const std::string& place);

}  // namespace tilewright::dpu
