// A layer with its values in other orders of axes.
#pragma once

#include <string>
#include <vector>

#include "tilewright/cost/spatial/layer.h"

namespace tilewright::tune {

struct LayoutVariant {
  std::string name;  ///< `first,last`: where the channels of input and result stand
  cost::SpatialLayer layer;
};

/// The layer as it is, then with the channels of image and result before or behind the pixels where
/// they are not so yet. One variant for layers that are no convolution. Channels are the axis whose
/// loop moves the packed factor too; that factor's order is the compiler's affair.
std::vector<LayoutVariant> layout_variants(const cost::SpatialLayer& layer);

}  // namespace tilewright::tune
