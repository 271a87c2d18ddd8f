#include "tilewright/compile/gpu/backend.h"

#include <algorithm>

#include "tilewright/compile/gpu/device.h"
#include "tilewright/compile/pass_names.h"
#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/winograd.h"
#include "tilewright/tensor/op.h"

namespace tilewright::compile {
namespace {

/// Whether the data decide how large a value of `node` is: launches know all sizes beforehand.
bool has_dynamic_size(const graph::Graph& graph, const graph::Node& node) {
  const auto dynamic = [&](graph::ValueId id) {
    return id >= 0 && graph.values[static_cast<size_t>(id)].type.dynamic_axis >= 0;
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), dynamic) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), dynamic);
}

GpuLaunchOptions gpu_options(const CompileOptions& options) {
  return {options.math, options.tuned, options.observer};
}

LaunchCode launch_of(GpuLaunchCode code) {
  LaunchCode launch;
  const runtime::GpuProgram& program = code.program;
  launch.device = program.language;
  launch.bytes = runtime::serialise(program);
  launch.kernels = code.kernels;
  for (KernelReport& kernel : launch.kernels) kernel.symbol = kernel.func.name;
  launch.stale_records = code.stale_records;
  launch.kernel_count = static_cast<int64_t>(program.kernels.size());
  launch.code_bytes = static_cast<int64_t>(program.source.size() + program.binary.size());
  launch.weight_bytes = static_cast<int64_t>(program.constants.size());
  launch.arena_bytes = program.arena_bytes;
  launch.detail = std::make_shared<const GpuLaunchCode>(std::move(code));
  return launch;
}

class GpuBackend final : public Backend {
 public:
  explicit GpuBackend(hw::GpuLanguage language) : language_(language) {}

  std::string_view name() const override { return hw::name(language_); }
  const DeviceRuntime& runtime() const override { return gpu_runtime(language_); }

  std::vector<std::string> target_names() const override {
    std::vector<std::string> names;
    for (const hw::GpuTarget& target : hw::all_gpu_targets())
      if (target.language == language_) names.push_back(target.name);
    return names;
  }

  Result<hw::Target> target(const std::string& name, const TargetOptions& options) const override {
    return accept(hw::as_target(TW_TRY(hw::find_gpu_target(name))), options);
  }

  Result<hw::Target> accept(hw::Target target, const TargetOptions& options) const override {
    TW_TRY_STATUS(refuse_accelerator_options(options));
    TW_TRY_STATUS(refuse_own_designs(target.name, options));
    if (language_ != hw::GpuLanguage::Cuda) TW_TRY_STATUS(refuse_tf32(target.name, options));
    std::get<hw::GpuTarget>(target.special).tf32 = options.tf32;
    return target;
  }

  std::string passes(const CompileOptions& options) const override {
    if (options.level < 2)
      return pass_names(options,
                        {"integer_products", "zero_points", "join_groups", "block_layout"});
    return pass_names(options, {"join_groups", "block_layout"});
  }

  void set_up(graph::PassContext& context, const CompileOptions& options,
              std::vector<records::Record>&) const override {
    const hw::GpuTarget& gpu = *options.target.gpu();
    context.zero_points_apart = true;
    context.phases_together = true;  // of their taps, threads of a tile share no factor
    context.dot_depth = [&gpu](DType a, DType b) -> int64_t {
      const std::string factors =
          hw::factor_types(std::string(tilewright::name(a)), std::string(tilewright::name(b)));
      return hw::multiplies_matrices(gpu, factors) ? 1 : 0;
    };
    if (options.math == MathMode::Fast && !options.direct && !gpu.tf32)
      context.plain_winograd_tile = [&gpu](const tensor::Conv2dShape& conv) {
        return rules::gpu_winograd_tile(conv, gpu);
      };
  }

  Result<std::vector<std::string>> place(const graph::Graph& graph,
                                         const CompileOptions&) const override {
    std::vector<std::string> devices;
    for (const graph::Node& node : graph.nodes) {
      const tensor::OpDef* op = tensor::find_op(node.domain, node.op);
      const bool here = !op->host.empty() || has_dynamic_size(graph, node);
      devices.push_back(here ? std::string() : std::string(name()));
    }
    return devices;
  }

  bool joins(const graph::Graph& graph, const graph::Group& group,
             const CompileOptions& options) const override {
    const Result<graph::GroupFunc> made = graph::group_func(graph, group, options.math);
    return made && rules::is_gpu_attention(made->func, *options.target.gpu());
  }

  Result<LaunchCode> compile_launch(const graph::Graph& graph, const graph::Group& launch,
                                    const CompileOptions& options) const override {
    return launch_of(
        TW_TRY(compile_gpu_launch(graph, launch, *options.target.gpu(), gpu_options(options))));
  }

  Result<std::optional<LaunchCode>> compile_func(const Func& func,
                                                 const CompileOptions& options) const override {
    return std::optional(
        launch_of(TW_TRY(compile_gpu_func(func, *options.target.gpu(), gpu_options(options)))));
  }

  std::vector<rules::RuleInfo> schedule_rules() const override { return rules::gpu_rules(); }

  void describe(runtime::Program& program, const CompileOptions& options) const override {
    const hw::GpuTarget& gpu = *options.target.gpu();
    // What is left for the processor are functions of the runtime.
    program.target = {gpu.name, options.host.triple, gpu.arch.empty() ? gpu.name : gpu.arch, {}};
    if (gpu.tf32) program.notes["tf32"] = "factors of f32 products";
  }

 private:
  hw::GpuLanguage language_;
};

}  // namespace

const Backend& gpu_backend(hw::GpuLanguage language) {
  static const GpuBackend opencl(hw::GpuLanguage::OpenCl), cuda(hw::GpuLanguage::Cuda);
  return language == hw::GpuLanguage::OpenCl ? opencl : cuda;
}

const GpuLaunchCode* gpu_code(const LaunchCode& launch) {
  return dynamic_cast<const GpuLaunchCode*>(launch.detail.get());
}

}  // namespace tilewright::compile
