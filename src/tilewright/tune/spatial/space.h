// The mappings of a layer onto a design of the family `spatial` as a space: for searchers, whose
// measure is cycles.
//
// Example: a 3x3 convolution on a 16x16 weight stationary array has the decisions `choice` (which
// of its loops the array's become), a tile size per loop, `order` of the loops around the tiles,
// and one or two copies of each buffer. Points whose tiles do not fit the memories are no mappings:
// the judge says so in a microsecond.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/cost/spatial/mapper.h"
#include "tilewright/search/searcher.h"
#include "tilewright/tune/spatial/layouts.h"

namespace tilewright::tune {

/// What may be decided.
enum class SpatialForm {
  All,      ///< what the mapper knows: equal parts and whole lanes, copies; no size is left out
  Factors,  ///< tiles that divide their loops, two copies of each buffer. source: HASCO, section VI
  Template  ///< as Factors, but choice and order are given: what a hand-written template leaves
            ///< open
};

struct SpatialSpaceOptions {
  SpatialForm form = SpatialForm::All;
  /// One choice of loops (plain_choice), not all.
  bool one_choice = false;
  /// A tile has more than one element of the unit's own loops only, as a call of HASCO's intrinsic.
  bool calls_only = false;
  /// Also where the channels of input and result stand (layout_variants).
  bool layouts = false;
};

/// What a matcher by position finds: the innermost of the pixels, the first of each other role.
/// source: HASCO's released code. requires: choices are not empty.
cost::SpatialChoice plain_choice(const std::vector<cost::SpatialChoice>& choices);

class SpatialSpace {
 public:
  /// errors: Unsupported (the unit cannot play the layer's loops).
  static Result<std::unique_ptr<SpatialSpace>> create(const spatial::Design& design,
                                                      const cost::SpatialLayer& layer,
                                                      const SpatialSpaceOptions& options = {});
  SpatialSpace(const SpatialSpace&) = delete;
  SpatialSpace& operator=(const SpatialSpace&) = delete;

  const search::Space& space() const { return *space_; }
  const spatial::Design& design() const { return design_; }
  const std::vector<cost::SpatialChoice>& choices() const { return choices_; }
  const std::vector<LayoutVariant>& layouts() const { return layouts_; }
  size_t layout(const search::Point& point) const;  ///< of `layouts`
  size_t choice(const search::Point& point) const;  ///< of `choices`
  cost::SpatialMapping mapping(const search::Point& point) const;
  /// The point that means `mapping`; absent where a decision of it is none of the space's.
  std::optional<search::Point> point(const cost::SpatialMapping& mapping, size_t layout = 0) const;

  /// As records keep a point, and back: `first,last first=input i=x ...`.
  std::string schedule(const search::Point& point) const;
  std::optional<search::Point> find(const std::string& schedule) const;

 private:
  enum class Kind { Layout, Choice, Tile, Order, Copies };
  /// What a decision is about, and what its values mean.
  struct Meaning {
    Kind kind = Kind::Choice;
    int item = 0;                            ///< a loop, or a tensor
    std::vector<int64_t> sizes;              ///< Tile, Copies
    std::vector<std::vector<int>> orders{};  ///< Order
  };
  SpatialSpace(spatial::Design design, std::vector<LayoutVariant> layouts,
               const SpatialSpaceOptions& options)
      : design_(std::move(design)), layouts_(std::move(layouts)), options_(options) {}

  const cost::SpatialLayer& given() const { return layouts_[0].layer; }
  void add(search::Decision decision, Meaning meaning);
  void add_tiles(int loop);
  void add_order();
  void add_copies();
  std::vector<int64_t> sizes_of(int loop, const cost::SpatialChoice& choice) const;
  /// Value of a decision in `mapping`; -1: none.
  int value_in(const Meaning& meaning, const cost::SpatialMapping& mapping, size_t layout) const;

  spatial::Design design_;
  std::vector<LayoutVariant> layouts_;
  SpatialSpaceOptions options_;
  std::vector<cost::SpatialChoice> choices_;
  std::vector<cost::SpatialSizes> usual_;  ///< by choice: sizes of loops that are not decided
  /// Loops of the result with one element, with more, and loops that are summed over.
  std::vector<int> still_, moved_, summed_;
  std::vector<search::Decision> decisions_;
  std::vector<Meaning> meanings_;  ///< by decision
  std::unique_ptr<search::Space> space_;
};

/// Judges points of a space by the cost model. Remembers what depends on tiles only, so one per
/// thread.
class SpatialJudge {
 public:
  /// `space` must outlive it.
  explicit SpatialJudge(const SpatialSpace& space) : space_(space) {}

  /// SpatialEvaluator::cycles, as the mapper compares, or which memory is too small for what.
  search::Evaluation judge(const search::Point& point);
  /// No order and no number of copies takes fewer; search::kInvalid where the tiles do not fit.
  double bound(const search::Point& point);
  /// Of loading, computing and storing; zeros where the tiles do not fit.
  std::vector<double> terms(const search::Point& point);

 private:
  cost::SpatialEvaluator& evaluator(const search::Point& point);

  const SpatialSpace& space_;
  std::map<std::pair<size_t, size_t>, cost::SpatialEvaluator> evaluators_;  ///< by layout, choice
};

/// `spatial:` and a hash of everything in `design` that programs or their times depend on.
std::string spatial_target_key(const spatial::Design& design);

}  // namespace tilewright::tune
