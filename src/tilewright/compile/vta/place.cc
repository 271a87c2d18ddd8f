#include "tilewright/compile/vta/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/graph/partition/moves.h"

namespace tilewright::compile {
namespace {

graph::PlaceTarget place_target(const vta::Config& config) {
  graph::PlaceTarget target;
  target.name = kVtaDevice;
  target.tile = {config.batch(), config.block_in(), config.block_out()};
  target.has_multiply = config.has_mul;
  return target;
}

/// Gives the accelerator the moves between its own layers.
void place_moves(const graph::Graph& tiled, std::vector<graph::Placement>& places) {
  std::vector<bool> on_vta(tiled.values.size(), false);
  for (size_t n = 0; n < places.size(); ++n) {
    const graph::Node& node = tiled.nodes[n];
    const auto made_there = [&](graph::ValueId id) { return on_vta[static_cast<size_t>(id)]; };
    if (const auto move = graph::block_move(tiled, node)) {
      const bool sources = move->gathers
                               ? std::all_of(node.inputs.begin(), node.inputs.end(), made_there)
                               : made_there(move->whole);
      if (sources) places[n].where = graph::Where::Accelerator;
    }
    const bool view = places[n].where == graph::Where::Nothing && !node.inputs.empty() &&
                      node.inputs[0] >= 0 && made_there(node.inputs[0]);
    if (view || places[n].where == graph::Where::Accelerator)
      for (graph::ValueId id : node.outputs) on_vta[static_cast<size_t>(id)] = true;
  }
}

/// Compiles every layer that `places` gives to the accelerator; those that fail become the CPU's in
/// `places`. Whether all succeeded. errors: Interrupted.
Result<bool> try_layers(const graph::Graph& tiled, const vta::Config& config,
                        const VtaLaunchOptions& options, const std::vector<std::string>& devices,
                        std::vector<graph::Placement>& places) {
  graph::FuseOptions fusion;
  fusion.device = [&](int node) { return devices[static_cast<size_t>(node)]; };
  bool good = true;
  for (const graph::Group& group : graph::fuse(tiled, fusion)) {
    if (group.device != kVtaDevice || group.kind != graph::GroupKind::Kernel) continue;
    const Status status = try_vta_layer(tiled, group, config, options);
    if (status) continue;
    if (status.error().kind == ErrorKind::Interrupted) return tl::unexpected<Error>(status.error());
    good = false;
    for (const int n : group.nodes) {
      graph::Placement& place = places[static_cast<size_t>(n)];
      if (place.where != graph::Where::Accelerator) continue;
      const Error& error = status.error();
      place.where = graph::Where::Cpu;
      place.why = error.why.empty() ? error.what : error.what + ": " + error.why;
      place.kind = error.kind;
    }
  }
  return good;
}

}  // namespace

Status check_compilable(const vta::Config& config) {
  std::vector<std::string> other;
  const auto expect = [&](const char* name, int log_bits) {
    if (log_bits != 3)
      other.push_back(fmt::format("{} is {} ({} bits)", name, log_bits, 1 << log_bits));
  };
  expect("log_inp_width", config.log_inp_width);
  expect("log_wgt_width", config.log_wgt_width);
  expect("log_out_width", config.log_out_width);
  if (other.empty()) return {};
  return fail(ErrorKind::Unsupported,
              "models are compiled for 8-bit inputs, weights and results only",
              fmt::format("{}", fmt::join(other, ", ")),
              "set them to 3; simulators, `rtl` and programs written by hand take other widths");
}

Result<std::vector<graph::Placement>> place_on_vta(const graph::Graph& tiled,
                                                   const vta::Config& config,
                                                   const VtaLaunchOptions& options) {
  std::vector<graph::Placement> own = graph::place(tiled, place_target(config));
  // A layer that leaves may split the group of another one: each round settles some.
  while (true) {
    std::vector<graph::Placement> places = own;
    place_moves(tiled, places);
    std::vector<graph::Placement> tried = places;
    if (TW_TRY(try_layers(tiled, config, options, devices_of(tiled, places, kVtaDevice), tried)))
      return places;
    for (size_t n = 0; n < own.size(); ++n)
      if (tried[n].where != places[n].where) own[n] = tried[n];
  }
}

}  // namespace tilewright::compile
