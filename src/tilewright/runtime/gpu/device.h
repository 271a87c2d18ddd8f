// GPUs of this machine. Drivers are loaded when first asked for; none of them is needed to build or
// to start.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/runtime/gpu/program.h"
#include "tilewright/runtime/launch.h"

namespace tilewright::runtime {

struct GpuDeviceInfo {
  std::string id;        ///< `opencl:0`, `cuda:0`, ...
  std::string name;      ///< as the driver says
  std::string language;  ///< `opencl`, `cuda`
  std::string arch;      ///< cuda: `sm_90`; opencl: version text
  int64_t memory_bytes = 0, shared_bytes = 0, max_threads = 0;
  int units = 0;
  bool has_f16 = false, has_f64 = false;
};

/// A program on a device: its memory is allocated, its code compiled, its constants copied.
class GpuInstance {
 public:
  virtual ~GpuInstance() = default;
  virtual Status write_input(size_t index, const void* data) = 0;
  /// Runs all calls and waits for them. errors: Device.
  virtual Status execute() = 0;
  virtual Status read_output(size_t index, void* data) = 0;
  /// Fills an output, so that elements which no call writes show.
  virtual Status write_output(size_t index, const void* data) = 0;
  /// Nanoseconds of each call of the last `execute`, by the device's clock; empty unless recorded.
  virtual std::vector<int64_t> call_times() const = 0;
  /// Whether the times of calls sum up to that of a run; else taking them takes time too.
  virtual bool calls_add_up() const { return true; }
  /// Nanoseconds of a run, the mean of `runs` or more that follow each other, by the device's
  /// clock. Here the sum of the calls. requires: recorded times. errors: Device.
  virtual Result<double> time_runs(int64_t runs);
};

struct GpuOptions {
  bool record_times = false;
  /// Given the call times after every run of a launch (make_gpu_launch), and the time of a run
  /// among others. units: ns.
  std::function<void(const std::vector<int64_t>& calls, double run)> on_times;
};

class GpuDevice {
 public:
  virtual ~GpuDevice() = default;
  virtual const GpuDeviceInfo& info() const = 0;
  /// errors: Device (code for another language or architecture, does not compile, with the log),
  /// Capacity (memory, threads or shared memory of a block).
  virtual Result<std::unique_ptr<GpuInstance>> load(std::shared_ptr<const GpuProgram> program,
                                                    const GpuOptions& options) = 0;
};

/// What is there, OpenCL devices first; `problems`, if asked for, gets a line per driver that is
/// missing or broken.
std::vector<GpuDeviceInfo> list_gpus(std::vector<std::string>* problems = nullptr);
/// `opencl`, `opencl:1`, `cuda`, `cuda:0`: without a number the first. errors: Device (no driver,
/// no such device), with what there is and what to install.
Result<std::shared_ptr<GpuDevice>> open_gpu(const std::string& id);

/// The program as a launch of a session: arrays go to the device and come back in every run.
Result<std::unique_ptr<Launch>> make_gpu_launch(std::string name,
                                                std::shared_ptr<const GpuProgram> program,
                                                std::shared_ptr<GpuDevice> device,
                                                const GpuOptions& options);

/// For SessionOptions: code for GPUs on `device`; empty: the first that the code is for.
LaunchLoader gpu_launch_loader(std::string device);

}  // namespace tilewright::runtime
