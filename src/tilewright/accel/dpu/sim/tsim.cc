#include "tilewright/accel/dpu/sim/tsim.h"

#include "tilewright/accel/dpu/sim/clock.h"
#include "tilewright/accel/dpu/sim/machine.h"

namespace tilewright::dpu {
namespace {

/// Data is read when an instruction begins and there when it is done.
class MoveData : public Actions {
 public:
  MoveData(Machine& machine, const std::vector<Insn>& insns)
      : machine_(machine), insns_(insns), effects_(insns.size()) {}

  Status begin(size_t insn) override { return machine_.compute(insns_[insn], effects_[insn]); }
  void done(size_t insn) override {
    machine_.commit(effects_[insn]);
    effects_[insn] = {};
  }

 private:
  Machine& machine_;
  const std::vector<Insn>& insns_;
  std::vector<Effects> effects_;
};

Result<LaunchReport> run_clock(const Config& config, const std::vector<Insn>& insns,
                               const LaunchOptions& options, const Jitter& jitter,
                               Machine* machine) {
  const Stream stream = TW_TRY(split(insns));
  Clock clock(config, insns, stream, jitter);
  if (machine != nullptr) {
    machine->begin_launch();
    MoveData actions(*machine, insns);
    TW_TRY_STATUS(clock.run(&actions, options.max_cycles));
  } else {
    TW_TRY_STATUS(clock.run(nullptr, options.max_cycles));
  }
  LaunchReport report;
  Inits inits;
  for (size_t i = 0; i + 1 < insns.size(); ++i) {
    inits.update(insns[i].op);
    count(config, insns[i], inits, report.counters);
  }
  clock.add_to(report.counters);
  report.cycles = clock.cycles();
  if (options.record_times) report.times = clock.take_times();
  return report;
}

/// What time needs of an instruction; with data the machine checks them all.
Status check_insns(const Config& config, const std::vector<Insn>& insns) {
  Inits inits;
  for (size_t i = 0; i + 1 < insns.size(); ++i) {
    const auto problem = [&](Error error) {
      return tl::unexpected<Error>(at_insn(std::move(error), insns, i));
    };
    if (Status status = check_fields(insns[i], ""); !status)
      return problem(std::move(status.error()));
    inits.update(insns[i].op);
    if (!inits.complete_for(insns[i].op))
      return problem({ErrorKind::Invalid, "comes before its INIT", {}, {}, {}, {}});
    if (Status status = check_ranges(config, insns[i], inits); !status)
      return problem(std::move(status.error()));
  }
  return {};
}

class Tsim : public Device {
 public:
  Tsim(const Config& config, uint64_t ddr_bytes, const Jitter& jitter)
      : machine_(config, ddr_bytes), jitter_(jitter) {}

  std::string name() const override { return "dpu:tsim"; }
  const Config& config() const override { return machine_.config(); }
  void set_registers(const Registers& registers) override { machine_.set_registers(registers); }
  Status write(uint64_t address, std::string_view bytes) override {
    return machine_.write(address, bytes);
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    return machine_.read(address, into, bytes);
  }
  Result<LaunchReport> launch(const std::vector<Insn>& insns,
                              const LaunchOptions& options) override {
    TW_TRY_STATUS(check_insns(config(), insns));
    return run_clock(config(), insns, options, jitter_, &machine_);
  }

 private:
  Machine machine_;
  Jitter jitter_;
};

}  // namespace

std::unique_ptr<Device> make_tsim(const Config& config, uint64_t ddr_bytes) {
  return make_tsim(config, ddr_bytes, {});
}

std::unique_ptr<Device> make_tsim(const Config& config, uint64_t ddr_bytes, const Jitter& jitter) {
  return std::make_unique<Tsim>(config, ddr_bytes, jitter);
}

Result<LaunchReport> simulate_time(const Config& config, const std::vector<Insn>& insns,
                                   const LaunchOptions& options, const Jitter& jitter) {
  TW_TRY_STATUS(check_insns(config, insns));
  return run_clock(config, insns, options, jitter, nullptr);
}

}  // namespace tilewright::dpu
