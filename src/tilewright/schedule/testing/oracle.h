// For tests: runs programs with the interpreter on integer-valued data and compares.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"

namespace tilewright::schedule::testing {

/// Small integers for every input of `func`: sums and products of a few are exact in any order.
inline interp::Arguments make_arguments(const Func& func, uint64_t seed) {
  Rng rng(seed);
  interp::Arguments args;
  std::map<Var, int64_t> values;
  for (const Scalar& s : func.scalars) {
    values[s.var] = std::min(s.hi, std::max<int64_t>(s.lo, 5));
    args.scalars[s.var.name()] = values[s.var];
  }
  for (const Param& p : func.params) {
    if (p.mode == ParamMode::Out || p.values) continue;
    Shape shape;
    for (const Expr& e : p.buffer.shape())
      shape.push_back(static_cast<int64_t>(interp::evaluate(e, values).value_or(0)));
    Array a(p.buffer.dtype(), shape);
    const int64_t low = is_unsigned_int(a.dtype()) || a.dtype() == DType::Bool ? 0 : -2;
    const int64_t high = a.dtype() == DType::Bool ? 1 : 2;
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, static_cast<double>(rng.between(low, high)));
    args.arrays[p.buffer.name()] = a;
  }
  return args;
}

inline constexpr std::chrono::seconds kPatience{5};

/// Empty if `after` gives the outputs in `expected` and the checking mode finds nothing, else what
/// is wrong. `in_place`: elements may be written by a second block.
inline std::string difference(const interp::Outcome& expected, const Func& after,
                              const interp::Arguments& arguments, uint64_t seed,
                              bool in_place = false) {
  interp::Options options;
  options.single_assignment = !in_place;
  options.check = true;
  options.seed = seed;
  // A step that makes a loop far longer than what it replaces is wrong too.
  const auto start = std::chrono::steady_clock::now();
  options.stop = [start] { return std::chrono::steady_clock::now() - start > kPatience; };
  const auto got = interp::run(after, arguments, options);
  if (!got) return to_string(got.error());
  if (!got->findings.empty()) return "finding: " + got->findings[0].text;
  for (const auto& [name, array] : expected.outputs) {
    const auto it = got->outputs.find(name);
    if (it == got->outputs.end()) return "no output " + name;
    for (int64_t i = 0; i < array.size(); ++i)
      if (array.get(i) != it->second.get(i) &&
          !(std::isnan(array.get(i)) && std::isnan(it->second.get(i))))
        return fmt::format("output {} differs at {}: {} expected, {} computed", name, i,
                           array.get(i), it->second.get(i));
  }
  return "";
}

inline std::string difference(const Func& before, const Func& after, uint64_t seed,
                              bool in_place = false) {
  const interp::Arguments arguments = make_arguments(before, seed);
  const auto expected = interp::run(before, arguments);
  if (!expected) return "original: " + to_string(expected.error());
  return difference(*expected, after, arguments, seed, in_place);
}

}  // namespace tilewright::schedule::testing
