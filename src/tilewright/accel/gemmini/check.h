// Decides from a program alone whether it is right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/gemmini/program.h"

namespace tilewright::gemmini {

enum class Rule {
  Command,    ///< what work.h refuses: not configured, not allowed, beyond a memory
  Range,      ///< DRAM outside of the image
  Undefined,  ///< reads what nothing wrote
  Fence,      ///< mvin and mvout of one run on the same bytes of DRAM
};
std::string_view name(Rule rule);

struct Finding {
  Rule rule = Rule::Command;
  size_t run = 0, insn = 0;
  std::string text;
};

/// In stream order, at most so many; empty: right. Commands of a run see nothing of an earlier run
/// but DRAM.
std::vector<Finding> check_program(const Program& program, size_t most = 100);

}  // namespace tilewright::gemmini
