// Convolutions on plain channels by Winograd, where the target's model says that this is faster.
//
//   Conv 3x3 of stride 1, m = 4  =>  WinogradConv(x, PackWinogradWeight(w)): 36 products for a tile
//                                    of 4 x 4 results instead of 144
//
// The weight is known, so its transform is computed at compile time.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/tensor/window.h"

namespace tilewright::graph {
namespace {

class PlainWinograd : private Editor {
 public:
  PlainWinograd(const Graph& graph, PassContext& context) : Editor(graph), context_(context) {}

  Result<Graph> run() {
    for (const Node& node : take_nodes()) {
      const int64_t m = TW_TRY(tile_of(node));
      if (m == 0)
        put(node);
      else
        TW_TRY_STATUS(replace(node, m));
    }
    return std::move(graph());
  }

 private:
  /// Outputs of a tile along each axis; 0 where the convolution stays as it is.
  Result<int64_t> tile_of(const Node& node) const {
    if (!node.domain.empty() || node.op != "Conv") return 0;
    const tensor::TensorType& x = value(node.inputs[0]).type;
    const Value& weight = value(node.inputs[1]);
    const Shape& w = weight.type.shape;
    if (x.dtype != DType::F32 || x.shape.size() != 4 || x.dynamic_axis >= 0 || !weight.constant ||
        w[2] != w[3] || w[2] < 2 || node.attrs.get_int("group", 1) != 1)
      return 0;
    const tensor::Window window = TW_TRY(tensor::conv_window(op_call(graph(), node), x.shape, w));
    if (window.strides != Ints{1, 1} || window.dilations != Ints{1, 1}) return 0;
    return context_.plain_winograd_tile(
        {x.shape[0], x.shape[1], w[0], window.output[0], window.output[1], w[2], w[3]});
  }

  Status replace(const Node& conv, int64_t m) {
    const Shape& w = value(conv.inputs[1]).type.shape;
    const tensor::Window window =
        TW_TRY(tensor::conv_window(op_call(graph(), conv), value(conv.inputs[0]).type.shape, w));
    Node product = conv;  // the result has the same type
    product.domain = "tilewright";
    product.op = "WinogradConv";
    product.attrs.values = {
        {"m", m}, {"pads", Ints{window.begin[0], window.begin[1], window.end[0], window.end[1]}}};
    product.inputs[1] =
        TW_TRY(append_own(conv.name + "/PackWinogradWeight", "PackWinogradWeight", {conv.inputs[1]},
                          attrs_of({{"block_in", int64_t{1}}, {"block_out", w[0]}, {"m", m}})));
    put(std::move(product));
    context_.notes.push_back(fmt::format("'{}' in tiles of {}x{}", conv.name, m, m));
    return {};
  }

  PassContext& context_;
};

}  // namespace

Result<Graph> plain_winograd(const Graph& graph, PassContext& context) {
  return context.plain_winograd_tile ? PlainWinograd(graph, context).run() : graph;
}

}  // namespace tilewright::graph
