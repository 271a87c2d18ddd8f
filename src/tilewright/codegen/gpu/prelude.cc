#include "tilewright/codegen/gpu/prelude.h"

#include "tilewright/codegen/common/arithmetic.h"

namespace tilewright::codegen {
namespace {

constexpr const char* kLimits = R"c(
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-INT64_C(9223372036854775807) - 1)
#define INT64_MAX INT64_C(9223372036854775807)
#define UINT64_MAX UINT64_C(18446744073709551615)
)c";

constexpr const char* kOpenCl = R"c(typedef float f32;
typedef ushort f16;  /* the bits */
typedef ushort bf16;
typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef uchar tw_bool;
typedef ushort tw_b2 __attribute__((may_alias));
typedef uint tw_b4 __attribute__((may_alias));
typedef uint2 tw_b8 __attribute__((may_alias));
typedef uint4 tw_b16 __attribute__((may_alias));

#undef INT64_C
#undef UINT64_C
#define INT64_C(x) x##l
#define UINT64_C(x) x##ul
#define TW_FN static inline
#define TW_ALIGNED __attribute__((aligned(16)))
#define TW_POPCOUNT(x) popcount(x)
#define TW_CALL_f32(name) name
#define TW_CALL_f64(name) name
#define TW_PRODUCT_f32(a, b) ((a) * (b))
#define TW_PRODUCT_f64(a, b) ((a) * (b))
#pragma OPENCL FP_CONTRACT OFF
/* PoCL 3.1 fails where its optimiser joins equal conditions before and after a barrier. */
#ifdef TW_POCL
#define TW_FORGET(x) __asm__("" : "+r"(x));
#else
#define TW_FORGET(x)
#endif
)c";

constexpr const char* kOpenClHalf = R"c(
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
TW_FN f32 tw_f16_f32(f16 x) { return (f32)as_half(x); }
TW_FN f16 tw_f32_f16(f32 x) { return as_ushort((half)x); }
)c";

constexpr const char* kOpenClNoHalf = R"c(
TW_FN f32 tw_f16_f32(f16 x) {
  const u32 sign = (u32)(x & 0x8000) << 16, exponent = x >> 10 & 31, mantissa = x & 0x3ff;
  if (exponent == 31) return as_float(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0) return as_float(sign | (exponent + 112) << 23 | mantissa << 13);
  return as_float(sign | as_uint((f32)mantissa * 0x1p-24f));
}
TW_FN f16 tw_f32_f16(f32 x) {
  const u32 bits = as_uint(x), size = bits & 0x7fffffff;
  const u32 sign = bits >> 16 & 0x8000;
  if (size > 0x7f800000) return (f16)(sign | 0x7e00);   /* NaN */
  if (size >= 0x477ff000) return (f16)(sign | 0x7c00);  /* rounds to infinity */
  if (size < 0x38800000) return (f16)(sign | (u32)rint(as_float(size) * 0x1p24f));
  return (f16)(sign | (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13);
}
)c";

constexpr const char* kCuda = R"c(typedef float f32;
typedef double f64;
typedef unsigned short f16;  /* the bits */
typedef unsigned short bf16;
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned char tw_bool;
typedef unsigned short tw_b2;
typedef unsigned int tw_b4;
typedef uint2 tw_b8;
typedef uint4 tw_b16;

