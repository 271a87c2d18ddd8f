// IEEE binary16, with the interface of vendors' hls_half.h as far as generated kernels use it.
// Arithmetic is that of float, rounded to nearest even: the same bits as arithmetic in binary16.
#pragma once

#include <cstdint>
#include <cstring>

class half {
 public:
  half() = default;
  half(float v) : bits_(rounded(v)) {}
  operator float() const {
    const uint32_t sign = (bits_ & 0x8000u) << 16, exponent = bits_ >> 10 & 31u;
    uint32_t fraction = bits_ & 0x3ffu, out;
    if (exponent == 31) {
      out = 0x7f800000u | fraction << 13 | (fraction != 0 ? 0x400000u : 0u);
    } else if (exponent != 0) {
      out = (exponent + 112) << 23 | fraction << 13;
    } else if (fraction == 0) {
      out = 0;
    } else {  // a denormal of binary16 is a normal float
      uint32_t e = 113;
      for (; (fraction & 0x400u) == 0; fraction <<= 1) --e;
      out = e << 23 | (fraction & 0x3ffu) << 13;
    }
    out |= sign;
    float v;
    std::memcpy(&v, &out, 4);
    return v;
  }

 private:
  static uint16_t rounded(float v) {
    uint32_t b;
    std::memcpy(&b, &v, 4);
    const uint32_t sign = b >> 16 & 0x8000u, x = b & 0x7fffffffu;
    if (x > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (x >> 13 & 0x3ffu));
    if (x >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // past 65520: infinity
    if (x < 0x33000000u) return static_cast<uint16_t>(sign);  // less than half of the smallest
    uint32_t fraction, shift, base = 0;
    if (x >= 0x38800000u) {
      fraction = x - 0x38000000u, shift = 13;
    } else {
      fraction = (x & 0x7fffffu) | 0x800000u, shift = 126 - (x >> 23);
    }
    base = fraction >> shift;
    const uint32_t rest = fraction & ((1u << shift) - 1), middle = 1u << (shift - 1);
    if (rest > middle || (rest == middle && (base & 1) != 0)) ++base;
    return static_cast<uint16_t>(sign | base);
  }
  uint16_t bits_;
};

#define HALF_OPERATOR(op) \
  inline half operator op(half a, half b) { return half(float(a) op float(b)); }
HALF_OPERATOR(+)
HALF_OPERATOR(-) HALF_OPERATOR(*) HALF_OPERATOR(/)
#undef HALF_OPERATOR
