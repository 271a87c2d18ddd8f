#include <fmt/format.h>

#include "tilewright/ir/text.h"
#include "tilewright/tune/records.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

std::string workload_text(const Func& func) {
  Func named = func;
  named.name = "f";
  return print(named);
}

std::string Task::key() const { return workload_key(workload_text(func)); }

std::string Task::target_key() const {
  if (!device.empty()) return device;
  const std::string machine = target.machine.empty() ? "" : "@" + target.machine;
  return fmt::format("cpu:{}{}:{}", target.cpu, machine, threads);
}

}  // namespace tilewright::tune
