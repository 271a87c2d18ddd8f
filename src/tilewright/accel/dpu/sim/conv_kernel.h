// The sums of a CONV: the one loop of the functional simulator that has to be fast. Internal.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tilewright/accel/dpu/sim/arithmetic.h"

namespace tilewright::dpu {

/// A word of PM in the order in which sums are made: [four input channels][output][input] instead
/// of [output][input]. 256 bytes each.
void pack_weights(const int8_t* word, int8_t* packed);

/// Sixteen output channels of neighbouring pixels of one image. Inputs are offset by 128, so that
/// they are not negative.
struct ConvSums {
  const uint8_t* input = nullptr;   ///< first tap's word of the first pixel
  const int8_t* weights = nullptr;  ///< packed words [kernel_h][kernel_w][groups]
  int kernel_h = 1, kernel_w = 1, groups = 1;
  ptrdiff_t row_step = 0, column_step = 0;  ///< bytes from tap to tap; groups are neighbours
  ptrdiff_t pixel_step = 0;                 ///< bytes from pixel to pixel
};
/// sums[16] = 128 * the weights of each output channel: what the offset of the inputs adds.
void offset_sums(const ConvSums& job, int32_t* sums);
/// sums[pixel][16] = exact sums, less `offset`[16] as from `offset_sums`. In 32 bits that wrap:
/// exact for less than 2^17 products.
void conv_sums(const ConvSums& job, const int32_t* offset, int pixels, int32_t* sums);

/// The same without instructions that not every machine has; for tests.
void conv_sums_portable(const ConvSums& job, const int32_t* offset, int pixels, int32_t* sums);

/// Sixteen channels of neighbouring pixels: into[pixel * step] from sums[pixel][16] and the bias
/// terms of the channels.
void round_sums(const NarrowRounding& rounding, const int64_t* bias_terms, int pixels,
                const int32_t* sums, ptrdiff_t step, uint8_t* into);
void round_sums_portable(const NarrowRounding& rounding, const int64_t* bias_terms, int pixels,
                         const int32_t* sums, ptrdiff_t step, uint8_t* into);

}  // namespace tilewright::dpu
