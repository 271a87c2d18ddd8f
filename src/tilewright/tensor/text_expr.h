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
struct TextOperand {
  Expr e;
  std::optional<Literal> literal;
};

/// What names mean inside one definition.
struct DefinitionScope {
  std::map<std::string, int64_t> sizes;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, Expr> indices;
};

class TensorExprParser {
 public:
  TensorExprParser(Scanner& scanner, const DefinitionScope& scope)
      : scan_(scanner), scope_(scope) {}

  /// An expression of a definite type; a lone literal is i64 or f32.
  Result<Expr> expr();
  /// An integer known now: literals, sizes and arithmetic of them. `what` names its role.
  Result<int64_t> size(const std::string& what);
  /// Where each read of a tensor stands in the text.
  const std::map<const ExprNode*, size_t>& reads() const { return reads_; }

 private:
  Result<TextOperand> parse(int least);
  Result<TextOperand> unary();
  Result<TextOperand> primary();
  Result<TextOperand> number(const Token& token);
  Result<TextOperand> named(const Token& token);
  Result<TextOperand> call(const Token& token);
  Result<TextOperand> conversion(DType dtype, const std::vector<TextOperand>& args, size_t offset);
  Result<TextOperand> extreme(const std::string& word, const std::vector<TextOperand>& args,
                              size_t offset);
  Result<TextOperand> selection(const std::vector<TextOperand>& args, size_t offset);
  Result<TextOperand> function(MathFn fn, const std::vector<TextOperand>& args, size_t offset);
  Status need(std::string_view word, const std::vector<TextOperand>& args, size_t count,
              size_t offset) const;
  Result<TextOperand> read(const Token& token, const Tensor& tensor);
  Result<std::vector<TextOperand>> arguments(const std::string& close);
  Result<TextOperand> apply(BinaryOp op, TextOperand a, TextOperand b, size_t offset);
  Result<TextOperand> apply_literals(BinaryOp op, const Literal& a, const Literal& b,
                                     size_t offset);
  Result<Expr> typed(const TextOperand& v, DType dtype, size_t offset);
  Result<Expr> default_typed(const TextOperand& v, size_t offset);
  /// Gives all values one type: that of the first which has one.
  Result<std::vector<Expr>> unify(const std::string& what, const std::vector<TextOperand>& values,
                                  size_t offset, std::optional<DType> fallback);

  Scanner& scan_;
  const DefinitionScope& scope_;
  std::map<const ExprNode*, size_t> reads_;
  int nesting_ = 0, operators_ = 0;
};

/// True for words that cannot name a tensor, size or index.
bool is_reserved(const std::string& word);

}  // namespace tilewright::tensor::text
