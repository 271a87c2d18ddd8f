#include "tilewright/codegen/common/arithmetic.h"

namespace tilewright::codegen {

const char* const kArithmetic = R"c(
#define TW_BITS(to, from)                       \
  TW_FN to tw_bits_##from##_##to(from x) {      \
    union {                                     \
      from a;                                   \
      to b;                                     \
    } u;                                        \
    u.a = x;                                    \
    return u.b;                                 \
  }
#define TW_BITS_PAIR(a, b) TW_BITS(a, b) TW_BITS(b, a)
TW_BITS_PAIR(f32, i32) TW_BITS_PAIR(f32, u32)
TW_BITS_PAIR(f16, i16) TW_BITS_PAIR(f16, u16) TW_BITS_PAIR(bf16, i16) TW_BITS_PAIR(bf16, u16)
TW_BITS_PAIR(f16, bf16) TW_BITS_PAIR(i32, u32) TW_BITS_PAIR(i64, u64) TW_BITS_PAIR(i16, u16)
TW_BITS_PAIR(i8, u8) TW_BITS(i8, tw_bool)
#ifndef TW_NO_F64
TW_BITS_PAIR(f64, i64) TW_BITS_PAIR(f64, u64)
#endif

TW_FN f32 tw_bf16_f32(bf16 x) { return tw_bits_u32_f32((u32)tw_bits_bf16_u16(x) << 16); }
TW_FN bf16 tw_f32_bf16(f32 x) {
  const u32 b = tw_bits_f32_u32(x);
  return tw_bits_u16_bf16(x != x ? (u16)(b >> 16 | 0x40)
                                 : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16));
}
/* f32 rounded to bf16 or f16 and back. */
TW_FN f32 tw_round_bf16(f32 x) { return tw_bf16_f32(tw_f32_bf16(x)); }
TW_FN f32 tw_round_f16(f32 x) { return tw_f16_f32(tw_f32_f16(x)); }

/* Floor division and modulo; division by zero gives 0. */
#define TW_SIGNED(t, u)                                                                  \
  TW_FN t tw_div_##t(t a, t b) {                                                         \
    if (b == 0) return 0;                                                                \
    if (b == -1) return (t)(u)(0u - (u)a);                                               \
    return (t)(a / b - (a % b != 0 && (a < 0) != (b < 0)));                              \
  }                                                                                      \
  TW_FN t tw_mod_##t(t a, t b) {                                                         \
    if (b == 0 || b == -1) return 0;                                                     \
    const t r = (t)(a % b);                                                              \
    return (t)(r != 0 && (r < 0) != (b < 0) ? r + b : r);                                \
  }                                                                                      \
  TW_FN t tw_trunc_div_##t(t a, t b) {                                                   \
    return b == 0 ? (t)0 : b == -1 ? (t)(u)(0u - (u)a) : (t)(a / b);                     \
  }                                                                                      \
  TW_FN t tw_trunc_mod_##t(t a, t b) { return b == 0 || b == -1 ? (t)0 : (t)(a % b); }   \
  TW_FN t tw_shl_##t(t a, t b) {                                                         \
    return b < 0 || b >= (t)(8 * sizeof(t)) ? (t)0 : (t)(u)((u64)(u)a << b);             \
  }                                                                                      \
  TW_FN t tw_shr_##t(t a, t b) {                                                         \
    return b < 0 || b >= (t)(8 * sizeof(t)) ? (t)(a < 0 ? -1 : 0) : (t)(a >> b);         \
  }                                                                                      \
  TW_FN t tw_abs_##t(t a) { return a < 0 ? (t)(u)(0u - (u)a) : a; }
#define TW_UNSIGNED(t)                                                                   \
  TW_FN t tw_div_##t(t a, t b) { return b == 0 ? 0 : (t)(a / b); }                       \
  TW_FN t tw_mod_##t(t a, t b) { return b == 0 ? 0 : (t)(a % b); }                       \
  TW_FN t tw_trunc_div_##t(t a, t b) { return b == 0 ? 0 : (t)(a / b); }                 \
  TW_FN t tw_trunc_mod_##t(t a, t b) { return b == 0 ? 0 : (t)(a % b); }                 \
  TW_FN t tw_shl_##t(t a, t b) { return b >= 8 * sizeof(t) ? (t)0 : (t)((u64)a << b); }  \
  TW_FN t tw_shr_##t(t a, t b) { return b >= 8 * sizeof(t) ? (t)0 : (t)(a >> b); }       \
  TW_FN t tw_abs_##t(t a) { return a; }
