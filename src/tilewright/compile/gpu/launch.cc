#include "tilewright/compile/gpu/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "tilewright/base/check.h"
#include "tilewright/codegen/common/plan.h"
#include "tilewright/codegen/gpu/gpu.h"
#include "tilewright/codegen/gpu/kernel_code.h"
#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/graph/partition/arena.h"
#include "tilewright/graph/partition/memory.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/gpu.h"
#include "tilewright/lower/gpu_prepare.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/split_last_wave.h"
#include "tilewright/rules/gpu/split_softmax_keys.h"
#include "tilewright/rules/gpu/tf32.h"

namespace tilewright::compile {
namespace {

using GpuPlace = runtime::GpuBuffer::Place;

int64_t gpu_aligned(int64_t bytes) {
  return (bytes + runtime::kGpuAlign - 1) / runtime::kGpuAlign * runtime::kGpuAlign;
}
int64_t bytes_of(const graph::Value& value) {
  return std::max<int64_t>(1, storage_bytes(value.type.dtype, element_count(value.type.shape)));
}
int64_t bytes_of(const Buffer& buffer) {
  return std::max<int64_t>(1, storage_bytes(buffer.dtype(), *codegen::const_elements(buffer)));
}

/// `y = x`, for results of a launch that lie inside other values.
Func copy_func(int64_t bytes) {
  const std::string text = fmt::format(
      "func copy(X: u8[{0}], out Y: u8[{0}]) {{\n  for Y.i in {0} {{\n    block Y(i: space {0} = "
      "Y.i) "
      "{{\n      Y[i] = X[i]\n    }}\n  }}\n}}\n",
      bytes);
  return *parse_func(text);
}

/// A schedule for `report.func`: what a record says where that fits, else by rule.
Status schedule_kernel(KernelReport& report, const hw::GpuTarget& target, const FindRecord& tuned,
                       int64_t& stale_records) {
  if (std::optional<records::Record> record = tuned ? tuned(report.func) : std::nullopt) {
    Result<schedule::Trace> trace = schedule::parse_trace(record->schedule);
    Result<Func> scheduled = trace ? schedule::replay(report.func, *trace) : Result<Func>(Func());
    if (trace && scheduled && lower::lower_for_gpu(*scheduled, target)) {
      report.trace = *std::move(trace);
      report.scheduled = *std::move(scheduled);
      report.record = std::move(record);
      return {};
    }
    ++stale_records;
  }
  rules::GpuScheduleChoice choice = rules::choose_gpu_schedule(report.func, target);
  report.trace = std::move(choice.trace);
  report.rules = std::move(choice.rules);
  report.scheduled = TW_TRY(schedule::replay(report.func, report.trace));
  return {};
}

/// Puts a program together: distinct Funcs become kernels, uses of them become calls.
class Assembler {
 public:
  Assembler(const hw::GpuTarget& target, GpuLaunchOptions options, bool scheduled = false)
      : target_(target), options_(std::move(options)), scheduled_(scheduled) {}

  int add_buffer(GpuPlace place, int64_t offset, int64_t bytes, const std::string& name) {
    program().buffers.push_back({place, offset, bytes, name});
    return static_cast<int>(program().buffers.size()) - 1;
  }

  /// Equal constants are stored once.
  int constant(const Array& array, const std::string& name) {
    const auto [it, fresh] = constants_.try_emplace({array.data(), array.bytes()}, -1);
    if (!fresh) return it->second;
    std::string& all = program().constants;
    const auto offset = static_cast<int64_t>(all.size());
    all.append(static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes()));
    all.resize(static_cast<size_t>(gpu_aligned(static_cast<int64_t>(all.size()) + 1)));
    return it->second =
               add_buffer(GpuPlace::Constants, offset, std::max<int64_t>(1, array.bytes()), name);
  }

