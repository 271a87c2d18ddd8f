// Decides from a program alone whether it is right on every implementation.
#pragma once

#include <string>
#include <vector>

#include "tilewright/accel/vta/program.h"

namespace tilewright::vta {

enum class Rule {
  FieldRange,     ///< a value does not fit its field
  IllegalFlag,    ///< load with previous, store with next
  Deadlock,       ///< an instruction never gets its token
  LeftoverToken,  ///< a queue is not empty at the end
  TokenOverflow,  ///< 255 or more tokens outstanding in one queue
  SramRange,      ///< beyond a memory
  DramRange,      ///< outside the image
  Race,           ///< conflicting accesses that no chain of tokens orders
  FinishOrder,    ///< not exactly one, last, after the last STORE
  Undefined,      ///< reads SRAM that nothing wrote
  BadTransfer,    ///< memory id or padding that the form does not allow
  ShiftRange,     ///< a shift amount beyond -31..31
  NotPortable,    ///< outside the subset on which all implementations agree (docs/vta.md)
};

struct Finding {
  Rule rule = Rule::Race;
  bool error = true;  ///< false: accepted by the format, but see the text
  size_t run = 0, insn = 0;
  std::string text;  ///< with numbers and the other instruction where there is one
};

struct CheckOptions {
  bool portable = true;  ///< report NotPortable
  size_t max_findings = 100;
};

/// All findings in stream order; empty means race-free, deadlock-free and in range.
std::vector<Finding> check_program(const Program& program, const CheckOptions& options = {});

std::string_view name(Rule rule);

}  // namespace tilewright::vta
