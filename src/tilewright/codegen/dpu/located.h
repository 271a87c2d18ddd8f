// Where values are before memories are planned: which feature map, which part of it, which lanes.
//
// A concat of 24 and 40 channels is one root of 5 groups: its inputs are made in it, side by side,
// and each begins a group of its own. A slice is a part of the root of its input. So channel c of a
// value is in a lane of its own, which need not be c; convolutions take that into their weights,
// everything else carries it along.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {

/// A value: the groups where it is, and which of their lanes each channel has.
struct Located {
  View view;
  std::vector<int> lanes;
  int64_t groups = 0;
  bool shared = false;  ///< lanes of its groups that are not its own may be other than 0
};

struct Locations {
  std::vector<Located> values;                 ///< by id
  std::set<ValueId> formatted;                 ///< inputs that the format unit folds
  std::set<std::pair<size_t, size_t>> placed;  ///< inputs of concats (layer, input) made in place
  std::set<ValueId> slices;
};

/// Places for all values of `network`: their roots, inputs and format jobs are added to `lowered`.
/// requires: `check` accepts it.
Locations locate(const Network& network, const Config& config, Lowered& lowered);

/// A new root, all of it.
View add_root(Lowered& lowered, const std::string& name, int64_t height, int64_t width,
              int64_t groups);

/// Channel c in lane c.
std::vector<int> dense_lanes(int64_t channels);

/// The factor of an average that becomes a dense convolution, and its shift.
std::optional<std::pair<int, int>> dense_factor(const Network& network, const Config& config,
                                                const Layer& layer);

}  // namespace tilewright::dpu
