#include "tilewright/base/dtype.h"

#include <bit>
#include <cmath>

#include "tilewright/base/check.h"

namespace tilewright {
namespace {

struct Row {
  std::string_view name;
  int bits;
  char kind;  // f: float, i: signed, u: unsigned, b: bool
};

constexpr Row kRows[] = {{"f32", 32, 'f'}, {"f64", 64, 'f'}, {"f16", 16, 'f'}, {"bf16", 16, 'f'},
                         {"i8", 8, 'i'},   {"u8", 8, 'u'},   {"i16", 16, 'i'}, {"u16", 16, 'u'},
                         {"i32", 32, 'i'}, {"u32", 32, 'u'}, {"i64", 64, 'i'}, {"u64", 64, 'u'},
                         {"bool", 8, 'b'}};

const Row& row(DType dtype) { return kRows[static_cast<int>(dtype)]; }

}  // namespace

std::string_view name(DType dtype) { return row(dtype).name; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (DType dtype : kAllDTypes)
    if (name(dtype) == text) return dtype;
  return std::nullopt;
}

int bit_width(DType dtype) { return row(dtype).bits; }

int64_t storage_bytes(DType dtype, int64_t count) { return (count * bit_width(dtype) + 7) / 8; }

bool is_float(DType dtype) { return row(dtype).kind == 'f'; }
bool is_signed_int(DType dtype) { return row(dtype).kind == 'i'; }
bool is_unsigned_int(DType dtype) { return row(dtype).kind == 'u'; }

DType accumulator(DType dtype) {
  switch (dtype) {
    case DType::F16:
    case DType::BF16:
      return DType::F32;
    case DType::I8:
    case DType::U8:
    case DType::I16:
    case DType::U16:
      return DType::I32;
    default:
      return dtype;
  }
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;   // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // rounds to infinity
  if (magnitude < 0x38800000) {  // subnormal or zero: exact scaling, then round
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return sign | static_cast<uint16_t>(std::nearbyintf(scaled));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace tilewright
