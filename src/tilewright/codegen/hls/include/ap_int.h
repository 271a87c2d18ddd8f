// Integers of any width up to 1024 bits, with the interface of vendors' ap_int.h as far as
// generated kernels use it: written from the manual, for running kernels with an ordinary compiler.
//
// Words lie in memory lowest first, so an array of ap_uint<512> is what a memory port sees.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

template <int W, bool S>
struct ap_value;
template <int W>
struct ap_int;
template <int W>
struct ap_uint;

namespace ap_detail {

constexpr int larger(int a, int b) { return a > b ? a : b; }
constexpr int smaller(int a, int b) { return a < b ? a : b; }
template <class T>
using if_integer = std::enable_if_t<std::is_integral<T>::value>;
/// The operand as an ap_value: a built-in integer has the width of its type.
template <class T>
struct Operand {
  static constexpr int width = std::is_same<T, bool>::value ? 1 : 8 * static_cast<int>(sizeof(T));
  static constexpr bool is_signed = std::is_signed<T>::value;
};

}  // namespace ap_detail

/// The bits hi .. lo of a value, to read or to assign.
template <int W, bool S>
struct ap_range {
  ap_value<W, S>& value;
  int hi, lo;
  uint64_t to_uint64() const { return value.bits(hi, lo); }
  operator uint64_t() const { return to_uint64(); }
  ap_range& operator=(uint64_t v) {
    value.set_bits(hi, lo, v);
    return *this;
  }
  template <int W2, bool S2>
  ap_range& operator=(const ap_value<W2, S2>& v) {
    for (int at = lo; at <= hi; at += 64)
      value.set_bits(ap_detail::smaller(at + 63, hi), at, v.word((at - lo) / 64));
    return *this;
  }
  ap_range& operator=(const ap_range& v) { return *this = v.to_uint64(); }
  ap_range(const ap_range&) = default;
  ap_range(ap_value<W, S>& v, int h, int l) : value(v), hi(h), lo(l) {}
};

template <int W, bool S>
struct ap_value {
  static_assert(W >= 1 && W <= 1024, "widths are 1 to 1024");
  static constexpr int width = W;
  static constexpr int words = (W + 63) / 64;
  /// Lowest first; the bits past the width repeat the sign, or are 0.
  uint64_t w[words];

  ap_value() = default;
  template <class T, class = ap_detail::if_integer<T>>
  ap_value(T v) {
    w[0] = static_cast<uint64_t>(v);
    for (int i = 1; i < words; ++i) w[i] = v < T(0) ? ~uint64_t{0} : 0;
    trim();
  }
  ap_value(float v) : ap_value(static_cast<int64_t>(v)) {}
  ap_value(double v) : ap_value(static_cast<int64_t>(v)) {}
  template <int W2, bool S2>
  ap_value(const ap_value<W2, S2>& v) {
    for (int i = 0; i < words; ++i) w[i] = v.word(i);
    trim();
  }

  bool negative() const { return S && (w[words - 1] >> 63) != 0; }
  /// The i-th word of the value, extended as far as one asks.
  uint64_t word(int i) const { return i < words ? w[i] : negative() ? ~uint64_t{0} : 0; }

  int64_t to_int64() const { return static_cast<int64_t>(w[0]); }
  uint64_t to_uint64() const { return w[0]; }
  int to_int() const { return static_cast<int>(w[0]); }
  unsigned to_uint() const { return static_cast<unsigned>(w[0]); }
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  explicit operator T() const {
    if (std::is_same<T, bool>::value) return static_cast<T>(!is_zero());
    return S ? static_cast<T>(to_int64()) : static_cast<T>(to_uint64());
  }

  bool is_zero() const {
    for (int i = 0; i < words; ++i)
      if (w[i] != 0) return false;
    return true;
  }
  /// The bits hi .. lo, at most 64 of them.
  uint64_t bits(int hi, int lo) const {
    const int at = lo / 64, shift = lo % 64, count = hi - lo + 1;
    uint64_t v = word(at) >> shift;
    if (shift != 0 && shift + count > 64) v |= word(at + 1) << (64 - shift);
    return count >= 64 ? v : v & ((uint64_t{1} << count) - 1);
  }
  void set_bits(int hi, int lo, uint64_t v) {
    const int at = lo / 64, shift = lo % 64, count = hi - lo + 1;
    const uint64_t mask = count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
    v &= mask;
    w[at] = (w[at] & ~(mask << shift)) | v << shift;
    if (shift != 0 && shift + count > 64)
      w[at + 1] = (w[at + 1] & ~(mask >> (64 - shift))) | v >> (64 - shift);
    trim();
  }
  ap_range<W, S> range(int hi, int lo) { return ap_range<W, S>(*this, hi, lo); }
  ap_value<W, false> range(int hi, int lo) const {
    ap_value<W, false> out(0);
    for (int at = lo; at <= hi; at += 64)
      out.set_bits(ap_detail::smaller(at + 63, hi) - lo, at - lo,
                   bits(ap_detail::smaller(at + 63, hi), at));
    return out;
  }
  ap_range<W, S> operator[](int bit) { return range(bit, bit); }
  bool operator[](int bit) const { return bits(bit, bit) != 0; }
  bool test(int bit) const { return bits(bit, bit) != 0; }

