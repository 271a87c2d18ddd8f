#include "tilewright/accel/spatial/sim/fsim.h"

#include "tilewright/accel/spatial/sim/count.h"
#include "tilewright/accel/spatial/sim/state.h"
#include "tilewright/accel/spatial/sim/stream.h"

namespace tilewright::spatial {
namespace {

/// One launch: every queue runs until it waits for a token, in turn, until none can go on. By
/// Kahn's theorem the turn does not matter to programs without races.
class Network {
 public:
  Network(State& state, const std::vector<Insn>& insns)
      : state_(state), insns_(insns), stream_(split(insns)) {}

  Result<Counters> run() {
    const auto depth = static_cast<size_t>(state_.design().timing.command_queue);
    state_.begin_launch();
    for (bool moved = true; moved;) {
      moved = progress_.fetch(insns_, depth);
      for (size_t q = 0; q < kQueues; ++q)
        while (TW_TRY(step(q))) moved = true;
    }
    TW_TRY_STATUS(check_end(insns_, stream_, progress_, tokens_));
    return counters_;
  }

 private:
  /// One instruction of queue q; false if there is none or it has to wait.
  Result<bool> step(size_t q) {
    if (progress_.begun[q] == progress_.fetched[q]) return false;
    const size_t index = stream_[q][progress_.begun[q]];
    const Insn& insn = insns_[index];
    if (!can_begin(tokens_, insn)) return false;
    take(tokens_, insn);
    ++progress_.begun[q];
    if (Status status = state_.run(insn); !status)
      return tl::unexpected<Error>(at_insn(std::move(status.error()), insns_, index));
    count(state_.design(), insn, counters_);
    give(tokens_, insn);
    return true;
  }

  State& state_;
  const std::vector<Insn>& insns_;
  Stream stream_;
  Progress progress_;
  Tokens tokens_{};
  Counters counters_;
};

class Fsim : public Device {
 public:
  explicit Fsim(const Design& design) : state_(design) {}

  std::string name() const override { return "spatial:fsim"; }
  const Design& design() const override { return state_.design(); }
  Status write(uint64_t address, std::string_view bytes) override {
    return state_.write(address, bytes);
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    return state_.read(address, into, bytes);
  }
  Result<LaunchReport> launch(const std::vector<Insn>& insns, const LaunchOptions&) override {
    LaunchReport report;
    report.counters = TW_TRY(Network(state_, insns).run());
    return report;
  }

 private:
  State state_;
};

}  // namespace

std::unique_ptr<Device> make_fsim(const Design& design) { return std::make_unique<Fsim>(design); }

}  // namespace tilewright::spatial
