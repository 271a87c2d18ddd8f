// The side of a back-end that runs its code: devices, loaded launches and what they did, and for
// accelerators the tools around their programs. One DeviceRuntime belongs to each Backend.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/accel/common/run_trace.h"
#include "tilewright/base/result.h"
#include "tilewright/base/tool_version.h"
#include "tilewright/compile/observer.h"
#include "tilewright/runtime/launch.h"

namespace tilewright::compile {

/// What --device may name. Its id is the back-end's name, or begins with it and a colon.
struct DeviceRow {
  std::string id;           ///< `cpu`, `vta:fsim`, ...
  std::string detail;       ///< one line
  bool keeps_time = false;  ///< counts cycles of its own, beside the wall clock
};

/// What became of trying a device.
struct DeviceState {
  std::string id, reason, detail;  ///< reason: why it is not usable, or empty
};

/// An external program that a device needs.
struct DeviceTool {
  ToolNeed tool;
  std::string needed_for;
};

struct LaunchSettings {
  std::string device;         ///< empty: the fastest that can run the package's code
  bool record_times = false;  ///< keep what each instruction did (timed devices)
  std::string dump_folder;    ///< write every program as a dump below it; empty: no
  Observer observer;          ///< hears of what takes long: building simulators, runs of them
};

struct Count {
  std::string name;
  uint64_t value = 0;
};

/// One layer of a launch on a device that counts cycles.
struct LaunchLayer {
  std::string name;
  std::vector<Count> cycles, counters;
  std::vector<std::string> row;  ///< under the record's `headings`
};

/// One call of a launch on a device that measures time.
struct CallTime {
  std::string step, kernel;
  double ns = 0;                                 ///< mean of the runs
  std::vector<std::pair<int, int64_t>> buffers;  ///< that it uses: number and bytes
};

/// What a launch did. Simulators count (`counters` is not empty), in their last run; devices with a
/// clock measure the calls of all runs. What a device does not have is empty.
class LaunchRecord {
 public:
  virtual ~LaunchRecord() = default;
  virtual std::string device() const = 0;  ///< the id

  virtual std::vector<Count> counters() const { return {}; }
  virtual uint64_t cycles() const { return 0; }  ///< 0: it keeps no time
  virtual double clock_mhz() const { return 0; }
  /// With recorded times.
  virtual std::vector<LaunchLayer> layers() const { return {}; }
  /// Of a table with a row per layer.
  virtual std::vector<std::string> headings() const { return {}; }
  /// The whole launch in such a table.
  virtual std::vector<std::string> row(const std::string& name) const { return {name}; }
  /// Which unit did what and when, with recorded times.
  virtual std::optional<accel::RunTrace> trace() const { return std::nullopt; }
  /// A picture (SVG) of which unit did what and when, with recorded times.
  virtual std::optional<std::string> timeline() const { return std::nullopt; }

  virtual std::vector<CallTime> calls() const { return {}; }
  /// Of all runs, and of one in the mean: without what it takes to time the calls.
  virtual double runs_ns() const { return 0; }
  virtual double run_ns() const { return 0; }
  /// Forgets the runs so far.
  virtual void reset() {}
};

/// What a session's launches did; filled while it runs.
struct LaunchLog {
  struct Entry {
    std::string name;
    std::shared_ptr<LaunchRecord> record;
  };
  std::vector<Entry> entries;

  /// Replaces what was known of this launch.
  void set(const std::string& name, std::shared_ptr<LaunchRecord> record);
};

/// What `inspect` shows of a launch.
struct LaunchSummary {
  std::string list;             ///< in the JSON document: `accelerators`, `gpu`
  nlohmann::ordered_json json;  ///< its entry there
  std::string line;             ///< beside the package's target; may be empty
  std::string title;            ///< of a table behind the package's steps; may be empty
  std::vector<std::vector<std::string>> rows;
};

/// A line of `targets`.
struct TargetSummary {
  std::string list;  ///< in the JSON document: `targets`, `gpus`, `accelerators`
  nlohmann::ordered_json json;
  std::vector<std::string> row;  ///< name, processor, width of its vectors, whether it runs here
};

/// What is wrong with a program, or not portable.
struct ProgramFinding {
  bool error = true;
  std::string rule;
  size_t run = 0, insn = 0;
  std::string text;
};

/// Bytes that are not as a dump expects.
struct ProgramMismatch {
  std::string where;
  size_t run = 0;
  uint64_t first = 0;
  int actual = 0, expected = 0;
  uint64_t count = 0, compared = 0;
};

struct SimulatedProgram {
  std::shared_ptr<LaunchRecord> record;
  uint64_t compared = 0;  ///< bytes with an expected value
  std::optional<ProgramMismatch> mismatch;
};

/// A program of an accelerator by itself: from a package, or a dump with the results it expects.
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  virtual size_t instructions() const = 0;
  /// A line per instruction, with the names of layers between.
  virtual std::vector<std::string> assembly() const = 0;
  virtual std::vector<ProgramFinding> check() const = 0;
  /// Gives it the clock and timing of `hardware`, a name or a file. errors: Package (another
  /// design).
  virtual Status retime(const std::string& hardware) = 0;
  /// errors: those of the device.
  virtual Result<SimulatedProgram> simulate(const LaunchSettings& settings) = 0;
  /// After `simulate`: the program with its results. errors: Io, those of the device.
  virtual Status write_dump(const std::string& folder) const = 0;
};

