// Helpers for operator tests: calls built from arrays and run by the interpreter in checking mode.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"
#include "tilewright/tensor/op.h"

namespace tilewright::tensor::testing {

/// An array of `shape` with the values in row-major order (cycled if there are fewer).
inline Array array(DType dtype, Shape shape, const std::vector<double>& values) {
  Array out(dtype, std::move(shape));
  for (int64_t i = 0; i < out.size() && !values.empty(); ++i)
    out.set(i, values[static_cast<size_t>(i) % values.size()]);
  return out;
}
inline Array ints(const std::vector<int64_t>& values, DType dtype = DType::I64) {
  Array out(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) out.set_int(static_cast<int64_t>(i), values[i]);
  return out;
}
/// 0, 1, 2, ... : every element tells where it came from.
inline Array iota(Shape shape, DType dtype = DType::F32) {
  Array out(dtype, std::move(shape));
  for (int64_t i = 0; i < out.size(); ++i) out.set_int(i, i);
  return out;
}
/// Multiples of 1/8 in [-2, 2): exact in every float type.
inline Array random(Shape shape, uint64_t seed, DType dtype = DType::F32) {
  Rng rng(seed);
  Array out(dtype, std::move(shape));
  for (int64_t i = 0; i < out.size(); ++i)
    out.set(i, static_cast<double>(rng.between(-16, 15)) / 8);
  return out;
}

/// An input: an array, its value known at compile time or not; or absent.
struct Given {
  Array value;
  bool known = false, present = true;
  Given(Array v, bool k = false) : value(std::move(v)), known(k) {}  // NOLINT: implicit on purpose
};
inline Given known(Array v) { return Given(std::move(v), true); }
inline Given absent() {
  Given g{Array(DType::F32, {0})};
  g.present = false;
  return g;
}

inline OpCall make_call(std::string op, std::map<std::string, AttrValue> attrs,
                        const std::vector<Given>& inputs, int outputs = 1) {
  OpCall call;
  call.op = std::move(op);
  call.attrs.values = std::move(attrs);
  call.num_outputs = outputs;
  for (const Given& g : inputs) {
    InputInfo info{g.present, g.value.dtype(), g.value.shape(), std::nullopt};
    if (g.present && g.known) info.value = g.value;
    call.inputs.push_back(std::move(info));
  }
  return call;
}

/// Infers, defines, verifies, prints and parses, and runs the operator in checking mode.
inline std::vector<Array> run(std::string op, std::map<std::string, AttrValue> attrs,
                              const std::vector<Given>& inputs, int outputs = 1) {
  const OpCall call = make_call(std::move(op), std::move(attrs), inputs, outputs);
  const auto types = infer(call);
  EXPECT_TRUE(types) << to_string(types.error());
  if (!types) return {};
  const auto func = op_func(call);
  EXPECT_TRUE(func) << to_string(func.error());
  if (!func) return {};
  const auto legal = verify(*func, Stage::Tensor);
  EXPECT_TRUE(legal) << to_string(legal.error()) << print(*func);
  const auto parsed = parse_func(print(*func));
  EXPECT_TRUE(parsed && equal(*parsed, *func)) << print(*func);
  interp::Arguments arguments;
  for (const Param& p : func->params) {
    if (p.mode == ParamMode::Out || p.values) continue;
    arguments.arrays[p.buffer.name()] =
        inputs[static_cast<size_t>(std::stoi(p.buffer.name().substr(1)))].value;
  }
  interp::Options options;
  options.check = true;
  const auto outcome = interp::run(*func, arguments, options);
  EXPECT_TRUE(outcome) << to_string(outcome.error()) << print(*func);
  if (!outcome) return {};
  for (const interp::Finding& f : outcome->findings) ADD_FAILURE() << f.text << print(*func);
  std::vector<Array> out;
  for (size_t i = 0; i < static_cast<size_t>(outputs); ++i) {
    out.push_back(outcome->outputs.at("y" + std::to_string(i)));
    EXPECT_EQ(out.back().shape(), (*types)[i].shape);
    EXPECT_EQ(out.back().dtype(), (*types)[i].dtype);
  }
  return out;
}

/// The error of the shape rule as printed; empty if there is none.
inline std::string error_of(std::string op, std::map<std::string, AttrValue> attrs,
                            const std::vector<Given>& inputs, int outputs = 1) {
  const auto types = infer(make_call(std::move(op), std::move(attrs), inputs, outputs));
  return types ? "" : to_string(types.error());
}

/// Calls f with every index of `shape` and its row-major position.
inline void for_each_index(const Shape& shape,
                           const std::function<void(const Shape&, int64_t)>& f) {
  Shape at(shape.size(), 0);
  for (int64_t i = 0; i < element_count(shape); ++i) {
    f(at, i);
    for (size_t k = shape.size(); k-- > 0 && ++at[k] == shape[k];) at[k] = 0;
  }
}
/// The element of `a` at an index.
inline double at(const Array& a, const Shape& index) {
  int64_t flat = 0;
  for (size_t i = 0; i < index.size(); ++i) flat = flat * a.shape()[i] + index[i];
  return a.get(flat);
}

/// Every element equals what `f` says of its index, within `tolerance` (0: exactly).
inline void expect_elements(const Array& got, const Shape& shape,
                            const std::function<double(const Shape&)>& f, double tolerance = 0) {
  ASSERT_EQ(got.shape(), shape);
  int failures = 0;
  for_each_index(shape, [&](const Shape& index, int64_t i) {
    const double want = f(index);
    const bool same = std::abs(got.get(i) - want) <= tolerance;
    if (!same && ++failures < 5)
      ADD_FAILURE() << "at " << to_string(index) << ": " << got.get(i) << ", expected " << want;
  });
  EXPECT_EQ(failures, 0);
}

}  // namespace tilewright::tensor::testing
