// The driver surface behind which fsim, tsim, rtl (and boards) stand: sim/fsim.h, sim/tsim.h,
// rtl/device.h each make one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/vta/program.h"

namespace tilewright::vta {

/// What a launch did. Counters as in the upstream simulator, except ACC_8BIT at its real size.
struct Counters {
  uint64_t inp_load_bytes = 0, wgt_load_bytes = 0, acc_load_bytes = 0, uop_load_bytes = 0;
  uint64_t out_store_bytes = 0;
  uint64_t gemm_steps = 0, reset_steps = 0, alu_imm_steps = 0, alu_reg_steps = 0;
  uint64_t insns = 0;
};

/// Why a module did nothing in a cycle.
enum class Stall { None, TokenFromPrev, TokenFromNext, Memory, Queue, Idle };

/// What one instruction did, in cycles from launch (timed devices only).
struct InsnTime {
  uint32_t insn = 0;          ///< index in the stream
  uint64_t ready = 0;         ///< the module could have started it: the one before is done
  uint64_t begin = 0;         ///< tokens taken
  uint64_t end = 0;           ///< tokens given
  Stall stall = Stall::None;  ///< what was waited for last, from `ready` to `begin`
};

struct LaunchReport {
  Counters counters;
  uint64_t cycles = 0;          ///< from launch to FINISH; 0 if the device keeps no time
  std::vector<InsnTime> times;  ///< if asked for
};

struct LaunchOptions {
  bool record_times = false;
  uint64_t max_cycles = uint64_t{1} << 40;
};

/// A device with its DRAM. SRAM contents and tokens persist between launches.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  ///< `vta:fsim`, ...
  virtual const Config& config() const = 0;
  /// DRAM [0, limit); bytes outside of what was written are zero.
  virtual Status write(uint64_t address, std::string_view bytes) = 0;
  virtual Status read(uint64_t address, char* into, uint64_t bytes) const = 0;
  /// Makes host writes visible to the device, and device writes to the host; nothing to do on
  /// coherent targets.
  virtual Status flush(uint64_t, uint64_t) { return {}; }
  virtual Status invalidate(uint64_t, uint64_t) { return {}; }
  /// Runs a stream to FINISH. errors: Invalid (what the device can detect: range, deadlock, tokens
  /// left, shift amounts; with the instruction's index and text), Limit.
  virtual Result<LaunchReport> launch(const std::vector<Insn>& insns,
                                      const LaunchOptions& options = {}) = 0;
};

/// Writes the image, then for each run its patches, then launches. The report adds up all runs;
/// times are those of the last. `after_run`: called after each run, by index, with its results in
/// DRAM. errors: as launch, at `run <i>`; what `after_run` says.
Result<LaunchReport> execute(Device& device, const Program& program,
                             const LaunchOptions& options = {},
                             const std::function<Status(size_t run)>& after_run = {});

}  // namespace tilewright::vta