/// How `sim` finds the programs of an accelerator.
class ProgramReader {
 public:
  virtual ~ProgramReader() = default;
  virtual Result<std::unique_ptr<DeviceProgram>> parse(const std::string& name,
                                                       std::string_view code) const = 0;
  /// Instructions as `DeviceProgram::assembly` has them, for `hardware`: a name, a file, or empty
  /// for the usual one. `place` is for messages.
  /// errors: Usage (there is no such text for this accelerator), Parse with the line, Capacity.
  virtual Result<std::unique_ptr<DeviceProgram>> parse_text(const std::string& name,
                                                            std::string_view text,
                                                            const std::string& place,
                                                            const std::string& hardware) const;
  /// Whether `folder` looks like a dump of this accelerator.
  virtual bool is_dump(const std::string& folder) const = 0;
  virtual Result<std::unique_ptr<DeviceProgram>> read_dump(const std::string& name,
                                                           const std::string& folder) const = 0;
};

/// A configuration of an accelerator as a value.
class Hardware {
 public:
  virtual ~Hardware() = default;
  virtual void rename(const std::string& name) = 0;
  virtual std::map<std::string, std::string> settings() const = 0;  ///< as in its text, by key
  virtual std::string toml() const = 0;
  virtual std::string json() const = 0;
  virtual std::string title() const = 0;  ///< one line for people
  /// Name, elements, bytes of each and KiB.
  virtual std::vector<std::vector<std::string>> memories() const = 0;
  virtual Status check() const = 0;
  /// Whether models can be compiled for it. errors: Unsupported.
  virtual Status compilable() const = 0;
};

/// How the verb `hw` reads configurations of an accelerator.
class HardwareReader {
 public:
  virtual ~HardwareReader() = default;
  virtual std::vector<std::string> builtin() const = 0;
  /// The `kind` that its files name; empty: they need not name one.
  virtual std::string kind() const { return {}; }
  /// A name or a file. errors: Usage, Io, Parse.
  virtual Result<std::unique_ptr<Hardware>> load(const std::string& name) const = 0;
  /// errors: Parse, at `place`.
  virtual Result<std::unique_ptr<Hardware>> parse(const std::string& toml,
                                                  const std::string& place) const = 0;
};

/// Everything is const. A back-end whose code runs in this process has one device and no launches.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  /// All of them, usable or not.
  virtual std::vector<DeviceRow> devices() const = 0;
  /// Whether `--device NAME` alone says that code is wanted for this back-end; `NAME:1` is then the
  /// second device of the kind.
  virtual bool implies_target() const { return false; }
  /// Each device tried, in this process; devices of one kind may have several states.
  virtual std::vector<DeviceState> states() const;
  /// Whether `states` may hang or end the process, so that it is asked in one of its own.
  virtual bool probed_apart() const { return false; }
  /// Whether its devices measure the calls of a launch by a clock (LaunchRecord::calls).
  virtual bool measures_calls() const { return false; }
  /// What `doctor` looks for.
  virtual std::vector<DeviceTool> tools() const { return {}; }
  /// errors: of the hardware.
  virtual Result<std::vector<TargetSummary>> targets() const = 0;

  /// `code`, a launch of a package, ready on a device. It enters what it does into `log`, which it
  /// keeps alive. errors: Device, Package, those of the device.
  virtual Result<std::unique_ptr<runtime::Launch>> load_launch(
      const std::string& name, std::string_view code, const LaunchSettings& settings,
      const std::shared_ptr<LaunchLog>& log) const;
  /// errors: Parse.
  virtual Result<LaunchSummary> summary(const std::string& name, std::string_view code) const;
  /// A launch has its hardware inside: --hw may only say the same. False: --hw means nothing here.
  /// errors: Package (another design), Usage (another timing).
  virtual Result<bool> fits_hardware(const std::string& name, std::string_view code,
                                     const std::string& hardware) const;
  /// Null where there is nothing to read.
  virtual const ProgramReader* programs() const { return nullptr; }
  virtual const HardwareReader* hardware() const { return nullptr; }
};

}  // namespace tilewright::compile
