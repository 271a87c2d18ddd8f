// Products that share a multiplier: two with a common factor, in one factor that has both others.
#pragma once

#include <vector>

#include "tilewright/accel/fpga/design.h"

namespace tilewright::fpga {

/// a · common and b · common; all are nodes of a nest.
struct ProductPair {
  int first = 0, second = 0;  ///< the products, in the order of the nest
  int common = 0, a = 0, b = 0;
};

/// Bits of `number` as a signed one.
inline int signed_bits(const Number& number) { return number.bits + (number.is_signed() ? 0 : 1); }

/// Pairs of products of integers that begin in the same cycle, have a factor in common and fit the
/// multipliers of the design; no product is in two. The others have a multiplier each.
std::vector<ProductPair> product_pairs(const Design& design, const Nest& nest,
                                       const NestTimes& times);

}  // namespace tilewright::fpga