  /// `buffers`: of the Func's parameters, in order.
  Status add(Func func, const std::vector<int>& buffers, const std::string& step) {
    const std::string base = std::exchange(func.name, "kernel");
    const auto [it, fresh] = known_.try_emplace(print(func));
    if (fresh) {
      func.name = fmt::format("{}_{}", base, known_.size() - 1);
      it->second = TW_TRY(compile(std::move(func)));
    }
    KernelReport& report = code_.kernels[it->second.report];
    report.steps.push_back(step);
    add_calls(it->second, report.func, buffers, step);
    return {};
  }

  /// `arena_bytes`: what the arena holds besides memory between kernels of one Func.
  Result<GpuLaunchCode> finish(int64_t arena_bytes) {
    place_temporaries(arena_bytes);
    program().language = std::string(hw::name(target_.language));
    program().arch = target_.arch;
    program().source = TW_TRY(codegen::emit_gpu(kernels_, target_));
    if (target_.language == hw::GpuLanguage::Cuda && !codegen::nvrtc_version()) {
      options_.observer.say(
          "warning: no NVRTC here, so the package holds CUDA C++ without machine code and runs on "
          "no "
          "GPU (`tilewright doctor`)");
    } else if (target_.language == hw::GpuLanguage::Cuda) {
      codegen::CudaCode cuda = TW_TRY(codegen::compile_cuda(program().source, target_.arch));
      program().binary = std::move(cuda.cubin);
      program().ptx = std::move(cuda.ptx);
      code_.uses = std::move(cuda.kernels);
    }
    return std::move(code_);
  }

  runtime::GpuProgram& program() { return code_.program; }

 private:
  struct Known {
    size_t report = 0;
    lower::GpuLaunches plan;
    int first_kernel = 0;
  };

  /// What schedules are for: forms of the program that suit the device.
  Func prepared(const Func& func) const {
    return rules::with_tf32(rules::with_row_parts(rules::with_key_parts(func, target_), target_),
                            target_);
  }

  Result<Known> compile(Func func) {
    Known known{code_.kernels.size(), {}, static_cast<int>(kernels_.size())};
    KernelReport report;
    report.func = scheduled_ ? std::move(func) : prepared(func);
    if (scheduled_)
      report.scheduled = report.func;
    else
      TW_TRY_STATUS(schedule_kernel(report, target_, options_.tuned, code_.stale_records));
    known.plan = TW_TRY(lower::lower_for_gpu(report.scheduled, target_));
    for (const lower::GpuKernel& kernel : known.plan.kernels) {
      kernels_.push_back(kernel);
      program().kernels.push_back(codegen::kernel_code(kernel));
    }
    code_.kernels.push_back(std::move(report));
    return known;
  }

  void add_calls(const Known& known, const Func& func, const std::vector<int>& buffers,
                 const std::string& step) {
    const int turn = turns_++;
    std::map<Buffer, int> places;
    for (size_t i = 0; i < func.params.size(); ++i) places[func.params[i].buffer] = buffers[i];
    const std::vector<bool> prepared = lower::prepared_calls(func, known.plan);
    std::set<Buffer> lasting;
    for (size_t i = 0; i < prepared.size(); ++i)
      if (prepared[i])
        lasting.insert(known.plan.calls[i].args.begin(), known.plan.calls[i].args.end());
    for (const Buffer& t : known.plan.temporaries) {
      places[t] = add_buffer(GpuPlace::Arena, 0, bytes_of(t), fmt::format("{}.{}", step, t.name()));
      const bool lasts = lasting.contains(t);
      lifetimes_.push_back({gpu_aligned(bytes_of(t)), lasts ? 0 : turn,
                            lasts ? std::numeric_limits<int>::max() : turn});
      temporaries_.push_back(places[t]);
    }
    for (size_t i = 0; i < prepared.size(); ++i) {
      const lower::GpuCallSite& site = known.plan.calls[i];
      runtime::GpuCall call;
      call.kernel = known.first_kernel + static_cast<int>(site.kernel);
      call.step = step;
      call.scalars = site.scalars;
      for (const Buffer& b : site.args) call.buffers.push_back(places.at(b));
      (prepared[i] ? program().prepare : program().calls).push_back(std::move(call));
    }
  }

