// The layout pass at work (blocker.cc): a new graph is built in topological order; each value may
// exist plain, blocked or both, and a conversion is made only when somebody needs the form that is
// missing.
//
//   Conv -> Relu -> Transpose  =>  ToBlocked -> ConvBlocked -> Relu -> FromBlocked -> Transpose
//   [1, 64, 14, 14]            =>  [1, 4, 14, 14, 16] between ToBlocked and FromBlocked
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/dot_form.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/tensor/window.h"

namespace tilewright::graph {

/// Elementwise operators that stay blocked even if the last block is filled up with zeros: they
/// give something finite there, which weights of zero remove again.
inline const std::set<std::string> kFiniteAtZero = {"Abs",
                                                    "Add",
                                                    "Ceil",
                                                    "Celu",
                                                    "Clip",
                                                    "Elu",
                                                    "Erf",
                                                    "Exp",
                                                    "Floor",
                                                    "Gelu",
                                                    "HardSigmoid",
                                                    "HardSwish",
                                                    "Identity",
                                                    "LeakyRelu",
                                                    "Max",
                                                    "Mean",
                                                    "Min",
                                                    "Mish",
                                                    "Mul",
                                                    "Neg",
                                                    "PRelu",
                                                    "Relu",
                                                    "Round",
                                                    "Selu",
                                                    "Sigmoid",
                                                    "Sign",
                                                    "Softplus",
                                                    "Softsign",
                                                    "Sub",
                                                    "Sum",
                                                    "Swish",
                                                    "Tanh",
                                                    "ThresholdedRelu",
                                                    "Cast",
                                                    "QuantizeLinear",
                                                    "DequantizeLinear"};
/// The same if no last block is filled up.
inline const std::set<std::string> kElementwiseUnfilled = {
    "Div",  "Pow",     "Sqrt",  "Log",         "Reciprocal",     "Cos", "Sin", "Where",
    "Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual", "Not", "And", "Or"};

class Blocker : private Rewriter {
 public:
  Blocker(const Graph& graph, PassContext& context)
      : Rewriter(graph),
        context_(context),
        block_(std::max(4, context.vector_bytes / 4)),
        forms_(graph.values.size()) {}

  Result<Graph> run();

 private:
  /// What exists of a value in the new graph beside its plain form.
  struct Forms {
    std::map<int64_t, ValueId> blocked;  ///< by block
    /// In blocks of the target's size, under another shape: spatial axes split into phases, or as
    /// Winograd's form has them.
    ValueId phases = -1;
  };

  Forms& forms(ValueId id) { return forms_[static_cast<size_t>(id)]; }
  /// Whether the value already exists in blocks of the target's size.
  bool has_blocks(ValueId id) {
    return id >= 0 && (forms(id).blocked.contains(block_) || forms(id).phases >= 0);
  }
  int64_t blocks_of(int64_t channels) const { return (channels + block_ - 1) / block_; }

  /// With one pixel and full blocks, or blocks of one channel, both forms are the same bytes.
  bool same_bytes(const Shape& s, int64_t block) const;
  Shape blocked_shape(const Shape& s, int64_t block) const;

  Result<ValueId> plain(ValueId id);

  /// `id` in blocks of `block` channels.
  Result<ValueId> in_blocks(ValueId id, int64_t block);

  /// Copies a node as it is, on plain values.
  Status copy(const Node& node);

  void define(const Node& node, size_t output, ValueId made);

  /// Makes the blocked (or packed) form of `node` if it has one here.
  Result<bool> blocked(const Node& node);

  // --- Products.

  /// `bias` filled up with zeros to `padded` channels.
  ValueId padded_to(const Node& node, const Array& bias, int64_t padded);

  /// The known bias filled up to `padded` channels; -1 for none.
  ValueId padded_bias(const Node& node, int64_t padded);

  /// A convolution in groups of channels, for dot products.
  Result<bool> dot_conv(const Node& node, const DotForm& form);

  /// Windows of one channel each, in groups of taps where these lie side by side.
  Result<bool> dot_depthwise(const Node& node, const DotForm& form);

  /// A x B in groups along the inner axis; columns that fill up the last block are cut off again.
  Result<bool> dot_product(const Node& node, const DotForm& form);

  Result<bool> block_conv(const Node& node);

  // --- Winograd's form of 3x3 convolutions (layout/winograd.cc).

  struct Winograd;
  std::optional<Winograd> winograd_form(const Node& node, const tensor::Window& window);
  Result<bool> block_winograd(const Node& node);
  Result<ValueId> make_winograd(const Node& node, const Winograd& form, ValueId x, ValueId w);

  /// The direct form for a convolution: the default where nothing is known of it.
  tensor::DirectForm direct_form(const Node& node);
  /// Its sums over groups of channels, each added to the one before where it is made.
  Result<bool> add_parts(const Node& node, const tensor::DirectForm& form);

  Result<bool> make_conv(const Node& node, const std::string& op, const std::string& pack,
                         int64_t block_in, tensor::Attrs pack_attrs, tensor::Attrs attrs);

  /// A transposed convolution as one convolution per phase.
  Result<bool> block_transposed(const Node& node);

  /// A x B with a known matrix B: its columns are stored in panels.
  Result<bool> pack_product(const Node& node);

  // --- What follows blocked values.

  Result<bool> block_pool(const Node& node);

  /// Sums of neighbouring channels' squares.
  Result<bool> block_lrn(const Node& node);

  /// The mean over both spatial axes is a global pool.
  Result<bool> block_mean(const Node& node);

  Result<bool> block_concat(const Node& node);

  Result<bool> block_split(const Node& node);

  /// Spatial resizing by known scales or sizes.
  Result<bool> block_resize(const Node& node);

  Result<bool> block_pad(const Node& node);

  /// Spatial slices.
  Result<bool> block_slice(const Node& node);

  /// Phases of a transposed convolution put in order (layout/phases.cc).
  Result<bool> block_phases(const Node& node);

  Result<bool> block_elementwise(const Node& node);

  /// Whether the known `id`, read at the channels that fill up the last block of a value of shape
  /// `out` as well, is finite there (or nothing is filled up).
  bool stays_finite(ValueId id, const Shape& out) const;

  /// x / c with one known c other than 0.
  bool divides_by_number(const Node& node) const;

  /// An operand that broadcasts against the blocked form of a value of shape `out`. requires: it
  /// is known, or has the rank of `out` and either its channels or one.
  Result<ValueId> operand(ValueId id, const Shape& out);

  PassContext& context_;
  const int64_t block_;
  std::vector<Forms> forms_;
  int blocked_nodes_ = 0, conversions_ = 0, packed_ = 0;
};

}  // namespace tilewright::graph
