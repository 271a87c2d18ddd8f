#include "tilewright/accel/dpu/sim/conv_kernel.h"

#include <cstring>
#include <vector>

#include "tilewright/base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewright::dpu {
namespace {

constexpr int kOut = 16, kIn = 16, kQuad = 4;
constexpr int kMostGroups = 511;  // a field of 9 bits

#if defined(__x86_64__)

#define TW_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

/// `Pixels` accumulators of sixteen outputs: weights are loaded once for all of them.
template <int Pixels>
TW_VNNI inline __attribute__((always_inline)) void sum_pixels(const ConvSums& job, __m512i offset,
                                                              const uint8_t* input, int32_t* sums) {
  __m512i acc[Pixels];
  for (int p = 0; p < Pixels; ++p) acc[p] = offset;
  const int8_t* weights = job.weights;
  for (int ky = 0; ky < job.kernel_h; ++ky)
    for (int kx = 0; kx < job.kernel_w; ++kx) {
      const uint8_t* tap = input + ky * job.row_step + kx * job.column_step;
      for (int quad = 0; quad < job.groups * (kIn / kQuad); ++quad) {
        const __m512i w = _mm512_loadu_si512(weights);
        for (int p = 0; p < Pixels; ++p) {
          int32_t x;
          std::memcpy(&x, tap + p * job.pixel_step, sizeof x);
          acc[p] = _mm512_dpbusd_epi32(acc[p], _mm512_set1_epi32(x), w);
        }
        tap += kQuad;
        weights += kOut * kQuad;
      }
    }
  for (int p = 0; p < Pixels; ++p) _mm512_storeu_si512(sums + p * kOut, acc[p]);
}

TW_VNNI void conv_sums_vnni(const ConvSums& job, const int32_t* offset, int pixels, int32_t* sums) {
  const __m512i begin = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(offset));
  const uint8_t* input = job.input;
  const auto advance = [&](int count) {
    input += count * job.pixel_step;
    sums += count * kOut;
    pixels -= count;
  };
  while (pixels >= 8) {
    sum_pixels<8>(job, begin, input, sums);
    advance(8);
  }
  if (pixels >= 4) {
    sum_pixels<4>(job, begin, input, sums);
    advance(4);
  }
  if (pixels >= 2) {
    sum_pixels<2>(job, begin, input, sums);
    advance(2);
  }
  if (pixels >= 1) sum_pixels<1>(job, begin, input, sums);
}

/// Eight channels.
TW_VNNI inline __m128i round_eight(const NarrowRounding& rounding, __m256i sums, __m512i bias) {
  __m512i sum = _mm512_add_epi64(_mm512_slli_epi64(_mm512_cvtepi32_epi64(sums), 1), bias);
  sum = _mm512_max_epi64(sum, _mm512_set1_epi64(rounding.low));
  sum = _mm512_min_epi64(sum, _mm512_set1_epi64(rounding.high));
  const __mmask8 negative = _mm512_cmplt_epi64_mask(sum, _mm512_setzero_si512());
  const __m512i above = _mm512_sll_epi64(sum, _mm_cvtsi64_si128(rounding.shift_above_zero));
  sum =
      _mm512_mask_mullo_epi64(above, negative, sum, _mm512_set1_epi64(rounding.factor_below_zero));
  sum = _mm512_add_epi64(sum, _mm512_set1_epi64(rounding.half));
  return _mm512_cvtsepi64_epi8(_mm512_sra_epi64(sum, _mm_cvtsi64_si128(rounding.shift)));
}

TW_VNNI void round_sums_vnni(const NarrowRounding& rounding, const int64_t* bias_terms, int pixels,
                             const int32_t* sums, ptrdiff_t step, uint8_t* into) {
  const __m512i low = _mm512_loadu_si512(bias_terms), high = _mm512_loadu_si512(bias_terms + 8);
  for (int p = 0; p < pixels; ++p, sums += kOut, into += step) {
    const __m512i all = _mm512_loadu_si512(sums);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(into),
                     round_eight(rounding, _mm512_castsi512_si256(all), low));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(into + 8),
                     round_eight(rounding, _mm512_extracti64x4_epi64(all, 1), high));
  }
}

bool has_vnni() {
  static const bool kHas =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vnni");
  return kHas;
}

#undef TW_VNNI

#endif

}  // namespace

void pack_weights(const int8_t* word, int8_t* packed) {
  for (int quad = 0; quad < kIn / kQuad; ++quad)
    for (int out = 0; out < kOut; ++out)
      std::memcpy(packed + (quad * kOut + out) * kQuad, word + out * kIn + quad * kQuad, kQuad);
}

void offset_sums(const ConvSums& job, int32_t* sums) {
  // The sums of a pixel whose inputs are all 128.
  static const std::vector<uint8_t> kInput(kIn * kMostGroups, 128);
  TW_CHECK(job.groups <= kMostGroups, "{} groups", job.groups);
  constexpr int32_t kNoOffset[kOut] = {};
  ConvSums all = job;
  all.input = kInput.data();
  all.row_step = all.column_step = 0;
  conv_sums(all, kNoOffset, 1, sums);
}

void conv_sums_portable(const ConvSums& job, const int32_t* offset, int pixels, int32_t* sums) {
  for (int p = 0; p < pixels; ++p) {
    uint32_t acc[kOut];
    for (int out = 0; out < kOut; ++out) acc[out] = 0u - static_cast<uint32_t>(offset[out]);
    const int8_t* weights = job.weights;
    for (int ky = 0; ky < job.kernel_h; ++ky)
      for (int kx = 0; kx < job.kernel_w; ++kx) {
        const uint8_t* tap =
            job.input + p * job.pixel_step + ky * job.row_step + kx * job.column_step;
        for (int quad = 0; quad < job.groups * (kIn / kQuad); ++quad, tap += kQuad) {
          for (int out = 0; out < kOut; ++out, weights += kQuad) {
            int sum = 0;
            for (int i = 0; i < kQuad; ++i) sum += tap[i] * weights[i];
            acc[out] += static_cast<uint32_t>(sum);
          }
        }
      }
    std::memcpy(sums + p * kOut, acc, sizeof acc);
  }
}

void conv_sums(const ConvSums& job, const int32_t* offset, int pixels, int32_t* sums) {
#if defined(__x86_64__)
  if (has_vnni()) return conv_sums_vnni(job, offset, pixels, sums);
#endif
  conv_sums_portable(job, offset, pixels, sums);
}

void round_sums_portable(const NarrowRounding& rounding, const int64_t* bias_terms, int pixels,
                         const int32_t* sums, ptrdiff_t step, uint8_t* into) {
  for (int p = 0; p < pixels; ++p)
    for (int out = 0; out < kOut; ++out)
      into[p * step + out] =
          static_cast<uint8_t>(round_narrow(rounding, sums[p * kOut + out], bias_terms[out]));
}

void round_sums(const NarrowRounding& rounding, const int64_t* bias_terms, int pixels,
                const int32_t* sums, ptrdiff_t step, uint8_t* into) {
#if defined(__x86_64__)
  if (has_vnni()) return round_sums_vnni(rounding, bias_terms, pixels, sums, step, into);
#endif
  round_sums_portable(rounding, bias_terms, pixels, sums, step, into);
}

}  // namespace tilewright::dpu
