#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using testing::array_of;
using testing::AttrMap;
using testing::call_of;
using testing::error_of;
using testing::expect_close;
using testing::filled;
using testing::flat;
using testing::for_each_index;
using ::testing::HasSubstr;
using testing::Ints;
using testing::random_array;
using testing::run_op;
using testing::value_at;

struct PoolCase {
  Shape x;
  Ints kernel, strides, pads, dilations;
  bool ceil = false;
};

const std::vector<PoolCase>& pool_cases() {
  static const std::vector<PoolCase> cases = {
      {{1, 2, 6, 6}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}},
      {{2, 1, 7, 5}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
      {{1, 1, 7, 8}, {3, 2}, {2, 3}, {1, 0, 0, 1}, {2, 1}, true},
      {{1, 1, 4, 4}, {3, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true},
      {{1, 1, 3, 3}, {2, 2}, {2, 2}, {1, 1, 0, 0}, {1, 1}, true},
      {{1, 1, 2, 2}, {3, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true},
      {{1, 2, 2, 5}, {4, 2}, {3, 2}, {0, 0, 0, 0}, {1, 1}, true},
      {{1, 1, 3}, {3}, {4}, {0, 1}, {2}, true},
      {{1, 2, 9}, {4}, {3}, {2, 1}, {1}},
      {{1, 1, 4, 3, 5}, {2, 2, 3}, {1, 2, 2}, {1, 0, 1, 0, 1, 1}, {1, 1, 1}},
  };
  return cases;
}

AttrMap attrs_of(const PoolCase& c) {
  return {{"kernel_shape", c.kernel},
          {"strides", c.strides},
          {"pads", c.pads},
          {"dilations", c.dilations},
          {"ceil_mode", int64_t{c.ceil}}};
}

/// The outputs along one axis: windows that start inside the input or the padding before it.
int64_t outputs(const PoolCase& c, size_t i) {
  const size_t rank = c.kernel.size();
  const int64_t padded = c.x[i + 2] + c.pads[i] + c.pads[i + rank];
  const int64_t reach = c.dilations[i] * (c.kernel[i] - 1) + 1;
  int64_t count = 0;
  for (int64_t start = 0; start < c.x[i + 2] + c.pads[i]; start += c.strides[i]) {
    const bool whole = start + reach <= padded;
    const bool reaches_something_new = c.ceil && start + reach - padded < c.strides[i];
    if (whole || reaches_something_new) ++count;
  }
  return count;
}

/// What a window holds: positions in the input, and how many taps lie in input or padding.
struct Members {
  std::vector<Ints> positions;
  int64_t with_padding = 0;
};

Members members(const PoolCase& c, const Ints& at) {
  const size_t rank = c.kernel.size();
  Members m;
  for_each_index(c.kernel, [&](const Ints& t) {
    Ints p = {at[0], at[1]};
    bool in_input = true, in_padding = true;
    for (size_t i = 0; i < rank; ++i) {
      p.push_back(at[i + 2] * c.strides[i] + t[i] * c.dilations[i] - c.pads[i]);
      in_input &= p.back() >= 0 && p.back() < c.x[i + 2];
      in_padding &= p.back() < c.x[i + 2] + c.pads[i + rank];
    }
    if (in_input) m.positions.push_back(p);
    m.with_padding += in_padding ? 1 : 0;
  });
  return m;
}

Array naive_pool(const PoolCase& c, DType dtype, const std::function<double(const Members&)>& f) {
  Shape out = {c.x[0], c.x[1]};
  for (size_t i = 0; i < c.kernel.size(); ++i) out.push_back(outputs(c, i));
  return filled(dtype, out, [&](const Ints& at) { return f(members(c, at)); });
}

TEST(MaxPool, ValuesAndPositions) {
  int seed = 0;
  for (const PoolCase& c : pool_cases()) {
    for (const DType dtype : {DType::F32, DType::I8, DType::F16}) {
      const Array x = random_array(dtype, c.x, ++seed, -9, 9);
      const auto best = [&](const Members& m) {
        return *std::max_element(
            m.positions.begin(), m.positions.end(),
            [&](const Ints& a, const Ints& b) { return value_at(x, a) < value_at(x, b); });
      };
      for (const int64_t order : {0, 1}) {
        AttrMap attrs = attrs_of(c);
        attrs["storage_order"] = order;
        const auto got = run_op("MaxPool", {x}, attrs, 2);
        expect_close(got[0],
                     naive_pool(c, dtype, [&](const Members& m) { return value_at(x, best(m)); }));
        expect_close(got[1], naive_pool(c, DType::I64, [&](const Members& m) {
                       Ints p = best(m);
                       if (order == 0) return static_cast<double>(flat(c.x, p));
                       Shape shape = c.x;
                       std::reverse(p.begin() + 2, p.end());
                       std::reverse(shape.begin() + 2, shape.end());
                       return static_cast<double>(flat(shape, p));
                     }));
      }
    }
  }
}

TEST(MaxPool, NanWins) {
  const Array x = array_of(DType::F32, {1, 1, 4}, {1, NAN, 3, 2});
  const auto got = run_op("MaxPool", {x}, {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}}, 2);
  expect_close(got[0], array_of(DType::F32, {1, 1, 2}, {NAN, 3}));
  expect_close(got[1], array_of(DType::I64, {1, 1, 2}, {1, 2}));
}

TEST(AveragePool, CountsWhatItShould) {
  int seed = 50;
  for (const PoolCase& c : pool_cases()) {
    const Array x = random_array(DType::F32, c.x, ++seed);
    for (const int64_t include : {0, 1}) {
      AttrMap attrs = attrs_of(c);
      attrs["count_include_pad"] = include;
      const Array want = naive_pool(c, DType::F32, [&](const Members& m) {
        double sum = 0;
        for (const Ints& p : m.positions) sum += value_at(x, p);
        const auto inside = static_cast<double>(m.positions.size());
        return sum / (include ? static_cast<double>(m.with_padding) : inside);
      });
      expect_close(run_op("AveragePool", {x}, attrs)[0], want, 1e-6, to_string(c.x));
    }
  }
}

TEST(LpPool, SumsPowers) {
  int seed = 90;
  for (const PoolCase& c : pool_cases()) {
    const Array x = random_array(DType::F32, c.x, ++seed);
    for (const int64_t p : {1, 2, 3}) {
      AttrMap attrs = attrs_of(c);
      attrs["p"] = p;
      const Array want = naive_pool(c, DType::F32, [&](const Members& m) {
        double sum = 0;
        for (const Ints& at : m.positions)
          sum += std::pow(std::abs(value_at(x, at)), static_cast<double>(p));
        return std::pow(sum, 1.0 / static_cast<double>(p));
      });
      expect_close(run_op("LpPool", {x}, attrs)[0], want, 1e-5);
    }
  }
}

TEST(GlobalPools, ReduceAllPositions) {
  const Shape shape = {2, 3, 4, 5};
  const Array x = random_array(DType::F16, shape, 7);
  const auto over = [&](const std::function<double(const std::vector<double>&)>& f) {
    return filled(DType::F16, {2, 3, 1, 1}, [&](const Ints& at) {
      std::vector<double> values;
      for_each_index({4, 5}, [&](const Ints& p) {
        values.push_back(value_at(x, {at[0], at[1], p[0], p[1]}));
      });
      return f(values);
    });
  };
  expect_close(run_op("GlobalMaxPool", {x})[0],
               over([](const auto& v) { return *std::max_element(v.begin(), v.end()); }));
  expect_close(run_op("GlobalAveragePool", {x})[0], over([](const auto& v) {
                 double sum = 0;
                 for (const double e : v) sum += e;
                 return sum / 20;
               }),
               1e-3);
  expect_close(run_op("GlobalLpPool", {x}, {{"p", int64_t{1}}})[0], over([](const auto& v) {
                 double sum = 0;
                 for (const double e : v) sum += std::abs(e);
                 return sum;
               }));
}

TEST(MaxUnpool, PutsMaximaBack) {
  const Array x = array_of(DType::F32, {1, 1, 2, 2}, {1, -2, 3, 4});
  const Array at = array_of(DType::I64, {1, 1, 2, 2}, {5, 7, 13, 15});
  const AttrMap attrs = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  expect_close(
      run_op("MaxUnpool", {x, at}, attrs)[0],
      array_of(DType::F32, {1, 1, 4, 4}, {0, 0, 0, 0, 0, 1, 0, -2, 0, 0, 0, 0, 0, 3, 0, 4}));
}

TEST(Pools, RejectWhatDoesNotFit) {
  const Array x(DType::F32, {1, 1, 4, 4});
  EXPECT_THAT(error_of(call_of("MaxPool", {x})), HasSubstr("kernel_shape is missing"));
  EXPECT_THAT(error_of(call_of("MaxPool", {x}, {{"kernel_shape", Ints{2}}})),
              HasSubstr("the kernel has 1 axes, the input has 2"));
  EXPECT_THAT(error_of(call_of("MaxPool", {x}, {{"kernel_shape", Ints{5, 2}}})),
              HasSubstr("window 5, input 4"));
  EXPECT_THAT(
      error_of(call_of("AveragePool", {Array(DType::I32, {1, 1, 4})}, {{"kernel_shape", Ints{2}}})),
      HasSubstr("floating-point"));
  EXPECT_THAT(error_of(call_of("GlobalMaxPool", {Array(DType::F32, {4})})), HasSubstr("channel"));
  EXPECT_THAT(
      error_of(call_of("MaxPool", {x},
                       {{"kernel_shape", Ints{2, 2}}, {"auto_pad", std::string("SOMETIMES")}})),
      HasSubstr("SOMETIMES"));
}

}  // namespace
}  // namespace tilewright::tensor