#define INT64_C(x) x##ll
#define UINT64_C(x) x##ull
#undef NAN
#undef INFINITY
#define NAN __int_as_float(0x7fc00000)
#define INFINITY __int_as_float(0x7f800000)
#define TW_FN static __device__ __forceinline__
#define TW_ALIGNED __align__(16)
#define TW_POPCOUNT(x) __popcll(x)
#define TW_CALL_f32(name) name##f
#define TW_CALL_f64(name) name
#define TW_PRODUCT_f32(a, b) __fmul_rn(a, b)
#define TW_PRODUCT_f64(a, b) __dmul_rn(a, b)
TW_FN f32 tw_f16_f32(f16 x) {
  f32 y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
TW_FN f16 tw_f32_f16(f32 x) {
  f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
)c";

/// `swap(p, seen, wanted)` gives what was at p and leaves `wanted` there if that was `seen`.
constexpr const char* kAtomic = R"c(
#define TW_ATOMIC(t, bits, op, name, space, swap)                                        \
  TW_FN void name(volatile space t* p, t value) {                                        \
    volatile space bits* at = (volatile space bits*)p;                                   \
    bits seen = *at, before;                                                             \
    do {                                                                                 \
      before = seen;                                                                     \
      seen = swap(at, before, tw_bits_##t##_##bits(op(tw_bits_##bits##_##t(before), value))); \
    } while (seen != before);                                                            \
  }
#define TW_ATOMICS(t, bits, space, suffix, swap)                            \
  TW_ATOMIC(t, bits, tw_add_##t, tw_atomic_add_##t##suffix, space, swap)    \
  TW_ATOMIC(t, bits, tw_mul_##t, tw_atomic_mul_##t##suffix, space, swap)    \
  TW_ATOMIC(t, bits, tw_max_##t, tw_atomic_max_##t##suffix, space, swap)    \
  TW_ATOMIC(t, bits, tw_min_##t, tw_atomic_min_##t##suffix, space, swap)
TW_FN f32 tw_add_f32(f32 a, f32 b) { return a + b; }
TW_BITS(u32, u32)
#define TW_ATOMICS_32(space, suffix)                                  \
  TW_ATOMICS(f32, u32, space, suffix, TW_SWAP_32)                     \
  TW_ATOMICS(i32, u32, space, suffix, TW_SWAP_32)                     \
  TW_ATOMICS(u32, u32, space, suffix, TW_SWAP_32)
TW_ATOMICS_32(TW_GLOBAL, )
TW_ATOMICS_32(TW_SHARED, _shared)
)c";

constexpr const char* kAtomic64 = R"c(
TW_FN f64 tw_add_f64(f64 a, f64 b) { return a + b; }
TW_BITS(u64, u64)
#define TW_ATOMICS_64(space, suffix)                                  \
  TW_ATOMICS(f64, u64, space, suffix, TW_SWAP_64)                     \
  TW_ATOMICS(i64, u64, space, suffix, TW_SWAP_64)                     \
  TW_ATOMICS(u64, u64, space, suffix, TW_SWAP_64)
TW_ATOMICS_64(TW_GLOBAL, )
TW_ATOMICS_64(TW_SHARED, _shared)
)c";

constexpr const char* kOpenClAtomic = R"c(
#define TW_GLOBAL __global
#define TW_SHARED __local
#define TW_SWAP_32(p, seen, wanted) atomic_cmpxchg(p, seen, wanted)
#define TW_SWAP_64(p, seen, wanted) atom_cmpxchg(p, seen, wanted)
)c";

/// Sums of f32 and f64 have an instruction: the last definition of their names counts.
constexpr const char* kCudaAtomic = R"c(
#define TW_GLOBAL
#define TW_SHARED
#define TW_SWAP_32(p, seen, wanted) atomicCAS((u32*)(p), seen, wanted)
#define TW_SWAP_64(p, seen, wanted) atomicCAS((u64*)(p), seen, wanted)
)c";
constexpr const char* kCudaSums = R"c(
#define tw_atomic_add_f32(p, value) atomicAdd(p, value)
#define tw_atomic_add_f32_shared(p, value) atomicAdd(p, value)
#define tw_atomic_add_f64(p, value) atomicAdd(p, value)
#define tw_atomic_add_f64_shared(p, value) atomicAdd(p, value)
)c";

std::string opencl_prelude(const hw::GpuTarget& target, const GpuNeeds& needs) {
  std::string text = kOpenCl;
  text += kLimits;
  text += needs.f64 ? "typedef double f64;\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
                    : "#define TW_NO_F64\n";
  text += target.has_f16 ? kOpenClHalf : kOpenClNoHalf;
  text += kArithmetic;
  if (needs.atomics) text += std::string(kOpenClAtomic) + kAtomic;
  if (needs.atomics64)
    text +=
        "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n" + std::string(kAtomic64);
  return text;
}

}  // namespace

std::string gpu_prelude(const hw::GpuTarget& target, const GpuNeeds& needs) {
  if (target.language == hw::GpuLanguage::OpenCl) return opencl_prelude(target, needs);
  std::string text = std::string(kCuda) + kLimits + kArithmetic;
  if (needs.atomics) text += std::string(kCudaAtomic) + kAtomic;
  if (needs.atomics64) text += kAtomic64;
  return needs.atomics ? text + kCudaSums : text;
}

}  // namespace tilewright::codegen
