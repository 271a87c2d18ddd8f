#include "tilewright/tune/fpga/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tilewright/cost/sums/computation.h"
#include "tilewright/rules/fpga/schedule.h"

namespace tilewright::tune {
namespace {

int64_t parts(int64_t extent, int64_t size) { return (extent + size - 1) / size; }

/// Into how many parts `extent` can be cut: one count for each least size of a part.
std::vector<int64_t> counts(int64_t extent, bool divisors_only) {
  std::set<int64_t> found;
  for (const int64_t size : cost::part_sizes(extent, divisors_only))
    found.insert(parts(extent, size));
  return {found.begin(), found.end()};
}

/// `extent` in so many tiles, each of whole groups of `side`.
int64_t tile(int64_t extent, int64_t side, int64_t count) {
  return side * parts(parts(extent, side), count);
}

}  // namespace

Result<std::unique_ptr<FpgaSpace>> FpgaSpace::create(const hw::FpgaDevice& device,
                                                     const cost::SpatialLayer& layer,
                                                     const FpgaSpaceOptions& options) {
  std::unique_ptr<FpgaSpace> space(new FpgaSpace());
  std::vector<DType> dtypes = options.dtypes;
  if (dtypes.empty()) dtypes = {options.model.dtype};
  for (const DType dtype : dtypes) {
    cost::FpgaOptions one = options.model;
    one.dtype = dtype;
    one.as_written = options.as_steps;
    space->models_.push_back(TW_TRY(cost::FpgaModel::create(device, layer, one)));
  }
  const cost::FpgaModel& model = space->models_[0];
  const cost::FpgaRoles& r = model.roles();
  const bool exact = options.divisors_only || (options.as_steps && rules::has_groups(model));
  const auto beyond = [&](std::vector<int64_t> more) {  // what steps cannot express
    return options.as_steps ? std::vector<int64_t>{more.front()} : more;
  };
  const auto sides = [&](int loop) { return cost::part_sizes(model.extent(loop), exact); };
  const auto tiles = [&](int loop) { return counts(model.extent(loop), exact); };
  space->add("uo", sides(r.outputs));
  space->add("ui", sides(r.inputs));
  space->add("us", rules::reads_windows(model) ? beyond(sides(r.pixels)) : sides(r.pixels));
  space->add("to", tiles(r.outputs));
  space->add("tc", tiles(r.inputs));
  space->add("th", tiles(r.rows));
  space->add("tw", tiles(r.pixels));
  space->add("stays", {0, 1, 2});
  for (const char* name : {"image_slots", "weight_slots", "result_slots"})
    space->add(name, {1, 2, 3});
  space->add("image_ports", beyond({1, 2}));
  space->add("weight_ports", beyond({1, 2}));
  space->add("pipelines", beyond({1, 2, 3, 4}));
  space->add("block", beyond({1, 2, 4, 8, 16, 32}));
  space->add("uram", device.cells.uram > 0 ? beyond({0, 1}) : std::vector<int64_t>{0});
  std::vector<int64_t> types;
  for (const DType dtype : dtypes) types.push_back(static_cast<int64_t>(dtype));
  space->add("dtype", std::move(types));
  space->space_ = std::make_unique<search::Space>(std::move(space->decisions_));
  return space;
}

Result<std::unique_ptr<FpgaSpace>> FpgaSpace::create(const hw::FpgaDevice& device, const Func& func,
                                                     const FpgaSpaceOptions& options) {
  const cost::Computations found = cost::computations_of(func);
  if (found.sums.size() != 1)
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' has {} sums of products, not one", func.name, found.sums.size()),
                found.others.empty() ? "" : found.others[0].reason);
  FpgaSpaceOptions typed = options;
  typed.model.dtype = found.sums[0].dtypes.front();
  if (options.as_steps) typed.model.result_bytes = rules::written_bytes(func);
  auto space = TW_TRY(create(device, TW_TRY(cost::layer_of(found.sums[0])), typed));
  if (options.as_steps) space->func_ = func;
  return space;
}

