#include "tilewright/accel/vta/sim/kernels.h"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tilewright::vta {
namespace {

int32_t load_le(const uint8_t* p) {
  return static_cast<int32_t>(uint32_t{p[0]} | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 |
                              uint32_t{p[3]} << 24);
}

int32_t wrap_add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
int32_t wrap_mul(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}
int32_t shift(int32_t x, int32_t amount) {
  return amount >= 0 ? x >> amount : static_cast<int32_t>(static_cast<uint32_t>(x) << -amount);
}

/// Lanes [from, lanes), one at a time: what the vector code leaves over.
void accumulate_rest(int32_t* acc, const int16_t* inp, const int16_t* wgt, int pairs, int from,
                     int lanes, bool replace) {
  for (int l = from; l < lanes; ++l) {
    int32_t sum = replace ? 0 : acc[l];
    for (int p = 0; p < pairs; ++p) {
      const int16_t* w = wgt + 2 * (p * lanes + l);
      sum = wrap_add(sum, wrap_mul(inp[2 * p], w[0]));
      sum = wrap_add(sum, wrap_mul(inp[2 * p + 1], w[1]));
    }
    acc[l] = sum;
  }
}

#ifdef __SSE2__

inline __m128i broadcast_pair(const int16_t* pair) {
  int32_t bits = 0;
  std::memcpy(&bits, pair, sizeof bits);
  return _mm_set1_epi32(bits);
}

inline __m128i load(const void* p) { return _mm_load_si128(static_cast<const __m128i*>(p)); }

/// 16 lanes in four registers; sums of two products wrap in the instruction just as in the format.
inline void accumulate16(int32_t* acc, const int16_t* inp, const int16_t* wgt, int pairs, int lanes,
                         bool replace) {
  const __m128i zero = _mm_setzero_si128();
  __m128i s0 = replace ? zero : load(acc), s1 = replace ? zero : load(acc + 4);
  __m128i s2 = replace ? zero : load(acc + 8), s3 = replace ? zero : load(acc + 12);
  for (int p = 0; p < pairs; ++p, wgt += 2 * lanes) {
    const __m128i x = broadcast_pair(inp + 2 * p);
    s0 = _mm_add_epi32(s0, _mm_madd_epi16(x, load(wgt)));
    s1 = _mm_add_epi32(s1, _mm_madd_epi16(x, load(wgt + 8)));
    s2 = _mm_add_epi32(s2, _mm_madd_epi16(x, load(wgt + 16)));
    s3 = _mm_add_epi32(s3, _mm_madd_epi16(x, load(wgt + 24)));
  }
  auto* out = reinterpret_cast<__m128i*>(acc);
  _mm_store_si128(out, s0);
  _mm_store_si128(out + 1, s1);
  _mm_store_si128(out + 2, s2);
  _mm_store_si128(out + 3, s3);
}

inline void accumulate4(int32_t* acc, const int16_t* inp, const int16_t* wgt, int pairs, int lanes,
                        bool replace) {
  __m128i sum = replace ? _mm_setzero_si128() : load(acc);
  for (int p = 0; p < pairs; ++p, wgt += 2 * lanes)
    sum = _mm_add_epi32(sum, _mm_madd_epi16(broadcast_pair(inp + 2 * p), load(wgt)));
  _mm_store_si128(reinterpret_cast<__m128i*>(acc), sum);
}

#endif

template <class Op>
void each(int32_t* dst, int lanes, Op op) {
  for (int l = 0; l < lanes; ++l) dst[l] = op(dst[l], l);
}

/// `operand(lane)` is the second operand.
template <class Operand>
void apply(AluOp op, int32_t* dst, int lanes, Operand operand) {
  switch (op) {
    case AluOp::Min:
      return each(dst, lanes, [=](int32_t x, int l) { return std::min(x, operand(l)); });
    case AluOp::Max:
      return each(dst, lanes, [=](int32_t x, int l) { return std::max(x, operand(l)); });
    case AluOp::Add:
      return each(dst, lanes, [=](int32_t x, int l) { return wrap_add(x, operand(l)); });
    case AluOp::Shr:
      return each(dst, lanes, [=](int32_t x, int l) { return shift(x, operand(l)); });
    case AluOp::Mul:
      return each(dst, lanes, [=](int32_t x, int l) { return wrap_mul(x, operand(l)); });
  }
}

}  // namespace

void unpack(const uint8_t* bytes, int bits, int64_t count, int16_t* into) {
  if (bits == 8) {
    for (int64_t i = 0; i < count; ++i) into[i] = static_cast<int8_t>(bytes[i]);
    return;
  }
  if (bits == 16) {
    for (int64_t i = 0; i < count; ++i)
      into[i] = static_cast<int16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8);
    return;
  }
  const int per_byte = 8 / bits, sign = 1 << (bits - 1), mask = (1 << bits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    const int raw = bytes[i / per_byte] >> (i % per_byte * bits) & mask;
    into[i] = static_cast<int16_t>((raw ^ sign) - sign);
  }
}

void pack(const int32_t* values, int bits, int64_t count, uint8_t* into) {
  if (bits == 8) {
    for (int64_t i = 0; i < count; ++i) into[i] = static_cast<uint8_t>(values[i]);
    return;
  }
  if (bits > 8) {
    const int bytes = bits / 8;
    for (int64_t i = 0; i < count; ++i)
      for (int b = 0; b < bytes; ++b)
        into[i * bytes + b] = static_cast<uint8_t>(static_cast<uint32_t>(values[i]) >> 8 * b);
    return;
  }
  const int per_byte = 8 / bits, mask = (1 << bits) - 1;
  std::fill(into, into + count / per_byte, uint8_t{0});
  for (int64_t i = 0; i < count; ++i)
    into[i / per_byte] =
        static_cast<uint8_t>(into[i / per_byte] | (values[i] & mask) << (i % per_byte * bits));
}

void copy_words(const uint8_t* bytes, int64_t count, int32_t* into) {
  for (int64_t i = 0; i < count; ++i) into[i] = load_le(bytes + 4 * i);
}

void accumulate(int32_t* acc, const int16_t* inp, const int16_t* wgt, int pairs, int lanes,
                bool replace) {
  int l = 0;
#ifdef __SSE2__
  if (lanes % 4 == 0) {
    for (; l + 16 <= lanes; l += 16) accumulate16(acc + l, inp, wgt + 2 * l, pairs, lanes, replace);
    for (; l < lanes; l += 4) accumulate4(acc + l, inp, wgt + 2 * l, pairs, lanes, replace);
  }
#endif
  accumulate_rest(acc, inp, wgt, pairs, l, lanes, replace);
}

void alu(AluOp op, int32_t* dst, const int32_t* src, int lanes) {
  apply(op, dst, lanes, [src](int l) { return src[l]; });
}

void alu_imm(AluOp op, int32_t* dst, int32_t imm, int lanes) {
  apply(op, dst, lanes, [imm](int) { return imm; });
}

int bad_shift(const int32_t* amounts, int lanes) {
  for (int l = 0; l < lanes; ++l)
    if (amounts[l] < -31 || amounts[l] > 31) return l;
  return -1;
}

}  // namespace tilewright::vta
