#include "tilewright/compile/cpu/backend.h"

#include <algorithm>

#include "tilewright/compile/conv_record.h"
#include "tilewright/compile/cpu/device.h"
#include "tilewright/compile/pass_names.h"
#include "tilewright/hw/cpu_intrinsics.h"
#include "tilewright/rules/cpu/conv_algorithm.h"
#include "tilewright/rules/cpu/kernel_rules.h"
#include "tilewright/rules/cpu/strips.h"

namespace tilewright::compile {
namespace {

/// The tile for `conv`: by a record of a form that there is, else by the model of the machine.
int64_t winograd_tile(const tensor::Conv2dShape& conv, const CompileOptions& options,
                      std::vector<records::Record>& used) {
  const std::optional<records::Record> record = options.form ? options.form(conv) : std::nullopt;
  const std::optional<int64_t> m = record ? form_in(*record) : std::nullopt;
  const std::vector<int64_t> tiles = rules::winograd_tiles(conv);
  if (!m || (*m != 0 && std::find(tiles.begin(), tiles.end(), *m) == tiles.end()))
    return rules::winograd_tile(conv, options.cpu(), options.threads);
  if (std::find(used.begin(), used.end(), *record) == used.end()) used.push_back(*record);
  return *m;
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  const DeviceRuntime& runtime() const override { return cpu_runtime(); }

  std::vector<std::string> target_names() const override {
    std::vector<std::string> names;
    for (const hw::CpuTarget& target : hw::all_targets()) names.push_back(target.name);
    return names;
  }

  Result<hw::Target> target(const std::string& name, const TargetOptions& options) const override {
    return accept(hw::as_target(TW_TRY(hw::find_target(name))), options);
  }

  std::string passes(const CompileOptions& options) const override {
    if (options.level < 2)
      return pass_names(options,
                        {"integer_products", "zero_points", "join_groups", "block_layout"});
    return pass_names(options, {});
  }

  void set_up(graph::PassContext& context, const CompileOptions& options,
              std::vector<records::Record>& used) const override {
    const auto depth = [&options](hw::DotKind kind) {
      return [&options, kind](DType a, DType b) -> int64_t {
        const auto dot = hw::find_dot(options.cpu(), a, b, 0, kind);
        // Floats are summed in another order.
        return dot && (!is_float(a) || options.math == MathMode::Fast) ? dot->depth : 0;
      };
    };
    context.dot_depth = depth(hw::DotKind::Repeated);
    context.tile_depth = depth(hw::DotKind::Tile);
    if (options.math != MathMode::Fast) return;
    if (!options.direct)
      context.winograd_tile = [&](const tensor::Conv2dShape& conv) {
        return winograd_tile(conv, options, used);
      };
    context.direct_form = [&](const tensor::Conv2dShape& conv) {
      return rules::direct_form(conv, options.cpu(), options.threads);
    };
  }

  bool joins(const graph::Graph& graph, const graph::Group& group,
             const CompileOptions& options) const override {
    const Result<graph::GroupFunc> made = graph::group_func(graph, group, options.math);
    return made && rules::worth_strips(made->func, options.cpu(), options.threads);
  }

  std::vector<rules::RuleInfo> schedule_rules() const override { return rules::cpu_rules(); }

  void describe(runtime::Program& program, const CompileOptions& options) const override {
    const hw::CpuTarget& cpu = options.cpu();
    program.target = {cpu.name, cpu.triple, cpu.cpu, cpu.features};
  }
};

}  // namespace

const Backend& cpu_backend() {
  static const CpuBackend backend;
  return backend;
}

}  // namespace tilewright::compile
