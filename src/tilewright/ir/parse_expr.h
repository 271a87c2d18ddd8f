// The expression half of the parser. Private to ir.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/scanner.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::text {

/// Deeper programs are refused: every later pass is recursive.
inline constexpr int kMaxNesting = 500;  ///< parentheses, calls, statements
inline constexpr int kMaxChain = 2000;   ///< depth of an expression, chains of operators included

/// Names in scope, by kind. `hidden` are loop variables that a block body must not use.
struct ScopeNames {
  std::map<std::string, Var, std::less<>> vars;
  std::map<std::string, Buffer, std::less<>> buffers;
  std::map<std::string, Var, std::less<>> hidden;
};

/// An expression with its depth, which bounds the recursion of whoever walks it.
struct Parsed {
  Expr e;
  int depth = 1;
};

/// Parses expressions from a scanner; every error is a Parse error at the offending token.
class ExprParser {
 public:
  ExprParser(Scanner& scanner, const ScopeNames& names) : scan_(scanner), names_(names) {}

  Result<Expr> expr();
  /// An expression of the given type; `what` names its role.
  Result<Expr> expr_of(DType dtype, std::string_view what);
  Result<Buffer> buffer();
  Result<DType> dtype();
  /// One element of a constant table, stored at position `i`. requires: i < values.size().
  Status element(Array& values, int64_t i);

 private:
  Result<Parsed> parse(int min_precedence);
  Result<Parsed> unary();
  Result<Parsed> primary();
  Result<Parsed> number(bool negative, size_t start);
  Result<Parsed> integer(bool negative, size_t start, const Token& token);
  Result<Parsed> special_float(bool negative);
  Result<Parsed> call(const Token& name);
  Result<Parsed> apply(const Token& name, std::vector<Parsed> args);
  Result<Parsed> load(const Token& name);
  Result<Parsed> variable(const Token& name);
  Result<std::vector<Parsed>> arguments(std::string_view close);
  Result<Parsed> combine(Expr e, std::vector<int> depths, size_t offset);
  Result<uint64_t> hex_bits();
  bool at_special_float() const;

  Scanner& scan_;
  const ScopeNames& names_;
  int nesting_ = 0;
};

}  // namespace tilewright::text
