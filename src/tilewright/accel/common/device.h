// A device as the host sees it, and the one loop that runs programs on it. Simulators and boards
// implement it, with instructions and counters of their own.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/accel/common/image.h"
#include "tilewright/base/fields.h"
#include "tilewright/base/result.h"

namespace tilewright::accel {

/// Why a queue did nothing in a cycle.
enum class Stall { None, Token, Memory, Queue, Idle };

/// What one instruction did, in cycles from launch (timed devices only).
struct InsnTime {
  uint32_t insn = 0;          ///< index in the stream
  uint64_t ready = 0;         ///< the queue could have started it: the one before is done
  uint64_t begin = 0;         ///< tokens taken
  uint64_t end = 0;           ///< tokens given
  Stall stall = Stall::None;  ///< what was waited for last, from `ready` to `begin`
  int token_from = -1;        ///< Stall::Token: the queue that gave it
};

/// `Counters`: numbers that add up over launches, named by `static constexpr fields()`
/// (base/fields.h).
template <class Counters>
struct LaunchReport {
  Counters counters;
  uint64_t cycles = 0;          ///< from launch to its end; 0 if the device keeps no time
  std::vector<InsnTime> times;  ///< if asked for
};

/// Adds what a later launch did; the times are its.
template <class Counters>
void add(LaunchReport<Counters> later, LaunchReport<Counters>& into) {
  std::apply(
      [&](const auto&... entry) {
        ((into.counters.*entry.member += later.counters.*entry.member), ...);
      },
      Counters::fields());
  into.cycles += later.cycles;
  into.times = std::move(later.times);
}

struct LaunchOptions {
  bool record_times = false;
  uint64_t max_cycles = uint64_t{1} << 40;
};

/// The DRAM of a device.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::string name() const = 0;  ///< `vta:fsim`, ...
  /// DRAM [0, limit); bytes outside of what was written are zero.
  virtual Status write(uint64_t address, std::string_view bytes) = 0;
  virtual Status read(uint64_t address, char* into, uint64_t bytes) const = 0;
  /// Makes host writes visible to the device, and device writes to the host; nothing to do on
  /// coherent targets.
  virtual Status flush(uint64_t, uint64_t) { return {}; }
  virtual Status invalidate(uint64_t, uint64_t) { return {}; }
};

/// On-chip memories and tokens keep their contents between launches.
template <class Insn, class Counters>
class Device : public Memory {
 public:
  /// Runs a stream to its end. errors: Invalid (what the device can detect: range, deadlock, tokens
  /// left, shift amounts; with the instruction's index and text), Limit.
  virtual Result<LaunchReport<Counters>> launch(const std::vector<Insn>& insns,
                                                const LaunchOptions& options = {}) = 0;
};

/// Writes bytes that the next launch sees.
Status write_through(Memory& memory, uint64_t address, std::string_view bytes);
/// Writes the image: before the first launch of a program.
Status write_image(Memory& memory, const Image& image);

/// Called after each run, by index, with its results in DRAM.
using AfterRun = std::function<Status(size_t run)>;

/// For each run of a program whose image is there: its patches, its launch, and what it wrote is
/// made visible to the host. The report adds up all runs; times are those of the last.
/// errors: as launch, at `run <i>`; what `after_run` says.
template <class Insn, class Counters>
Result<LaunchReport<Counters>> launch_runs(Device<Insn, Counters>& device,
                                           const Program<Insn>& program,
                                           const LaunchOptions& options = {},
                                           const AfterRun& after_run = {}) {
  LaunchReport<Counters> total;
  for (size_t i = 0; i < program.runs.size(); ++i) {
    for (const Patch& patch : program.runs[i].patches)
      TW_TRY_STATUS(write_through(device, patch.address, patch.data));
    Result<LaunchReport<Counters>> report = device.launch(program.runs[i].insns, options);
    if (!report)
      return tl::unexpected<Error>(std::move(report.error()).at(fmt::format("run {}", i)));
    add(*std::move(report), total);
    TW_TRY_STATUS(device.invalidate(program.base, program.image.size()));
    if (after_run) TW_TRY_STATUS(after_run(i));
  }
  return total;
}

}  // namespace tilewright::accel
