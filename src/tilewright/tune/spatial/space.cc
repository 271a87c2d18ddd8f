#include "tilewright/tune/spatial/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tilewright/base/file.h"
#include "tilewright/base/integers.h"

namespace tilewright::tune {
namespace {

using cost::kSpatialTensors;
using cost::SpatialChoice;
using cost::SpatialLayer;
using cost::SpatialMapping;

/// `input,i=x,j=k,k=c`
std::string choice_text(const SpatialLayer& layer, const SpatialChoice& choice) {
  std::string text = layer.tensors[choice.first].name;
  const auto add = [&](const char* role, int loop) {
    if (loop >= 0) text += fmt::format(",{}={}", role, layer.loops[loop].name);
  };
  add("i", choice.i);
  add("j", choice.j);
  add("k", choice.k);
  return text;
}

/// Neighbours are orders with two adjacent loops exchanged.
search::Decision order_decision(const SpatialLayer& layer,
                                const std::vector<std::vector<int>>& orders) {
  search::Decision decision;
  decision.name = "order";
  const size_t count = orders[0].size();
  for (const std::vector<int>& order : orders) {
    std::vector<std::string> names;
    std::vector<double> places(count);
    for (size_t place = 0; place < count; ++place) {
      names.push_back(layer.loops[order[place]].name);
      const auto loop = std::find(orders[0].begin(), orders[0].end(), order[place]);
      places[static_cast<size_t>(loop - orders[0].begin())] = static_cast<double>(place);
    }
    decision.values.push_back({fmt::format("{}", fmt::join(names, ",")), std::move(places)});
  }
  for (size_t place = 0; place + 1 < count; ++place) {
    std::vector<int>& to = decision.moves.emplace_back();
    for (std::vector<int> order : orders) {
      std::swap(order[place], order[place + 1]);
      to.push_back(
          static_cast<int>(std::find(orders.begin(), orders.end(), order) - orders.begin()));
    }
  }
  return decision;
}

/// A row of sizes, with logarithms as features: a model sees factors, not differences.
search::Decision size_decision(const std::string& name, const std::vector<int64_t>& sizes,
                               int64_t extent) {
  std::vector<search::DecisionValue> values;
  for (const int64_t size : sizes)
    values.push_back({std::to_string(size),
                      {std::log2(static_cast<double>(size)),
                       std::log2(static_cast<double>(tilewright::ceil_div(extent, size)))}});
  return search::ordered_decision(name, values);
}

}  // namespace

SpatialChoice plain_choice(const std::vector<SpatialChoice>& choices) {
  return *std::min_element(choices.begin(), choices.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.first, -a.i, a.j, a.k) < std::tuple(b.first, -b.i, b.j, b.k);
  });
}

void SpatialSpace::add(search::Decision decision, Meaning meaning) {
  decisions_.push_back(std::move(decision));
  meanings_.push_back(std::move(meaning));
}

std::vector<int64_t> SpatialSpace::sizes_of(int loop, const SpatialChoice& choice) const {
  const int64_t extent = given().loops[loop].extent;
  const bool own = loop == choice.i || loop == choice.j || loop == choice.k;
  if (options_.calls_only && !own) return {1};
  if (options_.form != SpatialForm::All) return divisors(extent);
  return cost::tile_sizes(cost::SpatialEvaluator(design_, given(), choice), loop);
}

/// One decision for each set of sizes: the lanes of a loop, and so its sizes, differ by choice.
void SpatialSpace::add_tiles(int loop) {
  std::map<std::vector<int64_t>, std::vector<int>> choices_by_sizes;
  for (size_t c = 0; c < choices_.size(); ++c) {
    const std::vector<int64_t> sizes = sizes_of(loop, choices_[c]);
    usual_[c][loop] = sizes.back();
    if (sizes.size() > 1) choices_by_sizes[sizes].push_back(static_cast<int>(c));
  }
  const cost::SpatialLoop& of = given().loops[loop];
  int number = 0;
  for (auto& [sizes, when] : choices_by_sizes) {
    const std::string name = number == 0 ? of.name : fmt::format("{}@{}", of.name, number);
    ++number;
    search::Decision decision = size_decision(name, sizes, of.extent);
    if (when.size() < choices_.size()) {
      decision.parent = layouts_.size() > 1 ? 1 : 0;
      decision.when = std::move(when);
    }
    add(std::move(decision), {Kind::Tile, loop, sizes});
  }
}

