#include "tilewright/accel/spatial/sim/kernels.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tilewright::spatial {

#ifdef __SSE2__
namespace {

__m128i load_16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
void store_16(void* p, __m128i value) { _mm_storeu_si128(static_cast<__m128i*>(p), value); }

/// Numbers 2 * pair and 2 * pair + 1 in each lane, zero for one that is not there.
__m128i pair_of(const int8_t* x, int64_t pair, int64_t count) {
  const int32_t low = x[2 * pair], high = 2 * pair + 1 < count ? x[2 * pair + 1] : 0;
  return _mm_set1_epi32((low & 0xffff) | static_cast<int32_t>(static_cast<uint32_t>(high) << 16));
}

/// Groups of lanes whose sums stay in registers.
template <int Groups>
void add_groups(int32_t* sums, const int8_t* x, int64_t count, const int16_t* weights,
                int64_t row) {
  __m128i acc[Groups];
  for (int g = 0; g < Groups; ++g) acc[g] = load_16(sums + g * kGroup);
  for (int64_t pair = 0; 2 * pair < count; ++pair, weights += row) {
    const __m128i both = pair_of(x, pair, count);
    for (int g = 0; g < Groups; ++g)
      acc[g] = _mm_add_epi32(acc[g], _mm_madd_epi16(both, load_16(weights + 2 * g * kGroup)));
  }
  for (int g = 0; g < Groups; ++g) store_16(sums + g * kGroup, acc[g]);
}

/// One row of weights, which stays in registers.
template <int Groups>
void add_outer_groups(int32_t* sums, int64_t pitch, const int8_t* x, int64_t rows,
                      const int16_t* weights) {
  __m128i row[Groups];
  for (int g = 0; g < Groups; ++g) row[g] = load_16(weights + 2 * g * kGroup);
  for (int64_t i = 0; i < rows; ++i, sums += pitch) {
    const __m128i both = pair_of(x + i, 0, 1);
    for (int g = 0; g < Groups; ++g)
      store_16(sums + g * kGroup,
               _mm_add_epi32(load_16(sums + g * kGroup), _mm_madd_epi16(both, row[g])));
  }
}

}  // namespace

void add_products(int32_t* sums, const int8_t* x, int64_t count, const int16_t* weights,
                  int64_t lanes) {
  const int64_t row = packed_row(lanes);
  int64_t lane = 0;
  for (; lane + 3 * kGroup < lanes; lane += 4 * kGroup)
    add_groups<4>(sums + lane, x, count, weights + 2 * lane, row);
  for (; lane < lanes; lane += kGroup)
    add_groups<1>(sums + lane, x, count, weights + 2 * lane, row);
}

void add_outer_product(int32_t* sums, int64_t pitch, const int8_t* x, int64_t rows,
                       const int16_t* weights, int64_t lanes) {
  int64_t lane = 0;
  for (; lane + 3 * kGroup < lanes; lane += 4 * kGroup)
    add_outer_groups<4>(sums + lane, pitch, x, rows, weights + 2 * lane);
  for (; lane < lanes; lane += kGroup)
    add_outer_groups<1>(sums + lane, pitch, x, rows, weights + 2 * lane);
}

int32_t dot_product(const int8_t* a, const int8_t* b, int64_t count) {
  constexpr int64_t kBytes = 16;
  __m128i acc = _mm_setzero_si128();
  const auto halves = [](__m128i bytes, __m128i* out) {  // sign extended
    out[0] = _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
    out[1] = _mm_srai_epi16(_mm_unpackhi_epi8(bytes, bytes), 8);
  };
  int64_t at = 0;
  for (; at + kBytes <= count; at += kBytes) {
    __m128i x[2], y[2];
    halves(load_16(a + at), x);
    halves(load_16(b + at), y);
    for (int h = 0; h < 2; ++h) acc = _mm_add_epi32(acc, _mm_madd_epi16(x[h], y[h]));
  }
  int32_t parts[4];
  store_16(parts, acc);
  int64_t sum = int64_t{parts[0]} + parts[1] + parts[2] + parts[3];
  for (; at < count; ++at) sum += a[at] * b[at];
  return wrapped(sum);
}

#else

void add_products(int32_t* sums, const int8_t* x, int64_t count, const int16_t* weights,
                  int64_t lanes) {
  for (int64_t k = 0; k < count; ++k) {
    const int16_t* row = weights + k / 2 * packed_row(lanes) + k % 2;
    for (int64_t lane = 0; lane < lanes; ++lane)
      sums[lane] = wrapped(int64_t{sums[lane]} + x[k] * row[2 * lane]);
  }
}

void add_outer_product(int32_t* sums, int64_t pitch, const int8_t* x, int64_t rows,
                       const int16_t* weights, int64_t lanes) {
  for (int64_t i = 0; i < rows; ++i) add_products(sums + i * pitch, x + i, 1, weights, lanes);
}

int32_t dot_product(const int8_t* a, const int8_t* b, int64_t count) {
  int64_t sum = 0;
  for (int64_t at = 0; at < count; ++at) sum += a[at] * b[at];
  return wrapped(sum);
}

#endif

}  // namespace tilewright::spatial
