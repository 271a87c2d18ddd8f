// The text form: canonical and lossless, parse(print(f)) == f. Grammar: docs/ir.md, section 2.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/ir/stmt.h"

namespace tilewright {

/// `func` and, before it, the functions it calls.
std::string print(const Func& func);
/// Without the bodies of called functions.
std::string print(const Stmt& stmt);
std::string print(const Expr& expr);

/// Parses one `func`, perhaps after the functions it calls. errors: Parse with line:column, the
/// line and a caret; all names resolved.
Result<Func> parse_func(std::string_view text);
/// Parses a file of several funcs; a later one may call an earlier one as an intrinsic.
Result<std::vector<Func>> parse_funcs(std::string_view text);
/// Parses an expression over the given names. errors: Parse.
Result<Expr> parse_expr(std::string_view text, const std::vector<Var>& vars,
                        const std::vector<Buffer>& buffers = {});

/// 64-bit hash of the canonical text.
uint64_t hash(const Func& func);

}  // namespace tilewright
