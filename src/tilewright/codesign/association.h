// Products of three and more factors, contracted two at a time: every order there is.
// source: HASCO (ISCA 2021), section IV-C, fixes one order for MTTKRP; the others are ours.
//
// Example: MTTKRP, D[i, j] += A[i, k, l] * B[l, j] * C[k, j], has three: (A * B) * C, (A * C) * B
// and (B * C) * A.
#pragma once

#include <string>
#include <vector>

#include "tilewright/cost/sums/computation.h"

namespace tilewright::codesign {

struct AssociationOrder {
  std::string text;                       ///< `(A * B) * C`
  std::vector<cost::Computation> stages;  ///< of two factors each, the last one makes the result
  int64_t macs = 0;
  int64_t intermediate_bytes = 0;  ///< of what stands between the stages, as int8
};

/// A product of three or more factors in a Func, perhaps computed in several of its sums.
struct Chain {
  cost::Computation product;  ///< as one sum
  std::vector<size_t> sums;   ///< the places of those it is made of, the last one makes the result
  std::vector<AssociationOrder> orders;  ///< the one with the fewest multiplications first
};

/// More factors than these have too many orders (945 for six).
inline constexpr size_t kMostFactors = 6;

/// requires: up to kMostFactors factors, at least two.
std::vector<AssociationOrder> association_orders(const cost::Computation& product);

/// A sum whose result only one other sum reads, as a factor, is put in its place there.
std::vector<Chain> chains_of(const cost::Computations& computations);

/// The computations with each chain contracted in its order number `order` (from 1). 0: as the Func
/// has it, but sums of more than two factors in their first order.
/// errors: Usage (a chain without an order of this number; no chain).
Result<cost::Computations> with_order(const cost::Computations& computations, int order);

}  // namespace tilewright::codesign
