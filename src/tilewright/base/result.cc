#include "tilewright/base/result.h"

namespace tilewright {

namespace {

/// `label` and the text behind it, its further lines under its first: a caret stays under its
/// column.
std::string labelled(const std::string& label, const std::string& text) {
  if (text.empty()) return "";
  std::string lines = label;
  for (const char c : text) {
    lines += c;
    if (c == '\n') lines += std::string(label.size(), ' ');
  }
  return lines + "\n";
}

}  // namespace

std::string to_string(const Error& error) {
  std::string text = "error: " + error.what + "\n";
  text += labelled("  at:  ", error.place);
  text += labelled("  why: ", error.why);
  text += labelled("  fix: ", error.fix);
  for (const Error& other : error.others) text += to_string(other);
  return text;
}

}  // namespace tilewright
