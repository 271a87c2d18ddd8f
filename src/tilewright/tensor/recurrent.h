// What the plain and the blocked forms of LSTM, GRU and RNN share.
#pragma once

#include <string>
#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

/// The sizes of one recurrent layer.
struct RecurrentLayer {
  int64_t directions = 1, steps = 0, batch = 0, input = 0, hidden = 0;
  bool batch_first = false;
  std::string direction;
  bool reversed(int64_t d) const { return direction == "reverse" || d == 1; }
};

/// An activation function of ONNX.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
};

/// What distinguishes the three operators before the recurrence itself.
struct RecurrentKind {
  int gates;
  std::vector<std::string> functions;  ///< default activations of one direction
  bool cell;                           ///< has a second state, c
};
RecurrentKind recurrent_kind(const std::string& op);

/// Checks shapes and attributes of an LSTM, GRU or RNN. errors: Invalid.
Result<RecurrentLayer> recurrent_layer(const OpCall& call);

/// The functions of all directions in order. ONNX hands out alpha and beta to those that take them.
/// errors: Invalid, Unsupported.
Result<std::vector<Activation>> recurrent_activations(const OpCall& call, int64_t directions,
                                                      const std::vector<std::string>& defaults);

/// The length of sequence `b`, never outside the steps there are, whatever is given.
Expr sequence_length(const RecurrentLayer& layer, const Tensor& lengths, const Expr& b);

Expr activate_by(const Activation& f, const Expr& x);

/// The operators on blocked weights (ops/recurrent_blocked.cc).
void add_blocked_recurrent_ops(std::vector<OpDef>& table);

}  // namespace tilewright::tensor
