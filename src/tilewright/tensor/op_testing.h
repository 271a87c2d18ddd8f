// What the operator tests share: building calls, running them in the interpreter's checking mode,
// and comparing with expectations computed by plain loops.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/verify.h"
#include "tilewright/tensor/op.h"

namespace tilewright::tensor::testing {

using Ints = std::vector<int64_t>;
using AttrMap = std::map<std::string, AttrValue>;

/// Integer-valued elements in [lo, hi], so that every order of additions is exact.
inline Array random_array(DType dtype, const Shape& shape, uint64_t seed, int64_t lo = -4,
                          int64_t hi = 4) {
  Rng rng(seed);
  Array out(dtype, shape);
  for (int64_t i = 0; i < out.size(); ++i) out.set(i, static_cast<double>(rng.between(lo, hi)));
  return out;
}

inline Array array_of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  return Array::of(dtype, values).reshaped(shape);
}
inline Array ints_of(const Ints& values) {
  const std::vector<double> reals(values.begin(), values.end());
  return Array::of(DType::I64, reals);
}

/// A call on these inputs; an empty array stands for an absent one.
inline OpCall call_of(const std::string& op, const std::vector<Array>& inputs, AttrMap attrs = {},
                      const std::string& domain = "") {
  OpCall call;
  call.domain = domain;
  call.op = op;
  call.attrs.values = std::move(attrs);
  const OpDef* def = find_op(domain, op);
  for (size_t i = 0; i < inputs.size(); ++i) {
    InputInfo info;
    info.present = !inputs[i].empty_handle();
    info.dtype = inputs[i].dtype();
    info.shape = inputs[i].shape();
    for (const int c : def ? def->constant_inputs : std::vector<int>{})
      if (info.present && c == static_cast<int>(i)) info.value = inputs[i];
    call.inputs.push_back(std::move(info));
  }
  return call;
}

/// Runs the call's Func on the arrays; checks that it verifies, that the checking mode finds
/// nothing, and that outputs have the types the shape rule has promised.
inline std::vector<Array> run_call(const OpCall& call, const std::vector<Array>& inputs) {
  const auto types = infer(call);
  if (!types) {
    ADD_FAILURE() << to_string(types.error());
    return {};
  }
  const auto func = op_func(call);
  if (!func) {
    ADD_FAILURE() << to_string(func.error());
    return {};
  }
  if (const Status ok = verify(*func, Stage::Tensor); !ok)
    ADD_FAILURE() << call.op << ": " << to_string(ok.error());
  interp::Arguments arguments;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (const Param& p : func->params)
      if (p.buffer.name() == "x" + std::to_string(i) && !p.values)
        arguments.arrays[p.buffer.name()] = inputs[i];
  interp::Options options;
  options.check = true;
  const auto outcome = interp::run(*func, arguments, options);
  if (!outcome) {
    ADD_FAILURE() << call.op << ": " << to_string(outcome.error());
    return {};
  }
  for (const interp::Finding& f : outcome->findings) ADD_FAILURE() << call.op << ": " << f.text;
  std::vector<Array> out;
  for (int i = 0; i < call.num_outputs; ++i) {
    out.push_back(outcome->outputs.at("y" + std::to_string(i)));
    const TensorType& type = (*types)[static_cast<size_t>(i)];
    EXPECT_EQ(out.back().dtype(), type.dtype) << call.op;
    EXPECT_EQ(out.back().shape(), type.shape) << call.op;
  }
  return out;
}

inline std::vector<Array> run_op(const std::string& op, const std::vector<Array>& inputs,
                                 AttrMap attrs = {}, int outputs = 1,
                                 const std::string& domain = "") {
  OpCall call = call_of(op, inputs, std::move(attrs), domain);
  call.num_outputs = outputs;
  std::vector<Array> out = run_call(call, inputs);
  out.resize(static_cast<size_t>(outputs), Array(DType::F32, {0}));
  return out;
}

/// The error text of a call that must fail, or "accepted".
inline std::string error_of(const OpCall& call) {
  const auto types = infer(call);
  return types ? "accepted" : to_string(types.error());
}

/// Calls f with every index of a shape, last axis fastest.
inline void for_each_index(const Shape& shape, const std::function<void(const Ints&)>& f) {
  Ints at(shape.size(), 0);
  for (int64_t i = 0; i < element_count(shape); ++i) {
    f(at);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
}

inline int64_t flat(const Shape& shape, const Ints& at) {
  int64_t position = 0;
  for (size_t i = 0; i < shape.size(); ++i) position = position * shape[i] + at[i];
  return position;
}
inline double value_at(const Array& a, const Ints& at) { return a.get(flat(a.shape(), at)); }
/// The element, or `outside` where an index leaves the array.
inline double value_or(const Array& a, const Ints& at, double outside) {
  for (size_t i = 0; i < at.size(); ++i)
    if (at[i] < 0 || at[i] >= a.shape()[i]) return outside;
  return value_at(a, at);
}

/// An array filled by a function of the index.
inline Array filled(DType dtype, const Shape& shape, const std::function<double(const Ints&)>& f) {
  Array out(dtype, shape);
  for_each_index(shape, [&](const Ints& at) { out.set(flat(shape, at), f(at)); });
  return out;
}

inline void expect_close(const Array& got, const Array& want, double tolerance = 0,
                         const std::string& what = "") {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_EQ(got.shape(), want.shape()) << what;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double a = got.get(i), b = want.get(i);
    if (std::isnan(b)) {
      ASSERT_TRUE(std::isnan(a)) << what << " element " << i;
    } else if (a != b) {
      ASSERT_LE(std::abs(a - b), tolerance * (1 + std::abs(b)))
          << what << " element " << i << ": got " << a << ", want " << b;
    }
  }
}

/// The domain of this project's own operators.
inline constexpr const char* kOurs = "tilewright";

/// The only result of one of them.
inline Array ours(const std::string& op, const std::vector<Array>& inputs,
                  const AttrMap& attrs = {}) {
  return run_op(op, inputs, attrs, 1, kOurs)[0];
}

inline std::string our_error(const std::string& op, const std::vector<Array>& inputs,
                             const AttrMap& attrs = {}) {
  return error_of(call_of(op, inputs, attrs, kOurs));
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace tilewright::tensor::testing
