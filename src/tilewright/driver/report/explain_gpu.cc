#include "tilewright/driver/report/explain_gpu.h"

#include <fmt/format.h>

#include "tilewright/driver/cli.h"
#include "tilewright/tune/gpu_space.h"

namespace tilewright::driver {
namespace {

std::optional<tune::GpuDecision> decision_of(const compile::KernelReport& kernel,
                                             const hw::GpuTarget& target) {
  if (kernel.record) return std::nullopt;
  return tune::gpu_decision(kernel.func, target);
}

nlohmann::ordered_json to_json(const rules::GpuTileTable::Choice& choice) {
  const cost::GpuPrediction& time = choice.time;
  return {{"tile", to_string(choice.tile)},
          {"us", time.total / 1e3},
          {"bound", time.bound()},
          {"predicted_us",
           {{"compute", time.compute / 1e3},
            {"shared", time.shared / 1e3},
            {"l2", time.l2 / 1e3},
            {"dram", time.dram / 1e3},
            {"latency", time.latency / 1e3},
            {"launch", time.launch / 1e3}}},
          {"blocks", time.blocks},
          {"threads", time.threads},
          {"blocks_per_unit", time.resident},
          {"waves", time.waves},
          {"registers", time.registers},
          {"shared_bytes", time.shared_bytes}};
}

}  // namespace

std::optional<nlohmann::ordered_json> gpu_choice_json(const compile::KernelReport& kernel,
                                                      const hw::GpuTarget& target) {
  const auto decision = decision_of(kernel, target);
  if (!decision) return std::nullopt;
  nlohmann::ordered_json json = {{"chosen", to_json(decision->chosen)},
                                 {"candidates", decision->candidates}};
  if (decision->runner_up) json["runner_up"] = to_json(*decision->runner_up);
  return json;
}

std::string gpu_choice_table(const compile::KernelReport& kernel, const hw::GpuTarget& target) {
  const auto decision = decision_of(kernel, target);
  if (!decision) return "";
  std::vector<std::vector<std::string>> rows = {
      {"", "us", "bound", "compute", "shared", "l2", "dram", "latency", "launch", "blocks",
       "threads", "per unit", "waves", "registers", "shared KiB", "tile"}};
  const auto add = [&](const char* which, const rules::GpuTileTable::Choice& choice) {
    const cost::GpuPrediction& time = choice.time;
    rows.push_back({which, fmt::format("{:.1f}", time.total / 1e3), time.bound()});
    for (const double ns :
         {time.compute, time.shared, time.l2, time.dram, time.latency, time.launch})
      rows.back().push_back(fmt::format("{:.1f}", ns / 1e3));
    for (const int64_t number : {time.blocks, time.threads, time.resident})
      rows.back().push_back(std::to_string(number));
    rows.back().push_back(fmt::format("{:.2f}", time.waves));
    rows.back().push_back(std::to_string(time.registers));
    rows.back().push_back(fmt::format("{:.1f}", static_cast<double>(time.shared_bytes) / 1024));
    rows.back().push_back(to_string(choice.tile));
  };
  add("chosen", decision->chosen);
  if (decision->runner_up) add("second", *decision->runner_up);
  return fmt::format("why, of {} candidates (predicted us):\n{}\n", decision->candidates,
                     table(rows));
}

}  // namespace tilewright::driver
