// The text form: canonical and lossless, parse(print(f)) == f.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/ir/stmt.h"

namespace tilewright {

std::string print(const Func& func);
std::string print(const Stmt& stmt);
std::string print(const Expr& expr);

/// Parses one `func`. errors: Parse with line:column, the line and a caret; all names resolved.
Result<Func> parse_func(std::string_view text);
/// Parses a file of several funcs; a later one may call an earlier one as an intrinsic.
Result<std::vector<Func>> parse_funcs(std::string_view text);

/// 64-bit hash of the canonical text.
uint64_t hash(const Func& func);

}  // namespace tilewright
