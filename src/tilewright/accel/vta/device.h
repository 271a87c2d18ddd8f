// The driver surface behind which fsim, tsim, rtl (and boards) stand: sim/fsim.h, sim/tsim.h,
// rtl/device.h each make one.
#pragma once

#include <cstdint>
#include <tuple>

#include "tilewright/accel/common/device.h"
#include "tilewright/accel/vta/program.h"

namespace tilewright::vta {

/// What a launch did. As in the upstream simulator, except ACC_8BIT at its real size.
struct Counters {
  uint64_t inp_load_bytes = 0, wgt_load_bytes = 0, acc_load_bytes = 0, uop_load_bytes = 0;
  uint64_t out_store_bytes = 0;
  uint64_t gemm_steps = 0, reset_steps = 0, alu_imm_steps = 0, alu_reg_steps = 0;
  uint64_t insns = 0;

  static constexpr auto fields() {
    using C = Counters;
    return std::tuple{field("insns", &C::insns),
                      field("gemm_steps", &C::gemm_steps),
                      field("reset_steps", &C::reset_steps),
                      field("alu_imm_steps", &C::alu_imm_steps),
                      field("alu_reg_steps", &C::alu_reg_steps),
                      field("inp_load_bytes", &C::inp_load_bytes),
                      field("wgt_load_bytes", &C::wgt_load_bytes),
                      field("acc_load_bytes", &C::acc_load_bytes),
                      field("uop_load_bytes", &C::uop_load_bytes),
                      field("out_store_bytes", &C::out_store_bytes)};
  }
};

using accel::InsnTime;  ///< `token_from`: by place in the chain
using accel::LaunchOptions;
using accel::Stall;
using LaunchReport = accel::LaunchReport<Counters>;

/// A device with its DRAM. SRAM contents and tokens persist between launches; a launch runs to
/// FINISH.
class Device : public accel::Device<Insn, Counters> {
 public:
  virtual const Config& config() const = 0;
};

/// errors: Invalid (the program is for another design).
Status check_design(const Device& device, const Program& program);

/// Writes the image, then runs the program (accel::launch_runs).
/// errors: as `check_design` and accel::launch_runs.
Result<LaunchReport> execute(Device& device, const Program& program,
                             const LaunchOptions& options = {},
                             const accel::AfterRun& after_run = {});

}  // namespace tilewright::vta
