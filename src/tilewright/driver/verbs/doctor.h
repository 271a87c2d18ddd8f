// What is installed beside this program, looked at in children: a driver or a tool that dies takes
// nobody with it.
#pragma once

#include <string>
#include <vector>

#include "tilewright/compile/backend.h"

namespace tilewright::driver {

struct ToolFinding {
  std::string name;
  bool ok;
  std::string text;  ///< what was found, or what is missing and for what it is needed
};

/// External tools: simulators, linkers, emulators, disassemblers.
std::vector<ToolFinding> find_tools();

/// The states of a back-end's devices; where trying them may end the process, from a child.
std::vector<compile::DeviceState> device_states(const compile::Backend& backend);

}  // namespace tilewright::driver
