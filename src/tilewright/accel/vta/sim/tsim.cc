#include "tilewright/accel/vta/sim/tsim.h"

#include <fmt/format.h>

#include "tilewright/accel/vta/sim/clock.h"
#include "tilewright/accel/vta/sim/machine.h"

namespace tilewright::vta {
namespace {

Status check_limit(uint64_t cycles, const LaunchOptions& options) {
  if (cycles <= options.max_cycles) return {};
  return fail(ErrorKind::Limit, "the launch takes more cycles than allowed",
              fmt::format("{} of {}", cycles, options.max_cycles));
}

/// Where in time an instruction touches memory, for the order in which data moves: what is loaded
/// is there only at the end, everything else is done as it begins. Ordered instructions keep their
/// order; those of a race take theirs from the clock.
uint64_t moment(const Insn& insn, const InsnTime& time) {
  return reads(insn) ? time.end - 1 : time.begin;
}

/// Runs the data of all instructions in order of `moment`.
Status move_data(Machine& machine, const std::vector<Insn>& insns, const Stream& stream,
                 const std::vector<InsnTime>& times) {
  std::vector<size_t> next(stream.modules.size());
  for (size_t done = 0; done < insns.size(); ++done) {
    size_t best = next.size();
    uint64_t earliest = 0;
    for (size_t m = 0; m < next.size(); ++m) {
      if (next[m] == stream.queues[m].size()) continue;
      const size_t index = stream.queues[m][next[m]];
      const uint64_t at = moment(insns[index], times[index]);
      if (best < next.size() && at >= earliest) continue;
      best = m;
      earliest = at;
    }
    TW_TRY_STATUS(run_at(machine, insns, stream.queues[best][next[best]++]));
  }
  return {};
}

class Tsim : public Device {
 public:
  Tsim(const Config& config, uint64_t dram_bytes) : machine_(config, dram_bytes) {}

  std::string name() const override { return "vta:tsim"; }
  const Config& config() const override { return machine_.config(); }
  Status write(uint64_t address, std::string_view bytes) override {
    return machine_.write(address, bytes);
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    return machine_.read(address, into, bytes);
  }
  Result<LaunchReport> launch(const std::vector<Insn>& insns,
                              const LaunchOptions& options) override {
    const Stream stream = TW_TRY(split(config(), insns));
    Clock clock(config(), insns, stream);
    TW_TRY_STATUS(clock.run());
    TW_TRY_STATUS(check_limit(clock.cycles(), options));
    TW_TRY_STATUS(move_data(machine_, insns, stream, clock.times()));
    return report(config(), insns, clock, options);
  }

  static LaunchReport report(const Config& config, const std::vector<Insn>& insns, Clock& clock,
                             const LaunchOptions& options) {
    LaunchReport report;
    for (const Insn& insn : insns) count(config, insn, report.counters);
    report.cycles = clock.cycles();
    if (options.record_times) report.times = clock.take_times();
    return report;
  }

 private:
  Machine machine_;
};

}  // namespace

std::unique_ptr<Device> make_tsim(const Config& config, uint64_t dram_bytes) {
  return std::make_unique<Tsim>(config, dram_bytes);
}

Result<LaunchReport> simulate_time(const Config& config, const std::vector<Insn>& insns,
                                   const LaunchOptions& options) {
  const Stream stream = TW_TRY(split(config, insns));
  Clock clock(config, insns, stream);
  TW_TRY_STATUS(clock.run());
  TW_TRY_STATUS(check_limit(clock.cycles(), options));
  return Tsim::report(config, insns, clock, options);
}

}  // namespace tilewright::vta
