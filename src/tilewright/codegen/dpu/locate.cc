#include <algorithm>
#include <numeric>

#include "tilewright/codegen/dpu/located.h"

namespace tilewright::dpu {
namespace {

class Locator {
 public:
  Locator(const Network& network, const Config& config, Lowered& lowered)
      : network_(network), config_(config), lowered_(lowered) {
    places_.values.resize(network.values.size());
  }

  Locations run() && {
    for (const ValueId id : network_.inputs) add_input(id);
    for (const Layer& layer : network_.layers) find_lanes(layer);
    find_roots();
    for (const Layer& layer : network_.layers)
      if (const auto* slice = std::get_if<SliceLayer>(&layer.op)) cut(*slice, layer);
    return std::move(places_);
  }

 private:
  const Value& value(ValueId id) const { return network_.values[static_cast<size_t>(id)]; }
  Located& located(ValueId id) { return places_.values[static_cast<size_t>(id)]; }

  void add_input(ValueId id) {
    const Value& v = value(id);
    Located& to = located(id);
    std::optional<Window> window;
    if (v.channels <= config_.format_unit) window = common_window(network_, id);
    int64_t width = v.width, channels = v.channels;
    if (window) {
      channels *= window->kernel_w;
      width =
          (v.width + window->pad_left + window->pad_right - window->kernel_w) / window->stride_w +
          1;
      places_.formatted.insert(id);
    }
    to.view = add_root(lowered_, v.name, v.height, width, groups(channels));
    to.groups = to.view.groups;
    to.lanes = dense_lanes(channels);
    Root& root = lowered_.roots.back();
    root.input = true;
    root.input_addr = static_cast<int64_t>(lowered_.input_region);
    const uint64_t bytes = static_cast<uint64_t>(root.height * root.width * root.groups) *
                           static_cast<uint64_t>(config_.word_bytes());
    lowered_.input_region += ddr_room(config_, bytes);
    add_tensor(v, window, static_cast<uint64_t>(root.input_addr), bytes);
  }

  /// What the host writes: the map at `addr`, or what the format unit makes it of.
  void add_tensor(const Value& v, const std::optional<Window>& window, uint64_t addr,
                  uint64_t bytes) {
    DdrTensor tensor{v.name, Reg::Input, addr, v.channels, v.height, v.width, v.fix_point};
    if (window) {
      FormatJob job{v.name, lowered_.format_bytes, addr};
      job.channels = static_cast<int>(v.channels);
      job.height = static_cast<int>(v.height);
      job.width = static_cast<int>(v.width);
      job.kernel_w = window->kernel_w;
      job.stride_w = window->stride_w;
      job.pad_left = window->pad_left;
      job.pad_right = window->pad_right;
      lowered_.formats.push_back(job);
      tensor.reg = Reg::Format;
      tensor.addr = job.source;
      bytes = static_cast<uint64_t>(v.elements()) * static_cast<uint64_t>(config_.pe);
      lowered_.format_bytes += ddr_room(config_, bytes);
    }
    lowered_.input_bytes.push_back(bytes);
    lowered_.inputs.push_back(tensor);
  }

