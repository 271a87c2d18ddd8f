#include "tilewright/codegen/c/prelude.h"

namespace tilewright::codegen {

const char* const kCPrelude = R"c(#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float f32;
typedef double f64;
typedef _Float16 f16;
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

/* See runtime/kernel_abi.h. */
typedef void (*tw_parallel_body)(void* env, int64_t index, int32_t worker);
typedef struct {
  uint64_t struct_size;
  void* pool;
  void (*parallel_for)(void* pool, int64_t count, tw_parallel_body body, void* env);
  int32_t workers;
} tw_kernel_services;

#define TW_BITS(to, from)                                  \
  static inline to tw_bits_##from##_##to(from x) {         \
    to y;                                                  \
    memcpy(&y, &x, sizeof y);                              \
    return y;                                              \
  }
#define TW_BITS_PAIR(a, b) TW_BITS(a, b) TW_BITS(b, a)
TW_BITS_PAIR(f32, i32) TW_BITS_PAIR(f32, u32) TW_BITS_PAIR(f64, i64) TW_BITS_PAIR(f64, u64)
TW_BITS_PAIR(f16, i16) TW_BITS_PAIR(f16, u16) TW_BITS_PAIR(bf16, i16) TW_BITS_PAIR(bf16, u16)
TW_BITS_PAIR(f16, bf16) TW_BITS_PAIR(i32, u32) TW_BITS_PAIR(i64, u64) TW_BITS_PAIR(i16, u16)
TW_BITS_PAIR(i8, u8) TW_BITS(i8, tw_bool)

static inline f32 tw_bf16_f32(bf16 x) { return tw_bits_u32_f32((u32)x.bits << 16); }
static inline bf16 tw_f32_bf16(f32 x) {
  const u32 b = tw_bits_f32_u32(x);
  bf16 y;
  y.bits = x != x ? (u16)(b >> 16 | 0x40) : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
  return y;
}
/* f32 rounded to bf16 or f16 and back. */
static inline f32 tw_round_bf16(f32 x) { return tw_bf16_f32(tw_f32_bf16(x)); }
static inline f32 tw_round_f16(f32 x) { return (f32)(f16)x; }

/* Floor division and modulo; division by zero gives 0. */
#define TW_SIGNED(t, u)                                                                        \
  static inline t tw_div_##t(t a, t b) {                                                       \
    if (b == 0) return 0;                                                                      \
    if (b == -1) return (t)(u)(0u - (u)a);                                                     \
    return (t)(a / b - (a % b != 0 && (a < 0) != (b < 0)));                                    \
  }                                                                                            \
  static inline t tw_mod_##t(t a, t b) {                                                       \
    if (b == 0 || b == -1) return 0;                                                           \
    const t r = (t)(a % b);                                                                    \
    return (t)(r != 0 && (r < 0) != (b < 0) ? r + b : r);                                      \
  }                                                                                            \
  static inline t tw_trunc_div_##t(t a, t b) {                                                 \
    return b == 0 ? (t)0 : b == -1 ? (t)(u)(0u - (u)a) : (t)(a / b);                           \
  }                                                                                            \
  static inline t tw_trunc_mod_##t(t a, t b) { return b == 0 || b == -1 ? (t)0 : (t)(a % b); } \
  static inline t tw_shl_##t(t a, t b) {                                                       \
    return b < 0 || b >= (t)(8 * sizeof(t)) ? (t)0 : (t)(u)((u64)(u)a << b);                   \
  }                                                                                            \
  static inline t tw_shr_##t(t a, t b) {                                                       \
    return b < 0 || b >= (t)(8 * sizeof(t)) ? (t)(a < 0 ? -1 : 0) : (t)(a >> b);               \
  }                                                                                            \
  static inline t tw_abs_##t(t a) { return a < 0 ? (t)(u)(0u - (u)a) : a; }
