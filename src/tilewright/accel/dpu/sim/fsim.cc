#include "tilewright/accel/dpu/sim/fsim.h"

#include "tilewright/accel/dpu/sim/machine.h"
#include "tilewright/accel/dpu/sim/stream.h"

namespace tilewright::dpu {
namespace {

/// One launch: every unit runs until it waits for a token, in turn, until none can go on. By Kahn's
/// theorem the turn does not matter to programs without races.
class Network {
 public:
  Network(Machine& machine, const std::vector<Insn>& insns, const Stream& stream)
      : machine_(machine), insns_(insns), stream_(stream) {}

  Result<Counters> run() {
    const auto queue = static_cast<size_t>(machine_.config().timing.queue);
    machine_.begin_launch();
    for (bool moved = true; moved;) {
      moved = progress_.fetch(stream_, queue);
      for (size_t u = 0; u < kUnits; ++u)
        while (TW_TRY(step(u))) moved = true;
    }
    TW_TRY_STATUS(check_end(insns_, stream_, progress_, tokens_));
    return counters_;
  }

 private:
  /// One instruction of unit u; false if there is none or it has to wait.
  Result<bool> step(size_t u) {
    if (progress_.begun[u] == progress_.fetched[u]) return false;
    const size_t index = stream_.of_unit[u][progress_.begun[u]];
    const Insn& insn = insns_[index];
    if (!can_begin(tokens_, insn, u)) return false;
    take(tokens_, insn, u);
    ++progress_.begun[u];
    if (Status status = machine_.compute(insn, effects_); !status)
      return tl::unexpected<Error>(at_insn(std::move(status.error()), insns_, index));
    machine_.commit(effects_);
    // Units are in order, so what each has seen of its INITs is what holds here.
    inits_.update(insn.op);
    count(machine_.config(), insn, inits_, counters_);
    give(tokens_, insn, u);
    return true;
  }

  Machine& machine_;
  const std::vector<Insn>& insns_;
  const Stream& stream_;
  Progress progress_;
  Tokens tokens_{};
  Effects effects_;
  Inits inits_;
  Counters counters_;
};

class Fsim : public Device {
 public:
  Fsim(const Config& config, uint64_t ddr_bytes) : machine_(config, ddr_bytes) {}

  std::string name() const override { return "dpu:fsim"; }
  const Config& config() const override { return machine_.config(); }
  void set_registers(const Registers& registers) override { machine_.set_registers(registers); }
  Status write(uint64_t address, std::string_view bytes) override {
    return machine_.write(address, bytes);
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    return machine_.read(address, into, bytes);
  }
  Result<LaunchReport> launch(const std::vector<Insn>& insns, const LaunchOptions&) override {
    const Stream stream = TW_TRY(split(insns));
    LaunchReport report;
    report.counters = TW_TRY(Network(machine_, insns, stream).run());
    return report;
  }

 private:
  Machine machine_;
};

}  // namespace

std::unique_ptr<Device> make_fsim(const Config& config, uint64_t ddr_bytes) {
  return std::make_unique<Fsim>(config, ddr_bytes);
}

}  // namespace tilewright::dpu
