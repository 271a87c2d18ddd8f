// The expression half of the tensor language. Private to text.cc.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/scanner.h"
#include "tilewright/tensor/tensor.h"

namespace tilewright::tensor::text {

/// A literal or size: takes the type of what it is combined with.
struct Literal {
  bool real = false;
  int64_t integer = 0;
  double number = 0;
};

/// An expression, or a literal that has no type yet.
struct Value {
  Expr e;
  std::optional<Literal> literal;
};

/// What names mean inside one definition.
struct Scope {
  std::map<std::string, int64_t> sizes;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, Expr> indices;
};

class ExprParser {
 public:
  ExprParser(Scanner& scanner, const Scope& scope) : scan_(scanner), scope_(scope) {}

  /// An expression of a definite type; a lone literal is i64 or f32.
  Result<Expr> expr();
  /// An integer known now: literals, sizes and arithmetic of them. `what` names its role.
  Result<int64_t> size(const std::string& what);
  /// Where each read of a tensor stands in the text.
  const std::map<const ExprNode*, size_t>& reads() const { return reads_; }

 private:
  Result<Value> parse(int least);
  Result<Value> unary();
  Result<Value> primary();
  Result<Value> number(const Token& token);
  Result<Value> named(const Token& token);
  Result<Value> call(const Token& token);
  Result<Value> conversion(DType dtype, const std::vector<Value>& args, size_t offset);
  Result<Value> extreme(const std::string& word, const std::vector<Value>& args, size_t offset);
  Result<Value> selection(const std::vector<Value>& args, size_t offset);
  Result<Value> function(MathFn fn, const std::vector<Value>& args, size_t offset);
  Status need(std::string_view word, const std::vector<Value>& args, size_t count,
              size_t offset) const;
  Result<Value> read(const Token& token, const Tensor& tensor);
  Result<std::vector<Value>> arguments(const std::string& close);
  Result<Value> apply(BinaryOp op, Value a, Value b, size_t offset);
  Result<Value> apply_literals(BinaryOp op, const Literal& a, const Literal& b, size_t offset);
  Result<Expr> typed(const Value& v, DType dtype, size_t offset);
  Result<Expr> default_typed(const Value& v, size_t offset);
  /// Gives all values one type: that of the first which has one.
  Result<std::vector<Expr>> unify(const std::string& what, const std::vector<Value>& values,
                                  size_t offset, std::optional<DType> fallback);

  Scanner& scan_;
  const Scope& scope_;
  std::map<const ExprNode*, size_t> reads_;
  int nesting_ = 0, operators_ = 0;
};

/// True for words that cannot name a tensor, size or index.
bool is_reserved(const std::string& word);

}  // namespace tilewright::tensor::text
