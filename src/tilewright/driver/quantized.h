// From a model in f32 (or QDQ form) to the integer graph that an accelerator runs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/accel/vta/config.h"
#include "tilewright/driver/compile.h"
#include "tilewright/driver/vta_place.h"
#include "tilewright/graph/quantize.h"

namespace tilewright::driver {

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
  std::optional<graph::Graph>
      prepared;         ///< the f32 graph that was quantised; absent for QDQ models
  Samples calibration;  ///< what it was calibrated with
  graph::Graph tiled;   ///< `quantized` in the accelerator's layout
  std::vector<graph::Placement> placements;
  std::shared_ptr<VtaLayerMemo> memo;  ///< what placing it found out, for the compiler
};

/// errors: what the steps report; Unsupported with every operator that would stay on the CPU and
/// the reason, unless that is allowed (conversions at the border always are).
Result<VtaModel> prepare_for_vta(const graph::Graph& model, const vta::Config& config,
                                 const QuantizeSettings& settings, const CompileOptions& options);

}  // namespace tilewright::driver