#define TW_INTEGER(t, u)                                                                 \
  TW_FN t tw_add_##t(t a, t b) { return (t)(u)((u64)a + (u64)b); }                       \
  TW_FN t tw_sub_##t(t a, t b) { return (t)(u)((u64)a - (u64)b); }                       \
  TW_FN t tw_mul_##t(t a, t b) { return (t)(u)((u64)a * (u64)b); }                       \
  TW_FN t tw_min_##t(t a, t b) { return a < b ? a : b; }                                 \
  TW_FN t tw_max_##t(t a, t b) { return a > b ? a : b; }                                 \
  TW_FN t tw_popcount_##t(t a) { return (t)TW_POPCOUNT((u64)(u)a); }                     \
  TW_FN t tw_pow_##t(t a, t n) {                                                         \
    t r = 1;                                                                             \
    if (n < 0) return a == 1 ? 1 : a == (t)-1 ? (n & 1 ? a : (t)1) : (t)0;               \
    for (; n > 0; n = (t)(n >> 1), a = tw_mul_##t(a, a))                                 \
      if (n & 1) r = tw_mul_##t(r, a);                                                   \
    return r;                                                                            \
  }
TW_SIGNED(i8, u8) TW_SIGNED(i16, u16) TW_SIGNED(i32, u32) TW_SIGNED(i64, u64)
TW_UNSIGNED(u8) TW_UNSIGNED(u16) TW_UNSIGNED(u32) TW_UNSIGNED(u64)
TW_INTEGER(i8, u8) TW_INTEGER(i16, u16) TW_INTEGER(i32, u32) TW_INTEGER(i64, u64)
TW_INTEGER(u8, u8) TW_INTEGER(u16, u16) TW_INTEGER(u32, u32) TW_INTEGER(u64, u64)

/* Float to integer: truncates, saturates, NaN gives 0. A limit the float type lacks rounds away
   from zero, to a value out of range. */
#define TW_TO_INT(f, t, lo, hi)              \
  TW_FN t tw_##f##_##t(f x) {                \
    if (x != x) return 0;                    \
    if (x <= (f)(lo)) return (t)(lo);        \
    if (x >= (f)(hi)) return (t)(hi);        \
    return (t)x;                             \
  }
#define TW_TO_INTS(f)                                                  \
  TW_TO_INT(f, i8, INT8_MIN, INT8_MAX) TW_TO_INT(f, u8, 0, UINT8_MAX)      \
  TW_TO_INT(f, i16, INT16_MIN, INT16_MAX) TW_TO_INT(f, u16, 0, UINT16_MAX) \
  TW_TO_INT(f, i32, INT32_MIN, INT32_MAX) TW_TO_INT(f, u32, 0, UINT32_MAX) \
  TW_TO_INT(f, i64, INT64_MIN, INT64_MAX) TW_TO_INT(f, u64, 0, UINT64_MAX)

/* min and max hand NaN on. */
#define TW_FLOAT(t)                                                                            \
  TW_FN t tw_mul_##t(t a, t b) { return TW_PRODUCT_##t(a, b); }                                \
  TW_FN t tw_min_##t(t a, t b) { return a < b || a != a ? a : b; }                             \
  TW_FN t tw_max_##t(t a, t b) { return a > b || a != a ? a : b; }                             \
  TW_FN t tw_mod_##t(t a, t b) { return a - TW_PRODUCT_##t(b, TW_CALL_##t(floor)(a / b)); }    \
  TW_FN t tw_rsqrt_##t(t a) { return 1 / TW_CALL_##t(sqrt)(a); }                               \
  TW_FN t tw_sigmoid_##t(t a) { return 1 / (1 + TW_CALL_##t(exp)(-a)); }
TW_FLOAT(f32) TW_TO_INTS(f32)
#ifndef TW_NO_F64
TW_FLOAT(f64) TW_TO_INTS(f64)
#endif
)c";

}  // namespace tilewright::codegen
