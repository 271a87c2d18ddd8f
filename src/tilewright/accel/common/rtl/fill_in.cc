#include "tilewright/accel/common/rtl/fill_in.h"

#include "tilewright/base/check.h"

namespace tilewright::accel {

std::string fill_in(std::string_view text, const VerilogValues& values) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find("${", at);
    if (open == std::string_view::npos) return out.append(text.substr(at));
    const size_t close = text.find('}', open);
    out.append(text.substr(at, open - at));
    const std::string name(text.substr(open + 2, close - open - 2));
    const auto found = values.find(name);
    TW_CHECK(found != values.end(), "no value for {} in the Verilog text", name);
    out.append(fill_in(found->second, values));
    at = close + 1;
  }
  return out;
}

}  // namespace tilewright::accel
