#include "tilewright/codesign/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tilewright/tensor/op.h"
#include "tilewright/tensor/window.h"

namespace tilewright::codesign {
namespace {

using cost::SpatialDim;
using cost::SpatialLayer;
using graph::Graph;
using graph::Node;

constexpr int kFactorBytes = 1;  // int8, as everything that a unit reads and STORE writes

/// Operators that add nothing to the time of a design: they are folded into weights or a STORE, or
/// move nothing.
const std::set<std::string> kFree = {"BatchNormalization",
                                     "Relu",
                                     "Clip",
                                     "LeakyRelu",
                                     "Identity",
                                     "Dropout",
                                     "Reshape",
                                     "Flatten",
                                     "Squeeze",
                                     "Unsqueeze",
                                     "Cast",
                                     "Shape",
                                     "Constant",
                                     "QuantizeLinear",
                                     "DequantizeLinear"};

/// A convolution of one group: loops n (if there are several images), k, the axes of the result, c,
/// the taps.
SpatialLayer conv_layer(int64_t images, int64_t inputs, int64_t outputs,
                        const tensor::Window& window) {
  SpatialLayer layer;
  std::vector<SpatialDim> in, weights, out;
  const auto add = [&](std::string name, int64_t extent, bool reduces) {
    layer.loops.push_back({std::move(name), extent, reduces});
    return static_cast<int>(layer.loops.size()) - 1;
  };
  if (images > 1) {
    const int n = add("n", images, false);
    in.push_back({{{n, 1}}, images});
    out.push_back({{{n, 1}}, images});
  }
  const int k = add("k", outputs, false);
  const std::vector<std::string> axes = tensor::spatial_names(window.rank()),
                                 taps = tensor::tap_names(window.rank());
  std::vector<int> axis(window.rank());
  for (size_t i = 0; i < window.rank(); ++i) axis[i] = add(axes[i], window.output[i], false);
  const int c = add("c", inputs, true);
  in.push_back({{{c, 1}}, inputs});
  weights = {{{{k, 1}}, outputs}, {{{c, 1}}, inputs}};
  out.push_back({{{k, 1}}, outputs});
  for (size_t i = 0; i < window.rank(); ++i) {
    const int tap = add(taps[i], window.kernel[i], true);
    in.push_back({{{axis[i], window.strides[i]}, {tap, window.dilations[i]}},
                  window.input[i],
                  window.begin[i]});
    weights.push_back({{{tap, 1}}, window.kernel[i]});
    out.push_back({{{axis[i], 1}}, window.output[i]});
  }
  layer.tensors = {cost::SpatialTensor{"input", std::move(in), kFactorBytes},
                   cost::SpatialTensor{"weights", std::move(weights), kFactorBytes, true},
                   cost::SpatialTensor{"result", std::move(out), kFactorBytes}};
  return layer;
}

std::string times(const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

/// `64x56x56 -> 64, 3x3, stride 2, 32 groups`
std::string describe(const Shape& x, int64_t outputs, const tensor::Window& w, int64_t groups) {
  std::string text =
      fmt::format("{} -> {}, {}", times({x.begin() + 1, x.end()}), outputs, times(w.kernel));
  if (w.strides[0] > 1) text += fmt::format(", stride {}", w.strides[0]);
  if (w.dilations[0] > 1) text += fmt::format(", dilation {}", w.dilations[0]);
  if (groups > 1) text += fmt::format(", {} groups", groups);
  return text;
}

int64_t elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

tl::unexpected<Error> no_layer(const Workload& workload) {
  Error error{ErrorKind::Unsupported,
              fmt::format("no layer of '{}' can run on an accelerator", workload.name),
              {},
              {},
              {},
              {}};
  for (const HostNode& node : workload.host)
    error.others.push_back({ErrorKind::Unsupported, node.node, {}, node.reason, {}, {}});
  return tl::unexpected<Error>(std::move(error));
}

/// What layers leave of a Func; stages that LOADs and STOREs do take no time of their own.
void add_others(const cost::Computations& computations, const std::string& op, Workload& workload) {
  for (const cost::OtherStage& other : computations.others)
    if (!other.free)
      workload.host.push_back({other.name, op, other.reason, other.bytes, other.macs});
}

class WorkloadBuilder {
 public:
  explicit WorkloadBuilder(const Graph& graph) : graph_(graph) { result_.name = graph.name; }

  Result<Workload> run() {
    for (const Node& node : graph_.nodes) {
      if (node.domain.empty() && kFree.contains(node.op)) continue;
      std::string why = "no unit computes it";
      if (node.op == "Conv") {
        why = conv(node);
      } else if (node.op == "MatMul" || node.op == "Gemm") {
        why = product(node);
      }
      if (!why.empty() && defined(node, why)) continue;
      if (!why.empty()) add_host(node, why);
    }
    if (!result_.layers.empty()) return std::move(result_);
    return no_layer(result_);
  }

 private:
  const Shape& shape(graph::ValueId id) const {
    return graph_.values[static_cast<size_t>(id)].type.shape;
  }

  void add(SpatialLayer layer, std::string name, int64_t runs, const std::string& node) {
    layer.name = std::move(name);
    const auto [found, is_new] =
        index_.emplace(std::pair{layer.name, layer.biased}, result_.layers.size());
    if (is_new) result_.layers.push_back({std::move(layer), 0, {}});
    WorkloadLayer& same = result_.layers[found->second];
    same.runs += runs;
    same.nodes.push_back(node);
  }

  /// Its own third operand, or what a normalisation behind it adds.
  bool biased(const Node& node) const {
    if (node.inputs.size() > 2 && node.inputs[2] >= 0) return true;
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& other) {
      return other.op == "BatchNormalization" && other.inputs[0] == node.outputs[0];
    });
  }

