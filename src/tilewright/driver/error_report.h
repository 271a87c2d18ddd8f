// Errors as the user gets them: text on stderr and, with --json, a document on stdout.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "tilewright/base/result.h"

namespace tilewright::driver {

/// `usage`, `parse`, ...: the kinds of documents that report errors.
std::string_view name(ErrorKind kind);

/// What is wrong, with all further problems in `problems`: code, kind, what, why, fix, place, node.
nlohmann::ordered_json error_json(const Error& error);

/// The same for people, as a table: operator, node, place, reason and remedy. `file`: the model,
/// which is not repeated in every row. Cells are broken into lines of `width` characters.
std::string problems_table(const Error& error, const std::string& file, size_t width);

/// Reports an error that ends the program. Returns its exit code.
int report_error(const Error& error, bool as_json);

}  // namespace tilewright::driver
