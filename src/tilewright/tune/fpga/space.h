// The designs for a layer on an FPGA as a space: for searchers, whose measure is cycles.
//
// Decisions: `uo ui us` (what works side by side; least sizes for their number of parts), `to tc th
// tw` (into how many tiles each loop is cut), `stays`, slots of each buffer, ports of image and
// weights, `pipelines`, `block` (channels that are neighbours in memory), `memory`, and `dtype`
// where several are allowed. Points beyond the device say what it lacks: "BRAM18 3 012 of 2 723".
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/cost/fpga/search.h"
#include "tilewright/search/searcher.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

struct FpgaSpaceOptions {
  cost::FpgaOptions model;
  std::vector<DType> dtypes;   ///< to choose among; empty: the model's
  bool divisors_only = false;  ///< sizes divide their loops. source: FlexTensor paper
  /// Only designs that rules::fpga_trace has steps for; `trace` answers for those.
  bool as_steps = false;
};

/// Not for several threads: the model remembers kinds of tiles.
class FpgaSpace final : public ScheduleSpace {
 public:
  /// errors: Unsupported (as cost::FpgaModel).
  static Result<std::unique_ptr<FpgaSpace>> create(const hw::FpgaDevice& device,
                                                   const cost::SpatialLayer& layer,
                                                   const FpgaSpaceOptions& options = {});
  /// Of `func`, a sum of products and perhaps what is fused behind it. errors: Unsupported.
  static Result<std::unique_ptr<FpgaSpace>> create(const hw::FpgaDevice& device, const Func& func,
                                                   const FpgaSpaceOptions& options = {});

  const search::Space& space() const override { return *space_; }
  /// errors: NotApplicable (the space is not `as_steps`, or was made of a layer); of the steps.
  Result<schedule::Trace> trace(const search::Point& point) const override;
  /// units: cycles.
  double prior(const search::Point& point) const override { return judge(point).cost; }
  std::vector<double> terms(const search::Point& point) const override;

  cost::FpgaDesign design(const search::Point& point) const;
  const cost::FpgaModel& model(const search::Point& point) const;
  /// The point that means `design`; absent where a decision of it is none of the space's.
  std::optional<search::Point> point(const cost::FpgaDesign& design) const;
  /// Cycles by the model, or what the device lacks.
  search::Evaluation judge(const search::Point& point) const;

 private:
  enum Item {
    Uo,
    Ui,
    Us,
    To,
    Tc,
    Th,
    Tw,
    Stays,
    ImageSlots,
    WeightSlots,
    ResultSlots,
    ImagePorts,
    WeightPorts,
    Pipelines,
    Block,
    Memory,
    Type,
    kItems
  };
  FpgaSpace() = default;
  void add(std::string name, std::vector<int64_t> values);
  int64_t value(const search::Point& point, Item item) const;

  std::vector<cost::FpgaModel> models_;  ///< by type
  std::vector<std::vector<int64_t>> values_;
  std::vector<search::Decision> decisions_;
  std::unique_ptr<search::Space> space_;
  std::optional<Func> func_;  ///< of a space `as_steps`
};

}  // namespace tilewright::tune
