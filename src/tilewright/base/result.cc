#include "tilewright/base/result.h"

namespace tilewright {

std::string to_string(const Error& error) {
  std::string text = "error: " + error.what + "\n";
  if (!error.place.empty()) text += "  at:  " + error.place + "\n";
  if (!error.why.empty()) text += "  why: " + error.why + "\n";
  if (!error.fix.empty()) text += "  fix: " + error.fix + "\n";
  for (const Error& other : error.others) text += to_string(other);
  return text;
}

}  // namespace tilewright
