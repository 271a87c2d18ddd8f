#include "tilewright/measure/task.h"

#include <fmt/format.h>

#include "tilewright/records/records.h"
#include "tilewright/records/workload.h"

namespace tilewright::measure {

std::string Task::key() const { return records::workload_key(records::workload_text(func)); }

std::string Task::target_key() const {
  if (!device.empty()) return device;
  const std::string machine = target.machine.empty() ? "" : "@" + target.machine;
  return fmt::format("cpu:{}{}:{}", target.cpu, machine, threads);
}

}  // namespace tilewright::measure
