#include "tilewright/compile/fpga/design_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tilewright/accel/fpga/merge.h"
#include "tilewright/codegen/fpga/design_of.h"
#include "tilewright/lower/lower.h"

namespace tilewright::compile {
namespace {

/// What designs did in the last run of a launch, one after the other.
class DesignRecord final : public LaunchRecord {
 public:
  using Calls = std::vector<std::pair<std::string, DesignRun>>;
  DesignRecord(std::string device, double clock_mhz, Calls calls)
      : device_(std::move(device)), clock_mhz_(clock_mhz), calls_(std::move(calls)) {}

  std::string device() const override { return device_; }
  uint64_t cycles() const override {
    uint64_t sum = 0;
    for (const auto& [name, run] : calls_) sum += static_cast<uint64_t>(run.report.cycles);
    return sum;
  }
  double clock_mhz() const override { return clock_mhz_; }
  /// Of a single design with its processes.
  std::vector<Count> counters() const override {
    std::vector<Count> counts = {{"cycles", cycles()}};
    if (single()) add_processes(calls_[0].second, counts);
    return counts;
  }
  std::vector<LaunchLayer> layers() const override {
    std::vector<LaunchLayer> layers;
    for (const auto& [name, run] : calls_) {
      if (single()) break;
      const auto cycles = static_cast<uint64_t>(run.report.cycles);
      LaunchLayer& layer = layers.emplace_back();
      layer.name = name;
      layer.cycles = {{"cycles", cycles}};
      add_processes(run, layer.counters);
      layer.row = {name, std::to_string(cycles)};
    }
    return layers;
  }
  std::vector<std::string> headings() const override {
    return single() ? std::vector<std::string>{} : std::vector<std::string>{"layer", "cycles"};
  }
  std::vector<std::string> row(const std::string& name) const override {
    return {name, std::to_string(cycles())};
  }
  std::optional<accel::RunTrace> trace() const override {
    accel::RunTrace trace;
    uint64_t begin = 0;
    for (const auto& [name, run] : calls_) {
      if (run.report.spans.empty()) return std::nullopt;
      fpga::add_to_trace(*run.design, run.report, begin, single() ? "" : name, trace);
      begin += static_cast<uint64_t>(run.report.cycles);
    }
    return trace;
  }

 private:
  bool single() const { return calls_.size() == 1; }

  static void add_processes(const DesignRun& run, std::vector<Count>& counts) {
    for (const fpga::ProcessReport& process : run.report.processes)
      for (size_t i = 0; i < fpga::kDoings; ++i)
        if (const auto doing = static_cast<fpga::Doing>(i); doing != fpga::Doing::Done)
          counts.push_back({fmt::format("{}: {}", process.name, fpga::name(doing)),
                            static_cast<uint64_t>(process.cycles[i])});
  }

  std::string device_;
  double clock_mhz_;
  Calls calls_;
};

class DesignKernel final : public FpgaKernel {
 public:
  /// `rtl`: the build, which other designs may share; absent: the simulator runs it.
  DesignKernel(const Func& func, fpga::Design design, std::shared_ptr<fpga::RtlModel> rtl,
               const hw::FpgaDevice& device, bool spans)
      : params_(func.params),
        design_(std::make_shared<const fpga::Design>(std::move(design))),
        rtl_(std::move(rtl)) {
    options_.memory = memory_timing(device);
    options_.spans = spans;
  }

  Status run(const std::vector<void*>& buffers, DesignRun& did) override {
    std::vector<std::string> bytes;
    for (size_t i = 0; i < params_.size(); ++i)
      bytes.emplace_back(static_cast<const char*>(buffers[i]),
                         static_cast<size_t>(TW_TRY(param_bytes(params_[i]))));
    did.design = design_;
    did.report = TW_TRY(rtl_ != nullptr ? rtl_->run(*design_, options_, bytes)
                                        : fpga::simulate(*design_, options_, bytes));
    for (size_t i = 0; i < params_.size(); ++i)
      if (params_[i].mode == ParamMode::Out)
        std::memcpy(buffers[i], bytes[i].data(), bytes[i].size());
    return {};
  }

 private:
  std::vector<Param> params_;
  std::shared_ptr<const fpga::Design> design_;
  std::shared_ptr<fpga::RtlModel> rtl_;
  fpga::RunOptions options_;
};

}  // namespace

fpga::MemoryTiming memory_timing(const hw::FpgaDevice& device) {
  const hw::FpgaPort& port = device.port;
  fpga::MemoryTiming timing;
  timing.read_latency = port.read_latency;
  timing.write_latency = port.write_latency;
  timing.write_gap = port.write_gap;
  timing.write_beat = device.write_beat();
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

Result<SharedDesigns> shared_designs(const std::vector<const FpgaNetwork::Design*>& alike,
                                     const hw::FpgaDevice& device) {
  SharedDesigns shared;
  for (const FpgaNetwork::Design* one : alike)
    shared.designs.push_back(TW_TRY(fpga_design(one->func, device)));
  if (alike.size() == 1) return shared;
  shared.numbers = fpga::Numbers::Table;
  shared.designs = TW_TRY(fpga::merge(std::move(shared.designs)));
  return shared;
}

Result<std::vector<std::unique_ptr<FpgaKernel>>> load_designs(
    const std::vector<const FpgaNetwork::Design*>& alike, const hw::FpgaDevice& device,
    const LaunchSettings& settings) {
  auto [designs, numbers] = TW_TRY(shared_designs(alike, device));
  std::shared_ptr<fpga::RtlModel> rtl;
  if (settings.device == kFpgaRtl) rtl = TW_TRY(fpga::make_rtl(designs[0], numbers));
  std::vector<std::unique_ptr<FpgaKernel>> kernels;
  for (size_t i = 0; i < alike.size(); ++i)
    kernels.push_back(std::make_unique<DesignKernel>(alike[i]->func, std::move(designs[i]), rtl,
                                                     device, settings.record_times));
  return kernels;
}

std::shared_ptr<LaunchRecord> design_record(std::string device, double clock_mhz,
                                            std::vector<std::pair<std::string, DesignRun>> calls) {
  return std::make_shared<DesignRecord>(std::move(device), clock_mhz, std::move(calls));
}

}  // namespace tilewright::compile
