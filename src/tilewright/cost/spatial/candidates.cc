#include "tilewright/cost/spatial/candidates.h"

#include <algorithm>
#include <optional>

namespace tilewright::cost {
namespace {

using TileSizes = std::vector<std::vector<int64_t>>;

/// What is known of a tensor by the sizes of the loops that move it.
class TensorTable {
 public:
  TensorTable(SpatialEvaluator& evaluator, int tensor, const TileSizes& sizes)
      : evaluator_(evaluator), tensor_(tensor) {
    size_t count = 1;
    for (size_t loop = 0; loop < sizes.size(); ++loop) {
      if (!evaluator.unit().in(evaluator.unit().moves[tensor], static_cast<int>(loop))) continue;
      strides_[loop] = count;
      count *= sizes[loop].size();
    }
    places_.resize(count);
    moved_.resize(count);
  }

  /// From one size of a loop to the next; 0: it does not move the tensor.
  size_t stride(int loop) const { return strides_[static_cast<size_t>(loop)]; }

  /// Bytes of a factor's buffer; sums of the result for each part of the private memory.
  int64_t place(size_t index, const SpatialSizes& tile) {
    std::optional<int64_t>& place = places_[index];
    if (!place)
      place = tensor_ == kSpatialResult ? evaluator_.unit().sums_per_part(tile)
                                        : evaluator_.unit().buffer_bytes(tensor_, tile);
    return *place;
  }

  const SpatialMoved& moved(size_t index, const SpatialSizes& tile) {
    const SpatialMoved*& moved = moved_[index];
    if (!moved) moved = &evaluator_.moved(tensor_, tile);
    return *moved;
  }

 private:
  SpatialEvaluator& evaluator_;
  int tensor_;
  std::array<size_t, kSpatialLoops> strides_{};
  std::vector<std::optional<int64_t>> places_;
  std::vector<const SpatialMoved*> moved_;
};

class Promising {
 public:
  Promising(SpatialEvaluator& evaluator, const TileSizes& sizes, double limit)
      : evaluator_(evaluator),
        unit_(evaluator.unit()),
        sizes_(sizes),
        limit_(limit),
        overhead_(evaluator.least_overhead()),
        tables_{TensorTable(evaluator, 0, sizes), TensorTable(evaluator, 1, sizes),
                TensorTable(evaluator, 2, sizes)} {
    for (int loop = 0; loop < unit_.loops; ++loop) tile_[loop] = sizes[loop].front();
    // Steps and COMPUTEs that the loops from this one on take at least.
    rest_[unit_.loops] = {1, 1};
    for (int loop = unit_.loops; loop-- > 0;) {
      const int64_t extent = unit_.layer.loops[loop].extent;
      rest_[loop] = {rest_[loop + 1].steps * double(ceil_div(extent, unit_.lanes[loop])),
                     rest_[loop + 1].computes * double(ceil_div(extent, sizes[loop].back()))};
    }
  }

  std::vector<SpatialCandidate> find() {
    descend(0, {1, 1}, {});
    std::stable_sort(
        found_.begin(), found_.end(),
        [](const SpatialCandidate& a, const SpatialCandidate& b) { return a.least < b.least; });
    return std::move(found_);
  }

 private:
  struct Counts {
    double steps, computes;
  };
  /// By tensor: where its table has the tile.
  using Places = std::array<size_t, kSpatialTensors>;

  void descend(int loop, Counts counts, const Places& places) {
    if (loop == unit_.loops) return add(counts, places);
    Places at = places;
    for (const int64_t size : sizes_[loop]) {
      tile_[loop] = size;
      const SpatialTrips trips(unit_.layer.loops[loop].extent, size);
      const Counts inside{counts.steps * double(trips.blocks(unit_.lanes[loop])),
                          counts.computes * double(trips.count)};
      // Larger tiles take fewer COMPUTEs.
      if (inside.steps * rest_[loop + 1].steps +
              inside.computes * rest_[loop + 1].computes * overhead_ <
          limit_) {
        // Larger tiles need more of every memory.
        if (!fits(at)) break;
        descend(loop + 1, inside, at);
      }
      for (int tensor = 0; tensor < kSpatialTensors; ++tensor)
        at[tensor] += tables_[tensor].stride(loop);
    }
    tile_[loop] = sizes_[loop].front();
  }

  bool fits(const Places& at) {
    std::array<int64_t, kSpatialTensors> places;
    for (int tensor = 0; tensor < kSpatialTensors; ++tensor)
      places[tensor] = tables_[tensor].place(at[tensor], tile_);
    return evaluator_.fits_in(tile_, places);
  }

  void add(Counts counts, const Places& at) {
    std::array<const SpatialMoved*, kSpatialTensors> moved;
    for (int tensor = 0; tensor < kSpatialTensors; ++tensor)
      moved[tensor] = &tables_[tensor].moved(at[tensor], tile_);
    SpatialCandidate candidate;
    candidate.tile = tile_;
    candidate.before = evaluator_.before_computes(*moved[0], *moved[1]);
    candidate.loads = {moved[0]->cycles, moved[1]->cycles};
    candidate.least = evaluator_.least(counts.steps, counts.computes, moved);
    if (candidate.least < limit_) found_.push_back(candidate);
  }

  SpatialEvaluator& evaluator_;
  const SpatialUnit& unit_;
  const TileSizes& sizes_;
  const double limit_, overhead_;
  std::array<TensorTable, kSpatialTensors> tables_;
  std::array<Counts, kSpatialLoops + 1> rest_{};
  SpatialSizes tile_{};
  std::vector<SpatialCandidate> found_;
};

}  // namespace

std::vector<SpatialCandidate> promising_tiles(SpatialEvaluator& evaluator, const TileSizes& sizes,
                                              double limit) {
  return Promising(evaluator, sizes, limit).find();
}

}  // namespace tilewright::cost
