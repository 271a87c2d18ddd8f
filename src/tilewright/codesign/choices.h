// Tensorize choices: every way in which the loops of a unit can become loops of a computation, what
// it wastes and how its operands lie in memory.
// source: HASCO (ISCA 2021), section IV-B; schedule/match.h finds them.
//
// Example: TTM, C[i, j, k] += A[i, j, l] * B[l, k], on `gemm`: i=j j=k k=l of M=A N=B (rows of A
// are neighbours in memory), i=i j=k k=l (rows of A lie J * L apart), and both with A and B
// swapped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/cost/spatial/mapping.h"
#include "tilewright/cost/sums/computation.h"
#include "tilewright/schedule/match.h"

namespace tilewright::codesign {

/// How a unit reads a factor.
struct OperandUse {
  std::string role;        ///< of the unit: M, N, ...
  std::string tensor;      ///< of the computation
  std::string lane;        ///< the loop whose elements a step reads beside each other
  int64_t stride = 1;      ///< elements from one of them to the next in DRAM; of packed weights 1
  std::string row;         ///< another loop of the choice that runs through the tensor, if any
  int64_t row_stride = 0;  ///< elements from one of its iterations to the next
  bool packed = false;
  /// Bursts go along another axis, elements one by one into the scratchpad.
  bool gathered = false;
  /// What a change of layout that puts the lane axis innermost would move, as int8.
  int64_t change_bytes = 0;
};

struct TensorizeChoice {
  std::vector<std::pair<std::string, std::string>> loops;  ///< of the unit, of the computation
  std::vector<OperandUse> operands;  ///< in the unit's order; of unusable ones: names alone
  double idle = 0;                   ///< share of the lanes that padding leaves without work
  /// Differs from the choice with this number only by what a product does not see (the order of
  /// the vectors of a dot product, the axes of an image).
  std::optional<size_t> same_as;
  std::string unusable;                        ///< why it cannot run; empty: it can
  std::optional<cost::SpatialChoice> mapping;  ///< as the models of costs know it
  std::optional<double> cycles;                ///< of the best mapping, by `predict_cycles`
};

struct UnitChoices {
  std::string unit;
  schedule::MatchCounts counts;
  std::vector<TensorizeChoice> choices;  ///< every sound match
  std::string none;                      ///< why there is none
};

/// What one step of a design's unit computes, as a computation with the sizes of the design:
/// gemm C[i, j] += M[i, k] * N[k, j], gemv C[i] += M[i, j] * V[j], dot C += A[i] * B[i], conv2d
/// O[k, x, y] += A[c, x + r, y + s] * B[k, c, r, s].
cost::Computation unit_computation(const spatial::Design& design);

UnitChoices choices_of(const cost::Computation& computation, const spatial::Design& design);

/// Predicts each usable choice with its best mapping; those that no mapping fits become unusable.
void predict_cycles(const cost::Computation& computation, const spatial::Design& design,
                    UnitChoices& found);

/// What is to be known of a computation beside its choices: operands that are sums themselves.
std::vector<std::string> notes_on(const cost::Computation& computation);

}  // namespace tilewright::codesign
