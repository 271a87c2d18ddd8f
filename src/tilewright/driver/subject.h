// What a verb works on: a model, a package, a tensor expression or an operator of a workload file.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/driver/compile.h"
#include "tilewright/driver/inputs.h"
#include "tilewright/graph/import.h"
#include "tilewright/runtime/package.h"

namespace tilewright::driver {

/// Options shared by the verbs that take subjects, as the user gave them.
struct SubjectOptions {
  std::vector<std::string> paths;
  std::string workload, suite, id;
  std::string target = "cpu", device;
  std::vector<std::string> dims, shapes, constants, inputs;
  std::string math = "fast", backend;
  int threads = 0;
  int level = 2;
  uint64_t seed = 1;
  bool allow_newer_opset = false;
};

/// Adds the options that every such verb has; `several`: more than one path and workloads are
/// allowed.
void add_subject_options(CLI::App& verb, SubjectOptions& options, bool several);

/// One thing to work on. Exactly one of `graph`, `func` and `package` is set.
struct Subject {
  std::string name;
  std::string path;                   ///< of the model file; empty for operators
  std::optional<graph::Graph> graph;  ///< as imported, or the single operator
  std::optional<Func> func;           ///< a tensor expression
  std::shared_ptr<const runtime::Package> package;
  double open_seconds = 0;  ///< of the package: mapped, hashes checked, code loaded
  bool single_operator = false;
  std::string anchor_op;  ///< of a single operator: whose time counts
};

/// All subjects of the command line. errors: Usage, Io, Parse, and what the importer says.
Result<std::vector<Subject>> load_subjects(const SubjectOptions& options);

/// Options for the compiler. errors: Usage, Device.
Result<CompileOptions> compile_options(const SubjectOptions& options);

/// A subject ready to run in this process, with what was compiled (absent for packages).
struct Runnable {
  std::optional<CompiledModel> model;
  std::unique_ptr<runtime::Session> session;
  std::vector<InputType> inputs;
};
Result<Runnable> make_runnable(const Subject& subject, const SubjectOptions& options);

/// Threads to use: the option, else the environment's or this machine's.
int threads_of(const SubjectOptions& options);

}  // namespace tilewright::driver
