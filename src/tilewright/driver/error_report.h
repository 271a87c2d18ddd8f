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

/// Reports an error that ends the program. Returns its exit code.
int report_error(const Error& error, bool as_json);

}  // namespace tilewright::driver
