#include "tilewright/codesign/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tilewright/accel/spatial/design_keys.h"
#include "tilewright/accel/spatial/needs.h"

namespace tilewright::codesign {
namespace {

/// Keys of spatial designs that have to be in every space; the others have defaults.
bool is_required(std::string_view path) {
  constexpr std::string_view kRequired[] = {"intrinsic", "rows",     "cols",      "spad_kb",
                                            "banks",     "local_kb", "bus_bytes", "burst_bytes"};
  return std::find(std::begin(kRequired), std::end(kRequired), path) != std::end(kRequired);
}

std::vector<SpaceKey> make_spatial_keys() {
  std::vector<SpaceKey> keys;
  for (const spatial::Key& key : spatial::design_keys()) {
    SpaceKey made{
        key.path(), {}, key.low, key.high, key.whole(), key.power_of_two, is_required(key.path()),
        -1,         {}};
    made.memory = key.path() == "spad_kb" || key.path() == "local_kb";
    if (const auto* words = std::get_if<spatial::Words>(&key.value))
      made.words.assign(words->words.begin(), words->words.end());
    keys.push_back(std::move(made));
  }
  keys[1].parent = 0;  // only Gemm has a dataflow
  keys[1].when = {static_cast<int>(spatial::Unit::Gemm)};
  return keys;
}

class SpatialGenerator : public Generator {
 public:
  SpatialGenerator() : keys_(make_spatial_keys()) {
    const spatial::Design design;
    for (const spatial::Key& key : spatial::design_keys()) defaults_.push_back(key.get(design));
    while (keys_[links_].name != "links") ++links_;
  }
  std::string_view name() const override { return "spatial"; }
  const std::vector<SpaceKey>& keys() const override { return keys_; }
  const Values& defaults() const override { return defaults_; }
  void complete(Values& values, const std::vector<bool>& given) const override {
    if (!given[links_])
      values[links_] = static_cast<double>(
          spatial::usual_links(static_cast<spatial::Unit>(static_cast<int>(values[0]))));
  }
  std::vector<std::string> problems(const Values& values) const override {
    return spatial::problems(spatial_design(values));
  }
  Hardware hardware(const Values& values, const std::string& name) const override {
    spatial::Design design = spatial_design(values);
    design.name = name;
    return design;
  }

 private:
  std::vector<SpaceKey> keys_;
  Values defaults_;
  size_t links_ = 0;
};

}  // namespace

std::string SpaceKey::text(double value) const {
  return words.empty() ? fmt::format("{}", value) : words[static_cast<size_t>(value)];
}

const Generator& spatial_generator() {
  static const SpatialGenerator generator;
  return generator;
}

const std::vector<const Generator*>& generators() {
  static const std::vector<const Generator*> all = {&spatial_generator(), &vta_generator(),
                                                    &gemmini_generator()};
  return all;
}

spatial::Design spatial_design(const Values& values) {
  spatial::Design design;
  size_t at = 0;
  for (const spatial::Key& key : spatial::design_keys()) key.set(design, values[at++]);
  return design;
}

}  // namespace tilewright::codesign
