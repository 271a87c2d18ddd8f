// A kernel of the DPU as the host sees it; simulators implement it (sim/fsim.h, sim/tsim.h).
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "tilewright/accel/common/device.h"
#include "tilewright/accel/dpu/program.h"

namespace tilewright::dpu {

/// What a launch did. The hardware has counters of instructions started and finished by queue.
struct Counters {
  uint64_t insns = 0;
  uint64_t load_started = 0, save_started = 0, conv_started = 0, misc_started = 0;
  uint64_t load_finished = 0, save_finished = 0, conv_finished = 0, misc_finished = 0;
  uint64_t load_beats = 0, weight_beats = 0, save_beats = 0;  ///< of the DDR port
  uint64_t macs = 0;  ///< of one image: taps inside of the image only, channels as stored
  /// Cycles of each unit (timed devices): executing, and waiting by cause.
  uint64_t load_busy = 0, save_busy = 0, conv_busy = 0, misc_busy = 0;
  uint64_t shared_port = 0;  ///< cycles in which two units used one port of a feature memory

  static constexpr auto fields() {
    using C = Counters;
    return std::tuple{field("insns", &C::insns),
                      field("load_started", &C::load_started),
                      field("save_started", &C::save_started),
                      field("conv_started", &C::conv_started),
                      field("misc_started", &C::misc_started),
                      field("load_finished", &C::load_finished),
                      field("save_finished", &C::save_finished),
                      field("conv_finished", &C::conv_finished),
                      field("misc_finished", &C::misc_finished),
                      field("load_beats", &C::load_beats),
                      field("weight_beats", &C::weight_beats),
                      field("save_beats", &C::save_beats),
                      field("macs", &C::macs),
                      field("load_busy", &C::load_busy),
                      field("save_busy", &C::save_busy),
                      field("conv_busy", &C::conv_busy),
                      field("misc_busy", &C::misc_busy),
                      field("shared_port", &C::shared_port)};
  }
};

using accel::InsnTime;  ///< `end`: done, when tokens are given; `token_from`: a Unit
using accel::LaunchOptions;
using accel::Stall;
using LaunchReport = accel::LaunchReport<Counters>;

/// When an instruction's unit was free again; `time.end` is when its results were there.
uint64_t busy_end(const Config& config, const Insn& insn, const InsnTime& time);

using Registers = std::array<Region, kRegs>;

/// A device with its DDR. Each launch begins with FM, PM and the INITs undefined.
class Device : public accel::Device<Insn, Counters> {
 public:
  virtual const Config& config() const = 0;
  /// Where the registers point from now on.
  virtual void set_registers(const Registers& registers) = 0;
};

/// errors: Invalid (the program is for other hardware).
Status check_design(const Device& device, const Program& program);
/// Writes registers and image: before the first launch.
Status load(Device& device, const Program& program);
/// The format unit: reads Reg::Format and writes Reg::Input, for a program whose inputs are there.
Status run_format_unit(Device& device, const Program& program);
/// `load`, the format unit, and the program's runs (accel::launch_runs).
Result<LaunchReport> execute(Device& device, const Program& program,
                             const LaunchOptions& options = {},
                             const accel::AfterRun& after_run = {});

}  // namespace tilewright::dpu
