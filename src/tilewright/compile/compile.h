// From graph to program: passes, fusion, schedules, code, weights, memory plan.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/compile/backend.h"
#include "tilewright/compile/options.h"
#include "tilewright/graph/ir/graph.h"
#include "tilewright/records/record.h"
#include "tilewright/runtime/executor.h"
#include "tilewright/runtime/program.h"

namespace tilewright::compile {

struct CompiledModel {
  std::shared_ptr<const runtime::Program> program;
  std::vector<std::pair<int64_t, Array>> weights;  ///< byte offset in weights.bin, value
  std::string code;                                ///< ELF shared object; empty without kernels
  graph::Graph graph;                              ///< after all passes
  std::vector<std::string> changes;                ///< what each pass did, one line each
  std::vector<graph::Group> groups;                ///< of `graph`, one step each
  std::vector<KernelReport> kernels;               ///< of the processor
  std::vector<records::Record> forms;              ///< that decided how convolutions are computed
  int64_t stale_records = 0;                   ///< whose schedules do not fit the kernels any more
  std::map<std::string, LaunchCode> launches;  ///< by name in the program
};

/// Kernels of the processor, then those of all launches.
std::vector<const KernelReport*> all_kernels(const CompiledModel& model);

/// Only what comes before schedules and code: passes and fusion. Sets `graph`, `changes`, `groups`.
/// errors: what the passes report, Interrupted.
Result<CompiledModel> plan_graph(const graph::Graph& graph, const CompileOptions& options);

/// errors: Unsupported, Tool, Interrupted; problems of nodes carry their names.
Result<CompiledModel> compile_graph(const graph::Graph& graph, const CompileOptions& options);

/// Whether `compile_func` takes it: sizes are numbers, no parameter is changed in place.
/// errors: Unsupported.
Status check_func(const Func& func);
/// A single Func as a program: parameters become inputs, outputs and weights under their own names.
/// `trace`: the schedule to use instead of the rules'. errors: as check_func; Tool, Interrupted.
Result<CompiledModel> compile_func(const Func& func, const CompileOptions& options,
                                   const schedule::Trace* trace = nullptr);

/// A session on the compiled code in this process.
Result<std::unique_ptr<runtime::Session>> open_session(const CompiledModel& model,
                                                       const runtime::SessionOptions& options);

/// Writes the package, with `extras` as further members by name. errors: Io.
Status save_package(const std::string& path, const CompiledModel& model,
                    const std::map<std::string, std::string>& extras = {});

}  // namespace tilewright::compile
