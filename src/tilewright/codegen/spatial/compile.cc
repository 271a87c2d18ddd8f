// Orders of values, addresses, and the instructions of all layers behind one another.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/base/check.h"
#include "tilewright/codegen/spatial/layer_code.h"
#include "tilewright/codegen/spatial/network.h"

namespace tilewright::spatial {
namespace {

using cost::ImageLayout;

constexpr uint64_t kAlign = 64;  // longer than any beat of the port

class NetworkCompiler {
 public:
  NetworkCompiler(const Network& network, Mappings& mappings)
      : network_(network),
        mappings_(mappings),
        layout_(network.values.size(), ImageLayout::ChannelsLast),
        memory_(accel::kPage, kDramBytes) {}

  Result<Compiled> run(const std::function<Status()>& cancelled) {
    choose_layouts();
    TW_TRY_STATUS(place_values());
    Run run;
    for (const ConvLayer& layer : network_.layers) {
      if (cancelled) TW_TRY_STATUS(cancelled());
      TW_TRY_STATUS(supports(network_, layer, mappings_));
      const size_t begin = run.insns.size();
      TW_TRY_STATUS(add(layer, run.insns));
      run.spans.push_back({layer.name, begin, run.insns.size()});
    }
    run.insns = TW_TRY(with_tokens(mappings_.design(), std::move(run.insns)));
    Compiled compiled;
    static_cast<accel::Image&>(compiled.program) = memory_.take();
    compiled.program.design = mappings_.design();
    compiled.program.runs.push_back(std::move(run));
    compiled.layers = std::move(plans_);
    return compiled;
  }

 private:
  const NetworkValue& value(int id) const { return network_.values[static_cast<size_t>(id)]; }
  ImageLayout& layout(int id) { return layout_[static_cast<size_t>(id)]; }

  /// Cycles of a layer with its values as they are; infinite: it does not fit so.
  double cycles(const ConvLayer& layer) {
    const auto& best =
        mappings_.best(run_of(network_, layer, 0, layout(layer.input), layout(layer.output)));
    return best ? static_cast<double>(layer.groups) * best->cost.cycles
                : std::numeric_limits<double>::infinity();
  }
  double cycles_around(int id) {
    double sum = 0;
    for (const ConvLayer& layer : network_.layers)
      if (layer.input == id || layer.output == id) sum += cycles(layer);
    return sum;
  }

  /// What passes the border is NCHW. Values inside change their order one by one as long as that
  /// makes the layers around them faster.
  void choose_layouts() {
    std::vector<bool> fixed(network_.values.size(), false);
    for (const auto* ids : {&network_.inputs, &network_.outputs})
      for (const int id : *ids) {
        layout(id) = ImageLayout::ChannelsFirst;
        fixed[static_cast<size_t>(id)] = true;
      }
    for (bool changed = true; changed;) {
      changed = false;
      for (int id = 0; id < static_cast<int>(fixed.size()); ++id) {
        if (fixed[static_cast<size_t>(id)]) continue;
        const ImageLayout old = layout(id);
        const double before = cycles_around(id);
        layout(id) = old == ImageLayout::ChannelsLast ? ImageLayout::ChannelsFirst
                                                      : ImageLayout::ChannelsLast;
        if (cycles_around(id) < before)
          changed = true;
        else
          layout(id) = old;
      }
    }
  }

  Status place_values() {
    for (const NetworkValue& v : network_.values)
      address_.push_back(
          TW_TRY(memory_.allocate(v.name, static_cast<uint64_t>(v.bytes()), kAlign)));
    const auto region = [&](int id) {
      return accel::Region{value(id).name, address_[static_cast<size_t>(id)],
                           static_cast<uint64_t>(value(id).bytes())};
    };
    for (const int id : network_.inputs) memory_.add_input(region(id));
    for (const int id : network_.outputs) memory_.add_output(region(id));
    return {};
  }

  Status add(const ConvLayer& layer, std::vector<Insn>& insns) {
    const Design& design = mappings_.design();
    const ImageLayout in = layout(layer.input), out = layout(layer.output);
    const cost::SpatialLayer first = run_of(network_, layer, 0, in, out);
    const auto& best = mappings_.best(first);
    if (!best) return fail(ErrorKind::Capacity, fmt::format("no tile of '{}' fits", layer.name));
    const auto groups = static_cast<size_t>(layer.groups);
    const size_t weights = layer.weights.size() / groups, biases = layer.bias.size() / groups;
    for (size_t g = 0; g < groups; ++g) {
      const cost::SpatialLayer run = run_of(network_, layer, static_cast<int64_t>(g), in, out);
      const std::string packed =
          pack(design, run, best->mapping, std::span(layer.weights).subspan(g * weights, weights),
               std::span(layer.bias).subspan(g * biases, biases));
      LayerOperands operands;
      operands.address = {
          address_[static_cast<size_t>(layer.input)],
          TW_TRY(memory_.allocate("weights of " + layer.name, packed.size(), kAlign)),
          address_[static_cast<size_t>(layer.output)]};
      memory_.write(operands.address[1], packed);
      operands.biased = biases > 0;
      operands.shift = layer.shift;
      operands.low = layer.low;
      operands.high = layer.high;
      std::vector<Insn> code = layer_code(design, run, best->mapping, operands);
      insns.insert(insns.end(), std::make_move_iterator(code.begin()),
                   std::make_move_iterator(code.end()));
    }
    const double runs = static_cast<double>(layer.groups);
    plans_.push_back({layer.name, cost::to_string(first, best->mapping), in, out, layer.groups,
                      runs * best->cost.cycles, runs * cost::lower_bound(design, first),
                      best->cost.binds});
    return {};
  }

  const Network& network_;
  Mappings& mappings_;
  std::vector<ImageLayout> layout_;
  accel::ImageBuilder memory_;
  std::vector<uint64_t> address_;
  std::vector<LayerPlan> plans_;
};

}  // namespace

Result<Compiled> compile(const Network& network, Mappings& mappings,
                         const std::function<Status()>& cancelled) {
  return NetworkCompiler(network, mappings).run(cancelled);
}

}  // namespace tilewright::spatial