  void place_temporaries(int64_t arena_bytes) {
    const graph::Arena packed = graph::pack_arena(lifetimes_);
    for (size_t i = 0; i < temporaries_.size(); ++i)
      program().buffers[static_cast<size_t>(temporaries_[i])].offset =
          gpu_aligned(arena_bytes) + packed.offset[i];
    program().arena_bytes = gpu_aligned(arena_bytes) + packed.bytes;
  }

  const hw::GpuTarget& target_;
  GpuLaunchOptions options_;
  bool scheduled_;  ///< Funcs are
  GpuLaunchCode code_;
  std::map<std::pair<const void*, int64_t>, int> constants_;
  std::map<std::string, Known> known_;
  std::vector<lower::GpuKernel> kernels_;
  int turns_ = 0;
  std::vector<graph::Lifetime> lifetimes_;
  std::vector<int> temporaries_;
};

/// The groups of a launch, with values between them in the arena.
class GpuLaunchCompiler {
 public:
  GpuLaunchCompiler(const graph::Graph& graph, const graph::Group& launch,
                    const hw::GpuTarget& target, const GpuLaunchOptions& options)
      : graph_(graph), launch_(launch), options_(options), assembler_(target, options) {}

  Result<GpuLaunchCode> run() {
    plan_values();
    for (size_t i = 0; i < launch_.parts.size(); ++i) {
      const graph::Group& part = launch_.parts[i];
      if (part.kind == graph::GroupKind::Alias) continue;
      TW_TRY_STATUS(options_.observer.check());
      const std::string& name = graph_.nodes[static_cast<size_t>(part.anchor)].name;
      options_.observer.step("scheduling", static_cast<int64_t>(i),
                             static_cast<int64_t>(launch_.parts.size()), name);
      Status added = add_part(part, name);
      if (!added) return tl::unexpected<Error>(std::move(added.error()).at(name));
    }
    options_.observer.end("scheduling");
    for (const auto& [from, to] : copies_)
      TW_TRY_STATUS(
          assembler_.add(copy_func(bytes_of(value(to))), {buffer_of(from), output_of(to)}, "copy"));
    runtime::GpuProgram& program = assembler_.program();
    for (graph::ValueId id : launch_.inputs)
      if (!value(id).constant) program.inputs.push_back(buffer_of(id));
    for (graph::ValueId id : launch_.outputs) program.outputs.push_back(output_of(id));
    return assembler_.finish(plan_.arena_bytes);
  }

 private:
  const graph::Value& value(graph::ValueId id) const {
    return graph_.values[static_cast<size_t>(id)];
  }
  graph::ValueId root_of(graph::ValueId id) const { return plan_.alias[static_cast<size_t>(id)]; }
  graph::ValueId made_in(graph::ValueId id) const { return plan_.made_in[static_cast<size_t>(id)]; }
  bool inside_arena(graph::ValueId id) const { return plan_.offset[static_cast<size_t>(id)] >= 0; }

  /// Decides where values between kernels are. What the launch hands out is alive until its end,
  /// when what lies inside the arena or another value is copied.
  void plan_values() {
    std::vector<graph::Group> parts = launch_.parts;
    graph::Group end;
    end.kind = graph::GroupKind::Host;
    end.anchor = launch_.anchor;
    end.inputs = launch_.outputs;
    parts.push_back(end);
    plan_ = graph::plan_memory(graph_, parts);
    for (graph::ValueId id : launch_.outputs) {
      const graph::ValueId from = root_of(id) >= 0 ? root_of(id) : id;
      if (made_in(from) != id && (inside_arena(id) || from != id)) copies_.emplace_back(from, id);
    }
  }

