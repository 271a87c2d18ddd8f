// The mappings of a layer onto VTA as a space: for searchers, whose measure is the simulator's
// cycles.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/tune/evaluator.h"
#include "tilewright/tune/space.h"
#include "tilewright/tune/vta_mapping.h"

namespace tilewright::tune {

/// Decisions: tiles along each axis, order of the loops, how long inputs and weights stay, pieces
/// of the result, copies of the result. Copies of the rest are as in the mapping that the model
/// finds best, whose values are all in the tables. Windows are cut if that mapping cuts them.
class VtaSpace : public ScheduleSpace {
 public:
  /// errors: Unsupported (as vta_layer), Capacity (nothing fits).
  static Result<std::unique_ptr<VtaSpace>> create(const Func& func, const vta::Config& config,
                                                  const MappingOptions& options = {});

  const search::Space& space() const override { return *space_; }
  Result<schedule::Trace> trace(const search::Point& point) const override;
  double prior(const search::Point& point) const override;
  std::vector<double> terms(const search::Point& point) const override;

  VtaMapping mapping(const search::Point& point) const;
  /// The model's choice: what is compiled without records.
  const VtaMapping& best() const { return best_; }
  const VtaLayer& layer() const { return layer_; }
  /// Of buffers on chip, in every mapping with loops.
  int copies() const { return copies_; }
  /// The mapping of a record's point; absent where the space has no such point, or it does not fit.
  std::optional<VtaMapping> recorded(const std::string& point) const;

 private:
  VtaSpace(Func func, VtaLayer layer, vta::Config config, VtaMapping best, int copies);
  bool works(const VtaMapping& mapping) const;

  Func func_;
  VtaLayer layer_;
  vta::Config config_;
  VtaMapping best_;
  int copies_;
  size_t tiled_;  ///< axes that have a decision: all, or those before the taps
  std::array<std::vector<int64_t>, kTileAxes> tiles_;
  std::vector<std::vector<TileAxis>> orders_;
  std::vector<std::vector<int64_t>> tails_;
  std::unique_ptr<search::Space> space_;
};

/// Name of the space in records.
inline constexpr const char* kVtaSpace = "vta";

/// The cycles of the simulator for schedules of `func`. Exact: every reading is the only one.
std::unique_ptr<Evaluator> cycles_evaluator(const Func& func, const vta::Config& config,
                                            int copies);

/// `vta:` and a hash of everything in `config` that programs or their times depend on.
std::string vta_target_key(const vta::Config& config);

}  // namespace tilewright::tune