void SpatialSpace::add_order() {
  for (int loop = 0; loop < static_cast<int>(given().loops.size()); ++loop) {
    const cost::SpatialLoop& of = given().loops[loop];
    (of.reduces ? summed_ : of.extent > 1 ? moved_ : still_).push_back(loop);
  }
  if (options_.form == SpatialForm::Template || moved_.size() < 2) return;
  Meaning meaning;
  meaning.kind = Kind::Order;
  std::vector<int> order = moved_;
  do {
    meaning.orders.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  search::Decision decision = order_decision(given(), meaning.orders);
  add(std::move(decision), std::move(meaning));
}

void SpatialSpace::add_copies() {
  if (options_.form != SpatialForm::All) return;
  for (int tensor = 0; tensor < kSpatialTensors; ++tensor)
    add(search::ordered_decision("copies." + given().tensors[tensor].name,
                                 {{"2", {2}}, {"1", {1}}}),
        {Kind::Copies, tensor, {2, 1}});
}

Result<std::unique_ptr<SpatialSpace>> SpatialSpace::create(const spatial::Design& design,
                                                           const SpatialLayer& layer,
                                                           const SpatialSpaceOptions& options) {
  std::unique_ptr<SpatialSpace> made(new SpatialSpace(
      design, options.layouts ? layout_variants(layer) : std::vector{LayoutVariant{"", layer}},
      options));
  made->choices_ = cost::distinct_choices(made->design_, made->given());
  if (made->choices_.empty())
    return fail(ErrorKind::Unsupported,
                fmt::format("no unit of '{}' can play the loops of '{}'", design.name, layer.name));
  if (options.one_choice || options.form == SpatialForm::Template)
    made->choices_ = {plain_choice(cost::choices(made->design_, made->given()))};
  made->usual_.resize(made->choices_.size());
  std::vector<std::string> names;
  for (const LayoutVariant& variant : made->layouts_) names.push_back(variant.name);
  if (names.size() > 1) made->add(search::choice_decision("channels", names), {Kind::Layout, 0});
  names.clear();
  for (const SpatialChoice& choice : made->choices_)
    names.push_back(choice_text(made->given(), choice));
  made->add(search::choice_decision("choice", names), {Kind::Choice, 0});
  for (int loop = 0; loop < static_cast<int>(layer.loops.size()); ++loop) made->add_tiles(loop);
  made->add_order();
  made->add_copies();
  made->space_ = std::make_unique<search::Space>(std::move(made->decisions_));
  return made;
}

size_t SpatialSpace::layout(const search::Point& point) const {
  return layouts_.size() > 1 ? static_cast<size_t>(point[0]) : 0;
}

size_t SpatialSpace::choice(const search::Point& point) const {
  return static_cast<size_t>(point[layouts_.size() > 1 ? 1 : 0]);
}

SpatialMapping SpatialSpace::mapping(const search::Point& point) const {
  SpatialMapping mapping;
  mapping.choice = choices_[choice(point)];
  mapping.tile = usual_[choice(point)];
  std::vector<int> moved = moved_;
  for (size_t d = 0; d < meanings_.size(); ++d) {
    if (!space_->active(point, static_cast<int>(d))) continue;
    const Meaning& meaning = meanings_[d];
    const auto value = static_cast<size_t>(point[d]);
    if (meaning.kind == Kind::Tile) mapping.tile[meaning.item] = meaning.sizes[value];
    if (meaning.kind == Kind::Copies)
      mapping.copies[meaning.item] = static_cast<int>(meaning.sizes[value]);
    if (meaning.kind == Kind::Order) moved = meaning.orders[value];
  }
  auto out = std::copy(still_.begin(), still_.end(), mapping.order.begin());
  out = std::copy(moved.begin(), moved.end(), out);
  std::copy(summed_.begin(), summed_.end(), out);
  return mapping;
}

int SpatialSpace::value_in(const Meaning& meaning, const SpatialMapping& mapping,
                           size_t layout) const {
  const auto place = [](const auto& values, const auto& value) {
    const auto found = std::find(values.begin(), values.end(), value);
    return found == values.end() ? -1 : static_cast<int>(found - values.begin());
  };
  switch (meaning.kind) {
    case Kind::Layout:
      return static_cast<int>(layout);
    case Kind::Choice:
      return place(choices_, mapping.choice);
    case Kind::Tile:
      return place(meaning.sizes, mapping.tile[meaning.item]);
    case Kind::Copies:
      return place(meaning.sizes, int64_t{mapping.copies[meaning.item]});
    case Kind::Order: {
      std::vector<int> order;
      for (size_t i = 0; i < given().loops.size(); ++i)
        if (std::find(moved_.begin(), moved_.end(), mapping.order[i]) != moved_.end())
          order.push_back(mapping.order[i]);
      return place(meaning.orders, order);
    }
  }
  return -1;
}

std::optional<search::Point> SpatialSpace::point(const SpatialMapping& mapping,
                                                 size_t layout) const {
  search::Point point(meanings_.size(), 0);
  if (layout >= layouts_.size()) return std::nullopt;
  for (size_t d = 0; d < meanings_.size(); ++d) {
    if (!space_->active(point, static_cast<int>(d))) continue;
    point[d] = value_in(meanings_[d], mapping, layout);
    if (point[d] < 0) return std::nullopt;
  }
  // What the space does not decide may differ; where loops of one element stand changes nothing.
  const SpatialMapping means = this->mapping(point);
  if (means.tile != mapping.tile || means.copies != mapping.copies) return std::nullopt;
  return point;
}

std::string SpatialSpace::schedule(const search::Point& point) const {
  const LayoutVariant& variant = layouts_[layout(point)];
  return (layouts_.size() > 1 ? variant.name + " " : "") +
         cost::to_string(variant.layer, mapping(point));
}

std::optional<search::Point> SpatialSpace::find(const std::string& schedule) const {
  size_t layout = 0, end = 0;
  if (layouts_.size() > 1) {
    end = std::min(schedule.find(' '), schedule.size());
    while (layout < layouts_.size() && layouts_[layout].name != schedule.substr(0, end)) ++layout;
  }
  const auto mapping = cost::parse_mapping(given(), std::string_view(schedule).substr(end));
  return mapping ? point(*mapping, layout) : std::nullopt;
}

cost::SpatialEvaluator& SpatialJudge::evaluator(const search::Point& point) {
  const std::pair key{space_.layout(point), space_.choice(point)};
  return evaluators_
      .try_emplace(key, space_.design(), space_.layouts()[key.first].layer,
                   space_.choices()[key.second])
      .first->second;
}

search::Evaluation SpatialJudge::judge(const search::Point& point) {
  const SpatialMapping mapping = space_.mapping(point);
  cost::SpatialEvaluator& known = evaluator(point);
  search::Evaluation evaluation;
  if (known.fits(mapping))
    evaluation.cost = known.cycles(mapping);
  else
    evaluation.reason = fmt::format(
        "{}", fmt::join(cost::misfits(space_.design(), space_.layouts()[space_.layout(point)].layer,
                                      mapping),
                        "; "));
  return evaluation;
}

double SpatialJudge::bound(const search::Point& point) {
  const SpatialMapping mapping = space_.mapping(point);
  cost::SpatialEvaluator& known = evaluator(point);
  return known.fits(mapping) ? known.least(mapping.tile, mapping.order.data()) : search::kInvalid;
}

std::vector<double> SpatialJudge::terms(const search::Point& point) {
  const SpatialMapping mapping = space_.mapping(point);
  cost::SpatialEvaluator& known = evaluator(point);
  if (!known.fits(mapping)) return {0, 0, 0};
  const cost::SpatialTimeline times = known.mean_times(mapping);
  return {times.load, times.compute, times.store};
}

std::string spatial_target_key(const spatial::Design& design) {
  spatial::Design unnamed = design;
  unnamed.name = "spatial";
  // What judges a search of designs, not a program on one of them.
  unnamed.clock_mhz = spatial::Design{}.clock_mhz;
  unnamed.host = {};
  return "spatial:" + sha256(to_toml(unnamed)).substr(0, 12);
}

}  // namespace tilewright::tune
