// Kernels and operands for tests of schedules.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/schedule/step.h"
#include "tilewright/tensor/op.h"

namespace tilewright::rules {

/// One operator on f32 inputs.
struct OpCase {
  std::string domain, op;
  std::vector<Shape> inputs;
  std::map<std::string, tensor::AttrValue> attrs;
};

inline Func func_of(const OpCase& c) {
  tensor::OpCall call;
  call.domain = c.domain;
  call.op = c.op;
  call.attrs.values = c.attrs;
  for (const Shape& shape : c.inputs) call.inputs.push_back({true, DType::F32, shape, {}});
  Result<Func> func = tensor::op_func(call);
  EXPECT_TRUE(func) << c.op << (func ? "" : to_string(func.error()));
  return *func;
}

/// An array for every parameter that is read, filled by `fill`.
inline interp::Arguments arguments_of(const Func& func, const std::function<void(Array&)>& fill) {
  interp::Arguments arguments;
  for (const Param& param : func.params) {
    if (param.mode == ParamMode::Out) continue;
    Shape shape;
    for (const Expr& extent : param.buffer.shape()) shape.push_back(*as_int(extent));
    Array array(param.buffer.dtype(), shape);
    fill(array);
    arguments.arrays[param.buffer.name()] = std::move(array);
  }
  return arguments;
}

/// Whole ranges of bytes, small integers of other types, whose products and sums are exact.
inline interp::Arguments whole_bytes(const Func& func, uint64_t seed = 7) {
  Rng rng(seed);
  return arguments_of(func, [&](Array& array) {
    const bool byte = bit_width(array.dtype()) == 8;
    const int64_t lo = is_unsigned_int(array.dtype()) ? 0 : byte ? -128 : -4;
    for (int64_t i = 0; i < array.size(); ++i)
      array.set_int(i, rng.between(lo, byte ? lo + 255 : 4));
  });
}

/// How many loops of the trace are instructions.
inline size_t tensorized(const schedule::Trace& trace) {
  return static_cast<size_t>(std::count_if(trace.begin(), trace.end(), [](const auto& step) {
    return std::holds_alternative<schedule::Tensorize>(step);
  }));
}

/// Multiples of 1/4 from -2 to 2.
inline interp::Arguments quarters(const Func& func, uint64_t seed = 7) {
  Rng rng(seed);
  return arguments_of(func, [&](Array& array) {
    for (int64_t i = 0; i < array.size(); ++i)
      array.set(i, static_cast<double>(rng.between(-8, 8)) / 4);
  });
}

}  // namespace tilewright::rules
