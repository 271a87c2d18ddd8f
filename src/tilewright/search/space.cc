#include "tilewright/search/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tilewright/base/check.h"
#include "tilewright/base/integers.h"

namespace tilewright::search {
namespace {

using Parts = std::vector<int64_t>;

void factorisations(int64_t rest, size_t parts, Parts& prefix, std::vector<Parts>& out) {
  if (parts == 1) {
    out.push_back(prefix);
    out.back().push_back(rest);
    return;
  }
  for (int64_t d : divisors(rest)) {
    prefix.push_back(d);
    factorisations(rest / d, parts - 1, prefix, out);
    prefix.pop_back();
  }
}

/// Part i takes the next larger divisor of the product of parts i and j.
Parts shifted(Parts parts, size_t i, size_t j) {
  const int64_t both = parts[i] * parts[j];
  for (int64_t d : divisors(both))
    if (d > parts[i]) {
      parts[i] = d;
      parts[j] = both / d;
      break;
    }
  return parts;
}

}  // namespace

Decision split_decision(const std::string& name, int64_t extent, int parts) {
  std::vector<Parts> all;
  Parts prefix;
  factorisations(extent, static_cast<size_t>(parts), prefix, all);
  std::map<Parts, int> index;
  Decision decision;
  decision.name = name;
  for (const Parts& p : all) {
    index[p] = static_cast<int>(index.size());
    decision.values.push_back({fmt::format("{}", fmt::join(p, "x")), {p.begin(), p.end()}});
  }
  for (size_t i = 0; i < static_cast<size_t>(parts); ++i)
    for (size_t j = 0; j < static_cast<size_t>(parts); ++j) {
      if (i == j) continue;
      std::vector<int>& to = decision.moves.emplace_back();
      for (const Parts& p : all) to.push_back(index.at(shifted(p, i, j)));
    }
  return decision;
}

Decision ordered_decision(const std::string& name, const std::vector<DecisionValue>& values) {
  Decision decision;
  decision.name = name;
  decision.values = values;
  const int last = static_cast<int>(values.size()) - 1;
  for (int by : {1, -1}) {
    std::vector<int>& to = decision.moves.emplace_back();
    for (int v = 0; v <= last; ++v) to.push_back(std::clamp(v + by, 0, last));
  }
  return decision;
}

Decision choice_decision(const std::string& name, const std::vector<std::string>& values) {
  Decision decision;
  decision.name = name;
  const int count = static_cast<int>(values.size());
  for (int v = 0; v < count; ++v) {
    std::vector<double> one_hot(values.size(), 0.0);
    one_hot[static_cast<size_t>(v)] = 1;
    decision.values.push_back({values[static_cast<size_t>(v)], std::move(one_hot)});
  }
  for (int by = 1; by < count; ++by) {
    std::vector<int>& to = decision.moves.emplace_back();
    for (int v = 0; v < count; ++v) to.push_back((v + by) % count);
  }
  return decision;
}

Space::Space(std::vector<Decision> decisions)
    : decisions_(std::move(decisions)), children_(decisions_.size()) {
  for (size_t d = 0; d < decisions_.size(); ++d) {
    const Decision& decision = decisions_[d];
    TW_CHECK(!decision.values.empty(), "decision {} has no values", decision.name);
    TW_CHECK(decision.parent < static_cast<int>(d), "decision {} comes before its parent",
             decision.name);
    if (decision.parent >= 0)
      children_[static_cast<size_t>(decision.parent)].push_back(static_cast<int>(d));
    const size_t width = decision.values[0].features.size();
    for (const DecisionValue& value : decision.values)
      TW_CHECK(value.features.size() == width, "values of {} differ in features", decision.name);
    for (size_t k = 0; k < decision.moves.size(); ++k) {
      TW_CHECK(decision.moves[k].size() == decision.values.size(), "moves of {} do not fit",
               decision.name);
      moves_.push_back({static_cast<int>(d), static_cast<int>(k)});
    }
    feature_count_ += width;
  }
}

double Space::count_under(int decision, int value) const {
  double product = 1;
  for (int child : children_[static_cast<size_t>(decision)]) {
    const std::vector<int>& when = decisions_[static_cast<size_t>(child)].when;
    if (std::find(when.begin(), when.end(), value) != when.end()) product *= count(child);
  }
  return product;
}

double Space::count(int decision) const {
  double sum = 0;
  const size_t values = decisions_[static_cast<size_t>(decision)].values.size();
  for (size_t v = 0; v < values; ++v) sum += count_under(decision, static_cast<int>(v));
  return sum;
}

double Space::size() const {
  double product = 1;
  for (size_t d = 0; d < decisions_.size(); ++d)
    if (decisions_[d].parent < 0) product *= count(static_cast<int>(d));
  return product;
}

bool Space::active(const Point& point, int decision) const {
  const Decision& d = decisions_[static_cast<size_t>(decision)];
  if (d.parent < 0) return true;
  const int value = point[static_cast<size_t>(d.parent)];
  return std::find(d.when.begin(), d.when.end(), value) != d.when.end() && active(point, d.parent);
}

Point Space::canonical(Point point) const {
  for (size_t d = 0; d < decisions_.size(); ++d)
    if (!active(point, static_cast<int>(d))) point[d] = 0;
  return point;
}

Point Space::random(Rng& rng) const {
  Point point;
  for (const Decision& d : decisions_)
    point.push_back(static_cast<int>(rng.below(static_cast<int64_t>(d.values.size()))));
  return canonical(std::move(point));
}

void Space::decode(int decision, int64_t& index, Point& point) const {
  const auto all = static_cast<int64_t>(count(decision));
  int64_t own = index % all;
  index /= all;
  int value = 0;
  while (own >= static_cast<int64_t>(count_under(decision, value)))
    own -= static_cast<int64_t>(count_under(decision, value++));
  point[static_cast<size_t>(decision)] = value;
  for (int child : children_[static_cast<size_t>(decision)])
    if (active(point, child)) decode(child, own, point);
}

Point Space::at(int64_t index) const {
  Point point(decisions_.size(), 0);
  for (size_t d = 0; d < decisions_.size(); ++d)
    if (decisions_[d].parent < 0) decode(static_cast<int>(d), index, point);
  return point;
}

Point Space::step(const Point& point, const Move& move) const {
  if (!active(point, move.decision)) return point;
  const auto d = static_cast<size_t>(move.decision);
  Point next = point;
  next[d] = decisions_[d].moves[static_cast<size_t>(move.direction)][static_cast<size_t>(point[d])];
  return canonical(std::move(next));
}

std::vector<Point> Space::neighbours(const Point& point) const {
  std::vector<Point> found;
  std::set<Point> seen = {point};
  for (const Move& move : moves_) {
    Point next = step(point, move);
    if (seen.insert(next).second) found.push_back(std::move(next));
  }
  return found;
}

std::vector<double> Space::features(const Point& point) const {
  std::vector<double> all;
  all.reserve(feature_count_);
  for (size_t d = 0; d < decisions_.size(); ++d) {
    const std::vector<double>& own = decisions_[d].values[static_cast<size_t>(point[d])].features;
    if (active(point, static_cast<int>(d)))
      all.insert(all.end(), own.begin(), own.end());
    else
      all.insert(all.end(), own.size(), 0.0);
  }
  return all;
}

std::string Space::text(const Point& point) const {
  std::vector<std::string> parts;
  for (size_t d = 0; d < decisions_.size(); ++d)
    if (active(point, static_cast<int>(d)))
      parts.push_back(fmt::format("{}={}", decisions_[d].name,
                                  decisions_[d].values[static_cast<size_t>(point[d])].text));
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string_view Space::value_text(std::string_view text, const std::string& name) const {
  const std::string start = name + "=";
  size_t at = 0;
  while ((at = text.find(start, at)) != text.npos && at > 0 && text[at - 1] != ' ') ++at;
  if (at == text.npos) return {};
  text.remove_prefix(at + start.size());
  size_t end = text.size();
  for (const Decision& other : decisions_) end = std::min(end, text.find(" " + other.name + "="));
  return text.substr(0, end);
}

std::optional<Point> Space::find(std::string_view text) const {
  Point point;
  for (const Decision& decision : decisions_) {
    const std::string_view value = value_text(text, decision.name);
    const auto found =
        std::find_if(decision.values.begin(), decision.values.end(),
                     [&](const DecisionValue& known) { return known.text == value; });
    point.push_back(
        found == decision.values.end() ? 0 : static_cast<int>(found - decision.values.begin()));
  }
  point = canonical(std::move(point));
  return this->text(point) == text ? std::optional(point) : std::nullopt;
}

}  // namespace tilewright::search
