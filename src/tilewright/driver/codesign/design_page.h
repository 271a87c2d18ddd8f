// The HTML page of one design of a search.
#pragma once

#include <string>

#include "tilewright/driver/codesign/design_package.h"

namespace tilewright::driver {

/// A mapping as loops, outermost first, cut where data passes from DRAM into the scratchpad and
/// from there into the array; what each memory holds beside it.
std::string loop_nest(const spatial::Design& design, const cost::SpatialLayer& layer,
                      const cost::SpatialMapping& mapping);

/// One self-contained page of a design at `point` of the subject's space: what it costs, energy by
/// level, what binds, all layers in a roofline, what one step of each parameter would change, and
/// the mapping of each layer (of `spatial` as a loop nest). Evaluates the design and its neighbours
/// by the model, with the mapper of the search. `packages`: its programs, named.
std::string design_page(const SearchSubject& subject, codesign::LayerMapper mapper,
                        const search::Point& point, const std::string& name,
                        const std::vector<DesignPackage>& packages);

}  // namespace tilewright::driver