void FpgaSpace::add(std::string name, std::vector<int64_t> values) {
  const auto item = static_cast<Item>(values_.size());
  const bool words = item == Stays || item == Memory || item == Type;
  std::vector<std::string> texts;
  std::vector<search::DecisionValue> ordered;
  for (const int64_t value : values) {
    std::string text = std::to_string(value);
    if (item == Stays) text = cost::name(static_cast<cost::FpgaStays>(value));
    if (item == Memory) text = value == 0 ? "bram" : "uram";
    if (item == Type) text = tilewright::name(static_cast<DType>(value));
    texts.push_back(text);
    ordered.push_back({text, {std::log2(static_cast<double>(value) + 1)}});
  }
  decisions_.push_back(words ? search::choice_decision(name, texts)
                             : search::ordered_decision(name, ordered));
  values_.push_back(std::move(values));
}

int64_t FpgaSpace::value(const search::Point& point, Item item) const {
  return values_[item][static_cast<size_t>(point[item])];
}

const cost::FpgaModel& FpgaSpace::model(const search::Point& point) const {
  return models_[static_cast<size_t>(point[Type])];
}

cost::FpgaDesign FpgaSpace::design(const search::Point& point) const {
  const cost::FpgaModel& one = models_[0];
  const cost::FpgaRoles& r = one.roles();
  cost::FpgaDesign d;
  d.uo = value(point, Uo);
  d.ui = value(point, Ui);
  d.us = value(point, Us);
  d.to = tile(one.extent(r.outputs), d.uo, value(point, To));
  d.tc = tile(one.extent(r.inputs), d.ui, value(point, Tc));
  d.th = tile(one.extent(r.rows), 1, value(point, Th));
  d.tw = tile(one.extent(r.pixels), d.us, value(point, Tw));
  d.stays = static_cast<cost::FpgaStays>(value(point, Stays));
  d.image_slots = static_cast<int>(value(point, ImageSlots));
  d.weight_slots = static_cast<int>(value(point, WeightSlots));
  d.result_slots = static_cast<int>(value(point, ResultSlots));
  d.image_ports = static_cast<int>(value(point, ImagePorts));
  d.weight_ports = static_cast<int>(value(point, WeightPorts));
  d.pipelines = static_cast<int>(value(point, Pipelines));
  d.block = value(point, Block);
  d.uram = value(point, Memory) != 0;
  return d;
}

std::optional<search::Point> FpgaSpace::point(const cost::FpgaDesign& d) const {
  const cost::FpgaModel& one = models_[0];
  const cost::FpgaRoles& r = one.roles();
  const int64_t wanted[] = {d.uo,
                            d.ui,
                            d.us,
                            parts(one.extent(r.outputs), d.to),
                            parts(one.extent(r.inputs), d.tc),
                            parts(one.extent(r.rows), d.th),
                            parts(one.extent(r.pixels), d.tw),
                            static_cast<int64_t>(d.stays),
                            d.image_slots,
                            d.weight_slots,
                            d.result_slots,
                            d.image_ports,
                            d.weight_ports,
                            d.pipelines,
                            d.block,
                            d.uram ? 1 : 0,
                            values_[Type][0]};
  search::Point found(kItems, 0);
  for (size_t item = 0; item < kItems; ++item) {
    const auto& values = values_[item];
    const auto at = std::find(values.begin(), values.end(), wanted[item]);
    if (at == values.end()) return std::nullopt;
    found[item] = static_cast<int>(at - values.begin());
  }
  if (design(found) != d) return std::nullopt;
  return found;
}

search::Evaluation FpgaSpace::judge(const search::Point& point) const {
  const cost::FpgaDesign d = design(point);
  const cost::FpgaModel& one = model(point);
  std::string problem = one.problem(d);
  if (problem.empty() && one.options().as_written) problem = rules::no_steps(one, d);
  if (!problem.empty()) return {search::kInvalid, problem};
  return {one.time(d).cycles, ""};
}

std::vector<double> FpgaSpace::terms(const search::Point& point) const {
  const cost::FpgaTime time = model(point).time(design(point));
  return {time.compute, time.image, time.weights, time.result, time.channel};
}

Result<schedule::Trace> FpgaSpace::trace(const search::Point& point) const {
  if (!func_)
    return fail(ErrorKind::NotApplicable, "these designs for FPGAs have no schedule",
                "the space is for the model alone");
  return rules::fpga_trace(*func_, model(point), design(point));
}

}  // namespace tilewright::tune
