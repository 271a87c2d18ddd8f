// Layers that no unit of a space can do: known before anything is searched.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tilewright/codesign/space.h"
#include "tilewright/codesign/workload.h"

namespace tilewright::codesign {

/// Why such hardware can never run the layer, whatever its sizes; empty: it can.
std::string unmatched(const Hardware& hardware, const cost::SpatialLayer& layer);

/// One design per unit that the space has.
std::vector<Hardware> units_of(const DesignSpace& space);

/// Names of those units that can run no layer, where others can.
std::vector<std::string> idle_units(const DesignSpace& space, const Workload& workload);
/// Whether a point can be built and its unit can run a layer. `space` must outlive it.
std::function<bool(const search::Point&)> useful_points(const DesignSpace& space,
                                                        const Workload& workload);

/// errors: Unsupported where no unit can run any layer; why, layer by layer.
Status check_matches(const std::vector<Hardware>& units, const Workload& workload);

}  // namespace tilewright::codesign
