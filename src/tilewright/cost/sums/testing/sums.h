// Programs for tests of sums of products: from text or by name, and whether two compute the same.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/cost/sums/computation.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/tensor/text.h"
#include "tilewright/tensor/workload.h"

namespace tilewright::cost::sums_testing {

inline Func parsed(const std::string& text) {
  const Result<Func> func = tensor::parse_tensor_file(text);
  EXPECT_TRUE(func) << to_string(func.error());
  return *func;
}

inline Func operation(const std::string& name, const std::map<std::string, int64_t>& params,
                      DType dtype = DType::I8) {
  const auto call = tensor::workload_call(name, params, dtype);
  EXPECT_TRUE(call) << to_string(call.error());
  const auto func = tensor::op_func(*call);
  EXPECT_TRUE(func) << to_string(func.error());
  return *func;
}

inline std::vector<std::string> texts(const Computations& found) {
  std::vector<std::string> out;
  for (const Computation& sum : found.sums) out.push_back(to_string(sum));
  return out;
}

/// Small random numbers for every input.
inline interp::Arguments arguments(const Func& func, uint64_t seed) {
  Rng rng(seed);
  interp::Arguments args;
  for (const Param& param : func.params) {
    if (param.mode == ParamMode::Out) continue;
    Shape shape;
    for (const Expr& extent : param.buffer.shape()) shape.push_back(*as_int(extent));
    Array array(param.buffer.dtype(), shape);
    for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, rng.between(-9, 9));
    args.arrays.emplace(param.buffer.name(), std::move(array));
  }
  return args;
}

/// The first output, flat; inputs by name, in whatever shape `func` has them.
inline std::vector<int64_t> result(const Func& func, const interp::Arguments& flat) {
  interp::Arguments args;
  std::string output;
  for (const Param& param : func.params) {
    Shape shape;
    for (const Expr& extent : param.buffer.shape()) shape.push_back(*as_int(extent));
    if (param.mode == ParamMode::Out) {
      output = param.buffer.name();
      continue;
    }
    const Array& values = flat.arrays.at(param.buffer.name());
    Array array(param.buffer.dtype(), shape);
    EXPECT_EQ(array.size(), values.size()) << param.buffer.name();
    for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, values.get_int(i));
    args.arrays.emplace(param.buffer.name(), std::move(array));
  }
  const auto outcome = interp::run(func, args);
  EXPECT_TRUE(outcome) << to_string(outcome.error()) << print(func);
  std::vector<int64_t> values;
  if (!outcome) return values;
  const Array& array = outcome->outputs.at(output);
  for (int64_t i = 0; i < array.size(); ++i) values.push_back(array.get_int(i));
  return values;
}

inline void expect_same_results(const Func& one, const Func& other, const std::string& what) {
  const interp::Arguments args = arguments(one, 7);
  const std::vector<int64_t> expected = result(one, args);
  EXPECT_EQ(result(other, args), expected) << what;
  EXPECT_NE(expected, std::vector<int64_t>(expected.size(), 0)) << what;
}

inline const std::map<std::string, int64_t> kMttkrp = {{"i", 3}, {"j", 4}, {"k", 5}, {"l", 2}};

}  // namespace tilewright::cost::sums_testing
