#include "tilewright/accel/spatial/needs.h"

#include "tilewright/base/integers.h"

namespace tilewright::spatial {

bool weights_stay(const Design& design) {
  return design.unit == Unit::Conv2d ||
         (design.unit == Unit::Gemm && design.dataflow == Dataflow::WeightStationary);
}

bool works_as_one_row(Unit unit) { return unit == Unit::Dot || unit == Unit::Gemv; }

int64_t sum_parts(const Design& design) {
  switch (design.unit) {
    case Unit::Dot:
      return 1;
    case Unit::Gemv:
      return design.units();
    case Unit::Gemm:
      return design.dataflow == Dataflow::WeightStationary ? design.cols : design.units();
    case Unit::Conv2d:
      return design.rows;
  }
  return 1;
}

int64_t block_bytes(const Design& design) { return weights_stay(design) ? design.units() : 0; }

int64_t step_bytes(const Design& design) {
  const bool alone = design.links == Links::None;
  switch (design.unit) {
    case Unit::Dot:
      return 2 * design.units();
    case Unit::Gemv:
      return (alone ? 2 : 1) * design.units();
    case Unit::Gemm:
      if (design.dataflow == Dataflow::WeightStationary)
        return alone ? design.units() : design.rows;
      return alone ? 2 * design.units() : design.rows + design.cols;
    case Unit::Conv2d:
      return alone ? design.units() : design.cols;
  }
  return 0;
}

Needs smallest_needs(const Design& design) {
  Design shared = design;  // one byte that several units fetch lies in the scratchpad once
  shared.links = Links::Full;
  const int64_t vector_word = design.unit == Unit::Gemv ? design.bank_bytes : 0;
  const int64_t parts = sum_parts(design);
  return {step_bytes(shared) + vector_word + block_bytes(design),
          parts * (4 + ceil_div(block_bytes(design), parts))};
}

bool has_links(Unit unit, Links links) {
  if (unit == Unit::Gemm || links == Links::Full) return true;
  return links == Links::None && unit != Unit::Dot;
}

Links usual_links(Unit unit) { return unit == Unit::Gemm ? Links::Systolic : Links::Full; }

}  // namespace tilewright::spatial
