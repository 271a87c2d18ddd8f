// Devices beside the CPU: their names, and how a session reaches them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/accel/vta/device.h"
#include "tilewright/runtime/gpu/program.h"
#include "tilewright/runtime/launch.h"

namespace tilewright::compile {

struct DeviceEntry {
  std::string id;      ///< `cpu`, `vta:fsim`, ...
  std::string target;  ///< what must be compiled for it: `cpu`, `vta`
  std::string detail;  ///< one line
};
/// All devices, usable or not.
const std::vector<DeviceEntry>& device_table();

/// `vta:fsim`, `vta:tsim` or `vta:rtl`; `vta` alone is vta:fsim.
/// errors: Device (unknown, with the list), Tool (rtl without Verilator).
Result<std::unique_ptr<vta::Device>> open_vta(const std::string& id, const vta::Config& config,
                                              uint64_t dram_bytes);

struct LaunchSettings {
  std::string device;         ///< empty: the fastest that can run the package's code
  bool record_times = false;  ///< keep what each instruction did (timed devices)
  std::string dump_folder;    ///< write every program as a dump below it; empty: no
};

/// What a session's launches did most recently, by name; filled while it runs.
struct LaunchLog {
  struct Entry {
    std::string name;
    std::shared_ptr<const vta::Program> program;
    vta::LaunchReport report;
  };
  std::vector<Entry> entries;
  Entry& entry(const std::string& name);

  /// A launch on a GPU whose times are recorded: sums over all runs.
  struct GpuEntry {
    std::string name;
    std::shared_ptr<const runtime::GpuProgram> program;
    int64_t runs = 0;
    std::vector<int64_t> total_ns;  ///< by call
  };
  std::vector<GpuEntry> gpus;
};

/// A VTA program on a device, whose memory then has the program's image. Each run of the launch is
/// all runs of the program; the log has their sum.
/// errors: Invalid (the program is for another design), those of the device.
Result<std::unique_ptr<runtime::Launch>> make_vta_launch(
    const std::string& name, std::shared_ptr<const vta::Program> program,
    std::unique_ptr<vta::Device> device, const LaunchSettings& settings,
    std::shared_ptr<LaunchLog> log);

/// For SessionOptions. Launches append to `log`, which they keep alive.
runtime::LaunchLoader make_launch_loader(const LaunchSettings& settings,
                                         std::shared_ptr<LaunchLog> log);

}  // namespace tilewright::compile
