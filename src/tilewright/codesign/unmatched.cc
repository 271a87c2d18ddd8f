#include "tilewright/codesign/unmatched.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/codesign/vta_layer.h"
#include "tilewright/cost/spatial/mapping.h"

namespace tilewright::codesign {
namespace {

using cost::SpatialLayer;
using spatial::Unit;

/// Axes over which a window moves: loops of a sum that share an index with one of the result.
int window_axes(const SpatialLayer& layer) {
  int axes = 0;
  for (const cost::SpatialTensor& tensor : layer.tensors)
    for (const cost::SpatialDim& dim : tensor.dims) axes += dim.terms.size() > 1 ? 1 : 0;
  return axes;
}

/// Loops of the result (or of the sum) that move both factors, or one of them alone.
bool has_loop(const SpatialLayer& layer, bool reduces, bool first, bool second) {
  for (size_t loop = 0; loop < layer.loops.size(); ++loop) {
    const int at = static_cast<int>(loop);
    if (layer.loops[loop].reduces == reduces && layer.moves(0, at) == first &&
        layer.moves(1, at) == second)
      return true;
  }
  return false;
}

std::string why_not(const spatial::Design& design, const SpatialLayer& layer) {
  if (!cost::choices(design, layer).empty()) return {};
  if (!has_loop(layer, true, true, true)) return "it sums over nothing that both factors have";
  if (design.unit == Unit::Conv2d && window_axes(layer) != 2)
    return fmt::format("windows move over {} of its axes, not over two", window_axes(layer));
  const bool first = has_loop(layer, false, true, false),
             second = has_loop(layer, false, false, true);
  if (design.unit == Unit::Gemm && !(first && second))
    return "no axis of its result belongs to one factor alone, for each of the two";
  if (!first && !second) return "no axis of its result belongs to one factor alone";
  return "the loops that could be the unit's share an index of a tensor";
}

std::string why_not(const vta::Config& config, const SpatialLayer& layer) {
  const Result<rules::VtaLayer> tiled = vta_layer(layer, config);
  return tiled ? std::string() : tiled.error().why;
}

std::string unit_name(const Hardware& hardware) {
  const auto* design = std::get_if<spatial::Design>(&hardware);
  return std::string(design != nullptr ? spatial::name(design->unit) : vta_generator().name());
}

bool runs_any(const Hardware& unit, const Workload& workload) {
  return std::any_of(
      workload.layers.begin(), workload.layers.end(),
      [&](const WorkloadLayer& layer) { return unmatched(unit, layer.layer).empty(); });
}

}  // namespace

std::string unmatched(const Hardware& hardware, const SpatialLayer& layer) {
  return std::visit([&](const auto& design) { return why_not(design, layer); }, hardware);
}

std::vector<Hardware> units_of(const DesignSpace& space) {
  const SpaceFile& file = space.file();
  Values values = file.fixed;
  std::vector<double> units = {values[0]};
  for (const SpaceFile::Parameter& parameter : file.parameters)
    if (parameter.key == 0) units = parameter.values;
  std::vector<Hardware> found;
  for (const double unit : units) {
    values[0] = unit;
    file.generator->complete(values, file.given);
    found.push_back(file.generator->hardware(values, file.name));
  }
  if (!std::holds_alternative<spatial::Design>(found[0])) found.resize(1);  // it has no units
  return found;
}

std::vector<std::string> idle_units(const DesignSpace& space, const Workload& workload) {
  std::vector<std::string> names;
  const std::vector<Hardware> units = units_of(space);
  for (const Hardware& unit : units)
    if (!runs_any(unit, workload)) names.push_back(unit_name(unit));
  if (names.size() == units.size()) names.clear();
  return names;
}

std::function<bool(const search::Point&)> useful_points(const DesignSpace& space,
                                                        const Workload& workload) {
  const std::vector<SpaceFile::Parameter>& parameters = space.file().parameters;
  const auto unit = std::find_if(parameters.begin(), parameters.end(),
                                 [](const auto& parameter) { return parameter.key == 0; });
  std::vector<bool> runs;
  for (const Hardware& one : units_of(space)) runs.push_back(runs_any(one, workload));
  if (runs.size() == 1) return [&space](const search::Point& point) { return space.legal(point); };
  const auto decision = static_cast<size_t>(unit - parameters.begin());
  return [&space, runs, decision](const search::Point& point) {
    return runs[static_cast<size_t>(point[decision])] && space.legal(point);
  };
}

Status check_matches(const std::vector<Hardware>& units, const Workload& workload) {
  Error error{
      ErrorKind::Unsupported, {}, {}, {}, "codesign choices shows what each unit can do", {}};
  std::string names;
  for (const Hardware& unit : units) {
    names += (names.empty() ? "" : ", ") + unit_name(unit);
    for (const WorkloadLayer& layer : workload.layers) {
      const std::string why = unmatched(unit, layer.layer);
      if (why.empty()) return {};
      error.others.push_back({ErrorKind::Unsupported,
                              fmt::format("{}: {}", layer.layer.name, unit_name(unit)),
                              {},
                              why,
                              {},
                              {}});
    }
  }
  error.what = fmt::format("no layer of '{}' matches {}", workload.name, names);
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace tilewright::codesign
