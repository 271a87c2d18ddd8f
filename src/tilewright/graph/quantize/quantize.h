// Post-training quantisation to signed 8-bit integers: symmetric scales, sums in i32, every
// convolution, dense layer, residual addition and pooling as ConvInteger, Requantize and MaxPool.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tilewright/graph/ir/graph.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/quantize/abilities.h"

namespace tilewright::graph {

/// What calibration saw of one f32 value. A histogram with fixed bins: any number of samples can be
/// added, in any order.
struct Observed {
  double lo = 0, hi = 0;            ///< of the finite elements, and of 0
  std::vector<int64_t> bins;        ///< counts of |x| by exponent and four bits of mantissa
  std::vector<double> channel_sum;  ///< along axis 1
  int64_t count = 0;                ///< elements seen
};

/// Of every value of a prepared graph, by ValueId; values that calibration did not see stay empty.
struct Ranges {
  std::vector<Observed> values;
};

/// Adds one sample of value `id`; arrays that are not f32 are ignored.
void accumulate(Ranges& ranges, ValueId id, const Array& value);

struct QuantizeOptions {
  /// Weights get a scale per output channel and sums are multiplied before the shift; otherwise all
  /// scales are powers of two and a shift is enough.
  bool per_channel = false;
  /// Adds to each bias what the rounding of the weights takes from the mean of the output.
  bool correct_bias = true;
  /// Results that leave the integer part for good come as two 8-bit values, 14 bits together.
  bool wide_outputs = true;  ///< without effect if the target takes scales of powers of two only
  IntegerAbilities target;   ///< as in prepare_quantize
};

/// An integer graph and what its numbers stand for.
struct QuantizedGraph {
  Graph graph;
  /// Per value of `graph`: real value = integer * scale. Empty: not quantised; several: one per
  /// output channel (weights).
  std::vector<std::vector<double>> scales;
  /// Per value of `graph`: the name of the value of the f32 graph that it stands for; empty: none,
  /// or only in part.
  std::vector<std::string> origins;
  std::vector<std::string> notes;                  ///< what stayed in f32 and why, for `--explain`
  std::map<std::string, std::string> f32_reasons;  ///< the same by name of the node
};

/// The f32 graph as calibration has to run it: batch norms folded, and everything that can be a
/// convolution made one (dense layers, average pooling, LeakyRelu, channel-wise arithmetic, strided
/// convolutions of few channels by SpaceToDepth). Computes the same as `graph`, up to rounding.
/// What `target` computes itself stays.
Result<Graph> prepare_quantize(const Graph& graph, PassContext& context,
                               const IntegerAbilities& target = {});

/// The integer form of a prepared graph. Operators with no integer form stay f32 between
/// DequantizeLinear and QuantizeLinear.
///   requires: `prepared` comes from prepare_quantize.
///   errors: Invalid (a value that needs a scale was not calibrated), with its name.
Result<QuantizedGraph> quantize(const Graph& prepared, const Ranges& ranges,
                                const QuantizeOptions& options = {});

/// The same numbers as a standard ONNX model: f32 operators between QuantizeLinear and
/// DequantizeLinear. A runtime that computes them in f32 gives the same integers as long as sums
/// stay below 2^23 and scales are powers of two: biases carry half a unit of the sum, so that
/// rounding never meets a tie and equals the rounding shift.
Result<Graph> to_qdq(const QuantizedGraph& quantized);

/// `qdq` as layers that know nothing of each other: whoever reads one of the integers in `given`
/// (names of values) reads an input of the same name with kGiven behind it instead. Its own result
/// stays an output, so that each layer can be judged on operands that are right, or at least known.
Graph layers_alone(const Graph& qdq, const std::set<std::string>& given);
inline constexpr const char* kGiven = "_given";

/// Whether the graph has QuantizeLinear or DequantizeLinear nodes.
bool is_qdq(const Graph& graph);

/// A user's QDQ model as an integer graph with the model's own scales. Sums are scaled by a shift
/// where the scales allow it, else by a fixed-point multiplier per channel; either differs from the
/// model by at most one unit, where a value lies next to the middle of two.
///   errors: Unsupported (unsigned or shifted types, scales per channel of activations; scales that
///   are no powers of two, where `target` takes no others), all with names.
Result<QuantizedGraph> from_qdq(const Graph& graph, PassContext& context,
                                const IntegerAbilities& target = {});

}  // namespace tilewright::graph
