#include "tilewright/tune/dpu/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tilewright/base/file.h"

namespace tilewright::tune {
namespace {

using dpu::Form;
using dpu::Lowered;
using dpu::Node;
using dpu::NodeKind;

constexpr int kByRule = -1;

/// Nodes that some other node may come before or behind, as one likes.
std::vector<bool> movable(const Lowered& lowered) {
  const size_t count = lowered.nodes.size();
  const auto before = dpu::needed_before(lowered);
  std::vector<std::set<int>> all(count);  // everything before a node
  std::vector<size_t> behind(count);
  for (size_t n = 0; n < count; ++n) {
    for (const int b : before[n]) {
      all[n].insert(b);
      all[n].insert(all[static_cast<size_t>(b)].begin(), all[static_cast<size_t>(b)].end());
    }
    for (const int b : all[n]) ++behind[static_cast<size_t>(b)];
  }
  std::vector<bool> free(count);
  for (size_t n = 0; n < count; ++n) free[n] = all[n].size() + behind[n] + 1 < count;
  return free;
}

/// `12 conv3`: nodes of one layer have equal names.
std::string named(const char* what, const char* form, size_t index, const std::string& name) {
  std::string text = fmt::format("{}.{}.{}.{}", what, form, index, name);
  std::replace_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '='; }, '_');
  return text;
}

/// Values of a decision, and the same as text.
std::vector<std::string> texts_of(const std::vector<int>& values) {
  std::vector<std::string> texts;
  for (const int value : values) texts.push_back(value == kByRule ? "rule" : std::to_string(value));
  return texts;
}

template <size_t N>
std::vector<std::string> names_of(const char* const (&names)[N]) {
  return {std::begin(names), std::end(names)};
}

}  // namespace

void DpuSpace::add(Table& table, const std::string& name, Meaning meaning,
                   const std::vector<std::string>& texts) {
  search::Decision decision = search::choice_decision(name, texts);
  const bool single = meaning.kind >= Kind::Later;
  if (single) {
    decision.parent = 0;  // the form
    decision.when = {meaning.form};
  }
  table.decisions.push_back(std::move(decision));
  table.meanings.push_back(std::move(meaning));
}

/// `value`: of the decision about the form.
void DpuSpace::add_layers(const dpu::Candidates& candidates, const dpu::Way& way, int value,
                          Table& table) {
  const Lowered& lowered = *candidates.lowered(way.form, way.plain_strides);
  const char* name = dpu::kForms[int(way.form)];
  const std::vector<bool> free = movable(lowered);
  dpu::PlanOptions usual;
  static_cast<dpu::Way&>(usual) = way;
  std::set<int> joined, first;
  for (const dpu::GroupPlan& group : make_groups(lowered, candidates.config(), usual)) {
    first.insert(group.nodes[0]);
    for (size_t j = 1; j < group.nodes.size(); ++j)
      if (!dpu::beside(lowered, group, j)) joined.insert(group.nodes[j]);
  }
  const auto decide = [&](Kind kind, const char* what, size_t item, const std::string& of,
                          std::vector<int> values) {
    const std::vector<std::string> texts = texts_of(values);
    add(table, named(what, name, item, of),
        {kind, value, static_cast<int>(item), std::move(values)}, texts);
  };
  for (size_t n = 0; n < lowered.nodes.size(); ++n) {
    const Node& node = lowered.nodes[n];
    const int index = static_cast<int>(n);
    if (free[n]) decide(Kind::Later, "later", n, node.layer, {0, 1, 2, 3, 5, 8});
    if (joined.contains(index)) decide(Kind::Apart, "apart", n, node.layer, {0, 1});
    const bool conv = node.kind == NodeKind::Conv;
    if (conv && first.contains(index) && node.out.groups > 1)
      decide(Kind::PiecesOf, "passes", n, node.layer, {kByRule, 1, 2, 3, 4, 8});
    if (first.contains(index) && node.out.height > 2 && node.kind != NodeKind::Fetch)
      decide(Kind::Rows, "rows", n, node.layer, {kByRule, 4, 2});
  }
  for (size_t r = 0; r < lowered.roots.size(); ++r)
    if (!lowered.roots[r].input && lowered.roots[r].rows_of < 0)
      decide(Kind::Home, "home", r, lowered.roots[r].name, {kByRule, 0, 1, 2, dpu::kInDdr});
}

DpuSpace::Table DpuSpace::table_of(const dpu::Candidates& candidates,
                                   const std::set<int>& plain_strides) {
  Table table;
  Meaning forms;
  std::vector<std::string> texts;
  for (int f = 0; f < 3; ++f)
    if (candidates.lowered(static_cast<Form>(f)) != nullptr) {
      forms.values.push_back(f);
      texts.emplace_back(dpu::kForms[f]);
    }
  add(table, "form", forms, texts);
  add(table, "schedule", {Kind::Schedule, 0, 0, {0, 1, 2, 3, 4}}, names_of(dpu::kSchedules));
  if (candidates.config().compiler.fusion)
    add(table, "fuse", {Kind::Fuse, 0, 0, {1, 0}}, {"1", "0"});
  add(table, "behind_pools", {Kind::BehindPools, 0, 0, {0, 1}}, {"0", "1"});
  add(table, "passes", {Kind::Pieces, 0, 0, {1, 2, 4, 8}}, {"1", "2", "4", "8"});
  add(table, "homes", {Kind::Homes, 0, 0, {0, 1, 2}}, names_of(dpu::kHomes));
  for (size_t value = 0; value < forms.values.size(); ++value) {
    dpu::Way way;
    way.form = static_cast<Form>(forms.values[value]);
    if (way.form == Form::StridesReordered) way.plain_strides = plain_strides;
    add_layers(candidates, way, static_cast<int>(value), table);
  }
  return table;
}

