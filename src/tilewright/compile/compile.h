// From graph to program: passes, fusion, schedules, code, weights, memory plan.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/compile/gpu/launch.h"
#include "tilewright/compile/kernel_report.h"
#include "tilewright/compile/observer.h"
#include "tilewright/compile/vta/launch.h"
#include "tilewright/graph/ir/graph.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/hw/target.h"
#include "tilewright/records/records.h"
#include "tilewright/runtime/executor.h"
#include "tilewright/runtime/program.h"

namespace tilewright::compile {

/// The record that decides how a convolution is computed (driver/conv_forms.h); absent: the model
/// of the machine decides.
using FindForm = std::function<std::optional<records::Record>(const tensor::Conv2dShape& conv)>;

struct CompileOptions {
  hw::CpuTarget target = hw::host();
  int threads = 1;  ///< workers the schedules are made for
  MathMode math = MathMode::Fast;
  bool direct = false;  ///< convolutions never by Winograd, whatever `math` allows
  bool fuse = true;     ///< false: every operator of the model is a kernel of its own
  /// Copies into channel blocks and out of them are no part of other kernels: to measure an
  /// operator without them.
  bool copies_apart = false;
  int level = 2;        ///< 0: no passes, loops as written; 1: fusion; 2: also layouts
  bool use_c = false;   ///< the C back-end instead of LLVM
  int jobs = 2;         ///< compile threads
  std::string command;  ///< for the manifest
  Observer observer;
  FindRecord tuned;  ///< empty: all schedules by rule
  FindForm form;     ///< empty: all algorithms by the model of the machine
  /// What the graph's tiled part (graph/layout/tiles.h) runs on; absent: everything on the CPU.
  std::optional<vta::Config> vta;
  VtaLaunchOptions launch;
  /// Runs everything but host functions on a GPU; absent: on the CPU.
  std::optional<hw::GpuTarget> gpu;
};

struct CompiledModel {
  std::shared_ptr<const runtime::Program> program;
  std::vector<std::pair<int64_t, Array>> weights;  ///< byte offset in weights.bin, value
  std::string code;                                ///< ELF shared object; empty without kernels
  graph::Graph graph;                              ///< after all passes
  std::vector<std::string> changes;                ///< what each pass did, one line each
  std::vector<graph::Group> groups;                ///< of `graph`, one step each
  std::vector<KernelReport> kernels;
  std::vector<records::Record> forms;  ///< that decided how convolutions are computed
  int64_t stale_records = 0;           ///< whose schedules do not fit the kernels any more
  std::map<std::string, VtaLaunchCode> launches;      ///< by name in the program
  std::map<std::string, GpuLaunchCode> gpu_launches;  ///< likewise
};

/// Only what comes before schedules and code: passes and fusion. Sets `graph`, `changes`, `groups`.
/// errors: what the passes report, Interrupted.
Result<CompiledModel> plan_graph(const graph::Graph& graph, const CompileOptions& options);

/// errors: Unsupported, Tool, Interrupted; problems of nodes carry their names.
Result<CompiledModel> compile_graph(const graph::Graph& graph, const CompileOptions& options);

/// A single Func as a program: parameters become inputs, outputs and weights under their own names.
/// `trace`: the schedule to use instead of the rules'.
Result<CompiledModel> compile_func(const Func& func, const CompileOptions& options,
                                   const schedule::Trace* trace = nullptr);

/// A session on the compiled code in this process.
Result<std::unique_ptr<runtime::Session>> open_session(const CompiledModel& model,
                                                       const runtime::SessionOptions& options);

/// Writes the package, with `extras` as further members by name. errors: Io.
Status save_package(const std::string& path, const CompiledModel& model,
                    const std::map<std::string, std::string>& extras = {});

}  // namespace tilewright::compile
