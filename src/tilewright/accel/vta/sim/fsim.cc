#include "tilewright/accel/vta/sim/fsim.h"

#include <fmt/format.h>

#include "tilewright/accel/vta/sim/machine.h"
#include "tilewright/accel/vta/sim/stream.h"

namespace tilewright::vta {
namespace {

/// One launch: every module runs until it waits for a token, in turn, until none can go on. By
/// Kahn's theorem the turn does not matter to programs without races.
class Network {
 public:
  Network(Machine& machine, const std::vector<Insn>& insns, const Stream& stream)
      : machine_(machine),
        insns_(insns),
        stream_(stream),
        next_(stream.modules.size()),
        tokens_(token_queues(stream)) {}

  Result<Counters> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t m = 0; m < stream_.modules.size(); ++m)
        while (TW_TRY(step(m))) moved = true;
    }
    std::vector<size_t> lengths;
    bool done = true;
    for (size_t m = 0; m < next_.size(); ++m) {
      lengths.push_back(stream_.queues[m].size());
      done = done && next_[m] == lengths[m];
    }
    if (!done)
      return tl::unexpected<Error>(
          deadlock(machine_.config(), insns_, stream_, next_, tokens_, lengths));
    TW_TRY_STATUS(check_leftover(stream_, tokens_));
    return counters_;
  }

 private:
  bool available(int queue) const { return queue == kNoTokens || tokens_[queue] > 0; }

  /// One instruction of module m; false if there is none or it has to wait.
  Result<bool> step(size_t m) {
    if (next_[m] == stream_.queues[m].size()) return false;
    const size_t index = stream_.queues[m][next_[m]];
    const Insn& insn = insns_[index];
    const TokenUse use = token_use(insn.deps, m);
    if (!available(use.pop_prev) || !available(use.pop_next)) return false;
    for (const int queue : {use.pop_prev, use.pop_next})
      if (queue != kNoTokens) --tokens_[queue];
    TW_TRY_STATUS(run_at(machine_, insns_, index));
    count(machine_.config(), insn, counters_);
    for (const int queue : {use.push_prev, use.push_next})
      if (queue != kNoTokens) ++tokens_[queue];
    ++next_[m];
    return true;
  }

  Machine& machine_;
  const std::vector<Insn>& insns_;
  const Stream& stream_;
  std::vector<size_t> next_;
  std::vector<uint64_t> tokens_;
  Counters counters_;
};

class Fsim : public Device {
 public:
  Fsim(const Config& config, uint64_t dram_bytes) : machine_(config, dram_bytes) {}

  std::string name() const override { return "vta:fsim"; }
  const Config& config() const override { return machine_.config(); }
  Status write(uint64_t address, std::string_view bytes) override {
    return machine_.write(address, bytes);
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    return machine_.read(address, into, bytes);
  }
  Result<LaunchReport> launch(const std::vector<Insn>& insns, const LaunchOptions&) override {
    const Stream stream = TW_TRY(split(config(), insns));
    LaunchReport report;
    report.counters = TW_TRY(Network(machine_, insns, stream).run());
    return report;
  }

 private:
  Machine machine_;
};

}  // namespace

std::unique_ptr<Device> make_fsim(const Config& config, uint64_t dram_bytes) {
  return std::make_unique<Fsim>(config, dram_bytes);
}

}  // namespace tilewright::vta
