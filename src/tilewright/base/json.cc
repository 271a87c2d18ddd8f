#include "tilewright/base/json.h"

namespace tilewright {
namespace {

template <class Json>
std::string text_of_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }
nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return nlohmann::ordered_json::parse(text);
}
nlohmann::json parse_json(std::string_view text, std::nothrow_t) {
  return nlohmann::json::parse(text, nullptr, false);
}
nlohmann::ordered_json parse_ordered_json(std::string_view text, std::nothrow_t) {
  return nlohmann::ordered_json::parse(text, nullptr, false);
}
std::string json_text(const nlohmann::json& json, int indent) { return text_of_json(json, indent); }
std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return text_of_json(json, indent);
}

}  // namespace tilewright
