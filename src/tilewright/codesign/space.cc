#include "tilewright/codesign/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tilewright/base/check.h"

namespace tilewright::codesign {
namespace {

/// Values of what a rule reads that are looked at before it is taken to be all right.
constexpr double kMostCombinations = 1 << 20;

search::Decision decision_of(const SpaceKey& key, const SpaceFile::Parameter& parameter) {
  if (!key.words.empty()) {
    std::vector<std::string> words;
    for (const double value : parameter.values) words.push_back(key.text(value));
    return search::choice_decision(key.name, words);
  }
  std::vector<search::DecisionValue> values;
  for (const double value : parameter.values)
    values.push_back({key.text(value), {value > 0 ? std::log2(value) : -1}});
  return search::ordered_decision(key.name, values);
}

/// A key that another one depends on may be a decision, too: then that one is asked under it.
void set_parent(const SpaceFile& file, const SpaceKey& key, search::Decision& decision) {
  for (size_t p = 0; p < file.parameters.size(); ++p) {
    if (file.parameters[p].key != key.parent) continue;
    decision.parent = static_cast<int>(p);
    const std::vector<double>& values = file.parameters[p].values;
    for (size_t v = 0; v < values.size(); ++v)
      if (std::find(key.when.begin(), key.when.end(), static_cast<int>(values[v])) !=
          key.when.end())
        decision.when.push_back(static_cast<int>(v));
  }
}

std::vector<search::Decision> decisions_of(const SpaceFile& file) {
  std::vector<search::Decision> decisions;
  for (const SpaceFile::Parameter& parameter : file.parameters) {
    const SpaceKey& key = file.generator->keys()[static_cast<size_t>(parameter.key)];
    search::Decision decision = decision_of(key, parameter);
    set_parent(file, key, decision);
    decisions.push_back(std::move(decision));
  }
  return decisions;
}

}  // namespace

std::string misplaced_unit(const Limit& limit, const Technology& technology) {
  const bool share = technology.formula == Formula::Cells;
  if (limit.objective != Objective::Area || share == (limit.unit == LimitUnit::Share)) return {};
  return fmt::format("areas of {} are in {}", technology.name,
                     share ? "shares of a device" : "um2");
}

std::string fingerprint(const SpaceFile& file) {
  const std::vector<SpaceKey>& keys = file.generator->keys();
  const auto name = [&](int key) { return keys[static_cast<size_t>(key)].name; };
  std::string text(file.generator->name());
  for (const SpaceFile::Parameter& parameter : file.parameters)
    text += fmt::format("\n{} in {}", name(parameter.key), fmt::join(parameter.values, " "));
  for (size_t k = 0; k < keys.size(); ++k)
    if (file.given[k]) text += fmt::format("\n{} = {}", keys[k].name, file.fixed[k]);
  for (const SpaceFile::Computed& computed : file.computed)
    text += fmt::format("\n{} = {}", name(computed.key), computed.value.text());
  for (const SpaceFile::Condition& condition : file.rules) text += "\n" + condition.rule.text();
  const Technology& technology = file.technology;
  text += fmt::format("\n{}", technology.name);
  for (const QuantityInfo& info : quantities())
    if (info.formula == technology.formula)
      text += fmt::format("\n{} = {}", info.key, technology[info.quantity]);
  return text;
}

DesignSpace::DesignSpace(SpaceFile file) : file_(std::move(file)), points_(decisions_of(file_)) {}

Values DesignSpace::values(const search::Point& point) const {
  Values values = file_.fixed;
  for (size_t p = 0; p < file_.parameters.size(); ++p) {
    const SpaceFile::Parameter& parameter = file_.parameters[p];
    const auto key = static_cast<size_t>(parameter.key);
    values[key] = points_.active(point, static_cast<int>(p))
                      ? parameter.values[static_cast<size_t>(point[p])]
                      : file_.generator->defaults()[key];
  }
  file_.generator->complete(values, file_.given);
  // Computed values read parameters only, never each other.
  for (const SpaceFile::Computed& computed : file_.computed)
    values[static_cast<size_t>(computed.key)] = computed.value.evaluate(values);
  return values;
}

const SpaceFile::Computed* DesignSpace::unfit(const Values& values) const {
  for (const SpaceFile::Computed& computed : file_.computed) {
    const SpaceKey& key = file_.generator->keys()[static_cast<size_t>(computed.key)];
    const double value = values[static_cast<size_t>(computed.key)];
    const bool fits = value >= key.low && value <= key.high;  // not a number does not
    if (!fits || (key.whole && value != std::floor(value))) return &computed;
  }
  return nullptr;
}

bool DesignSpace::legal(const search::Point& point) const {
  const Values all = values(point);
  if (unfit(all) != nullptr) return false;
  for (const SpaceFile::Condition& condition : file_.rules)
    if (!condition.rule.holds(all)) return false;
  return file_.generator->problems(all).empty();
}

std::vector<std::string> DesignSpace::reasons(const search::Point& point) const {
  const Values all = values(point);
  std::vector<std::string> found;
  for (const SpaceFile::Condition& condition : file_.rules)
    if (!condition.rule.holds(all))
      found.push_back(
          fmt::format("breaks the rule `{}` ({})", condition.rule.text(), condition.place));
  if (const SpaceFile::Computed* computed = unfit(all)) {
    const SpaceKey& key = file_.generator->keys()[static_cast<size_t>(computed->key)];
    found.push_back(fmt::format("{} = {} is {}, but must be {}in {}..{}", key.name,
                                computed->value.text(), all[static_cast<size_t>(computed->key)],
                                key.whole ? "whole and " : "", key.low, key.high));
    return found;
  }
  for (std::string& problem : file_.generator->problems(all)) found.push_back(std::move(problem));
  return found;
}

Hardware DesignSpace::hardware(const search::Point& point) const {
  return file_.generator->hardware(values(point), file_.name);
}

spatial::Design DesignSpace::design(const search::Point& point) const {
  TW_CHECK(file_.generator == &spatial_generator(), "space {} makes no spatial designs",
           file_.name);
  return std::get<spatial::Design>(hardware(point));
}

bool DesignSpace::visit_from(size_t decision, const std::vector<bool>& free, search::Point& point,
                             const Visit& visit) const {
  if (decision == free.size()) return visit(point);
  point[decision] = 0;
  size_t count = 1;
  if (free[decision] && points_.active(point, static_cast<int>(decision)))
    count = points_.decisions()[decision].values.size();
  for (size_t v = 0; v < count; ++v) {
    point[decision] = static_cast<int>(v);
    if (!visit_from(decision + 1, free, point, visit)) return false;
  }
  return true;
}

void DesignSpace::for_each(const Visit& visit) const {
  const std::vector<bool> all(points_.decisions().size(), true);
  search::Point point(all.size(), 0);
  visit_from(0, all, point, visit);
}

std::optional<int64_t> DesignSpace::legal_points(double most) const {
  if (points_.size() > most) return std::nullopt;
  int64_t count = 0;
  for_each([&](const search::Point& point) {
    count += legal(point) ? 1 : 0;
    return true;
  });
  return count;
}

std::vector<bool> DesignSpace::decisions_read(const SpaceRule& rule) const {
  const std::vector<SpaceKey>& keys = file_.generator->keys();
  std::vector<bool> read(keys.size(), false);
  for (const int key : rule.reads()) {
    read[static_cast<size_t>(key)] = true;
    for (const SpaceFile::Computed& computed : file_.computed)
      if (computed.key == key)
        for (const int inner : computed.value.reads()) read[static_cast<size_t>(inner)] = true;
  }
  bool completed = false;  // read what the generator completes from words
  for (size_t k = 0; k < keys.size(); ++k) completed = completed || (read[k] && !file_.given[k]);
  for (size_t k = keys.size(); k-- > 0;) {
    if (completed && !keys[k].words.empty()) read[k] = true;
    if (read[k] && keys[k].parent >= 0) read[static_cast<size_t>(keys[k].parent)] = true;
  }
  std::vector<bool> decisions;
  for (const SpaceFile::Parameter& parameter : file_.parameters)
    decisions.push_back(read[static_cast<size_t>(parameter.key)]);
  return decisions;
}

std::optional<bool> DesignSpace::can_be_met(const SpaceRule& rule) const {
  const std::vector<bool> free = decisions_read(rule);
  double combinations = 1;
  for (size_t d = 0; d < free.size(); ++d)
    if (free[d]) combinations *= static_cast<double>(points_.decisions()[d].values.size());
  if (combinations > kMostCombinations) return std::nullopt;
  bool met = false;
  search::Point point(free.size(), 0);
  visit_from(0, free, point, [&](const search::Point& at) {
    met = rule.holds(values(at));
    return !met;
  });
  return met;
}

}  // namespace tilewright::codesign
