// A network of int8 convolutions for an accelerator `spatial`, and its program: values stay in DRAM
// between layers, each in the order of axes that the cost model prefers.
//
// Example: two 3x3 convolutions and what is between them:
//   Network{values = {x, h, y}, layers = {x -> h, h -> y}, inputs = {x}, outputs = {y}}
// h is NHWC, where a weight stationary array reads 16 neighbours at once; x and y are NCHW, as
// whoever hands them over has them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/accel/spatial/program.h"
#include "tilewright/cost/spatial/mapper.h"

namespace tilewright::spatial {

struct NetworkValue {
  std::string name;
  int64_t images = 1, channels = 1, height = 1, width = 1;
  int64_t bytes() const { return images * channels * height * width; }
};

/// clip(round((conv + bias) / 2^shift)); a dense layer has one pixel.
struct ConvLayer {
  std::string name;
  int input = -1, output = -1;  ///< indices of values
  int64_t groups = 1;
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, dilation{1, 1}, pad{};  ///< y, x
  std::vector<int8_t> weights;  ///< [outputs][inputs / groups][kernel y][kernel x]
  std::vector<int32_t> bias;    ///< of each output channel, or empty
  int shift = 0, low = -128, high = 127;
};

struct Network {
  std::vector<NetworkValue> values;
  std::vector<ConvLayer> layers;  ///< each behind those whose results it reads
  std::vector<int> inputs, outputs;
};

/// The run of `layer` for one of its groups, with its values in these orders.
cost::SpatialLayer run_of(const Network& network, const ConvLayer& layer, int64_t group,
                          cost::ImageLayout input, cost::ImageLayout output);

/// The name of a layer's shapes, orders of axes included, in records of its mapping.
std::string workload_of(const cost::SpatialLayer& layer);

/// The mapping that a layer shall have instead of the best one by the model; absent: that.
using FindMapping =
    std::function<std::optional<cost::SpatialMapping>(const cost::SpatialLayer& layer)>;

/// Mappings on one design, each found once, also for copies. Not for several threads.
class Mappings {
 public:
  explicit Mappings(const Design& design) : design_(design) {}
  const Design& design() const { return design_; }
  /// Absent: no tile fits.
  const std::optional<cost::SpatialBest>& best(const cost::SpatialLayer& layer);
  /// The same, but layers have what `chosen` names where the design can run it.
  Mappings with(FindMapping chosen) const;

 private:
  /// What was chosen for the layer, if the design can run it.
  std::optional<cost::SpatialBest> chosen(const cost::SpatialLayer& layer) const;

  using Found = std::map<std::string, std::optional<cost::SpatialBest>>;
  Design design_;
  FindMapping chosen_;
  Found taken_;  ///< what `chosen_` says; absent: nothing that runs
  std::shared_ptr<Found> known_ = std::make_shared<Found>();  ///< the best by the model
};

/// Why no mapping of a layer fits: memory, tensors and KiB of the smallest one; or that the unit
/// cannot play its loops. requires: there is none.
Error misfit(const cost::SpatialLayer& layer, const Design& design);

/// Whether any mapping of the layer fits. errors: Capacity (memory, tensors and KiB of the smallest
/// one), Unsupported (the unit cannot play its loops).
Status supports(const Network& network, const ConvLayer& layer, Mappings& mappings);

/// What became of a layer.
struct LayerPlan {
  std::string name, mapping;
  std::optional<cost::ImageLayout> input, output;  ///< of images
  int64_t runs = 1;                                ///< one per group
  /// Of all runs, by the model; `bound`: what no mapping takes less than.
  double cycles = 0, bound = 0;
  cost::SpatialBinds binds{};
};

struct Compiled {
  Program program;
  std::vector<LayerPlan> layers;
};

/// `cancelled` is asked before each layer; its errors are handed on.
/// errors: those of `supports`, Capacity (more than the device addresses).
Result<Compiled> compile(const Network& network, Mappings& mappings,
                         const std::function<Status()>& cancelled = {});

}  // namespace tilewright::spatial