Result<std::unique_ptr<DpuSpace>> DpuSpace::create(const dpu::Network& network,
                                                   const dpu::Config& config,
                                                   std::set<int> plain_strides) {
  dpu::Candidates candidates = TW_TRY(dpu::candidates_of(network, config));
  if (candidates.lowered(Form::StridesReordered, plain_strides) == nullptr) plain_strides.clear();
  Table table = table_of(candidates, plain_strides);
  return std::unique_ptr<DpuSpace>(
      new DpuSpace(std::move(candidates), std::move(plain_strides), std::move(table)));
}

void DpuSpace::set(const Meaning& meaning, int value, dpu::Way& way) {
  const bool usual = value == kByRule;
  switch (meaning.kind) {
    case Kind::Form:
      way.form = static_cast<Form>(value);
      break;
    case Kind::Schedule:
      way.schedule = static_cast<dpu::Schedule>(value);
      break;
    case Kind::Fuse:
      way.fuse = value != 0;
      break;
    case Kind::BehindPools:
      way.behind_pools = value != 0;
      break;
    case Kind::Pieces:
      way.pieces = value;
      break;
    case Kind::Homes:
      way.homes = static_cast<dpu::Homes>(value);
      break;
    case Kind::Later:
      if (value > 0) way.later[meaning.item] = value;
      break;
    case Kind::Apart:
      if (value > 0) way.apart.insert(meaning.item);
      break;
    case Kind::PiecesOf:
      if (!usual) way.pieces_of[meaning.item] = value;
      break;
    case Kind::Rows:
      if (!usual) way.rows[meaning.item] = value;
      break;
    case Kind::Home:
      if (!usual) way.home[meaning.item] = value;
      break;
  }
}

dpu::Way DpuSpace::way(const search::Point& point) const {
  dpu::Way way;
  for (size_t d = 0; d < meanings_.size(); ++d)
    if (space_.active(point, static_cast<int>(d)))
      set(meanings_[d], meanings_[d].values[static_cast<size_t>(point[d])], way);
  if (way.form == Form::StridesReordered) way.plain_strides = plain_strides_;
  return way;
}

std::optional<search::Point> DpuSpace::point(const dpu::Way& way) const {
  if (way.form == Form::StridesReordered && way.plain_strides != plain_strides_) return {};
  search::Point point(meanings_.size(), 0);
  const auto wanted = [&](const Meaning& meaning) {
    const auto in = [&](const std::map<int, int>& values, int usual) {
      const auto found = values.find(meaning.item);
      return found == values.end() ? usual : found->second;
    };
    switch (meaning.kind) {
      case Kind::Form:
        return static_cast<int>(way.form);
      case Kind::Schedule:
        return static_cast<int>(way.schedule);
      case Kind::Fuse:
        return static_cast<int>(way.fuse);
      case Kind::BehindPools:
        return static_cast<int>(way.behind_pools);
      case Kind::Pieces:
        return way.pieces;
      case Kind::Homes:
        return static_cast<int>(way.homes);
      case Kind::Later:
        return in(way.later, 0);
      case Kind::Apart:
        return static_cast<int>(way.apart.contains(meaning.item));
      case Kind::PiecesOf:
        return in(way.pieces_of, kByRule);
      case Kind::Rows:
        return in(way.rows, kByRule);
      case Kind::Home:
        return in(way.home, kByRule);
    }
    return 0;
  };
  for (size_t d = 0; d < meanings_.size(); ++d) {
    if (!space_.active(point, static_cast<int>(d))) continue;
    const std::vector<int>& values = meanings_[d].values;
    const auto found = std::find(values.begin(), values.end(), wanted(meanings_[d]));
    if (found == values.end()) return std::nullopt;
    point[d] = static_cast<int>(found - values.begin());
  }
  // A decision that the space has not at all is lost on the way.
  if (!(this->way(point) == way)) return std::nullopt;
  return point;
}

search::Evaluation DpuSpace::judge(const search::Point& point) const {
  search::Evaluation evaluation;
  const Result<dpu::Candidate> candidate = candidates_.make(way(point));
  if (candidate)
    evaluation.cost = static_cast<double>(candidate->cycles);
  else
    evaluation.reason = candidate.error().what;
  return evaluation;
}

std::string dpu_target_key(const dpu::Config& config) {
  dpu::Config unnamed = config;
  unnamed.name = "dpu";
  return "dpu:" + sha256(dpu::to_toml(unnamed)).substr(0, 12);
}

}  // namespace tilewright::tune
