#include "tilewright/accel/spatial/sim/tsim.h"

#include <algorithm>

#include "tilewright/accel/spatial/sim/machine.h"
#include "tilewright/accel/spatial/sim/state.h"
#include "tilewright/accel/spatial/sim/stream.h"

namespace tilewright::spatial {
namespace {

/// When an instruction touches memory, for the order in which data moves: what is loaded is there
/// only at the end, everything else is done as it begins. Ordered instructions keep their order.
uint64_t moment(const Insn& insn, const InsnTime& time) {
  return insn.queue() == Queue::Load ? time.end - 1 : time.begin;
}

class Tsim : public Device {
 public:
  explicit Tsim(const Design& design) : state_(design) {}

  std::string name() const override { return "spatial:tsim"; }
  const Design& design() const override { return state_.design(); }
  Status write(uint64_t address, std::string_view bytes) override {
    return state_.write(address, bytes);
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    return state_.read(address, into, bytes);
  }
  Result<LaunchReport> launch(const std::vector<Insn>& insns,
                              const LaunchOptions& options) override {
    LaunchOptions with_times = options;
    with_times.record_times = true;
    LaunchReport report = TW_TRY(simulate_time(design(), insns, with_times));
    TW_TRY_STATUS(move_data(insns, report.times));
    if (!options.record_times) report.times.clear();
    return report;
  }

 private:
  Status move_data(const std::vector<Insn>& insns, const std::vector<InsnTime>& times) {
    std::vector<InsnTime> order = times;
    std::stable_sort(order.begin(), order.end(), [&](const InsnTime& a, const InsnTime& b) {
      return moment(insns[a.insn], a) < moment(insns[b.insn], b);
    });
    state_.begin_launch();
    for (const InsnTime& time : order)
      if (Status status = state_.run(insns[time.insn]); !status)
        return tl::unexpected<Error>(at_insn(std::move(status.error()), insns, time.insn));
    return {};
  }

  State state_;
};

}  // namespace

std::unique_ptr<Device> make_tsim(const Design& design) { return std::make_unique<Tsim>(design); }

Result<LaunchReport> simulate_time(const Design& design, const std::vector<Insn>& insns,
                                   const LaunchOptions& options) {
  for (size_t i = 0; i < insns.size(); ++i)
    if (Status fields = check_fields(design, insns[i]); !fields)
      return tl::unexpected<Error>(at_insn(std::move(fields.error()), insns, i));
  return simulate(design, insns, options);
}

}  // namespace tilewright::spatial
