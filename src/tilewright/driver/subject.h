// What a verb works on: a model, a package, a tensor expression or an operator of a workload file.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/compile/compile.h"
#include "tilewright/compile/devices.h"
#include "tilewright/compile/quantized_model.h"
#include "tilewright/driver/inputs/inputs.h"
#include "tilewright/graph/onnx/import.h"
#include "tilewright/runtime/package.h"

namespace tilewright::driver {

/// Options shared by the verbs that take subjects, as the user gave them.
struct SubjectOptions {
  std::vector<std::string> paths;
  std::string workload, suite, id;
  std::string target = "cpu", device;
  std::vector<std::string> dims, shapes, constants, inputs;
  std::string math = "fast", backend;
  FileOptions files;    ///< of `inputs`
  bool direct = false;  ///< convolutions never by Winograd
  bool tf32 = false;    ///< CUDA: products of f32 by matrix instructions, in TF32
  int threads = 0;
  int level = 2;
  uint64_t seed = 1;
  std::string hw;                  ///< accelerator configuration: a name or a file
  std::string quantize;            ///< calibration: FILE.npz, random or random:N
  bool per_channel = false;        ///< weights with a scale per output channel
  std::string fallback = "error";  ///< for operators the accelerator lacks: error or cpu
  std::string dump_program;        ///< folder for accelerator program dumps
  bool record_times = false;       ///< keep what accelerators did, cycle by cycle
  bool allow_newer_opset = false;
  std::string records;          ///< store of tuning records; empty: the user's
  bool no_records = false;      ///< schedules by rule alone
  bool verify_weights = false;  ///< hash all of a package when it is opened
  bool no_calibrate = false;    ///< schedules follow typical rates, not those of this machine
};

/// How far a verb goes with a subject: each use includes those before it.
enum class Use {
  Import,   ///< looks at it
  Compile,  ///< makes code
  Run,      ///< and runs it
};
/// Adds the options that do something in such a verb; `several`: more than one path and workloads
/// are allowed.
void add_subject_options(CLI::App& verb, SubjectOptions& options, bool several, Use use = Use::Run);

/// The files that the options name, for check_outputs: what a verb reads must not be overwritten.
std::vector<std::string> input_files(const SubjectOptions& options);

/// Adds `--input` and what says how files become values.
void add_input_options(CLI::App& verb, SubjectOptions& options);

/// One thing to work on. Exactly one of `graph`, `func` and `package` is set.
struct Subject {
  std::string name;
  std::string path;                   ///< of the model file; empty for operators
  std::optional<graph::Graph> graph;  ///< as imported, or the single operator
  std::optional<Func> func;           ///< a tensor expression
  std::shared_ptr<const runtime::Package> package;
  double open_seconds = 0;  ///< of the package: mapped, hashes checked, code loaded
  /// For accelerators: how `graph`, its laid out form, was quantised and placed.
  std::optional<compile::QuantizedModel> quantized;
  bool single_operator = false;
  std::string anchor_op;  ///< of a single operator: whose time counts
};

/// All subjects of the command line; for an accelerator target, models are quantised and in its
/// layout. errors: Usage, Io, Parse, and what the importer and quantisation say.
Result<std::vector<Subject>> load_subjects(const SubjectOptions& options);

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
