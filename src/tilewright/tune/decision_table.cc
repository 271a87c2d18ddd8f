// Decisions of sketches as the tables and moves that searchers walk.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tilewright/base/integers.h"
#include "tilewright/tune/sketch_space.h"

namespace tilewright::tune {
namespace {

using schedule::SketchDecision;
using schedule::Word;
using schedule::Words;
using DecisionKind = SketchDecision::Kind;
using Parts = std::vector<int64_t>;

/// Last factors worth a thought: divisors, whole vectors, and small ones where no divisor is a
/// good size for a tile. More of them would only make more programs with partial tiles.
std::vector<int64_t> inner_factors(int64_t extent) {
  constexpr int64_t kGoodLeast = 4, kGoodMost = 16, kWide = 64, kStep = 8;
  const std::vector<int64_t> exact = divisors(extent);
  std::set<int64_t> all(exact.begin(), exact.end());
  for (int64_t n = kStep; n <= std::min(extent, kWide); n += kStep) all.insert(n);
  const bool good = std::any_of(exact.begin(), exact.end(),
                                [](int64_t n) { return n >= kGoodLeast && n <= kGoodMost; });
  for (int64_t n = 1; !good && n <= std::min(extent, kGoodMost); ++n) all.insert(n);
  return {all.begin(), all.end()};
}

void factorisations(int64_t rest, size_t parts, Parts& prefix, const Parts& suffix,
                    std::vector<Parts>& out) {
  if (parts == 1) {
    out.push_back(prefix);
    out.back().push_back(rest);
    out.back().insert(out.back().end(), suffix.begin(), suffix.end());
    return;
  }
  for (int64_t d : divisors(rest)) {
    prefix.push_back(d);
    factorisations(rest / d, parts - 1, prefix, suffix, out);
    prefix.pop_back();
  }
}

std::vector<Parts> factor_table(const SketchDecision& d) {
  const int64_t extent = std::get<int64_t>(d.extent);
  const auto parts = static_cast<size_t>(d.parts);
  std::vector<Parts> out;
  Parts prefix;
  if (d.kind == DecisionKind::Split || parts == 1) {
    factorisations(extent, parts, prefix, {}, out);
  } else {
    for (int64_t last : inner_factors(extent))
      factorisations(ceil_div(extent, last), parts - 1, prefix, {last}, out);
  }
  return out;
}

int64_t number(const Word& word) { return std::get<int64_t>(word); }

/// Neighbours of tiles: part i takes the next larger value that leaves a whole part j.
class TileMoves {
 public:
  TileMoves(int64_t extent, const std::vector<Parts>& table)
      : extent_(extent), inner_(inner_factors(extent)) {
    for (const Parts& parts : table) index_.emplace(parts, static_cast<int>(index_.size()));
  }

  int to(const Parts& from, size_t i, size_t j) const {
    const size_t last = from.size() - 1;
    Parts next = from;
    if (i == last || j == last) {
      const bool up = i == last;
      const size_t other = up ? j : i;
      int64_t fixed = 1;
      for (size_t k = 0; k < last; ++k) fixed *= k == other ? 1 : from[k];
      auto at = std::find(inner_.begin(), inner_.end(), from[last]);
      while (up ? ++at != inner_.end() : at != inner_.begin()) {
        if (!up) --at;
        const int64_t rest = ceil_div(extent_, *at);
        if (rest % fixed != 0) continue;
        next[other] = rest / fixed, next[last] = *at;
        // More of one part is less of the other.
        if (up || next[other] > from[other]) return find(next, from);
      }
      return index_.at(from);
    }
    const int64_t both = from[i] * from[j];
    for (int64_t d : divisors(both))
      if (d > from[i]) {
        next[i] = d, next[j] = both / d;
        break;
      }
    return find(next, from);
  }

 private:
  int find(const Parts& next, const Parts& otherwise) const {
    const auto found = index_.find(next);
    return found == index_.end() ? index_.at(otherwise) : found->second;
  }

  int64_t extent_;
  std::vector<int64_t> inner_;
  std::map<Parts, int> index_;
};

search::Decision tile_decision(const SketchDecision& d) {
  const std::vector<Parts> table = factor_table(d);
  const TileMoves moves(std::get<int64_t>(d.extent), table);
  search::Decision out;
  for (const Parts& parts : table)
    out.values.push_back({fmt::format("{}", fmt::join(parts, "x")), {parts.begin(), parts.end()}});
  for (size_t i = 0; i < table[0].size(); ++i)
    for (size_t j = 0; j < table[0].size(); ++j) {
      if (i == j) continue;
      std::vector<int>& to = out.moves.emplace_back();
      for (const Parts& parts : table) to.push_back(moves.to(parts, i, j));
    }
  return out;
}

bool all_numbers(const std::vector<Words>& values) {
  return std::all_of(values.begin(), values.end(), [](const Words& value) {
    return std::all_of(value.begin(), value.end(),
                       [](const Word& w) { return std::holds_alternative<int64_t>(w); });
  });
}

search::Decision value_decision(const SketchDecision& d, const std::vector<Words>& values) {
  std::vector<std::string> texts;
  for (const Words& value : values) texts.push_back(schedule::print(value));
  search::Decision out = search::choice_decision(d.name, texts);
  if (d.kind == DecisionKind::Choice) return out;
  if (all_numbers(values))
    for (size_t v = 0; v < values.size(); ++v) {
      out.values[v].features.clear();
      for (const Word& word : values[v])
        out.values[v].features.push_back(static_cast<double>(number(word)));
    }
  if (d.kind == DecisionKind::Ordered) return search::ordered_decision(d.name, out.values);
  const int count = static_cast<int>(values.size());
  out.moves.clear();
  for (int by : {1, count - 1}) {
    std::vector<int>& to = out.moves.emplace_back();
    for (int v = 0; v < count; ++v) to.push_back((v + by) % count);
  }
  return out;
}

bool is_factors(const SketchDecision& d) {
  return d.kind == DecisionKind::Split || d.kind == DecisionKind::Tile;
}

}  // namespace

std::vector<Words> decision_values(const SketchDecision& decision) {
  if (!is_factors(decision)) return decision.values;
  std::vector<Words> out;
  for (const Parts& parts : factor_table(decision)) out.emplace_back(parts.begin(), parts.end());
  return out;
}

search::Decision search_decision(const SketchDecision& d, const std::vector<Words>& values,
                                 bool raw_features) {
  search::Decision out =
      !is_factors(d) ? value_decision(d, values)
      : d.kind == DecisionKind::Split
          ? search::split_decision(d.name, std::get<int64_t>(d.extent), static_cast<int>(d.parts))
          : tile_decision(d);
  out.name = d.name;
  if (!raw_features && (is_factors(d) || (d.kind != DecisionKind::Choice && all_numbers(values))))
    for (search::DecisionValue& value : out.values)
      for (double& feature : value.features)
        feature = is_factors(d) ? std::log2(feature) : std::log2(1 + std::max(feature, 0.0));
  return out;
}

}  // namespace tilewright::tune
