// Decides from a program alone whether it is right, whatever instructions take.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/dpu/program.h"

namespace tilewright::dpu {

enum class Rule {
  Field,          ///< a value does not fit its field, or is undefined
  Order,          ///< CONV, POOL or ELEW before its INIT; END not last or not there
  Deadlock,       ///< the stream, run one instruction at a time, waits for ever
  LeftoverToken,  ///< more given than taken
  TokenOverflow,  ///< 255 or more between two units can be outstanding
  Range,          ///< beyond a memory, a region, or the rows that exist
  Race,           ///< conflicting accesses that no chain of tokens orders
  Undefined,      ///< reads what nothing wrote
};
std::string_view name(Rule rule);

struct Finding {
  Rule rule = Rule::Race;
  size_t run = 0, insn = 0;
  std::string text;  ///< with numbers, and the rival instruction where there is one
};

/// In stream order, at most so many; empty: right under every timing and queue depth.
std::vector<Finding> check_program(const Program& program, size_t most = 100);

}  // namespace tilewright::dpu
