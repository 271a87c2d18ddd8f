#include "tilewright/measure/task.h"

#include <fmt/format.h>

#include "tilewright/records/workload.h"

namespace tilewright::measure {

std::string Task::key() const { return records::workload_key(records::workload_text(func)); }

std::string Task::target_key() const {
  if (!device.empty()) return device;
  const std::string machine = target.machine.empty() ? "" : "@" + target.machine;
  return fmt::format("cpu:{}{}:{}", target.cpu, machine, threads);
}

records::Record Task::record() const {
  records::Record record;
  record.name = name;
  record.target = target_key();
  record.machine = device.empty() ? target.machine : device_name;
  record.unit = unit;
  return record;
}

}  // namespace tilewright::measure
