// Tensor expressions: what to compute, without any loop. `make_func` turns them into a Func at
// stage Tensor: one single-assignment nest per tensor, loops named `<tensor>.<axis>`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::tensor {

/// A named axis with its extent (`{"h", 56}`).
struct Dim {
  std::string name;
  int64_t extent;
};
using Indices = std::vector<Expr>;

struct TensorNode;

/// A value: an input, or computed from other tensors. Immutable handle; identity is the buffer.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<const TensorNode> node) : node_(std::move(node)) {}
  explicit operator bool() const { return node_ != nullptr; }
  const std::string& name() const;
  DType dtype() const;
  const Shape& shape() const;
  int64_t dim(size_t axis) const { return shape()[axis]; }
  size_t rank() const { return shape().size(); }
  const Buffer& buffer() const;
  const TensorNode* get() const { return node_.get(); }
  /// The element at `indices` (one i64 expression per axis).
  Expr operator()(Indices indices) const;

 private:
  std::shared_ptr<const TensorNode> node_;
};

/// An input. Const inputs are known at compile time; `values` fixes them (constant tables).
Tensor placeholder(std::string name, DType dtype, Shape shape, ParamMode mode = ParamMode::In,
                   std::optional<Array> values = std::nullopt);

/// out[i...] = f(i...). dtype: that of the value.
Tensor compute(std::string name, std::vector<Dim> space,
               const std::function<Expr(const Indices&)>& f);

/// out[i...] = init(i...), then combined over r... with f(i..., r...). The default init is the
/// identity of `combine` in the value's dtype (0, 1, lowest, highest). Terms count only where
/// `counts(r...)` holds: all of them without it. requires: combine != Set.
Tensor reduce(std::string name, std::vector<Dim> space, std::vector<Dim> over, Combine combine,
              const std::function<Expr(const Indices&, const Indices&)>& f,
              const std::function<Expr(const Indices&)>& init = {},
              const std::function<Expr(const Indices&)>& counts = {});

/// The identity of Max and of Min: -inf and inf for floats, else the ends of the type's range.
Expr lowest(DType dtype);
Expr highest(DType dtype);

/// Several outputs written by hand-made statements (recurrences with scan axes). Every output
/// buffer must be fully written by `body`; loops and blocks in it are named by the caller.
std::vector<Tensor> raw(std::vector<Buffer> outputs, Stmt body);

/// The Func computing `outputs` from `inputs`. Parameters: the inputs, the outputs, then the
/// constant tables (placeholders with values) that are read and not listed. Tensors in between
/// become allocations; names that clash get a numeric suffix. requires: every other placeholder
/// reached is in `inputs` (a computed tensor may be an input too: it is then not computed again);
/// an output may itself be an input (it is copied). `output_names`, if given, rename the outputs
/// (their buffers, blocks and loops).
Func make_func(std::string name, const std::vector<Tensor>& inputs,
               const std::vector<Tensor>& outputs, MathMode math = MathMode::Fast,
               const std::vector<std::string>& output_names = {});

/// The inputs `outputs` depend on, in the order they are first read.
std::vector<Tensor> reached_inputs(const std::vector<Tensor>& outputs);

}  // namespace tilewright::tensor