  void find_lanes(const Layer& layer) {
    Located& to = located(layer.output);
    to.lanes = dense_lanes(value(layer.output).channels);
    to.groups = groups(value(layer.output).channels);
    const Located& first = located(layer.inputs[0]);
    const bool moves = std::holds_alternative<PoolLayer>(layer.op) ||
                       std::holds_alternative<UpsampleLayer>(layer.op) ||
                       std::holds_alternative<EltwiseLayer>(layer.op);
    if (const auto* slice = std::get_if<SliceLayer>(&layer.op)) {
      const auto begin = first.lanes.begin() + slice->channel;
      to.lanes.assign(begin, begin + value(layer.output).channels);
      const int skipped = to.lanes.front() / kLanes * kLanes;
      for (int& lane : to.lanes) lane -= skipped;
      to.groups = to.lanes.back() / kLanes + 1;
      to.shared = first.shared || to.lanes.size() < first.lanes.size();
      places_.slices.insert(layer.output);
    } else if (std::holds_alternative<ConcatLayer>(layer.op)) {
      to.groups = 0;
      to.lanes.clear();
      for (const ValueId id : layer.inputs) {
        for (const int lane : located(id).lanes)
          to.lanes.push_back(lane + static_cast<int>(to.groups) * kLanes);
        to.groups += located(id).groups;
        to.shared = to.shared || located(id).shared;
      }
    } else if (moves && !dense_factor(network_, config_, layer) &&
               (layer.inputs.size() == 1 || located(layer.inputs[1]).lanes == first.lanes)) {
      to.lanes = first.lanes;
      to.groups = first.groups;
      for (const ValueId id : layer.inputs) to.shared = to.shared || located(id).shared;
    }
  }

  /// Inputs of concats are made in its root, unless they are elsewhere already.
  void find_roots() {
    for (size_t i = network_.layers.size(); i-- > 0;) {
      const Layer& layer = network_.layers[i];
      if (places_.slices.contains(layer.output)) continue;
      const Value& v = value(layer.output);
      Located& to = located(layer.output);
      if (to.view.root < 0) to.view = add_root(lowered_, v.name, v.height, v.width, to.groups);
      if (!std::holds_alternative<ConcatLayer>(layer.op)) continue;
      int64_t group = to.view.group;
      for (size_t k = 0; k < layer.inputs.size(); ++k) {
        Located& part = located(layer.inputs[k]);
        if (part.view.root < 0 && !places_.slices.contains(layer.inputs[k])) {
          part.view = to.view;
          part.view.group = group;
          part.view.groups = part.groups;
          places_.placed.insert({i, k});
        }
        group += part.groups;
      }
    }
  }

  /// Of the map of its input, which has a root by now.
  void cut(const SliceLayer& slice, const Layer& layer) {
    const Located& from = located(layer.inputs[0]);
    Located& to = located(layer.output);
    to.view = from.view;
    to.view.row += slice.row;
    to.view.col += slice.column;
    to.view.group += from.lanes[static_cast<size_t>(slice.channel)] / kLanes;
    to.view.height = value(layer.output).height;
    to.view.width = value(layer.output).width;
    to.view.groups = to.groups;
  }

  const Network& network_;
  const Config& config_;
  Lowered& lowered_;
  Locations places_;
};

}  // namespace

View add_root(Lowered& lowered, const std::string& name, int64_t height, int64_t width,
              int64_t groups) {
  lowered.roots.push_back({name, height, width, groups});
  View view;
  view.root = static_cast<int>(lowered.roots.size()) - 1;
  view.height = height;
  view.width = width;
  view.groups = groups;
  return view;
}

std::vector<int> dense_lanes(int64_t channels) {
  std::vector<int> lanes(static_cast<size_t>(channels));
  std::iota(lanes.begin(), lanes.end(), 0);
  return lanes;
}

std::optional<std::pair<int, int>> dense_factor(const Network& network, const Config& config,
                                                const Layer& layer) {
  const auto* pool = std::get_if<PoolLayer>(&layer.op);
  if (pool == nullptr) return {};
  const Value& y = network.values[static_cast<size_t>(layer.output)];
  const bool global = y.height == 1 && y.width == 1;
  if (!config.compiler.dense_average || !pool->average || global || !pool->means.empty()) return {};
  int factor = pool->factor, shift = pool->shift;
  while (factor > 127 && factor % 2 == 0) factor /= 2, --shift;
  if (factor > 127) return {};
  return std::pair(factor, shift);
}

Locations locate(const Network& network, const Config& config, Lowered& lowered) {
  return Locator(network, config, lowered).run();
}

}  // namespace tilewright::dpu
