// Small quantised networks, compiled by the driver's library for any VTA configuration.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/check.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/devices.h"
#include "tilewright/compile/vta/backend.h"
#include "tilewright/compile/vta/place.h"
#include "tilewright/compile/vta/quantized.h"
#include "tilewright/driver/verify/reference.h"
#include "tilewright/graph/testing/quantize.h"

namespace tilewright::e2e {

using graph::Layers;
using graph::ValueId;

/// An integer graph with one input and what the interpreter says of it.
struct Network {
  graph::QuantizedGraph quantized;
  std::map<std::string, Array> inputs;
  std::vector<Array> expected;  ///< per output
};

inline std::map<std::string, Array> named_inputs(const graph::Graph& graph, uint64_t seed) {
  const std::vector<Array> arrays = graph::normal_inputs(graph, seed);
  std::map<std::string, Array> named;
  for (size_t i = 0; i < arrays.size(); ++i)
    named[graph.values[static_cast<size_t>(graph.inputs[i])].name] = arrays[i];
  return named;
}

/// Calibrates, quantises and evaluates a network, all in the interpreter.
inline Network make_network(const graph::Graph& f32) {
  Network network;
  const graph::Graph prepared = graph::prepared(f32);
  graph::Ranges ranges;
  for (uint64_t seed : {11u, 12u}) {
    const std::map<std::string, Array> inputs = named_inputs(prepared, seed);
    auto values = driver::run_reference(prepared, inputs);
    TW_CHECK(values, "{}", to_string(values.error()));
    values->insert(inputs.begin(), inputs.end());
    for (size_t v = 0; v < prepared.values.size(); ++v)
      if (const auto it = values->find(prepared.values[v].name); it != values->end())
        accumulate(ranges, static_cast<ValueId>(v), it->second);
  }
  Result<graph::QuantizedGraph> quantized = quantize(prepared, ranges);
  TW_CHECK(quantized, "{}", to_string(quantized.error()));
  network.quantized = *std::move(quantized);
  const graph::Graph& integer = network.quantized.graph;
  network.inputs = named_inputs(integer, 21);
  const auto values = driver::run_reference(integer, network.inputs);
  TW_CHECK(values, "{}", to_string(values.error()));
  for (ValueId id : integer.outputs)
    network.expected.push_back(values->at(integer.values[static_cast<size_t>(id)].name));
  return network;
}

/// errors: also of layers that do not fit, as `compile` without --fallback cpu reports them.
inline Result<compile::CompiledModel> compile_network(const Network& network,
                                                      const vta::Config& config) {
  compile::CompileOptions options;
  options.target = compile::as_target(compile::VtaTarget{config});
  const graph::TileShape tile{config.batch(), config.block_in(), config.block_out()};
  const graph::Graph tiled = TW_TRY(tile_layout(network.quantized.graph, tile));
  TW_TRY_STATUS(compile::all_placed(TW_TRY(compile::place_on_vta(tiled, config, {})), "vta"));
  return compile_graph(tiled, options);
}

struct DeviceRun {
  std::vector<Array> outputs;
  uint64_t cycles = 0;  ///< of all launches; 0 on fsim
};

inline Result<DeviceRun> run_network(const Network& network, const compile::CompiledModel& model,
                                     const std::string& device) {
  auto log = std::make_shared<compile::LaunchLog>();
  runtime::SessionOptions options;
  options.threads = 1;
  options.load_launch = compile::make_launch_loader({.device = device}, log);
  const auto session = TW_TRY(open_session(model, options));
  for (const auto& [name, value] : network.inputs) TW_TRY_STATUS(session->set_input(name, value));
  TW_TRY_STATUS(session->run());
  DeviceRun run;
  for (int id : session->program().outputs)
    run.outputs.push_back(
        TW_TRY(session->get_output(session->program().values[static_cast<size_t>(id)].name)));
  for (const auto& entry : log->entries) run.cycles += entry.record->cycles();
  return run;
}

inline bool same_bits(const std::vector<Array>& a, const std::vector<Array>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].dtype() != b[i].dtype() || a[i].shape() != b[i].shape() ||
        std::memcmp(a[i].data(), b[i].data(), static_cast<size_t>(a[i].bytes())) != 0)
      return false;
  return true;
}

}  // namespace tilewright::e2e
