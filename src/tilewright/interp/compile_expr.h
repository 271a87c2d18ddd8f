// Expressions to trees of Eval nodes. Private to interp.
#pragma once

#include <map>

#include "tilewright/interp/machine.h"

namespace tilewright::interp {

/// Slots of the names in scope and the translation of expressions over them.
class ExprCompiler {
 public:
  int add_var(const Var& var) { return vars_[var] = num_vars_++; }
  void alias_var(const Var& var, int slot) { vars_[var] = slot; }
  int add_buffer(const Buffer& buffer) { return buffers_[buffer] = num_buffers_++; }
  int var_slot(const Var& var) const;
  int buffer_slot(const Buffer& buffer) const;
  int num_vars() const { return num_vars_; }
  int num_buffers() const { return num_buffers_; }

  AnyEval any(const Expr& e) const;
  /// requires: the value travels as R.
  template <class R>
  EvalPtr<R> eval(const Expr& e) const;
  /// requires: i64.
  Linear linear(const Expr& e) const;
  std::vector<Linear> linear(const std::vector<Expr>& es) const;
  Element access(const Buffer& buffer, const std::vector<Expr>& indices) const;

 private:
  void add_linear(const Expr& e, int64_t coefficient, Linear& sum) const;
  AnyEval unary(const Unary& x, DType dtype) const;
  AnyEval binary(const Binary& x, DType dtype) const;
  template <class T>
  AnyEval binary_of(const Binary& x) const;
  template <class T, BinaryOp Op>
  AnyEval binary_node(const Binary& x) const;
  AnyEval logical(const Binary& x) const;
  AnyEval select(const Select& x, DType dtype) const;
  AnyEval cast(const Cast& x, DType dtype) const;
  AnyEval load(const Load& x) const;
  AnyEval math(const MathCall& x, DType dtype) const;

  std::map<Var, int> vars_;
  std::map<Buffer, int> buffers_;
  int num_vars_ = 0, num_buffers_ = 0;
};

}  // namespace tilewright::interp
