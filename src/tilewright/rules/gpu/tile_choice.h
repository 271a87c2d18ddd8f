// The tiles that a sum of products may have on a GPU, and what the model says of each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/cost/gpu_model.h"
#include "tilewright/hw/gpu_target.h"
#include "tilewright/rules/gpu/rule.h"

namespace tilewright::rules {

/// A tile in numbers: threads and elements per thread along both sides of the product (the axes
/// that only one factor has), shared out from the innermost axis on; `steps` is an index.
struct GpuTilePoint {
  int64_t threads_a = 1, each_a = 1, threads_b = 1, each_b = 1;
  size_t steps = 0;
  int64_t depth = 1, splits = 1;
};

/// Nothing in it refers to the program it was made from.
class GpuTileTable {
 public:
  /// Absent where no element of a factor would be used twice, or loops are not constant.
  static std::optional<GpuTileTable> create(const BlockFacts& block, const hw::GpuTarget& target);
  /// The same, with the reason where there is none.
  static Answer<GpuTileTable> find(const BlockFacts& block, const hw::GpuTarget& target);

  /// Values that the numbers of a point may have.
  std::vector<int64_t> threads() const;
  std::vector<int64_t> each() const;
  const std::vector<std::vector<int64_t>>& steps() const { return steps_; }
  const std::vector<int64_t>& depths() const { return depths_; }
  const std::vector<int64_t>& splits() const { return splits_; }

  GpuTile tile(const GpuTilePoint& point) const;
  /// Absent for tiles that cannot be: too many thread axes, nothing left for blocks, limits.
  std::optional<cost::GpuPrediction> predict(const GpuTile& tile) const;

  struct Choice {
    GpuTile tile;
    cost::GpuPrediction time;
  };
  /// The fastest tiles by the model, the fastest first; `looked_at`, if asked for: how many there
  /// were.
  std::vector<Choice> best(size_t count, int64_t* looked_at = nullptr) const;

 private:
  GpuTileTable(const hw::GpuTarget& target, GpuTile loops, cost::Contraction contraction);
  Answer<Done> find_sides();
  void find_steps();
  void find_contiguous();
  void share_out(const std::vector<size_t>& side, int64_t threads, int64_t each,
                 GpuTile& tile) const;
  bool legal(const GpuTile& tile) const;
  double first_look(GpuTilePoint& point, int64_t& looked_at) const;
  void refine(GpuTilePoint& point, double& time, int64_t& looked_at) const;
  double time_of(const GpuTilePoint& point, int64_t& looked_at) const;

  hw::GpuTarget target_;
  GpuTile loops_;  ///< every axis with a tile of one element
  cost::Contraction contraction_;
  cost::GpuModel model_;
  std::vector<size_t> axis_of_;         ///< of the contraction, by axis of the tile
  std::vector<size_t> reduce_axis_of_;  ///< by reduction loop
  std::vector<size_t> side_a_, side_b_;
  std::vector<bool> contiguous_;  ///< by axis of the tile: side by side in shared memory
  std::vector<std::vector<int64_t>> steps_;
  size_t usual_ = 0, least_ = 0;  ///< steps to look at first; those of the smallest tile
  std::vector<int64_t> depths_, splits_;
};

/// `8x16 threads, 4x4 each, 16 steps`: for people.
std::string to_string(const GpuTile& tile);

}  // namespace tilewright::rules
