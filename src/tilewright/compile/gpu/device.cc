#include "tilewright/compile/gpu/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/counted.h"
#include "tilewright/runtime/gpu/device.h"

namespace tilewright::compile {
namespace {

/// A program with one kernel that does nothing.
runtime::GpuProgram gpu_probe(const std::string& language) {
  runtime::GpuProgram program;
  program.language = language;
  program.source = "__kernel void probe() {}";
  program.arch = "sm_50";
  program.ptx = ".version 5.0\n.target sm_50\n.address_size 64\n.visible .entry probe() { ret; }\n";
  program.kernels = {{"probe", {1, 1, 1}, {1, 1, 1}}};
  program.calls = {{0, "probe", {}, {}}};
  return program;
}

/// Runs it on a GPU; empty if it worked.
std::string try_gpu(const runtime::GpuDeviceInfo& info) {
  const auto run = [&]() -> Status {
    const auto device = TW_TRY(runtime::open_gpu(info.id));
    const auto program = std::make_shared<const runtime::GpuProgram>(gpu_probe(info.language));
    return TW_TRY(device->load(program, {}))->execute();
  };
  const Status status = run();
  return status ? "" : status.error().what + ": " + status.error().why;
}

class GpuRuntime final : public DeviceRuntime {
 public:
  explicit GpuRuntime(hw::GpuLanguage language) : language_(language), name_(hw::name(language)) {}

  std::vector<DeviceRow> devices() const override {
    const char* first = language_ == hw::GpuLanguage::Cuda ? "the first GPU with a CUDA driver"
                                                           : "the first OpenCL device";
    return {{name_, fmt::format("{}; {}:1 is the next one", first, name_)}};
  }

  bool implies_target() const override { return true; }
  bool probed_apart() const override { return true; }
  bool measures_calls() const override { return true; }

  std::vector<DeviceState> states() const override {
    std::vector<std::string> problems;
    std::vector<DeviceState> rows;
    for (const runtime::GpuDeviceInfo& info : runtime::list_gpus(&problems))
      if (info.language == name_)
        rows.push_back({info.id, try_gpu(info),
                        fmt::format("{}, {}, {} units, {} GiB", info.name, info.arch, info.units,
                                    info.memory_bytes >> 30)});
    for (const std::string& problem : problems)
      if (problem.starts_with(name_ + ": "))
        rows.push_back({name_, problem.substr(name_.size() + 2), ""});
    return rows;
  }

  Result<std::vector<TargetSummary>> targets() const override {
    std::vector<TargetSummary> summaries;
    for (const hw::GpuTarget& target : hw::all_gpu_targets()) {
      if (target.language != language_) continue;
      const std::string processor =
          target.arch.empty() ? "any OpenCL device with these limits" : target.arch;
      summaries.push_back({"gpus",
                           {{"name", target.name},
                            {"language", name_},
                            {"arch", target.arch},
                            {"max_threads", target.max_threads},
                            {"shared_bytes", target.shared_bytes},
                            {"units", target.units},
                            {"f16", target.has_f16},
                            {"f64", target.has_f64}},
                           {target.name,
                            fmt::format("{}: {} threads, {} KiB shared", processor,
                                        target.max_threads, target.shared_bytes >> 10),
                            std::to_string(target.vector_bytes * 8), "see `tilewright devices`"}});
    }
    return summaries;
  }

  Result<std::unique_ptr<runtime::Launch>> load_launch(
      const std::string& name, std::string_view code, const LaunchSettings& settings,
      const std::shared_ptr<LaunchLog>& log) const override {
    auto program =
        std::make_shared<const runtime::GpuProgram>(TW_TRY(runtime::parse_gpu_program(code)));
    std::shared_ptr<runtime::GpuDevice> device =
        TW_TRY(runtime::open_gpu(settings.device.empty() ? name_ : settings.device));
    runtime::GpuOptions options;
    if (settings.record_times) {
      const auto record = std::make_shared<GpuLaunchRecord>(device->info().id, program);
      log->entries.push_back({name, record});
      // The log is kept alive as the record is.
      options = {true, [log, record](const std::vector<int64_t>& calls, double run) {
                   record->add(calls, run);
                 }};
    }
    return runtime::make_gpu_launch(name, std::move(program), std::move(device), options);
  }

  Result<LaunchSummary> summary(const std::string& name, std::string_view code) const override {
    const runtime::GpuProgram program = TW_TRY(runtime::parse_gpu_program(code));
    LaunchSummary summary;
    summary.list = "gpu";
    summary.json = {{"name", name},
                    {"language", program.language},
                    {"arch", program.arch},
                    {"weight_bytes", program.constants.size()}};
    summary.title = fmt::format(
        "{} for {} {}: {}, arena {} bytes, weights {} bytes", name, program.language, program.arch,
        counted(program.kernels.size(), "kernel"), program.arena_bytes, program.constants.size());
    summary.rows = {{"step", "kernel", "blocks", "threads"}};
    for (const runtime::GpuCall& call : program.calls) {
      const runtime::GpuKernelCode& kernel = program.kernels[static_cast<size_t>(call.kernel)];
      summary.json["steps"].push_back({{"step", call.step}, {"kernel", kernel.symbol}});
      summary.rows.push_back({call.step, kernel.symbol,
                              fmt::format("{}", fmt::join(kernel.grid, "x")),
                              fmt::format("{}", fmt::join(kernel.block, "x"))});
    }
    return summary;
  }

 private:
  hw::GpuLanguage language_;
  std::string name_;
};

}  // namespace

const DeviceRuntime& gpu_runtime(hw::GpuLanguage language) {
  static const GpuRuntime opencl(hw::GpuLanguage::OpenCl), cuda(hw::GpuLanguage::Cuda);
  return language == hw::GpuLanguage::OpenCl ? opencl : cuda;
}

GpuLaunchRecord::GpuLaunchRecord(std::string device,
                                 std::shared_ptr<const runtime::GpuProgram> program)
    : device_(std::move(device)), program_(std::move(program)), total_ns_(program_->calls.size()) {}

void GpuLaunchRecord::add(const std::vector<int64_t>& times, double run) {
  ++runs_;
  runs_ns_ += run;
  for (size_t i = 0; i < times.size(); ++i) total_ns_[i] += times[i];
}

std::vector<CallTime> GpuLaunchRecord::calls() const {
  std::vector<CallTime> calls;
  for (size_t i = 0; i < program_->calls.size(); ++i) {
    const runtime::GpuCall& call = program_->calls[i];
    CallTime time{call.step,
                  program_->kernels[static_cast<size_t>(call.kernel)].symbol,
                  mean(static_cast<double>(total_ns_[i])),
                  {}};
    for (const int buffer : call.buffers)
      time.buffers.emplace_back(buffer, program_->buffers[static_cast<size_t>(buffer)].bytes);
    calls.push_back(std::move(time));
  }
  return calls;
}

void GpuLaunchRecord::reset() {
  runs_ = 0;
  runs_ns_ = 0;
  std::fill(total_ns_.begin(), total_ns_.end(), 0);
}

}  // namespace tilewright::compile
