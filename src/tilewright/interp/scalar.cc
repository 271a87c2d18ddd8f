#include "tilewright/interp/scalar.h"

namespace tilewright::interp {

double float_math(MathFn fn, double a) {
  switch (fn) {
    case MathFn::Abs:
      return std::fabs(a);
    case MathFn::Exp:
      return std::exp(a);
    case MathFn::Log:
      return std::log(a);
    case MathFn::Sqrt:
      return std::sqrt(a);
    case MathFn::Rsqrt:
      return 1 / std::sqrt(a);
    case MathFn::Sin:
      return std::sin(a);
    case MathFn::Cos:
      return std::cos(a);
    case MathFn::Tan:
      return std::tan(a);
    case MathFn::Asin:
      return std::asin(a);
    case MathFn::Acos:
      return std::acos(a);
    case MathFn::Atan:
      return std::atan(a);
    case MathFn::Sinh:
      return std::sinh(a);
    case MathFn::Cosh:
      return std::cosh(a);
    case MathFn::Tanh:
      return std::tanh(a);
    case MathFn::Asinh:
      return std::asinh(a);
    case MathFn::Acosh:
      return std::acosh(a);
    case MathFn::Atanh:
      return std::atanh(a);
    case MathFn::Erf:
      return std::erf(a);
    case MathFn::Sigmoid:
      return 1 / (1 + std::exp(-a));
    case MathFn::Floor:
      return std::floor(a);
    case MathFn::Ceil:
      return std::ceil(a);
    case MathFn::Round:
      return std::nearbyint(a);  // half to even: the default rounding mode
    case MathFn::Trunc:
      return std::trunc(a);
    case MathFn::IsNan:
    case MathFn::IsInf:
    case MathFn::Popcount:
    case MathFn::Pow:
    case MathFn::TruncDiv:
    case MathFn::TruncMod:
      break;
  }
  TW_CHECK(false, "{} is not a function of one float", name(fn));
}

double float_math(MathFn fn, double a, double b) {
  if (fn == MathFn::Pow) return std::pow(a, b);
  TW_CHECK(fn == MathFn::TruncMod, "{} is not a function of two floats", name(fn));
  return std::fmod(a, b);
}

}  // namespace tilewright::interp
