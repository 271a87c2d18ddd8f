#include "tilewright/codegen/c/prelude.h"

namespace tilewright::codegen {

const char* const kCPrelude = R"c(#include <math.h>
#include <stdint.h>

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

#define TW_FN static inline
#define TW_POPCOUNT(x) __builtin_popcountll(x)
#define TW_CALL_f32(name) name##f
#define TW_CALL_f64(name) name
#define TW_PRODUCT_f32(a, b) ((a) * (b))
#define TW_PRODUCT_f64(a, b) ((a) * (b))
TW_FN f32 tw_f16_f32(f16 x) { return (f32)x; }
TW_FN f16 tw_f32_f16(f32 x) { return (f16)x; }
)c";

}  // namespace tilewright::codegen
