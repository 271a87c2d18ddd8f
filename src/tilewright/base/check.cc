#include "tilewright/base/check.h"

namespace tilewright {

void raise_internal_error(const char* file, int line, const char* condition,
                          const std::string& message) {
  std::string name = file;
  if (const size_t src = name.rfind("tilewright/"); src != std::string::npos) name.erase(0, src);
  throw InternalError(fmt::format("{}:{}: check failed: {}{}{}", name, line, condition,
                                  message.empty() ? "" : ": ", message));
}

}  // namespace tilewright
