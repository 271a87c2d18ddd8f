// Element types: the closed list every layer shares.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

/// Element type of a buffer, tensor or expression. Sub-byte types get their own enumerators; code
/// that sizes storage must use `storage_bytes`, never multiply by a byte count.
enum class DType : uint8_t { F32, F64, F16, BF16, I8, U8, I16, U16, I32, U32, I64, U64, Bool };

inline constexpr DType kAllDTypes[] = {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8,
                                       DType::U8,  DType::I16, DType::U16, DType::I32,  DType::U32,
                                       DType::I64, DType::U64, DType::Bool};

/// `f32`, `i8`, `bool`, ...
std::string_view name(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);

/// Bits of one element in memory (bool: 8).
int bit_width(DType dtype);
/// Bytes of `count` densely packed elements.
int64_t storage_bytes(DType dtype, int64_t count);

bool is_float(DType dtype);
bool is_signed_int(DType dtype);
bool is_unsigned_int(DType dtype);
inline bool is_int(DType dtype) { return is_signed_int(dtype) || is_unsigned_int(dtype); }

/// The type a sum of `dtype` products is held in: f32 for f16 and bf16, i32 for i8/u8/i16/u16, else
/// itself.
DType accumulator(DType dtype);

/// IEEE binary16 and bfloat16 from and to f32, round to nearest even, NaN kept as NaN.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

}  // namespace tilewright
