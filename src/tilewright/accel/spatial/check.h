// Decides from a program alone whether it is right, whatever time instructions take.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/spatial/program.h"

namespace tilewright::spatial {

enum class Rule {
  Field,          ///< what the design cannot do: fields, addresses in memories on chip
  Deadlock,       ///< the stream, run one instruction at a time, waits for ever
  LeftoverToken,  ///< more given than taken
  TokenOverflow,  ///< 255 or more between two queues can be outstanding
  Range,          ///< DRAM outside of the image
  Race,           ///< conflicting accesses that no chain of tokens orders
};
std::string_view name(Rule rule);

struct Finding {
  Rule rule = Rule::Race;
  size_t run = 0, insn = 0;
  std::string text;  ///< with numbers, and the rival instruction where there is one
};

/// In stream order, at most so many; empty: in order and in range under every timing and queue
/// depth. Reads of what nothing wrote are found by the functional simulator. A race may be found
/// where instructions only come near each other in boxes with very many gaps (footprint.h).
std::vector<Finding> check_program(const Program& program, size_t most = 100);

}  // namespace tilewright::spatial
