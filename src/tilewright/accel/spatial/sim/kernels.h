// The inner loops of the functional simulator: products of 8-bit numbers, sums that wrap at 32
// bits. Internal.
#pragma once

#include <cstdint>

namespace tilewright::spatial {

/// Sums are read and written in groups of this many: rows of weights and sums have room for them.
inline constexpr int64_t kGroup = 4;

/// Numbers of a row of weights for `lanes` lanes, as `add_products` reads it: two weights for each
/// lane.
constexpr int64_t packed_row(int64_t lanes) { return 2 * ((lanes + kGroup - 1) / kGroup * kGroup); }

/// sums[lane] += sum of x[k] * weight k of the lane, over count numbers k. Weights: for each pair
/// of numbers a row of [lane][2], lanes rounded up to groups; zeros where there is no lane or no
/// number. Sums of lanes up to a whole group are written, too, as they were.
void add_products(int32_t* sums, const int8_t* x, int64_t count, const int16_t* weights,
                  int64_t lanes);
/// The same with one number for each of `rows` rows of sums, `pitch` sums apart.
void add_outer_product(int32_t* sums, int64_t pitch, const int8_t* x, int64_t rows,
                       const int16_t* weights, int64_t lanes);
/// A row of weights for one number. requires: where the second ones of the pairs go are zeros.
inline void pack_row(const int8_t* bytes, int64_t lanes, int16_t* row) {
  for (int64_t lane = 0; lane < lanes; ++lane) row[2 * lane] = bytes[lane];
  for (int64_t at = 2 * lanes; at < packed_row(lanes); at += 2) row[at] = 0;
}

int32_t dot_product(const int8_t* a, const int8_t* b, int64_t count);

inline int32_t wrapped(int64_t a) { return static_cast<int32_t>(static_cast<uint32_t>(a)); }

}  // namespace tilewright::spatial
