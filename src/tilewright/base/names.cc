#include "tilewright/base/names.h"

#include <algorithm>
#include <limits>
#include <sstream>

namespace tilewright {
namespace {

constexpr size_t kShortest = 3;  ///< parts of names that say something

bool contains(const std::string& whole, const std::string& part) {
  return part.size() >= kShortest && whole.find(part) != std::string::npos;
}

}  // namespace

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (a[i - 1] != b[j - 1]), last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string nearest(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  size_t least = std::numeric_limits<size_t>::max();
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < least) least = distance, best = candidate;
  }
  return best;
}

bool is_near(const std::string& name, const std::string& candidate) {
  const std::string a = lower_case(name), b = lower_case(candidate);
  const size_t longer = std::max(a.size(), b.size());
  return contains(a, b) || contains(b, a) || edit_distance(a, b) <= std::max<size_t>(1, longer / 3);
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates) {
  std::vector<std::string> near;
  for (const std::string& candidate : candidates)
    if (is_near(name, candidate)) near.push_back(candidate);
  return near.empty() ? "" : "did you mean '" + nearest(name, near) + "'?";
}

}  // namespace tilewright
