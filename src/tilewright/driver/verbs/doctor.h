// What is installed beside this program, looked at in children: a driver or a tool that dies takes
// nobody with it.
#pragma once

#include <string>
#include <vector>

namespace tilewright::driver {

struct Finding {
  std::string name;
  bool ok;
  std::string text;  ///< what was found, or what is missing and for what it is needed
};

/// External tools: simulators, linkers, emulators, disassemblers.
std::vector<Finding> find_tools();

struct DeviceRow {
  std::string id, reason, detail;  ///< reason: why it is not usable, or empty
};
/// A row per GPU of a language (`opencl`, `cuda`), each tried with a kernel that does nothing, or
/// one row that says why there is none.
std::vector<DeviceRow> gpu_rows(const std::string& language);
/// The same in this process, which a broken driver may end; for the child.
std::vector<DeviceRow> gpu_rows_here(const std::string& language);

}  // namespace tilewright::driver
