// A Pad goes into the padding of the operator behind it.
//
//   Pad(x, 1 on all sides, zeros), Conv without padding  =>  Conv with a padding of 1
//
// An average then counts its padding. A maximum never counts its own, so the zeros of the Pad must
// not matter: x is never negative, and every window holds an element of it.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

/// Operators whose result is never negative: zeros around it are as good as minus infinity for a
/// maximum over windows that each hold at least one real element.
const std::set<std::string> kNotNegative = {"Relu",        "Sigmoid",  "Abs",    "Exp",
                                            "HardSigmoid", "Softplus", "Softmax"};

struct PadNode {
  ValueId source = -1;
  std::vector<int64_t> begin, end;  ///< spatial axes only
  double value = 0;
};

class PadFolder {
 public:
  PadFolder(const Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Graph run() {
    const std::vector<int> producer = producers(graph_);
    for (Node& node : graph_.nodes) {
      if (!node.domain.empty() || node.inputs.empty() || node.inputs[0] < 0) continue;
      const bool conv = node.op == "Conv", max = node.op == "MaxPool";
      if (!conv && !max && node.op != "AveragePool") continue;
      const int p = producer[static_cast<size_t>(node.inputs[0])];
      if (p < 0) continue;
      const auto pad = read_pad(graph_.nodes[static_cast<size_t>(p)]);
      if (!pad || !allows(node, *pad, producer)) continue;
      const size_t axes = pad->begin.size();
      std::vector<int64_t> pads = node.attrs.get_ints("pads", std::vector<int64_t>(2 * axes, 0));
      if (pads.size() != 2 * axes) continue;
      for (size_t a = 0; a < axes; ++a) {
        pads[a] += pad->begin[a];
        pads[axes + a] += pad->end[a];
      }
      node.attrs.values["pads"] = pads;
      node.attrs.values.erase("auto_pad");
      if (node.op == "AveragePool") node.attrs.values["count_include_pad"] = int64_t{1};
      node.inputs[0] = pad->source;
      context_.notes.push_back(
          fmt::format("'{}' into '{}'", graph_.nodes[static_cast<size_t>(p)].name, node.name));
    }
    return compact(graph_);
  }

 private:
  const Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }

  /// A constant Pad of spatial axes, or nothing.
  std::optional<PadNode> read_pad(const Node& node) const {
    if (!node.domain.empty() || node.op != "Pad") return std::nullopt;
    if (node.attrs.get_string("mode", "constant") != "constant") return std::nullopt;
    const auto amounts = known_ints(graph_, node, 1);
    const auto rank = static_cast<int64_t>(value(node.outputs[0]).type.shape.size());
    if (!amounts || rank < 3) return std::nullopt;
    std::vector<int64_t> axes;
    if (node.inputs.size() > 3 && node.inputs[3] >= 0) {
      const auto given = known_ints(graph_, node, 3);
      if (!given) return std::nullopt;
      axes = *given;
    } else {
      for (int64_t a = 0; a < rank; ++a) axes.push_back(a);
    }
    if (amounts->size() != 2 * axes.size()) return std::nullopt;
    PadNode pad;
    pad.source = node.inputs[0];
    pad.begin.assign(static_cast<size_t>(rank - 2), 0);
    pad.end = pad.begin;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      const int64_t before = (*amounts)[i], after = (*amounts)[axes.size() + i];
      if (before < 0 || after < 0 || (axis < 2 && (before > 0 || after > 0))) return std::nullopt;
      if (axis < 2) continue;
      pad.begin[static_cast<size_t>(axis - 2)] = before;
      pad.end[static_cast<size_t>(axis - 2)] = after;
    }
    if (node.inputs.size() > 2 && node.inputs[2] >= 0) {
      const auto& fill = value(node.inputs[2]).constant;
      if (!fill || fill->size() != 1) return std::nullopt;
      pad.value = fill->get(0);
    }
    return pad;
  }

  /// Whether the operator's own padding would give the same result.
  bool allows(const Node& node, const PadNode& pad, const std::vector<int>& producer) const {
    const std::string auto_pad = node.attrs.get_string("auto_pad", "NOTSET");
    if (auto_pad != "NOTSET" && auto_pad != "VALID") return false;
    if (node.attrs.get_int("ceil_mode", 0) != 0 || node.outputs.size() != 1) return false;
    const std::vector<int64_t> own = node.attrs.get_ints("pads");
    const bool padded = std::any_of(own.begin(), own.end(), [](int64_t p) { return p != 0; });
    if (node.op == "Conv") return pad.value == 0;
    if (node.op == "AveragePool")
      return pad.value == 0 && (!padded || node.attrs.get_int("count_include_pad", 0) != 0) &&
             windows_meet_data(node, pad);
    if (padded && pad.value != -std::numeric_limits<double>::infinity()) return false;
    if (!windows_meet_data(node, pad)) return false;
    if (pad.value == -std::numeric_limits<double>::infinity()) return true;
    const int p = producer[static_cast<size_t>(pad.source)];
    return pad.value == 0 && p >= 0 && graph_.nodes[static_cast<size_t>(p)].domain.empty() &&
           kNotNegative.contains(graph_.nodes[static_cast<size_t>(p)].op);
  }

  /// Padding below the kernel size: every window covers a real element. Taps with gaps between them
  /// may miss a small input.
  static bool windows_meet_data(const Node& node, const PadNode& pad) {
    const std::vector<int64_t> kernel = node.attrs.get_ints("kernel_shape");
    const std::vector<int64_t> own = node.attrs.get_ints("pads");
    const std::vector<int64_t> dilations = node.attrs.get_ints("dilations");
    if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; }))
      return false;
    for (size_t a = 0; a < pad.begin.size(); ++a) {
      if (a >= kernel.size()) return false;
      const int64_t before = pad.begin[a] + (own.empty() ? 0 : own[a]);
      const int64_t after = pad.end[a] + (own.empty() ? 0 : own[pad.begin.size() + a]);
      if (before >= kernel[a] || after >= kernel[a]) return false;
    }
    return true;
  }

  Graph graph_;
  PassContext& context_;
};

}  // namespace

Result<Graph> fold_pad(const Graph& graph, PassContext& context) {
  return PadFolder(graph, context).run();
}

}  // namespace tilewright::graph
