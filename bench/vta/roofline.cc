// Cycles of ResNet-18's convolutions C2 to C12 on a VTA configuration, with and without latency
// hiding, as one JSON document on stdout; bench/vta/resnet18.py draws it.
// roofline [CONFIGURATION]
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/base/rng.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/vta/backend.h"
#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/layout/tiles.h"
#include "tilewright/graph/quantize/quantize.h"

namespace {

using namespace tilewright;

/// source: TVM paper (arXiv 1802.04799), table 2.
struct Layer {
  const char* name;
  int64_t size, in, out, kernel, stride;
  int repeats;  ///< in ResNet-18
};
constexpr Layer kLayers[] = {
    {"C2", 56, 64, 64, 3, 1, 4},    {"C3", 56, 64, 64, 1, 1, 1},   {"C4", 56, 64, 128, 3, 2, 1},
    {"C5", 56, 64, 128, 1, 2, 1},   {"C6", 28, 128, 128, 3, 1, 3}, {"C7", 28, 128, 256, 3, 2, 1},
    {"C8", 28, 128, 256, 1, 2, 1},  {"C9", 14, 256, 256, 3, 1, 3}, {"C10", 14, 256, 512, 3, 2, 1},
    {"C11", 14, 256, 512, 1, 2, 1}, {"C12", 7, 512, 512, 3, 1, 3},
};

Array normal(Rng& rng, const Shape& shape, double deviation) {
  Array array(DType::F32, shape);
  for (float& x : array.as<float>()) x = static_cast<float>(rng.normal() * deviation);
  return array;
}

/// Convolution, bias, rounding shift, clip (as ReLU) and 8-bit store, on tiles.
Result<graph::Graph> layer_graph(const Layer& layer, const graph::TileShape& tile) {
  Rng rng(7);
  graph::Builder b(layer.name);
  const auto fan = static_cast<double>(layer.in * layer.kernel * layer.kernel);
  const auto x = b.input("x", DType::F32, {1, layer.in, layer.size, layer.size});
  const auto w = b.constant(
      "w", normal(rng, {layer.out, layer.in, layer.kernel, layer.kernel}, std::sqrt(2 / fan)));
  const auto bias = b.constant("bias", normal(rng, {layer.out}, 0.2));
  const std::vector<int64_t> strides(2, layer.stride), pads(4, layer.kernel / 2);
  const auto sum = b.node("Conv", {x, w, bias}, {{"strides", strides}, {"pads", pads}}, "conv");
  b.output(b.node("Relu", {sum}), "y");
  graph::PassContext context;
  const graph::Graph prepared = TW_TRY(prepare_quantize(TW_TRY(b.finish()), context));
  graph::Ranges ranges;  // cycles do not depend on them
  for (size_t v = 0; v < prepared.values.size(); ++v) {
    const auto& type = prepared.values[v].type;
    if (type.dtype != DType::F32 || prepared.values[v].constant) continue;
    accumulate(ranges, static_cast<graph::ValueId>(v), normal(rng, {1, type.shape[1], 1, 1}, 1));
  }
  graph::QuantizeOptions options;
  options.wide_outputs = false;
  return tile_layout(TW_TRY(quantize(prepared, ranges, options)).graph, tile);
}

Result<nlohmann::ordered_json> measure(const graph::Graph& graph, const vta::Config& config,
                                       int copies, bool serial) {
  compile::CompileOptions options;
  options.target = compile::as_target(compile::VtaTarget{config, copies, serial});
  const compile::CompiledModel model = TW_TRY(compile_graph(graph, options));
  if (model.launches.size() != 1)
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' became {} launches", graph.name, model.launches.size()));
  const vta::Run& run = compile::vta_code(model.launches.begin()->second)->program.runs.at(0);
  const vta::LaunchReport report = TW_TRY(simulate_time(config, run.insns, {.record_times = true}));
  const vta::Utilisation use = utilisation(config, run.insns, report);
  const vta::Counters& c = report.counters;
  const uint64_t bytes = c.inp_load_bytes + c.wgt_load_bytes + c.acc_load_bytes + c.uop_load_bytes;
  return nlohmann::ordered_json{{"cycles", report.cycles},
                                {"gemm_steps", c.gemm_steps},
                                {"bound", bound(config, run.insns).cycles()},
                                {"gemm_use", use.gemm},
                                {"bytes_read", bytes},
                                {"bytes_stored", c.out_store_bytes}};
}

Result<nlohmann::ordered_json> measure_all(const vta::Config& config) {
  nlohmann::ordered_json document = {{"schema", "tilewright.vta_roofline"},
                                     {"version", 1},
                                     {"hw", config.name},
                                     {"label", label(config)},
                                     {"clock_mhz", config.clock_mhz},
                                     {"bus_bytes", config.timing.bus_bytes}};
  document["mac_per_step"] = config.batch() * config.block_in() * config.block_out();
  for (const Layer& layer : kLayers) {
    const graph::Graph graph =
        TW_TRY(layer_graph(layer, {config.batch(), config.block_in(), config.block_out()}));
    const int64_t edge = (layer.size - 1) / layer.stride + 1;
    nlohmann::ordered_json row = {{"layer", layer.name}, {"repeats", layer.repeats}};
    row["macs"] = edge * edge * layer.in * layer.out * layer.kernel * layer.kernel;
    row["hidden"] = TW_TRY(measure(graph, config, 2, false));
    row["single"] = TW_TRY(measure(graph, config, 1, false));
    row["serial"] = TW_TRY(measure(graph, config, 1, true));
    document["layers"].push_back(std::move(row));
  }
  return document;
}

}  // namespace

int main(int argc, char** argv) {
  const Result<vta::Config> config = vta::load_config(argc > 1 ? argv[1] : "vta");
  const auto document = config ? measure_all(*config) : tl::unexpected<Error>(config.error());
  if (!document) {
    fmt::print(stderr, "{}\n", to_string(document.error()));
    return 1;
  }
  fmt::print("{}\n", document->dump(1));
  return 0;
}