#define TW_UNSIGNED(t)                                                                    \
  static inline t tw_div_##t(t a, t b) { return b == 0 ? 0 : (t)(a / b); }                \
  static inline t tw_mod_##t(t a, t b) { return b == 0 ? 0 : (t)(a % b); }                \
  static inline t tw_trunc_div_##t(t a, t b) { return b == 0 ? 0 : (t)(a / b); }          \
  static inline t tw_trunc_mod_##t(t a, t b) { return b == 0 ? 0 : (t)(a % b); }          \
  static inline t tw_shl_##t(t a, t b) {                                                  \
    return b >= 8 * sizeof(t) ? (t)0 : (t)((u64)a << b);                                  \
  }                                                                                       \
  static inline t tw_shr_##t(t a, t b) { return b >= 8 * sizeof(t) ? (t)0 : (t)(a >> b); } \
  static inline t tw_abs_##t(t a) { return a; }
#define TW_INTEGER(t, u)                                                            \
  static inline t tw_add_##t(t a, t b) { return (t)(u)((u64)a + (u64)b); }          \
  static inline t tw_sub_##t(t a, t b) { return (t)(u)((u64)a - (u64)b); }          \
  static inline t tw_mul_##t(t a, t b) { return (t)(u)((u64)a * (u64)b); }          \
  static inline t tw_min_##t(t a, t b) { return a < b ? a : b; }                    \
  static inline t tw_max_##t(t a, t b) { return a > b ? a : b; }                    \
  static inline t tw_popcount_##t(t a) { return (t)__builtin_popcountll((u64)(u)a); } \
  static inline t tw_pow_##t(t a, t n) {                                            \
    t r = 1;                                                                        \
    if (n < 0) return a == 1 ? 1 : a == (t)-1 ? (n & 1 ? a : (t)1) : (t)0;          \
    for (; n > 0; n = (t)(n >> 1), a = tw_mul_##t(a, a))                            \
      if (n & 1) r = tw_mul_##t(r, a);                                              \
    return r;                                                                       \
  }
TW_SIGNED(i8, u8) TW_SIGNED(i16, u16) TW_SIGNED(i32, u32) TW_SIGNED(i64, u64)
TW_UNSIGNED(u8) TW_UNSIGNED(u16) TW_UNSIGNED(u32) TW_UNSIGNED(u64)
TW_INTEGER(i8, u8) TW_INTEGER(i16, u16) TW_INTEGER(i32, u32) TW_INTEGER(i64, u64)
TW_INTEGER(u8, u8) TW_INTEGER(u16, u16) TW_INTEGER(u32, u32) TW_INTEGER(u64, u64)

/* Float to integer: truncates, saturates, NaN gives 0. The limits are exact as f64. */
#define TW_TO_INT(t, lo, hi)                \
  static inline t tw_f64_##t(f64 x) {       \
    if (x != x) return 0;                   \
    if (x <= (f64)(lo)) return (t)(lo);     \
    if (x >= (f64)(hi)) return (t)(hi);     \
    return (t)x;                            \
  }
TW_TO_INT(i8, INT8_MIN, INT8_MAX) TW_TO_INT(u8, 0, UINT8_MAX)
TW_TO_INT(i16, INT16_MIN, INT16_MAX) TW_TO_INT(u16, 0, UINT16_MAX)
TW_TO_INT(i32, INT32_MIN, INT32_MAX) TW_TO_INT(u32, 0, UINT32_MAX)
TW_TO_INT(i64, INT64_MIN, INT64_MAX) TW_TO_INT(u64, 0, UINT64_MAX)

/* min and max hand NaN on. */
#define TW_FLOAT(t, s)                                                            \
  static inline t tw_min_##t(t a, t b) { return a < b || a != a ? a : b; }        \
  static inline t tw_max_##t(t a, t b) { return a > b || a != a ? a : b; }        \
  static inline t tw_mod_##t(t a, t b) { return a - b * floor##s(a / b); }        \
  static inline t tw_rsqrt_##t(t a) { return 1 / sqrt##s(a); }                    \
  static inline t tw_sigmoid_##t(t a) { return 1 / (1 + exp##s(-a)); }
TW_FLOAT(f32, f) TW_FLOAT(f64, )
)c";

}  // namespace tilewright::codegen
