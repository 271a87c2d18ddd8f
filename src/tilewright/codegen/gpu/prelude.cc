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

#define tw_b2_zero() ((tw_b2)0)
#define tw_b4_zero() ((tw_b4)0)
#define tw_b8_zero() ((tw_b8)(0, 0))
#define tw_b16_zero() ((tw_b16)(0, 0, 0, 0))
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
/* Values of f16 are written as f32: compilers leave the conversions out. */
TW_FN f32 tw_half_add(f32 a, f32 b) { return (half)a + (half)b; }
TW_FN f32 tw_half_sub(f32 a, f32 b) { return (half)a - (half)b; }
TW_FN f32 tw_half_mul(f32 a, f32 b) { return (half)a * (half)b; }
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
#define tw_b2_zero() ((tw_b2)0)
#define tw_b4_zero() 0u
#define tw_b8_zero() make_uint2(0, 0)
#define tw_b16_zero() make_uint4(0, 0, 0, 0)

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
/* Copies into shared memory that the thread waits for; zero where there is nothing to copy. */
#define TW_COPY(bytes, cache)                                                                     \
  TW_FN void tw_copy##bytes(void* to, const void* from, bool there) {                             \
    asm volatile("cp.async." cache ".shared.global [%0], [%1], " #bytes ", %2;" ::"r"(            \
                     (u32)__cvta_generic_to_shared(to)),                                          \
                 "l"(__cvta_generic_to_global(from)), "r"(there ? bytes : 0));                    \
  }
TW_COPY(4, "ca")
TW_COPY(8, "ca")
TW_COPY(16, "cg")
#define tw_commit() asm volatile("cp.async.commit_group;" ::: "memory")
#define tw_wait(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
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

std::string opencl_prelude(const hw::GpuTarget& target, bool f64) {
  std::string text = kOpenCl;
  text += kLimits;
  text += f64 ? "typedef double f64;\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
              : "#define TW_NO_F64\n";
  text += target.has_f16 ? kOpenClHalf : kOpenClNoHalf;
  text += kArithmetic;
  return text;
}

}  // namespace

std::string gpu_prelude(const hw::GpuTarget& target, bool f64) {
  if (target.language == hw::GpuLanguage::OpenCl) return opencl_prelude(target, f64);
  return std::string(kCuda) + kLimits + kArithmetic;
}

}  // namespace tilewright::codegen
