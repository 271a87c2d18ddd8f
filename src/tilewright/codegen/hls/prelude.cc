#include "tilewright/codegen/hls/prelude.h"

#include "tilewright/codegen/common/arithmetic.h"

namespace tilewright::codegen {
namespace {

constexpr const char* kTypes = R"c(
typedef float f32;
typedef double f64;
typedef struct { uint16_t bits; } f16;
typedef struct { uint16_t bits; } bf16;
typedef int8_t i8;
typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
typedef uint8_t tw_bool;

#define TW_FN static inline
#define TW_PRODUCT_f32(a, b) ((a) * (b))
#define TW_PRODUCT_f64(a, b) ((a) * (b))
#define TW_POPCOUNT(x) tw_popcount(x)
TW_FN int tw_popcount(u64 x) {
  int n = 0;
  for (int i = 0; i < 64; ++i) n += (int)(x >> i & 1);
  return n;
}
)c";

constexpr const char* kVitisHead =
    R"c(// Arithmetic with the meaning of the program's types, and accesses to memory ports.
#ifndef TW_ARITHMETIC_H
#define TW_ARITHMETIC_H

#include <ap_int.h>
#include <hls_half.h>
#include <hls_math.h>
#include <stdint.h>
#define TW_CALL_f32(name) hls::name
#define TW_CALL_f64(name) hls::name
)c";

/// binary16 lies in memory as its bits; values are f32.
constexpr const char* kVitisHalf = R"c(
TW_FN f32 tw_f16_f32(f16 x) { return (f32) * (const half*)&x.bits; }
TW_FN f16 tw_f32_f16(f32 x) {
  const half h = (half)x;
  f16 y;
  y.bits = *(const uint16_t*)&h;
  return y;
}
)c";

constexpr const char* kPlainHead = R"c(// Arithmetic with the meaning of the program's types.
#ifndef TW_ARITHMETIC_H
#define TW_ARITHMETIC_H

#include <cmath>
#include <cstdint>
#define TW_CALL_f32(name) std::name
#define TW_CALL_f64(name) std::name
)c";

constexpr const char* kPlainHalf = R"c(
/* binary16 lies in memory as its bits; values are f32. */
TW_FN f32 tw_f16_f32(f16 x) {
  const int exponent = x.bits >> 10 & 31, fraction = x.bits & 0x3ff;
  f32 y = exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
          : exponent == 0 ? std::ldexp((f32)fraction, -24)
                          : std::ldexp((f32)(fraction | 0x400), exponent - 25);
  return x.bits >> 15 ? -y : y;
}
TW_FN f16 tw_f32_f16(f32 x) {
  f16 y;
  y.bits = (uint16_t)(std::signbit(x) ? 0x8000 : 0);
  const f32 a = std::fabs(x);
  if (a != a) {
    y.bits |= 0x7e00;
  } else if (a >= 65520.0f) {
    y.bits |= 0x7c00;
  } else {
    int exponent = a < 6.103515625e-05f ? -13 : std::ilogb(a) + 1;
    /* Half to even in units of the last place; a carry goes into the exponent. */
    const int units = (int)std::rint(std::ldexp(a, 11 - exponent));
    y.bits |= (uint16_t)(a < 6.103515625e-05f ? units : ((exponent + 13) << 10) + units);
  }
  return y;
}
)c";

/// A word of a port holds as many elements as fit; an element never crosses two words.
constexpr const char* kPorts = R"c(
TW_FN u32 tw_raw(f32 x) { return tw_bits_f32_u32(x); }
TW_FN u64 tw_raw(f64 x) { return tw_bits_f64_u64(x); }
TW_FN u16 tw_raw(f16 x) { return x.bits; }
TW_FN u16 tw_raw(bf16 x) { return x.bits; }
TW_FN u8 tw_raw(i8 x) { return (u8)x; }
TW_FN u8 tw_raw(u8 x) { return x; }
TW_FN u16 tw_raw(i16 x) { return (u16)x; }
TW_FN u16 tw_raw(u16 x) { return x; }
TW_FN u32 tw_raw(i32 x) { return (u32)x; }
TW_FN u32 tw_raw(u32 x) { return x; }
TW_FN u64 tw_raw(i64 x) { return (u64)x; }
TW_FN u64 tw_raw(u64 x) { return x; }
template <class T>
struct tw_value {
  static T of(u64 bits) { return (T)bits; }
};
template <>
struct tw_value<f32> {
  static f32 of(u64 bits) { return tw_bits_u32_f32((u32)bits); }
};
template <>
struct tw_value<f64> {
  static f64 of(u64 bits) { return tw_bits_u64_f64(bits); }
};
template <>
struct tw_value<f16> {
  static f16 of(u64 bits) { return tw_bits_u16_f16((u16)bits); }
};
template <>
struct tw_value<bf16> {
  static bf16 of(u64 bits) { return tw_bits_u16_bf16((u16)bits); }
};

/* Element i of the memory behind a port. */
template <class T, int W>
T tw_get(const ap_uint<W>* words, i64 i) {
#pragma HLS inline
  const int bits = 8 * (int)sizeof(T), per_word = W / bits, lane = (int)(i % per_word);
  const ap_uint<W> word = words[i / per_word];
  return tw_value<T>::of(word.range(lane * bits + bits - 1, lane * bits).to_uint64());
}
template <class T, int W>
void tw_put(ap_uint<W>* words, i64 i, T value) {
#pragma HLS inline
  const int bits = 8 * (int)sizeof(T), per_word = W / bits, lane = (int)(i % per_word);
  words[i / per_word].range(lane * bits + bits - 1, lane * bits) = tw_raw(value);
}

#ifndef TW_PROCESS  /* with headers for running it here, processes are threads */
#define TW_PROCESSES
#define TW_PROCESS(function, ...) function(__VA_ARGS__)
#define TW_NAMED(channel)
#endif
)c";

constexpr const char* kEnd = "\n#endif\n";

}  // namespace

std::string hls_arithmetic(HlsDialect dialect) {
  if (dialect == HlsDialect::Plain)
    return std::string(kPlainHead) + kTypes + kPlainHalf + kArithmetic + kEnd;
  return std::string(kVitisHead) + kTypes + kVitisHalf + kArithmetic + kPorts + kEnd;
}

}  // namespace tilewright::codegen
