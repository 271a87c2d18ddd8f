#include "tilewright/compile/fpga/design_launch.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/codegen/fpga/design_of.h"
#include "tilewright/lower/lower.h"

namespace tilewright::compile {
namespace {

/// What a design did in its last run.
class DesignRecord final : public LaunchRecord {
 public:
  DesignRecord(std::string device, double clock_mhz, std::shared_ptr<const fpga::Design> design,
               fpga::Report report)
      : device_(std::move(device)),
        clock_mhz_(clock_mhz),
        design_(std::move(design)),
        report_(std::move(report)) {}

  std::string device() const override { return device_; }
  uint64_t cycles() const override { return static_cast<uint64_t>(report_.cycles); }
  double clock_mhz() const override { return clock_mhz_; }
  std::vector<Count> counters() const override {
    std::vector<Count> counts = {{"cycles", cycles()}};
    for (const fpga::ProcessReport& process : report_.processes)
      for (size_t i = 0; i < fpga::kDoings; ++i)
        if (const auto doing = static_cast<fpga::Doing>(i); doing != fpga::Doing::Done)
          counts.push_back({fmt::format("{}: {}", process.name, fpga::name(doing)),
                            static_cast<uint64_t>(process.cycles[i])});
    return counts;
  }
  std::optional<std::string> trace() const override {
    if (report_.spans.empty()) return std::nullopt;
    return fpga::perfetto_trace(*design_, report_);
  }

 private:
  std::string device_;
  double clock_mhz_;
  std::shared_ptr<const fpga::Design> design_;
  fpga::Report report_;
};

class DesignLaunch final : public runtime::Launch {
 public:
  DesignLaunch(Func func, fpga::Design design, const hw::FpgaDevice& device, std::string name,
               const LaunchSettings& settings, std::shared_ptr<LaunchLog> log)
      : func_(std::move(func)),
        design_(std::make_shared<const fpga::Design>(std::move(design))),
        clock_mhz_(device.clock_mhz),
        name_(std::move(name)),
        device_(settings.device),
        log_(std::move(log)) {
    options_.memory = memory_timing(device);
    options_.spans = settings.record_times;
  }

  /// errors: Tool.
  Status verilate() {
    rtl_ = TW_TRY(fpga::make_rtl(*design_, fpga::Numbers::Fixed));
    return {};
  }

  Status run(const std::vector<Array>& inputs, std::vector<Array>& outputs) override {
    std::vector<std::string> bytes;
    size_t input = 0, output = 0;
    for (const Param& p : func_.params) {
      const Array& array = p.mode == ParamMode::Out ? outputs.at(output++)
                           : p.values               ? *p.values
                                                    : inputs.at(input++);
      bytes.emplace_back(static_cast<const char*>(array.data()),
                         static_cast<size_t>(array.bytes()));
    }
    fpga::Report report = TW_TRY(rtl_ != nullptr ? rtl_->run(*design_, options_, bytes)
                                                 : fpga::simulate(*design_, options_, bytes));
    output = 0;
    for (size_t i = 0; i < func_.params.size(); ++i)
      if (func_.params[i].mode == ParamMode::Out)
        std::memcpy(outputs[output++].data(), bytes[i].data(), bytes[i].size());
    if (log_)
      log_->set(name_,
                std::make_shared<DesignRecord>(device_, clock_mhz_, design_, std::move(report)));
    return {};
  }

 private:
  Func func_;
  std::shared_ptr<const fpga::Design> design_;
  double clock_mhz_;
  std::string name_, device_;
  std::shared_ptr<LaunchLog> log_;
  fpga::RunOptions options_;
  std::unique_ptr<fpga::RtlModel> rtl_;
};

}  // namespace

fpga::MemoryTiming memory_timing(const hw::FpgaDevice& device) {
  const hw::FpgaPort& port = device.port;
  fpga::MemoryTiming timing;
  timing.read_latency = port.read_latency;
  timing.write_latency = port.write_latency;
  timing.write_gap = port.write_gap;
  // Cycles of the channel for one beat, in 1/65536.
  const double beat = port.bytes * device.clock_mhz * 1e6 / (device.memory.gigabytes * 1e9);
  timing.read_cost = static_cast<int32_t>(std::lround(65536 * beat / port.read_share));
  timing.write_cost = static_cast<int32_t>(std::lround(65536 * beat / port.write_share));
  return timing;
}

Result<fpga::Design> fpga_design(const Func& func, const hw::FpgaDevice& device) {
  const Func lowered = TW_TRY(lower::run_pipeline(func, "fpga"));
  return codegen::design_of(lowered, TW_TRY(lower::processes_of(lowered)), device);
}

Result<std::unique_ptr<runtime::Launch>> load_design_launch(const Func& func,
                                                            const hw::FpgaDevice& device,
                                                            const std::string& name,
                                                            const LaunchSettings& settings,
                                                            std::shared_ptr<LaunchLog> log) {
  fpga::Design design = TW_TRY(fpga_design(func, device));
  auto launch = std::make_unique<DesignLaunch>(func, std::move(design), device, name, settings,
                                               std::move(log));
  if (settings.device == kFpgaRtl) TW_TRY_STATUS(launch->verilate());
  return std::unique_ptr<runtime::Launch>(std::move(launch));
}

}  // namespace tilewright::compile
