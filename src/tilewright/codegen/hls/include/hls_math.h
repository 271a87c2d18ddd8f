// Mathematical functions by the names of vendors' hls_math.h, computed by the C library.
#pragma once

#include <cmath>

namespace hls {

using std::acos;
using std::acosh;
using std::asin;
using std::asinh;
using std::atan;
using std::atanh;
using std::ceil;
using std::cos;
using std::cosh;
using std::erf;
using std::exp;
using std::fabs;
using std::floor;
using std::fmod;
using std::isinf;
using std::isnan;
using std::log;
using std::pow;
using std::rint;
using std::sin;
using std::sinh;
using std::sqrt;
using std::tan;
using std::tanh;
using std::trunc;

}  // namespace hls