  void trim() {
    constexpr int rest = W % 64;
    if constexpr (rest != 0) {
      const uint64_t shifted = w[words - 1] << (64 - rest);
      w[words - 1] = S ? static_cast<uint64_t>(static_cast<int64_t>(shifted) >> (64 - rest))
                       : shifted >> (64 - rest);
    }
  }

  ap_value operator~() const {
    ap_value out;
    for (int i = 0; i < words; ++i) out.w[i] = ~w[i];
    out.trim();
    return out;
  }
  bool operator!() const { return is_zero(); }
  ap_value<W + 1 <= 1024 ? W + 1 : W, true> operator-() const {
    return ap_value<W + 1 <= 1024 ? W + 1 : W, true>(ap_value<1, false>(0) - *this);
  }
  ap_value operator<<(int n) const {
    if (n < 0) return *this >> -n;
    ap_value out(0);
    for (int i = words; i-- > n / 64;) {
      out.w[i] = w[i - n / 64] << n % 64;
      if (n % 64 != 0 && i > n / 64) out.w[i] |= w[i - n / 64 - 1] >> (64 - n % 64);
    }
    out.trim();
    return out;
  }
  ap_value operator>>(int n) const {
    if (n < 0) return *this << -n;
    ap_value out(0);
    for (int i = 0; i < words; ++i) {
      out.w[i] = word(i + n / 64) >> n % 64;
      if (n % 64 != 0) out.w[i] |= word(i + n / 64 + 1) << (64 - n % 64);
    }
    out.trim();
    return out;
  }
#define AP_ASSIGN(op)                     \
  template <class T>                      \
  ap_value& operator op##=(const T & v) { \
    return *this = ap_value(*this op v);  \
  }
  // clang-format off: as below
  AP_ASSIGN(+)
  AP_ASSIGN(-)
  AP_ASSIGN(*)
  AP_ASSIGN(/)
  AP_ASSIGN(%)
  AP_ASSIGN(&)
  AP_ASSIGN(|)
  AP_ASSIGN(^)
  // clang-format on
#undef AP_ASSIGN
  ap_value& operator<<=(int n) { return *this = *this << n; }
  ap_value& operator>>=(int n) { return *this = *this >> n; }
  ap_value& operator++() { return *this += 1; }
  ap_value& operator--() { return *this -= 1; }
};

namespace ap_detail {

/// Width and sign of results: as many bits as no value can overflow.
template <int W1, bool S1, int W2, bool S2>
struct Result {
  static constexpr int common = larger(W1 + (S2 && !S1), W2 + (S1 && !S2));
  using Logic = ap_value<smaller(common, 1024), (S1 || S2)>;
  using Plus = ap_value<smaller(common + 1, 1024), (S1 || S2)>;
  using Minus = ap_value<smaller(common + 1, 1024), true>;
  using Product = ap_value<smaller(W1 + W2, 1024), (S1 || S2)>;
  using Quotient = ap_value<smaller(W1 + S2, 1024), (S1 || S2)>;
  using Rest = ap_value<smaller(W1, W2 + (!S2 && S1)), S1>;
};

}  // namespace ap_detail

#define AP_TEMPLATE template <int W1, bool S1, int W2, bool S2>
#define AP_RESULT(kind) typename ap_detail::Result<W1, S1, W2, S2>::kind

