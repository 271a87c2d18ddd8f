// Kernels and operands for tests of schedules.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/tensor/op.h"

namespace tilewright::tune {

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

/// Multiples of 1/4 from -2 to 2.
inline interp::Arguments quarters(const Func& func, uint64_t seed = 7) {
  Rng rng(seed);
  return arguments_of(func, [&](Array& array) {
    for (int64_t i = 0; i < array.size(); ++i)
      array.set(i, static_cast<double>(rng.between(-8, 8)) / 4);
  });
}

}  // namespace tilewright::tune
