// What a verb works on: a model, a package, a tensor expression or an operator of a workload file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/compile/compile.h"
#include "tilewright/compile/devices.h"
#include "tilewright/compile/quantized_model.h"
#include "tilewright/driver/command_line/options.h"
#include "tilewright/driver/inputs/inputs.h"
#include "tilewright/graph/onnx/import.h"
#include "tilewright/runtime/package.h"

namespace tilewright::driver {

// Options of the verbs that take subjects, as the user gave them, in groups: a verb adds those that
// have an effect in it.

/// Which model, and what is open in it.
struct ModelOptions {
  std::vector<std::string> paths;
  std::string workload, suite, id;
  std::vector<std::string> dims, shapes, constants;
  bool allow_newer_opset = false;
  bool verify_weights = false;  ///< hash all of a package when it is opened
};
/// What code is for.
struct TargetChoice {
  std::string target = "cpu";
  std::string hw;  ///< accelerator configuration: a name or a file
};
/// How a model gets into the integers of an accelerator.
struct QuantizeChoice {
  std::string quantize;            ///< calibration: FILE.npz, random or random:N
  bool per_channel = false;        ///< weights with a scale per output channel
  std::string designs = "shared";  ///< FPGAs: of the layers of a network, shared or own
  std::string fallback = "error";  ///< for operators the accelerator lacks: error or cpu
};
/// What code is made.
struct CodeOptions {
  std::string math = "fast", backend;
  bool direct = false;  ///< convolutions never by Winograd
  bool tf32 = false;    ///< CUDA: products of f32 by matrix instructions, in TF32
  int threads = 0;
  int level = 2;
};
/// What schedules are chosen by.
struct TuningOptions {
  std::string records;        ///< name of a store (records/open/open.h); empty: the user's
  bool no_records = false;    ///< schedules by rule alone
  bool no_calibrate = false;  ///< schedules follow typical rates, not those of this machine
};
/// Where code runs, and what is kept of it.
struct DeviceOptions {
  std::string device;
  std::string dump_program;   ///< folder for accelerator program dumps
  bool record_times = false;  ///< keep what accelerators did, cycle by cycle
  bool elsewhere = false;     ///< on another machine: code of packages is not loaded here
  std::string gpu;            ///< elsewhere: the GPU as its class calls it; empty: none
};
/// What a run is given.
struct InputOptions {
  std::vector<std::string> inputs;
  FileOptions files;  ///< of `inputs`
  uint64_t seed = 1;  ///< of what is made up: inputs, weights of operators, calibration samples
};

struct SubjectOptions : ModelOptions,
                        TargetChoice,
                        QuantizeChoice,
                        CodeOptions,
                        TuningOptions,
                        DeviceOptions,
                        InputOptions {};

/// `model.onnx` and the like (`what` says which files), and what is open in a model. `several`:
/// more than one path and workloads are allowed.
void add_model_options(Verb verb, ModelOptions& options, bool several,
                       const char* what = "model.onnx or file.tw");
/// The operators of a workload file instead of a path.
void add_workload_options(Verb verb, ModelOptions& options);
void add_target_options(Verb verb, TargetChoice& options);
void add_quantize_options(Verb verb, QuantizeChoice& options);
void add_code_options(Verb verb, CodeOptions& options);
/// For verbs that look records up.
void add_tuning_options(Verb verb, TuningOptions& options);
void add_records_option(Verb verb, TuningOptions& options);
void add_calibrate_option(Verb verb, TuningOptions& options);
void add_device_option(Verb verb, DeviceOptions& options);
void add_dump_option(Verb verb, DeviceOptions& options);
void add_seed_option(Verb verb, InputOptions& options);

/// Model, target, quantisation, seed, code and device: what every verb that makes code asks.
void add_compile_options(Verb verb, SubjectOptions& options, bool several,
                         const char* what = "model.onnx or file.tw");
/// The same with packages, records and dumps, for a verb that runs it.
void add_run_options(Verb verb, SubjectOptions& options, bool several);

/// The files that the options name, for check_outputs: what a verb reads must not be overwritten.
std::vector<std::string> input_files(const SubjectOptions& options);

/// Adds `--input` and what says how files become values.
void add_input_options(Verb verb, InputOptions& options);

/// One thing to work on. Exactly one of `graph`, `func` and `package` is set.
struct Subject {
  std::string name;
  std::string path;                   ///< of the model file; empty for operators
  std::optional<graph::Graph> graph;  ///< as imported, or the single operator
  std::optional<Func> func;           ///< a tensor expression
  std::shared_ptr<const runtime::Package> package;
  double open_seconds = 0;  ///< of the package: mapped, hashes checked, code loaded
  /// For accelerators that compute in integers: how `graph`, its laid out form, was quantised.
  std::optional<compile::QuantizedModel> quantized;
  /// For accelerators: where each node runs, and what finding that out showed.
  std::vector<graph::Placement> placements;
  std::shared_ptr<compile::BackendMemo> memo;
  bool single_operator = false;
  std::string anchor_op;  ///< of a single operator: whose time counts
};

/// All subjects of the command line; for an accelerator target, models are quantised and in its
/// layout. errors: Usage, Io, Parse, and what the importer and quantisation say.
Result<std::vector<Subject>> load_subjects(const SubjectOptions& options);
/// That the files are there: before anything that takes long. errors: Io, with the nearest name.
Status check_paths(const SubjectOptions& options);

/// The target that the user asked for. errors: Usage, Device, of the hardware.
Result<hw::Target> target_of(const SubjectOptions& options);

/// Options for the compiler. Where they are for this machine's processor, it is measured if it
/// never was: only who chooses schedules asks for them. errors: Usage, Device.
Result<compile::CompileOptions> compile_options(const SubjectOptions& options);

/// `subject` compiled. requires: it is no package. errors: as compile_graph.
Result<compile::CompiledModel> compile_subject(const Subject& subject,
                                               const compile::CompileOptions& options);

/// A subject ready to run in this process, with what was compiled (absent for packages).
struct Runnable {
  std::optional<compile::CompiledModel> model;
  std::unique_ptr<runtime::Session> session;
  std::vector<InputType> inputs;
  std::shared_ptr<compile::LaunchLog> launches;  ///< what accelerators did in the last run
};
Result<Runnable> make_runnable(const Subject& subject, const SubjectOptions& options);
/// One run. The steps of a program compiled here fit together: if not, it is an InternalError.
/// errors: as Session::run.
Status run(const Runnable& runnable);
/// A second session of the same code in which accelerators keep times; without `model`.
Result<Runnable> make_recorded(const Runnable& runnable, const Subject& subject,
                               const SubjectOptions& options);

/// The inputs of a program made from `subject`, with the limits that its operators set.
std::vector<InputType> input_types(const runtime::Program& program, const Subject& subject);

/// Threads to use: the option, else the environment's or this machine's.
int threads_of(const SubjectOptions& options);

}  // namespace tilewright::driver
