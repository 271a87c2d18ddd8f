// Expressions as C text. Shared sub-expressions become temporaries, lazy ones stay lazy.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// Unique C identifiers for variables and buffers of one kernel.
class CNames {
 public:
  std::string of(const Var& var) { return of(var.id(), var.name()); }
  std::string of(const Buffer& buffer) { return of(buffer.id(), buffer.name()); }
  std::string fresh(const std::string& wish);

 private:
  std::string of(const void* id, const std::string& wish);
  std::map<const void*, std::string> by_id_;
  std::set<std::string> used_;
};

/// The C type a value of `dtype` is computed in (f16 and bf16 in f32) and stored in.
std::string c_value_type(DType dtype);
std::string c_storage_type(DType dtype);

/// Lines of C text with indentation.
struct CText {
  std::string text;
  int indent = 0;
  void line(const std::string& s) { text += std::string(2 * indent, ' ') + s + "\n"; }
  void open(const std::string& s) { line(s), ++indent; }
  void close(const std::string& s = "}") { --indent, line(s); }
};

/// Writes the statements an expression needs into a CText and returns the expression itself.
class CExprWriter {
 public:
  using Strides = std::map<Buffer, std::vector<Expr>>;
  CExprWriter(CNames& names, const Strides& strides) : names_(names), strides_(strides) {}

  /// What is known of the variables here; used to write plain `/` for floor division.
  arith::Bounds bounds;

  /// Starts a statement: counts uses in `roots`, forgets temporaries.
  void begin(const std::vector<Expr>& roots);
  /// Text of `e`, atomic or parenthesised; needed declarations go to `out`.
  std::string value(const Expr& e, CText& out);
  /// `X[linear index]`.
  std::string element(const Buffer& buffer, const std::vector<Expr>& indices, CText& out);
  /// `value` converted to the type `dtype` has in memory.
  std::string stored(DType dtype, const std::string& value) const;

 private:
  std::string build(const Expr& e, CText& out);
  std::string unary_text(const Expr& e, const Unary& u, CText& out);
  std::string binary_text(const Expr& e, const Binary& b, CText& out);
  std::string lazy_logic(const Binary& b, CText& out);
  std::string select_text(const Expr& e, const Select& s, CText& out);
  std::string cast_text(const Expr& e, const Cast& c, CText& out);
  std::string math_text(const Expr& e, const MathCall& m, CText& out);
  std::string rounded(DType dtype, std::string text) const;
  /// Text of `e` with its declarations kept apart: for code that may not run.
  std::pair<std::string, std::string> apart(const Expr& e, const CText& around);
  bool must_stay_lazy(const Expr& e);
  bool plain_index(const Expr& e);

  CNames& names_;
  const Strides& strides_;
  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_map<const ExprNode*, bool> lazy_, index_;
  std::unordered_map<const ExprNode*, std::string> temps_;
  std::vector<const ExprNode*> temp_order_;
};

}  // namespace tilewright::codegen