  /// Why it is no layer; empty: it is one.
  std::string conv(const Node& node) {
    const Shape &x = shape(node.inputs[0]), &w = shape(node.inputs[1]);
    const Result<tensor::Window> window = tensor::conv_window(graph::op_call(graph_, node), x, w);
    if (!window) return window.error().what;
    if (window->rank() > 2)
      return "convolutions over three axes need more loops than a COMPUTE has";
    const int64_t groups = node.attrs.get_int("group", 1);
    SpatialLayer layer = conv_layer(x[0], w[1], w[0] / groups, *window);
    layer.biased = biased(node);
    add(std::move(layer), describe(x, w[0], *window, groups), groups, node.name);
    return {};
  }

  std::string product(const Node& node) {
    Shape a = shape(node.inputs[0]), b = shape(node.inputs[1]);
    if (a.size() < 2 || b.size() != 2) return "products of stacks of matrices are not matched yet";
    if (node.op == "Gemm" && node.attrs.get_int("transA", 0) != 0)
      return "its first factor is transposed";
    const bool transposed = node.op == "Gemm" && node.attrs.get_int("transB", 0) != 0;
    const int64_t depth = a.back(), columns = transposed ? b[0] : b[1];
    const int64_t rows = elements(a) / depth;
    const bool constant = graph_.values[static_cast<size_t>(node.inputs[1])].constant.has_value();
    SpatialLayer layer = cost::matmul(rows, columns, depth, constant);
    layer.biased = constant && biased(node);
    add(std::move(layer), fmt::format("{}x{} times {}x{}", rows, depth, depth, columns), 1,
        node.name);
    return {};
  }

  /// An operator that is defined by sums of products, and whether all of them are layers. `why`: if
  /// not.
  bool defined(const Node& node, std::string& why) {
    const tensor::OpDef* def = tensor::find_op(node.domain, node.op);
    if (def == nullptr || !def->define || def->fusion != tensor::Fusion::Complex) return false;
    const Result<Func> func = tensor::op_func(graph::op_call(graph_, node));
    if (!func) return false;
    const Result<cost::Computations> found = with_order(cost::computations_of(*func), 0);
    if (!found || found->sums.empty()) return false;
    std::vector<SpatialLayer> layers;
    for (const cost::Computation& sum : found->sums) {
      Result<SpatialLayer> layer = layer_of(sum);
      if (!layer) {
        why = layer.error().why;
        return false;
      }
      layers.push_back(*std::move(layer));
    }
    std::string name = node.op;
    for (const graph::ValueId id : node.inputs)
      if (id >= 0) name += " " + times(shape(id));
    for (size_t i = 0; i < layers.size(); ++i)
      add(std::move(layers[i]), layers.size() == 1 ? name : fmt::format("{}, {}", name, i + 1), 1,
          node.name);
    add_others(*found, node.op, result_);
    return true;
  }

  void add_host(const Node& node, const std::string& reason) {
    HostNode host{node.name, node.op, reason, 0, 0};
    for (const auto* ids : {&node.inputs, &node.outputs})
      for (const graph::ValueId id : *ids)
        if (id >= 0 && !graph_.values[static_cast<size_t>(id)].constant)
          host.bytes += elements(shape(id)) * kFactorBytes;
    result_.host.push_back(std::move(host));
  }

  const Graph& graph_;
  Workload result_;
  /// By shape and whether there are biases.
  std::map<std::pair<std::string, bool>, size_t> index_;
};

}  // namespace

int64_t Workload::macs() const {
  int64_t sum = 0;
  for (const WorkloadLayer& layer : layers) sum += layer.layer.macs() * layer.runs;
  return sum;
}

Result<Workload> workload_of(const Graph& graph) { return WorkloadBuilder(graph).run(); }

Result<Workload> workload_of(const Func& func, int order) {
  const cost::Computations found = TW_TRY(with_order(cost::computations_of(func), order));
  Workload workload;
  workload.name = func.name;
  for (const cost::Computation& sum : found.sums) {
    Result<SpatialLayer> layer = layer_of(sum);
    if (layer) {
      workload.layers.push_back({*std::move(layer), 1, {func.name}});
    } else {
      workload.host.push_back({sum.name, func.name, layer.error().why, 0, sum.macs()});
    }
  }
  add_others(found, func.name, workload);
  if (workload.layers.empty()) return no_layer(workload);
  return workload;
}

}  // namespace tilewright::codesign
