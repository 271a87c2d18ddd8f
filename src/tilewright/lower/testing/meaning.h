// For tests of passes: whether a program still means the same.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"

namespace tilewright::lower::testing {

/// Small whole numbers for all that `func` reads.
inline interp::Arguments arguments_of(const Func& func, uint64_t seed) {
  Rng rng(seed);
  interp::Arguments out;
  std::map<Var, int64_t> scalars;
  for (const Scalar& s : func.scalars)
    scalars[s.var] = out.scalars[s.var.name()] = rng.between(s.lo, std::min(s.hi, s.lo + 20));
  for (const Param& p : func.params) {
    if (p.mode == ParamMode::Out || p.values) continue;
    Shape shape;
    for (const Expr& e : p.buffer.shape())
      shape.push_back(static_cast<int64_t>(interp::evaluate(e, scalars).value_or(0)));
    Array array(p.buffer.dtype(), shape);
    const int64_t low = is_unsigned_int(array.dtype()) || array.dtype() == DType::Bool ? 0 : -3;
    const int64_t high = array.dtype() == DType::Bool ? 1 : 3;
    for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, rng.between(low, high));
    out.arrays[p.buffer.name()] = array;
  }
  return out;
}

/// What differs between two runs; f32 functions may differ by their expansion.
inline std::string difference(const interp::Outcome& a, const interp::Outcome& b,
                              double tolerance) {
  for (const auto& [name, x] : a.outputs) {
    const Array& y = b.outputs.at(name);
    for (int64_t i = 0; i < x.size(); ++i) {
      const double p = x.get(i), q = y.get(i);
      if (p == q || (std::isnan(p) && std::isnan(q))) continue;
      const double limit = is_float(x.dtype()) ? tolerance * std::max(1.0, std::abs(p))
                                               : (tolerance > 0 ? 1.0 : 0.0);
      if (!(std::abs(p - q) <= limit))
        return fmt::format("{}[{}]: {} before, {} after", name, i, p, q);
    }
  }
  return "";
}

/// Other rounding in f16 and bf16 is possible only where a function was expanded.
inline double tolerance_of(const std::string& pass) { return pass == "expand_math" ? 2e-2 : 0; }

/// What differs between a program and what `pass` made of it; empty if nothing does.
inline std::string changed_meaning(const Func& before, const Func& after, const std::string& pass,
                                   uint64_t seed) {
  const interp::Arguments arguments = arguments_of(before, seed);
  const auto expected = interp::run(before, arguments);
  if (!expected) return "before: " + to_string(expected.error());
  const auto got = interp::run(after, arguments);
  return got ? difference(*expected, *got, tolerance_of(pass)) : to_string(got.error());
}

}  // namespace tilewright::lower::testing
