#include "tilewright/measure/task.h"

#include <fmt/format.h>

#include "tilewright/records/workload.h"

namespace tilewright::measure {

std::string Task::key() const { return records::workload_key(records::workload_text(func)); }

std::string Task::target_key() const {
  if (const hw::GpuTarget* gpu = target.gpu())
    return device.id.empty() ? gpu->name : gpu_key(*gpu, device.name);
  if (target.kind == hw::TargetKind::Accelerator) return target.key;
  const std::string machine = cpu().machine.empty() ? "" : "@" + cpu().machine;
  return fmt::format("cpu:{}{}:{}", cpu().cpu, machine, threads);
}

records::Record Task::record() const {
  records::Record record;
  record.name = name;
  record.target = target_key();
  record.machine = target.cpu() != nullptr ? target.cpu()->machine : device.name;
  record.unit = unit;
  return record;
}

std::string gpu_key(const hw::GpuTarget& target, const std::string& device_name) {
  // `cuda` is a name for its newest architecture.
  const std::string kind = target.arch.empty() ? target.name : "cuda-" + target.arch;
  return kind + ":" + device_name;
}

}  // namespace tilewright::measure
