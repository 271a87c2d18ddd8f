// Expressions as text of C, OpenCL C or CUDA C++. Shared sub-expressions become temporaries, lazy
// ones stay lazy.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// Where these languages differ.
struct CDialect {
  std::string f32_suffix = "f";    ///< of the mathematical functions of f32
  bool narrow = false;             ///< i64 arithmetic on variables in 32 bits where that fits
  bool separate_products = false;  ///< products of floats through functions, never contracted
  bool halves = false;             ///< f16 arithmetic through functions, `tw_half_add` and so on
  std::string math_prefix;         ///< before the names of mathematical functions: `std::`
};

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
  CExprWriter(CNames& names, const Strides& strides, CDialect dialect = {})
      : names_(names), strides_(strides), dialect_(std::move(dialect)) {}
  virtual ~CExprWriter() = default;

  /// What is known of the variables here; used to write plain `/` for floor division.
  arith::Bounds bounds;

  /// Type to declare a variable of an index in, `i64` or, if its values fit and the dialect is
  /// narrow, `i32`. requires: `bounds` knows the variable; asked before its first use.
  std::string declared_type(const Var& var);
  /// Starts a statement: counts uses in `roots`, forgets temporaries.
  void begin(const std::vector<Expr>& roots);
  /// Text of `e`, atomic or parenthesised; needed declarations go to `out`.
  std::string value(const Expr& e, CText& out);
  /// The linear index of an element; axes of stride 0 are left out.
  std::string offset(const Buffer& buffer, const std::vector<Expr>& indices, CText& out);
  /// What an element is read as: `X[linear index]`, unless a language has other memories.
  virtual std::string element(const Buffer& buffer, const std::vector<Expr>& indices, CText& out);
  /// Writes `text`, of the type in memory, to an element.
  virtual void assign(const Buffer& buffer, const std::vector<Expr>& indices,
                      const std::string& text, CText& out);
  /// The assignment as a statement, with the declarations it needs before it.
  void store(const Store& x, CText& out);
  /// `value` converted to the type `dtype` has in memory.
  std::string stored(DType dtype, const std::string& value) const;

 protected:
  CNames& names_;

 private:
  /// A float of the 16-bit type `dtype`, or zero, as memory holds it.
  std::string moved_text(const Expr& e, DType dtype, CText& out);
  std::string build(const Expr& e, CText& out);
  std::string unary_text(const Expr& e, const Unary& u, CText& out);
  std::string binary_text(const Expr& e, const Binary& b, CText& out);
  std::string lazy_logic(const Binary& b, CText& out);
  std::string select_text(const Expr& e, const Select& s, CText& out);
  std::string cast_text(const Expr& e, const Cast& c, CText& out);
  std::string math_text(const Expr& e, const MathCall& m, CText& out);
  std::string index_text(const Expr& e, const Binary& b, std::string x, const std::string& y);
  std::string rounded(DType dtype, std::string text) const;
  /// Text of `e` with its declarations kept apart: for code that may not run.
  std::pair<std::string, std::string> apart(const Expr& e, const CText& around);
  bool must_stay_lazy(const Expr& e);
  bool plain_index(const Expr& e);
  bool fits(const Expr& e) const;
  bool narrow(const Expr& e);
  bool small(const Buffer& buffer);

  const Strides& strides_;
  CDialect dialect_;
  std::set<Var> narrow_vars_;
  std::map<Buffer, bool> small_;
  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_map<const ExprNode*, bool> lazy_, index_, narrow_;
  std::unordered_map<const ExprNode*, std::string> temps_;
  std::vector<const ExprNode*> temp_order_;
};

}  // namespace tilewright::codegen