  /// The buffer that holds a value while kernels run.
  int buffer_of(graph::ValueId id) {
    if (const auto it = buffers_.find(id); it != buffers_.end()) return it->second;
    return buffers_[id] = new_buffer(id);
  }

  int new_buffer(graph::ValueId id) {
    const graph::Value& v = value(id);
    if (v.constant) return assembler_.constant(*v.constant, v.name);
    if (inside_arena(id))
      return assembler_.add_buffer(GpuPlace::Arena, plan_.offset[static_cast<size_t>(id)],
                                   bytes_of(v), v.name);
    if (made_in(id) >= 0) return output_of(made_in(id));
    if (root_of(id) >= 0) return buffer_of(root_of(id));
    const auto& outputs = launch_.outputs;
    if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) return output_of(id);
    return assembler_.add_buffer(GpuPlace::Input, 0, bytes_of(v), v.name);
  }

  int output_of(graph::ValueId id) {
    const auto [it, fresh] = outputs_.try_emplace(id, 0);
    if (fresh)
      it->second = assembler_.add_buffer(GpuPlace::Output, 0, bytes_of(value(id)), value(id).name);
    return it->second;
  }

  Status add_part(const graph::Group& part, const std::string& name) {
    graph::GroupFunc made = TW_TRY(graph::group_func(graph_, part, options_.math));
    std::vector<int> buffers;
    for (size_t i = 0; i < made.func.params.size(); ++i)
      buffers.push_back(i < made.args.size()
                            ? buffer_of(made.args[i])
                            : assembler_.constant(*made.func.params[i].values, name));
    return assembler_.add(std::move(made.func), buffers, name);
  }

  const graph::Graph& graph_;
  const graph::Group& launch_;
  const GpuLaunchOptions& options_;
  Assembler assembler_;
  graph::MemoryPlan plan_;
  std::vector<std::pair<graph::ValueId, graph::ValueId>> copies_;  ///< from, to
  std::map<graph::ValueId, int> buffers_, outputs_;
};

Result<GpuLaunchCode> compile_one(const Func& func, Assembler assembler) {
  std::vector<int> buffers;
  for (const Param& param : func.params) {
    const std::string& name = param.buffer.name();
    if (!codegen::const_elements(param.buffer))
      return fail(ErrorKind::Unsupported, fmt::format("'{}' has a symbolic shape", name), {},
                  "give its sizes as numbers");
    if (param.values) {
      buffers.push_back(assembler.constant(*param.values, name));
      continue;
    }
    const bool out = param.mode == ParamMode::Out;
    if (param.mode == ParamMode::InOut)
      return fail(ErrorKind::Unsupported, fmt::format("'{}' is changed in place", name));
    buffers.push_back(assembler.add_buffer(out ? GpuPlace::Output : GpuPlace::Input, 0,
                                           bytes_of(param.buffer), name));
    (out ? assembler.program().outputs : assembler.program().inputs).push_back(buffers.back());
  }
  TW_TRY_STATUS(assembler.add(func, buffers, func.name));
  return assembler.finish(0);
}

}  // namespace

Result<GpuLaunchCode> compile_gpu_launch(const graph::Graph& graph, const graph::Group& launch,
                                         const hw::GpuTarget& target,
                                         const GpuLaunchOptions& options) {
  return GpuLaunchCompiler(graph, launch, target, options).run();
}

Result<GpuLaunchCode> compile_gpu_func(const Func& func, const hw::GpuTarget& target,
                                       const GpuLaunchOptions& options) {
  return compile_one(func, Assembler(target, options));
}

Result<GpuLaunchCode> compile_scheduled_gpu_func(const Func& scheduled,
                                                 const hw::GpuTarget& target) {
  return compile_one(scheduled, Assembler(target, {}, true));
}

}  // namespace tilewright::compile
