// What differs between targets. There is one row per back-end in compile/backends.cc; whoever adds
// a target writes a class like those in cpu/, gpu/ and vta/, and its row. Nobody else compares
// names of targets or devices (scripts/check_targets.py): this interface answers what compiling
// asks, and its DeviceRuntime (compile/device_backend.h) what running, simulating and listing ask.
//
// Compiling a graph goes: `prepare` (accelerators: quantised and laid out), graph passes that ask
// `set_up`, `place` and `joins` for the groups, then code: groups on the processor become kernels
// (compile/cpu), groups on a device are gathered and given to `compile_launch`.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/compile/device_backend.h"
#include "tilewright/compile/options.h"
#include "tilewright/compile/quantized_model.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/rules/common/rule_table.h"
#include "tilewright/runtime/program.h"

namespace tilewright::compile {

/// What a back-end alone knows of its launches: for reports of its own.
class LaunchDetail {
 public:
  virtual ~LaunchDetail() = default;
};

/// What became of a layer that is no kernel, in words; without name: of the whole launch.
struct LayerNote {
  std::string layer;
  std::vector<std::string> lines;
};

/// The code of one launch.
struct LaunchCode {
  std::string device;                 ///< the back-end's name
  std::string bytes;                  ///< as packages hold it
  std::vector<KernelReport> kernels;  ///< for people to look at
  std::vector<LayerNote> notes;       ///< the same, of layers that are no kernels
  int64_t stale_records = 0;          ///< whose schedules do not fit the kernels any more
  /// What it needs besides `bytes`: kernels, and bytes of code, weights and memory between kernels.
  int64_t kernel_count = 0, code_bytes = 0, weight_bytes = 0, arena_bytes = 0;
  std::shared_ptr<const LaunchDetail> detail;
  std::optional<records::Record> record;  ///< where tuning planned the launch as a whole
};

/// What the user may say of a target beside its name.
struct TargetOptions {
  std::string hw;            ///< accelerators: a configuration's name or file
  bool quantize = false;     ///< samples for quantisation were given
  bool tf32 = false;         ///< products of f32 may round their factors to TF32
  bool own_designs = false;  ///< FPGAs: layers of a network share no design
};

/// Everything is const and depends on its arguments alone.
class Backend {
 public:
  virtual ~Backend() = default;

  /// `cpu`, `opencl`, `cuda`, `vta`: of Target::backend, and of launches and devices.
  virtual std::string_view name() const = 0;
  /// What --target may name.
  virtual std::vector<std::string> target_names() const = 0;
  /// The target called `name`, one of target_names(). errors: Usage (options that are not for it),
  /// and what is wrong with the hardware.
  virtual Result<hw::Target> target(const std::string& name,
                                    const TargetOptions& options) const = 0;
  /// `target`, of a user's file (hw/target_file.h), with what `options` say. errors: Usage.
  virtual Result<hw::Target> accept(hw::Target target, const TargetOptions& options) const;
  /// What runs the code: devices, launches, programs.
  virtual const DeviceRuntime& runtime() const = 0;

  /// `graph` quantised and in the target's layout; absent where the back-end takes graphs as they
  /// are. errors: Usage (no samples), Unsupported (operators that the target lacks), Capacity.
  virtual Result<std::optional<QuantizedModel>> prepare(const graph::Graph& graph,
                                                        const QuantizeSettings& settings,
                                                        const CompileOptions& options) const;
  /// The graph passes to run, comma-separated; none for graphs that `prepare` made.
  virtual std::string passes(const CompileOptions& options) const = 0;
  /// Answers what passes ask. `used`: where records that decided something are added.
  virtual void set_up(graph::PassContext& context, const CompileOptions& options,
                      std::vector<records::Record>& used) const = 0;
  /// The device of each node, by index: name(), `NAME/k` for launch k of several (graph::DeviceOf),
  /// or nothing for the processor. Empty: the processor does all.
  virtual Result<std::vector<std::string>> place(const graph::Graph& graph,
                                                 const CompileOptions& options) const;
  /// Whether groups form on graphs of any level: those that `prepare` made need it.
  virtual bool always_fuses() const { return false; }
  /// Whether the nodes of `group`, a candidate of graph/fuse, are better one kernel than several.
  virtual bool joins(const graph::Graph& graph, const graph::Group& group,
                     const CompileOptions& options) const;

  /// Code of `launch`, a group placed here. errors: Unsupported, Capacity, with the node's name; of
  /// tools.
  virtual Result<LaunchCode> compile_launch(const graph::Graph& graph, const graph::Group& launch,
                                            const CompileOptions& options) const;
  /// Code of a single Func whose parameters without known values are inputs and outputs; absent
  /// where kernels of the processor do it.
  virtual Result<std::optional<LaunchCode>> compile_func(const Func& func,
                                                         const CompileOptions& options) const;
  /// Of an accelerator: whether `prepare` takes models in f32 as they are, unless there are
  /// samples. What it returns then has placements and the graph alone.
  virtual bool takes_floats() const { return false; }
  /// Of an accelerator: whether `compile_func` answers.
  virtual bool takes_funcs() const { return false; }
  /// The rules that choose schedules of its kernels, in the order in which they are asked.
  virtual std::vector<rules::RuleInfo> schedule_rules() const = 0;
  /// What the package's manifest says of the target.
  virtual void describe(runtime::Program& program, const CompileOptions& options) const = 0;

  /// A memo for one model; absent where there is nothing to remember.
  virtual std::shared_ptr<BackendMemo> make_memo() const { return nullptr; }
};

/// errors: Usage, where options of accelerators are given for another target.
Status refuse_accelerator_options(const TargetOptions& options);
/// errors: Usage, where TF32, or designs of FPGAs, are asked of a target that has none.
Status refuse_tf32(const std::string& target, const TargetOptions& options);
Status refuse_own_designs(const std::string& target, const TargetOptions& options);
/// Both.
Status refuse_options_of_others(const std::string& target, const TargetOptions& options);

}  // namespace tilewright::compile
