#include "tilewright/driver/report/roof.h"

#include <algorithm>
#include <tuple>

#include "tilewright/rules/common/work.h"

namespace tilewright::driver {
namespace {

double bytes_of(const Func& func) {
  int64_t sum = 0;
  for (const Param& param : func.params) {
    int64_t elements = 1;
    for (const Expr& extent : param.buffer.shape()) elements *= as_int(extent).value_or(0);
    sum += storage_bytes(param.buffer.dtype(), elements);
  }
  return static_cast<double>(sum);
}

}  // namespace

std::optional<Roof> roof_of(const measure::Task& task) {
  if (task.target.kind != hw::TargetKind::Cpu) return std::nullopt;
  const hw::CpuTarget& machine = task.cpu();
  const rules::Work work = rules::work_of(task.func);
  Roof roof;
  roof.operations = work.operations;
  if (roof.operations <= 0) return std::nullopt;
  roof.bytes = bytes_of(task.func);
  const double peak = machine.rates.peak(work.dtype) * task.threads;
  roof.compute = peak > 0 ? work.operations / peak : 0;
  const std::tuple<const char*, double, hw::Bandwidth> levels[] = {
      {"l2", static_cast<double>(machine.l2_bytes) * task.threads, machine.rates.l2},
      {"l3", static_cast<double>(machine.l3_bytes), machine.rates.l3},
      {"dram", search::kInvalid, machine.rates.dram}};
  for (const auto& [name, capacity, bandwidth] : levels) {
    if (roof.bytes > capacity) continue;
    const double rate = bandwidth.of(task.threads);
    roof.memory = rate > 0 ? roof.bytes / rate : 0;
    roof.level = name;
    break;
  }
  return roof;
}

}  // namespace tilewright::driver
