#include "tilewright/compile/kernel_works.h"

#include <fmt/format.h>

#include "tilewright/rules/common/work.h"
#include "tilewright/tensor/winograd.h"

namespace tilewright::compile {
namespace {

/// Operations of the plain convolution behind a Winograd node; 0 for other nodes.
double direct_operations(const graph::Graph& graph, const graph::Node& node) {
  if (node.op != "WinogradConvBlocked") return 0;
  const auto shape = [&](graph::ValueId id) {
    return graph.values[static_cast<size_t>(id)].type.shape;
  };
  const Shape x = shape(node.inputs[0]);  // [n, blocks, h, w, channels of a block]
  const auto [r, s] = tensor::winograd_taps(shape(node.inputs[1]), node.attrs.get_int("m", 4));
  const auto products = static_cast<double>(r * s * x[1] * x[4]);
  return 2 * products * static_cast<double>(element_count(shape(node.outputs[0])));
}

}  // namespace

std::map<std::string, runtime::KernelWork> kernel_works(const CompiledModel& model) {
  std::map<std::string, runtime::KernelWork> works;
  for (const KernelReport* kernel : all_kernels(model)) {
    if (kernel->symbol.empty()) continue;
    const rules::Work executed = rules::work_of(kernel->func);
    runtime::KernelWork& work = works[kernel->symbol];
    work.operations = static_cast<int64_t>(executed.operations);
    work.dtype = executed.dtype;
    for (const graph::Node& node : model.graph.nodes) {
      if (node.name != kernel->steps.front()) continue;
      const double direct = direct_operations(model.graph, node);
      if (direct == 0) continue;
      work.operations = static_cast<int64_t>(direct);
      const int64_t m = node.attrs.get_int("m", 4);
      const auto [r, s] = tensor::winograd_taps(
          model.graph.values[static_cast<size_t>(node.inputs[1])].type.shape, m);
      work.algorithm = r == s ? fmt::format("winograd F({0}x{0})", m)
                              : fmt::format("winograd F({}x{})", r == 1 ? 1 : m, s == 1 ? 1 : m);
    }
  }
  return works;
}

}  // namespace tilewright::compile
