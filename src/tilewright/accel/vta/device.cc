#include "tilewright/accel/vta/device.h"

#include <fmt/format.h>

#include <utility>

namespace tilewright::vta {
namespace {

void add(const Counters& from, Counters& into) {
  into.inp_load_bytes += from.inp_load_bytes;
  into.wgt_load_bytes += from.wgt_load_bytes;
  into.acc_load_bytes += from.acc_load_bytes;
  into.uop_load_bytes += from.uop_load_bytes;
  into.out_store_bytes += from.out_store_bytes;
  into.gemm_steps += from.gemm_steps;
  into.reset_steps += from.reset_steps;
  into.alu_imm_steps += from.alu_imm_steps;
  into.alu_reg_steps += from.alu_reg_steps;
  into.insns += from.insns;
}

Result<LaunchReport> execute_run(Device& device, const Run& run, const LaunchOptions& options) {
  for (const Patch& patch : run.patches) {
    TW_TRY_STATUS(device.write(patch.address, patch.data));
    TW_TRY_STATUS(device.flush(patch.address, patch.data.size()));
  }
  return device.launch(run.insns, options);
}

}  // namespace

Result<LaunchReport> execute(Device& device, const Program& program, const LaunchOptions& options,
                             const std::function<Status(size_t run)>& after_run) {
  if (!same_architecture(device.config(), program.config))
    return fail(
        ErrorKind::Invalid,
        fmt::format("the program is for another design than device '{}' has", device.name()),
        fmt::format("the program is for {}, the device is {}", label(program.config),
                    label(device.config())));
  TW_TRY_STATUS(device.write(program.base, program.image));
  TW_TRY_STATUS(device.flush(program.base, program.image.size()));
  LaunchReport total;
  for (size_t i = 0; i < program.runs.size(); ++i) {
    Result<LaunchReport> report = execute_run(device, program.runs[i], options);
    if (!report)
      return tl::unexpected<Error>(std::move(report.error()).at(fmt::format("run {}", i)));
    add(report->counters, total.counters);
    total.cycles += report->cycles;
    total.times = std::move(report->times);
    TW_TRY_STATUS(device.invalidate(program.base, program.image.size()));
    if (after_run) TW_TRY_STATUS(after_run(i));
  }
  return total;
}

}  // namespace tilewright::vta
