// Text to JSON and back, compiled once: a source that calls the library's parser and writer itself
// takes some seconds longer to compile.
#pragma once

#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tilewright {

/// Throws nlohmann::json::parse_error where `text` is not JSON.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// A value that `is_discarded()`, thus no object, list or number, where `text` is not JSON.
nlohmann::json parse_json(std::string_view text, std::nothrow_t);
nlohmann::ordered_json parse_ordered_json(std::string_view text, std::nothrow_t);

/// On one line, or on several, each level `indent` spaces further in. Bytes that are not UTF-8 are
/// replaced by U+FFFD.
std::string json_text(const nlohmann::json& json, int indent = -1);
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace tilewright