AP_TEMPLATE AP_RESULT(Plus) operator+(const ap_value<W1, S1>& a, const ap_value<W2, S2>& b) {
  AP_RESULT(Plus) out;
  uint64_t carry = 0;
  for (int i = 0; i < out.words; ++i) {
    const uint64_t x = a.word(i), y = b.word(i), sum = x + y;
    out.w[i] = sum + carry;
    carry = static_cast<uint64_t>(sum < x) | static_cast<uint64_t>(out.w[i] < sum);
  }
  out.trim();
  return out;
}
AP_TEMPLATE AP_RESULT(Minus) operator-(const ap_value<W1, S1>& a, const ap_value<W2, S2>& b) {
  AP_RESULT(Minus) out;
  uint64_t borrow = 0;
  for (int i = 0; i < out.words; ++i) {
    const uint64_t x = a.word(i), y = b.word(i), rest = x - y;
    out.w[i] = rest - borrow;
    borrow = static_cast<uint64_t>(x < y) | static_cast<uint64_t>(rest < borrow);
  }
  out.trim();
  return out;
}
AP_TEMPLATE AP_RESULT(Product) operator*(const ap_value<W1, S1>& a, const ap_value<W2, S2>& b) {
  AP_RESULT(Product) out(0);
  // Modulo 2^(64 * words), in halves of words; both operands are extended to the result's width.
  for (int i = 0; i < 2 * out.words; ++i) {
    const uint64_t x = a.word(i / 2) >> 32 * (i % 2) & 0xffffffffu;
    uint64_t carry = 0;
    for (int j = 0; i + j < 2 * out.words; ++j) {
      const uint64_t y = b.word(j / 2) >> 32 * (j % 2) & 0xffffffffu;
      const int at = (i + j) / 2, shift = 32 * ((i + j) % 2);
      const uint64_t sum = x * y + (out.w[at] >> shift & 0xffffffffu) + carry;
      out.w[at] = (out.w[at] & ~(uint64_t{0xffffffffu} << shift)) | (sum & 0xffffffffu) << shift;
      carry = sum >> 32;
    }
  }
  out.trim();
  return out;
}
AP_TEMPLATE AP_RESULT(Quotient) operator/(const ap_value<W1, S1>& a, const ap_value<W2, S2>& b) {
  static_assert(W1 + S2 <= 64 && W2 <= 63, "division of at most 63 bits");
  if (S1 || S2) return a.to_int64() / b.to_int64();
  return a.to_uint64() / b.to_uint64();
}
AP_TEMPLATE AP_RESULT(Rest) operator%(const ap_value<W1, S1>& a, const ap_value<W2, S2>& b) {
  static_assert(W1 + S2 <= 64 && W2 <= 63, "division of at most 63 bits");
  if (S1 || S2) return a.to_int64() % b.to_int64();
  return a.to_uint64() % b.to_uint64();
}
#define AP_LOGIC(op)                                                                               \
  AP_TEMPLATE AP_RESULT(Logic) operator op(const ap_value<W1, S1>& a, const ap_value<W2, S2>& b) { \
    AP_RESULT(Logic) out;                                                                          \
    for (int i = 0; i < out.words; ++i) out.w[i] = a.word(i) op b.word(i);                         \
    out.trim();                                                                                    \
    return out;                                                                                    \
  }
AP_LOGIC(&)
AP_LOGIC(|)
AP_LOGIC(^)
#undef AP_LOGIC

/// -1, 0 or 1.
AP_TEMPLATE int ap_compare(const ap_value<W1, S1>& a, const ap_value<W2, S2>& b) {
  if (a.negative() != b.negative()) return a.negative() ? -1 : 1;
  for (int i = ap_detail::larger(a.words, b.words); i-- > 0;)
    if (a.word(i) != b.word(i)) return a.word(i) < b.word(i) ? -1 : 1;
  return 0;
}
#define AP_COMPARE(op)                                                                 \
  AP_TEMPLATE bool operator op(const ap_value<W1, S1>& a, const ap_value<W2, S2>& b) { \
    return ap_compare(a, b) op 0;                                                      \
  }
// clang-format off: it takes > for the end of a template
AP_COMPARE(==)
AP_COMPARE(!=)
AP_COMPARE(<)
AP_COMPARE(<=)
AP_COMPARE(>)
AP_COMPARE(>=)
// clang-format on
#undef AP_COMPARE

// The same with a built-in integer on either side.
#define AP_MIXED(op)                                                                         \
  template <int W, bool S, class T, class = ap_detail::if_integer<T>>                        \
  auto operator op(const ap_value<W, S>& a, T b) {                                           \
    return a op ap_value<ap_detail::Operand<T>::width, ap_detail::Operand<T>::is_signed>(b); \
  }                                                                                          \
  template <int W, bool S, class T, class = ap_detail::if_integer<T>>                        \
  auto operator op(T a, const ap_value<W, S>& b) {                                           \
    return ap_value<ap_detail::Operand<T>::width, ap_detail::Operand<T>::is_signed>(a) op b; \
  }
// clang-format off: as above
AP_MIXED(+)
AP_MIXED(-)
AP_MIXED(*)
AP_MIXED(/)
AP_MIXED(%)
AP_MIXED(&)
AP_MIXED(|)
AP_MIXED(^)
AP_MIXED(==)
AP_MIXED(!=)
AP_MIXED(<)
AP_MIXED(<=)
AP_MIXED(>)
AP_MIXED(>=)
// clang-format on
#undef AP_MIXED
#undef AP_TEMPLATE
#undef AP_RESULT

template <int W>
struct ap_int : ap_value<W, true> {
  using Base = ap_value<W, true>;
  using Base::Base;
  ap_int() = default;
  ap_int(const Base& v) : Base(v) {}
};
template <int W>
struct ap_uint : ap_value<W, false> {
  using Base = ap_value<W, false>;
  using Base::Base;
  ap_uint() = default;
  ap_uint(const Base& v) : Base(v) {}
};
