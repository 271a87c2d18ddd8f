// Average pools as depthwise convolutions.
//
//   AveragePool 2x2                              =>  Conv with one kernel of 1/4 per channel
//   AveragePool 3x3 that does not count padding  =>  windows at the border hold 6 or 4 elements: a
//                                                    Conv for each run of windows with one count,
//                                                    joined by Concat
#include "tilewright/graph/quantize/pool.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::graph {

Result<bool> PoolRewriter::max_pool(const Node& node) {
  if (!is_image(node.inputs[0])) return false;
  const Shape& x = shape(node.inputs[0]);
  tensor::Attrs attrs;
  if (node.op == "GlobalMaxPool") {
    attrs.values["kernel_shape"] = Ints{x[2], x[3]};
  } else {
    const auto window = TW_TRY(tensor::window_of(op_call(old(), node), {x[2], x[3]},
                                                 node.attrs.get_ints("kernel_shape"),
                                                 node.attrs.get_int("ceil_mode", 0) != 0));
    attrs.values["kernel_shape"] = window.kernel;
    attrs.values["strides"] = window.strides;
    if (window.dilations != Ints{1, 1}) attrs.values["dilations"] = window.dilations;
    attrs.values["pads"] =
        Ints{window.begin[0], window.begin[1], window.reached_end(0), window.reached_end(1)};
  }
  const ValueId y = TW_TRY(append(node.name, "MaxPool", {keep(node.inputs[0])}, attrs));
  define(node.outputs[0], y);
  --rewritten_;
  return true;
}

std::vector<PoolRewriter::Run> PoolRewriter::runs_of(const tensor::Window& window, size_t axis,
                                                     bool include_pad) {
  std::vector<Run> runs;
  for (int64_t o = 0; o < window.output[axis]; ++o) {
    const int64_t start = o * window.strides[axis] - window.begin[axis];
    const int64_t lo = include_pad ? -window.begin[axis] : 0;
    const int64_t hi = window.input[axis] + (include_pad ? window.end[axis] : 0);
    const int64_t count = std::min(start + window.kernel[axis], hi) - std::max(start, lo);
    if (runs.empty() || runs.back().count != count) runs.push_back({o, o, count});
    ++runs.back().last;
  }
  return runs;
}

Result<bool> PoolRewriter::average_pool(const Node& node) {
  if (!is_image(node.inputs[0])) return false;
  const Shape& x = shape(node.inputs[0]);
  const auto window = TW_TRY(tensor::window_of(op_call(old(), node), {x[2], x[3]},
                                               node.attrs.get_ints("kernel_shape"),
                                               node.attrs.get_int("ceil_mode", 0) != 0));
  if (window.dilations != Ints{1, 1}) return false;
  const bool include_pad = node.attrs.get_int("count_include_pad", 0) != 0;
  const auto rows = runs_of(window, 0, include_pad), columns = runs_of(window, 1, include_pad);
  const bool whole = rows.size() == 1 && columns.size() == 1;
  // In mode ceil windows may end behind the padding, which is not counted.
  const bool beyond =
      window.reached_end(0) > window.end[0] || window.reached_end(1) > window.end[1];
  const bool one = window.output == Ints{1, 1};
  if (target_.averages == Averages::Dense && !one) {
    if (!whole || rows[0].count * columns[0].count != window.kernel[0] * window.kernel[1])
      graph().warnings.push_back(fmt::format(
          "AveragePool '{}' counts padding on the target: its borders change", node.name));
    define(node.outputs[0], TW_TRY(pooled(node, window, true)));
    --rewritten_;
    return true;
  }
  if (target_.averages != Averages::Depthwise && !(include_pad && beyond)) {
    define(node.outputs[0], TW_TRY(pooled(node, window, include_pad)));
    --rewritten_;
    return true;
  }
  std::vector<ValueId> bands;
  for (const Run& row : rows) {
    std::vector<ValueId> parts;
    for (const Run& column : columns) {
      const std::string name =
          whole ? node.name : fmt::format("{}/{}_{}", node.name, row.first, column.first);
      parts.push_back(TW_TRY(average_part(name, node.inputs[0], window, {row, column})));
    }
    bands.push_back(parts.size() == 1
                        ? parts[0]
                        : TW_TRY(append(fmt::format("{}/{}", node.name, row.first), "Concat", parts,
                                        attrs_of({{"axis", int64_t{3}}}))));
  }
  const ValueId y =
      bands.size() == 1
          ? bands[0]
          : TW_TRY(append(node.name, "Concat", bands, attrs_of({{"axis", int64_t{2}}})));
  define(node.outputs[0], y);
  return true;
}

Result<ValueId> PoolRewriter::pooled(const Node& node, const tensor::Window& window,
                                     bool include_pad) {
  return append(node.name, "AveragePool", {keep(node.inputs[0])},
                attrs_of({{"kernel_shape", window.kernel},
                          {"strides", window.strides},
                          {"pads", Ints{window.begin[0], window.begin[1], window.reached_end(0),
                                        window.reached_end(1)}},
                          {"count_include_pad", int64_t{include_pad}}}));
}

/// The part of an average pooling whose windows all count alike.
Result<ValueId> PoolRewriter::average_part(const std::string& name, ValueId x,
                                           const tensor::Window& window,
                                           const std::array<Run, 2>& runs) {
  Geometry g;
  g.strides = window.strides;
  Ints begin(2), end(2);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t from = runs[i].first * window.strides[i] - window.begin[i];
    const int64_t to = (runs[i].last - 1) * window.strides[i] - window.begin[i] + window.kernel[i];
    begin[i] = std::max<int64_t>(from, 0), end[i] = std::min(to, window.input[i]);
    g.pads[i] = begin[i] - from, g.pads[2 + i] = to - end[i];
  }
  const ValueId part = TW_TRY(slice(name + "/Slice", keep(x), begin, end));
  return mean_conv(name, part, window.kernel,
                   1.0 / static_cast<double>(runs[0].count * runs[1].count), g);
}

bool PoolRewriter::is_global_average(const Node& node) const {
  if (!node.domain.empty() || node.inputs.empty() || !is_image(node.inputs[0])) return false;
  if (node.op == "GlobalAveragePool") return true;
  if (node.op != "ReduceMean") return false;
  auto axes = known_ints(old(), node, 1);
  if (!axes) axes = node.attrs.get_ints("axes");
  for (int64_t& axis : *axes) axis = axis < 0 ? axis + 4 : axis;
  std::sort(axes->begin(), axes->end());
  return *axes == Ints{2, 3};
}

Result<bool> PoolRewriter::global_average(const Node& node) {
  if (!is_global_average(node)) return false;
  const Shape& x = shape(node.inputs[0]);
  ValueId y = -1;
  if (target_.averages == Averages::Depthwise) {
    y = TW_TRY(mean_conv(node.name, keep(node.inputs[0]), {x[2], x[3]},
                         1.0 / static_cast<double>(x[2] * x[3]), Geometry{}));
  } else {
    y = TW_TRY(append(node.name, "AveragePool", {keep(node.inputs[0])},
                      attrs_of({{"kernel_shape", Ints{x[2], x[3]}}})));
  }
  return behind_activations(node.outputs[0], y, [&](ValueId v) {
    return reshape(node.name + "/Reshape", v, shape(node.outputs[0]));
  });
}

}  // namespace tilewright::graph
