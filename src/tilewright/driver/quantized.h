// From a model in f32 (or QDQ form) to the integer graph that an accelerator runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/accel/vta/config.h"
#include "tilewright/driver/compile.h"
#include "tilewright/graph/place.h"
#include "tilewright/graph/quantize.h"

namespace tilewright::driver {

/// What placement needs to know of an accelerator.
graph::PlaceTarget place_target(const vta::Config& config);
/// Where each node of a tiled graph runs; moves of whole channel blocks between layers of the
/// accelerator are its own too (graph/moves.h).
std::vector<graph::Placement> place_on_vta(const graph::Graph& tiled, const vta::Config& config);
/// The device of each node, by index: `vta` or nothing for the CPU. Views between nodes of the
/// accelerator are the accelerator's.
std::vector<std::string> devices_of(const graph::Graph& graph,
                                    const std::vector<graph::Placement>& places);
/// Whether a node may always stay on the CPU: conversions at the border and what follows the last
/// layer (softmax, argmax).
bool is_border(const graph::Placement& place);

/// What the user asked for.
struct QuantizeSettings {
  std::string source;  ///< `FILE.npz`, `random` or `random:N`; empty: the model must be QDQ
  bool per_channel = false;
  uint64_t seed = 1;
  bool allow_cpu = false;  ///< operators the accelerator cannot do may run on the CPU
};

/// Values for every input, one map per sample.
using Samples = std::vector<std::map<std::string, Array>>;

/// Reads or makes calibration samples for the graph's inputs. In a file the arrays are named as the
/// inputs and their first axis counts samples.
/// errors: Usage, Io, Parse, Invalid (names, shapes, types: all at once).
Result<Samples> load_samples(const QuantizeSettings& settings, const graph::Graph& graph);

/// What calibration saw: every f32 value of `graph`, over all samples, computed on this CPU.
Result<graph::Ranges> observe(const graph::Graph& graph, const Samples& samples,
                              const CompileOptions& options);

struct VtaModel {
  graph::QuantizedGraph quantized;
  graph::Graph tiled;  ///< `quantized` in the accelerator's layout
  std::vector<graph::Placement> placements;
};

/// errors: what the steps report; Unsupported with every operator that would stay on the CPU and
/// the reason, unless that is allowed (conversions at the border always are).
Result<VtaModel> prepare_for_vta(const graph::Graph& model, const vta::Config& config,
                                 const QuantizeSettings& settings, const CompileOptions& options);

}  // namespace tilewright::driver
