#include "tilewright/rules/vta/mapping_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tilewright/base/integers.h"
#include "tilewright/rules/vta/model.h"
#include "tilewright/rules/vta/schedule.h"

namespace tilewright::rules {
namespace {

constexpr const char* kAxes = "nohwcrs";
// Decisions after those of the tiles, in order.
constexpr size_t kOrder = 0, kInputDepth = kOrder + 1, kWeightDepth = kInputDepth + 1,
                 kTail = kWeightDepth + 1, kResultCopies = kTail + 1;

template <class T>
void add_if_missing(std::vector<T>& values, const T& value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

/// The smallest tile for each number of tiles: others only make the last one smaller.
std::vector<int64_t> tile_sizes(int64_t extent, int64_t also) {
  std::vector<int64_t> sizes;
  for (int64_t count = extent; count >= 1; --count) add_if_missing(sizes, ceil_div(extent, count));
  add_if_missing(sizes, also);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

/// All orders of the axes that can have several tiles.
std::vector<std::vector<TileAxis>> loop_orders(
    const std::array<std::vector<int64_t>, kTileAxes>& tiles) {
  std::vector<TileAxis> axes;
  for (size_t i = 0; i < kTileAxes; ++i)
    if (tiles[i].size() > 1) axes.push_back(static_cast<TileAxis>(i));
  std::vector<std::vector<TileAxis>> orders;
  do
    if (taps_together(axes)) orders.push_back(axes);
  while (std::next_permutation(axes.begin(), axes.end()));
  return orders;
}

std::string order_text(const std::vector<TileAxis>& order) {
  std::string text;
  for (const TileAxis axis : order) text += kAxes[static_cast<size_t>(axis)];
  return text.empty() ? "-" : text;
}

search::Decision sizes_decision(const std::string& name, const std::vector<int64_t>& values) {
  std::vector<search::DecisionValue> table;
  for (const int64_t v : values)
    table.push_back({std::to_string(v), {std::log2(1.0 + static_cast<double>(v))}});
  return search::ordered_decision(name, table);
}

}  // namespace

MappingSpace::MappingSpace(VtaLayer layer, vta::Config config, VtaMapping best, int copies)
    : layer_(std::move(layer)),
      config_(std::move(config)),
      best_(std::move(best)),
      copies_(copies),
      tails_({{}, {1}, {2}, {4}, {8}, {1, 1}, {2, 1}, {4, 2, 1}, {8, 4, 2, 1}}) {
  std::vector<search::Decision> decisions;
  const bool whole_window = best_.tile[TileAxis::R] == layer_.extent[TileAxis::R] &&
                            best_.tile[TileAxis::S] == layer_.extent[TileAxis::S];
  tiled_ = whole_window ? static_cast<size_t>(TileAxis::R) : kTileAxes;
  for (size_t i = 0; i < tiled_; ++i) {
    tiles_[i] = tile_sizes(layer_.extent[i], best_.tile[i]);
    if (static_cast<TileAxis>(i) >= TileAxis::R)
      std::erase_if(tiles_[i], [&](int64_t taps) { return layer_.extent[i] % taps != 0; });
    decisions.push_back(sizes_decision(fmt::format("tile_{}", kAxes[i]), tiles_[i]));
  }
  orders_ = loop_orders(tiles_);
  std::vector<std::string> orders, tails;
  for (const auto& order : orders_) orders.push_back(order_text(order));
  decisions.push_back(search::choice_decision("order", orders));
  std::vector<int64_t> depths(orders_[0].size() + 1);
  std::iota(depths.begin(), depths.end(), int64_t{0});
  decisions.push_back(sizes_decision("input", depths));
  decisions.push_back(sizes_decision("weights", depths));
  add_if_missing(tails_, best_.tail);
  for (const auto& tail : tails_)
    tails.push_back(tail.empty() ? "-" : fmt::format("{}", fmt::join(tail, "+")));
  decisions.push_back(search::choice_decision("tail", tails));
  std::vector<int64_t> results(static_cast<size_t>(copies_));
  std::iota(results.begin(), results.end(), int64_t{1});
  decisions.push_back(sizes_decision("result_copies", results));
  space_ = search::Space(std::move(decisions));
}

Result<MappingSpace> MappingSpace::create(const Func& func, const vta::Config& config,
                                          const MappingOptions& options) {
  const Func prepared = TW_TRY(schedule::replay(func, TW_TRY(vta_prologue(func))));
  VtaLayer layer = TW_TRY(vta_layer(prepared));
  VtaMapping best = TW_TRY(best_mapping(layer, config, options));
  const int copies = best.order.empty() ? options.max_copies : best.copies;
  return MappingSpace(std::move(layer), config, std::move(best), copies);
}

VtaMapping MappingSpace::mapping(const search::Point& point) const {
  const auto value = [&](size_t decision) { return static_cast<size_t>(point.at(decision)); };
  VtaMapping m;
  m.tile = layer_.extent;
  for (size_t i = 0; i < tiled_; ++i) m.tile[i] = tiles_[i].at(value(i));
  for (const TileAxis axis : orders_.at(value(tiled_ + kOrder)))
    if (m.tile[axis] < layer_.extent[axis]) m.order.push_back(axis);
  const auto loops = static_cast<int>(m.order.size());
  m.input_depth = std::min(static_cast<int>(value(tiled_ + kInputDepth)), loops);
  m.weight_depth = std::min(static_cast<int>(value(tiled_ + kWeightDepth)), loops);
  if (!layer_.conv) m.input_depth = result_depth(layer_, m), m.weight_depth = 0;
  m.tail = tails_.at(value(tiled_ + kTail));
  m.copies = m.order.empty() ? 1 : copies_;
  m.result_copies = m.copies;
  if (result_depth(layer_, m) > 0)
    m.result_copies = std::min(static_cast<int>(value(tiled_ + kResultCopies)) + 1, m.copies);
  return m;
}

bool MappingSpace::works(const VtaMapping& m) const {
  const auto results = [](const PerAxis<int64_t>& t) {
    return t[TileAxis::N] * t[TileAxis::O] * t[TileAxis::H] * t[TileAxis::W];
  };
  // Steps on one accumulator keep a distance.
  return results(m.tile) >= std::min<int64_t>(3, results(layer_.extent)) &&
         need(layer_, m, config_).fits(config_);
}

std::optional<VtaMapping> MappingSpace::recorded(const std::string& point) const {
  const std::string prefix = std::string(kVtaSpace) + ": ";
  if (!point.starts_with(prefix)) return std::nullopt;
  const std::optional<search::Point> found =
      space_.find(std::string_view(point).substr(prefix.size()));
  if (!found) return std::nullopt;
  VtaMapping m = mapping(*found);
  return works(m) ? std::optional(std::move(m)) : std::nullopt;
}

}  // namespace tilewright::rules
