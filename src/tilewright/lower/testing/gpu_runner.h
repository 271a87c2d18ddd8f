// For tests: a plan's kernels executed by the interpreter, in program order or as threads run them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/interp/interp.h"
#include "tilewright/lower/gpu.h"

namespace tilewright::lower::testing {

struct PlanRun {
  std::map<std::string, Array> outputs;  ///< parameters that are written
  std::vector<std::string> findings;     ///< races and the like
};

enum class Order {
  Program,      ///< as the kernel is written
  Adversarial,  ///< as threads run it between barriers, in random order, checked
  Late,         ///< the same, with asynchronous copies as late as waits allow
};

/// Runs `plan`, made from `func`, on `inputs` by parameter name.
inline Result<PlanRun> run_plan(const Func& func, const GpuLaunches& plan,
                                const std::map<std::string, Array>& inputs, Order order,
                                uint64_t seed = 1) {
  std::map<Buffer, Array> memory;
  const auto array_of = [&](const Buffer& b) {
    Shape shape;
    for (const Expr& extent : b.shape()) shape.push_back(*as_int(extent));
    return Array(b.dtype(), shape);
  };
  for (const Param& p : func.params) {
    const auto it = inputs.find(p.buffer.name());
    memory[p.buffer] = p.values ? *p.values : it != inputs.end() ? it->second : array_of(p.buffer);
  }
  for (const Buffer& t : plan.temporaries) memory[t] = array_of(t);
  PlanRun out;
  for (const GpuCallSite& call : plan.calls) {
    const GpuKernel& kernel = plan.kernels[call.kernel];
    const Copies copies = order == Order::Late ? Copies::Late : Copies::Early;
    const Func runs = order == Order::Program ? kernel.func : TW_TRY(as_threads(kernel, copies));
    interp::Arguments arguments;
    for (size_t i = 0; i < call.args.size(); ++i)
      arguments.arrays[runs.params[i].buffer.name()] = memory.at(call.args[i]);
    for (size_t i = 0; i < call.scalars.size(); ++i)
      arguments.scalars[runs.scalars[i].var.name()] = call.scalars[i];
    interp::Options options;
    options.check = order != Order::Program;
    options.single_assignment = false;  // loops written out use the same memory again
    options.seed = seed;
    interp::Outcome outcome = TW_TRY(interp::run(runs, arguments, options));
    for (const interp::Finding& finding : outcome.findings) out.findings.push_back(finding.text);
    for (size_t i = 0; i < call.args.size(); ++i)
      if (const auto it = outcome.outputs.find(runs.params[i].buffer.name());
          it != outcome.outputs.end())
        memory[call.args[i]] = it->second;
  }
  for (const Param& p : func.params)
    if (p.mode == ParamMode::Out || p.mode == ParamMode::InOut)
      out.outputs[p.buffer.name()] = memory.at(p.buffer);
  return out;
}

}  // namespace tilewright::lower::testing
