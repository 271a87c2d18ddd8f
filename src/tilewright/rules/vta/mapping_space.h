// The mappings of a layer onto VTA as points of a space: what tuning walks, and how records name a
// mapping.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/rules/vta/mapping.h"
#include "tilewright/search/space.h"

namespace tilewright::rules {

/// Name of the space in records.
inline constexpr const char* kVtaSpace = "vta";

/// Decisions: tiles along each axis, order of the loops, how long inputs and weights stay, pieces
/// of the result, copies of the result. Copies of the rest are as in the mapping that the model
/// finds best, whose values are all in the tables. Windows are cut if that mapping cuts them.
class MappingSpace {
 public:
  /// errors: Unsupported (as vta_layer), Capacity (nothing fits).
  static Result<MappingSpace> create(const Func& func, const vta::Config& config,
                                     const MappingOptions& options = {});

  const search::Space& space() const { return space_; }
  VtaMapping mapping(const search::Point& point) const;
  /// Whether a mapping fits on chip, and its steps keep their distance.
  bool works(const VtaMapping& mapping) const;
  /// The model's choice: what is compiled without records.
  const VtaMapping& best() const { return best_; }
  const VtaLayer& layer() const { return layer_; }
  const vta::Config& config() const { return config_; }
  /// Of buffers on chip, in every mapping with loops.
  int copies() const { return copies_; }
  /// The mapping of a record's point; absent where the space has no such point, or it does not fit.
  std::optional<VtaMapping> recorded(const std::string& point) const;

 private:
  MappingSpace(VtaLayer layer, vta::Config config, VtaMapping best, int copies);

  VtaLayer layer_;
  vta::Config config_;
  VtaMapping best_;
  int copies_;
  size_t tiled_;  ///< axes that have a decision: all, or those before the taps
  std::array<std::vector<int64_t>, kTileAxes> tiles_;
  std::vector<std::vector<TileAxis>> orders_;
  std::vector<std::vector<int64_t>> tails_;
  search::Space space_{{}};
};

}  // namespace tilewright::rules
