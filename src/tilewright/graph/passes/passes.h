// Graph passes: each is a function from graph to graph and one row of the table below.
#pragma once

#include <string>
#include <vector>

#include "tilewright/graph/ir/graph.h"
#include "tilewright/tensor/conv2d_shape.h"

namespace tilewright::graph {

/// What passes may ask of the outside, and where they say what they did.
struct PassContext {
  Evaluate evaluate;      ///< values of operators on constants; without it little is folded
  int vector_bytes = 64;  ///< of the target: decides the block of blocked layouts
  bool regroup = true;    ///< sums may be taken in another order
  /// Output tile m of the Winograd form to use along each axis with several taps, or 0 for the
  /// direct form; without it every convolution is direct.
  std::function<int64_t(const tensor::Conv2dShape&)> winograd_tile;
  /// The same for convolutions on plain channels.
  std::function<int64_t(const tensor::Conv2dShape&)> plain_winograd_tile;
  /// How the direct form of a convolution reads plain channels; without it as DirectForm is.
  std::function<tensor::DirectForm(const tensor::Conv2dShape&)> direct_form;
  /// Elements in a group of the target's dot products of activations and weights of these types, 0
  /// if it has none; without it nothing becomes dot products.
  std::function<int64_t(DType, DType)> dot_depth;
  /// Products of bytes are computed on plain channels, in any groups, and without zero points.
  bool zero_points_apart = false;
  /// The same for instructions that multiply small matrices: rows of activations at a time.
  std::function<int64_t(DType, DType)> tile_depth;
  /// The transposed form of a convolution is never fast: phases become filters of an ordinary one.
  bool phases_together = false;
  /// A convolution keeps the layout it likes best, at the price of copies around it.
  bool copies_apart = false;
  bool verify_each = false;
  std::vector<std::string> notes;  ///< of the pass that is running
};

/// Computes operators whose inputs are all known, unless the result would bloat the model.
Result<Graph> fold_constants(const Graph& graph, PassContext& context);
/// Drops nodes and values that no output needs.
Result<Graph> eliminate_dead(const Graph& graph, PassContext& context);
/// Nodes with the same operator, attributes and inputs become one.
Result<Graph> merge_common(const Graph& graph, PassContext& context);
/// Removes operators that change nothing and merges neighbours (transposes, reshapes, clips).
Result<Graph> simplify(const Graph& graph, PassContext& context);
/// BatchNormalization becomes a scale and a shift; those, and any other per-channel constant
/// arithmetic, go into the weights and bias of the Conv, ConvTranspose or Gemm before them.
Result<Graph> fold_batch_norm(const Graph& graph, PassContext& context);
/// Pad goes into the padding of the Conv or pooling behind it.
Result<Graph> fold_pad(const Graph& graph, PassContext& context);
/// An average pool goes behind the 1x1 convolution that reads it, where that makes fewer channels.
///   rewrite: conv(pool(x)) => pool(conv(x)) + bias, both being linear
Result<Graph> narrow_pools(const Graph& graph, PassContext& context);
Result<Graph> join_groups(const Graph& graph, PassContext& context);
/// Transposed convolutions with known weights become ordinary ones: of stride 1, and those whose
/// phases share vectors (graph/passes/transposed.h).
Result<Graph> lower_transposed(const Graph& graph, PassContext& context);
/// Products of dequantised values become integer products, where the target has such instructions.
Result<Graph> integer_products(const Graph& graph, PassContext& context);
/// Zero points of integer products go behind their sums, where the target wants them apart.
///   rewrite: sum (x - a) (w - b) => sum x w - a * sum w - b * (sum x - a * terms)
///   keeps:   the sums, modulo 2^32; weights that are bytes less their zero point need no sum of x
Result<Graph> zero_points(const Graph& graph, PassContext& context);
/// Bilinear forms with a known weight become matrix products with the smallest value between them.
Result<Graph> split_bilinear(const Graph& graph, PassContext& context);
/// 1x1 convolutions between inputs and outputs of the graph become matrix products on plain values.
///   rewrite: conv(x, w) => reshape(w * reshape(x)), so that no layout changes
Result<Graph> flatten_pointwise(const Graph& graph, PassContext& context);
/// Square convolutions of stride 1 on plain channels become Winograd's.
///   rewrite: conv(x, w) => winograd(x, packed w)
Result<Graph> plain_winograd(const Graph& graph, PassContext& context);
/// LSTM, GRU and RNN with known weights: one product for the inputs of all steps, weights of the
/// recurrence in blocks.
Result<Graph> block_recurrent(const Graph& graph, PassContext& context);
/// Convolutions and what surrounds them move to blocked channels (NCHWc), products with constant
/// matrices to packed weights; conversions stay only where blocked and plain values meet.
Result<Graph> block_layout(const Graph& graph, PassContext& context);
/// A product with packed weights whose columns are split and transposed makes the parts itself.
///   rewrite: transpose(reshape(x * w + b)) => transpose(x * w + b), columns in parts (heads)
Result<Graph> split_heads(const Graph& graph, PassContext& context);

/// A concatenation that begins with all parts of an earlier one takes that one whole, so that each
/// value is part of one other only and needs no copy (partition/views.h).
Result<Graph> nest_concats(const Graph& graph, PassContext& context);

struct Pass {
  std::string name;
  std::string doc;  ///< one line
  Result<Graph> (*run)(const Graph&, PassContext&);
};
const std::vector<Pass>& all_passes();
/// The names of the default pipeline, comma-separated.
std::string default_passes();

/// What one pass did, for `compile --explain`.
struct PassReport {
  std::string name;
  size_t nodes_before = 0, nodes_after = 0;
  double seconds = 0;
  std::vector<std::string> notes;
};
struct PassResult {
  Graph graph;
  std::vector<PassReport> reports;
};

/// Runs `passes` (comma-separated names) in order. errors: Usage (unknown pass, with the list), or
/// what a pass reports.
Result<PassResult> run_passes(Graph graph, const std::string& passes, PassContext& context);

/// One line per pass and one per note.
std::vector<std::string> explain(const std::vector<PassReport>& reports);

}  // namespace tilewright::graph
