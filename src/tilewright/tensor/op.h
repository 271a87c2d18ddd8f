// The operator library's interface: each operator is one OpDef row in an explicit table.
// Operators carry ONNX names and the semantics of the newest ONNX version Tilewright supports; the
// importer rewrites older versions. Operators of our own live in domain "tilewright".
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/tensor/tensor.h"

namespace tilewright::tensor {

using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>, Array>;

/// Attributes by name, with typed access. A missing attribute gives the default.
class Attrs {
 public:
  std::map<std::string, AttrValue> values;
  bool has(const std::string& key) const { return values.contains(key); }
  int64_t get_int(const std::string& key, int64_t fallback) const;
  double get_float(const std::string& key, double fallback) const;
  std::string get_string(const std::string& key, const std::string& fallback) const;
  std::vector<int64_t> get_ints(const std::string& key, std::vector<int64_t> fallback = {}) const;
  std::vector<double> get_floats(const std::string& key) const;
  std::vector<std::string> get_strings(const std::string& key) const;
};

/// An input as the shape rule sees it. An absent optional input has present == false.
struct InputInfo {
  bool present = true;
  DType dtype = DType::F32;
  Shape shape;
  std::optional<Array> value;  ///< if known at compile time
};

/// One use of an operator.
struct OpCall {
  std::string domain;  ///< "" for ONNX, "tilewright" for ours
  std::string op;
  Attrs attrs;
  std::vector<InputInfo> inputs;
  int num_outputs = 1;
  const InputInfo* input(size_t i) const {  ///< null if absent
    return i < inputs.size() && inputs[i].present ? &inputs[i] : nullptr;
  }
};

struct TensorType {
  DType dtype;
  Shape shape;
  int dynamic_axis =
      -1;  ///< this axis' extent is an upper bound, known only at run time (NonZero, ...)
};

/// How an operator fuses. source: TVM paper, section 3 (injective, reduction, complex-out-fusable,
/// opaque).
enum class Fusion { Injective, Reduction, Complex, Opaque };

struct OpDef {
  std::string domain, name;
  int min_inputs = 1, max_inputs = 1;  ///< max -1: any number
  Fusion fusion = Fusion::Opaque;
  /// Inputs whose value must be known at compile time (Reshape's shape).
  std::vector<int> constant_inputs;
  /// Shape and dtype rule. errors: Invalid or Unsupported, naming the offending sizes.
  std::function<Result<std::vector<TensorType>>(const OpCall&)> infer;
  /// The definition; absent inputs are empty handles, constant inputs may be ignored in favour of
  /// their values. Called only after `infer` succeeded. Empty if `host` is set.
  std::function<std::vector<Tensor>(const OpCall&, const std::vector<Tensor>&)> define;
  /// Name of the runtime function that executes it (TopK, NonMaxSuppression): runtime/host_ops.h.
  std::string host;
};

/// Null if there is no such operator.
const OpDef* find_op(const std::string& domain, const std::string& name);
const std::vector<OpDef>& all_ops();

/// Checks the input count, constant inputs and dtypes common to all, then calls the operator's
/// rule.
Result<std::vector<TensorType>> infer(const OpCall& call);
/// The Func of a single operator: parameters x0.. (inputs present, without the constant inputs),
/// y0.., then constant tables. Inputs whose value is known are `const`.
Result<Func> op_func(const OpCall& call, MathMode math = MathMode::Fast);

// The tables, one per file (ops/*.cc).
void add_elementwise_ops(std::vector<OpDef>& table);
void add_nn_ops(std::vector<OpDef>& table);        // conv, pool, gemm, matmul, einsum
void add_norm_ops(std::vector<OpDef>& table);      // normalisation, softmax
void add_reduce_ops(std::vector<OpDef>& table);    // reductions, ArgMax, CumSum
void add_movement_ops(std::vector<OpDef>& table);  // reshape, transpose, slice, gather, pad, ...
void add_resize_ops(std::vector<OpDef>& table);
void add_recurrent_ops(std::vector<OpDef>& table);  // LSTM, GRU, RNN
void add_quantize_ops(std::vector<OpDef>& table);
void add_host_ops(std::vector<OpDef>& table);     // TopK, NonMaxSuppression, NonZero, ...
void add_blocked_ops(std::vector<OpDef>& table);  // NCHWc forms chosen by the layout pass
void add_tile_ops(std::vector<OpDef>& table);     // integer operators on accelerator tiles
void add_dot_ops(std::vector<OpDef>& table);      // products for dot-product instructions
void add_winograd_ops(std::vector<OpDef>& table);
void add_plain_winograd_ops(std::vector<OpDef>& table);
void add_paper_ops(std::vector<OpDef>& table);  // FlexTensor's table 1, MTTKRP, TTM

}  // namespace tilewright::tensor
