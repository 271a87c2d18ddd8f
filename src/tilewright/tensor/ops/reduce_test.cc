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
using testing::flat;
using testing::for_each_index;
using ::testing::HasSubstr;
using testing::Ints;
using testing::ints_of;
using testing::random_array;
using testing::run_op;
using testing::value_at;

using Group = std::vector<double>;
double sum(const Group& v) {
  double s = 0;
  for (const double e : v) s += e;
  return s;
}

struct ReductionRow {
  const char* op;
  double (*f)(const Group&);
};
const ReductionRow kRows[] = {
    {"ReduceSum", sum},
    {"ReduceMean", [](const Group& v) { return sum(v) / static_cast<double>(v.size()); }},
    {"ReduceMax", [](const Group& v) { return *std::max_element(v.begin(), v.end()); }},
    {"ReduceMin", [](const Group& v) { return *std::min_element(v.begin(), v.end()); }},
    {"ReduceProd",
     [](const Group& v) {
       double p = 1;
       for (const double e : v) p *= e;
       return p;
     }},
    {"ReduceL1",
     [](const Group& v) {
       double s = 0;
       for (const double e : v) s += std::abs(e);
       return s;
     }},
    {"ReduceL2",
     [](const Group& v) {
       double s = 0;
       for (const double e : v) s += e * e;
       return std::sqrt(s);
     }},
    {"ReduceSumSquare",
     [](const Group& v) {
       double s = 0;
       for (const double e : v) s += e * e;
       return s;
     }},
    {"ReduceLogSum", [](const Group& v) { return std::log(sum(v)); }},
    {"ReduceLogSumExp",
     [](const Group& v) {
       double s = 0;
       for (const double e : v) s += std::exp(e);
       return std::log(s);
     }},
};

/// Collects groups by their kept position, then applies f to each.
Array naive_reduce(const Array& x, const Ints& axes, bool keepdims, double (*f)(const Group&)) {
  Shape kept = x.shape(), out;
  for (const int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  for (size_t i = 0; i < kept.size(); ++i)
    if (keepdims || std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end())
      out.push_back(kept[i]);
  std::vector<Group> groups(static_cast<size_t>(element_count(kept)));
  for_each_index(x.shape(), [&](const Ints& at) {
    Ints place = at;
    for (const int64_t axis : axes) place[static_cast<size_t>(axis)] = 0;
    groups[static_cast<size_t>(flat(kept, place))].push_back(value_at(x, at));
  });
  Array y(x.dtype(), out);
  for (int64_t i = 0; i < y.size(); ++i) y.set(i, f(groups[static_cast<size_t>(i)]));
  return y;
}

TEST(Reduce, EveryOperatorOverEveryAxisSet) {
  const std::vector<Ints> axis_sets = {{0}, {1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}};
  for (const ReductionRow& row : kRows) {
    for (const auto& [dtype, tolerance] : {std::pair{DType::F32, 1e-5}, {DType::F16, 2e-3}}) {
      const Array x = random_array(dtype, {2, 3, 2}, 3, 1, 3);
      for (const Ints& axes : axis_sets) {
        for (const int64_t keep : {0, 1}) {
          const AttrMap attrs = {{"keepdims", keep}};
          expect_close(run_op(row.op, {x, ints_of(axes)}, attrs)[0],
                       naive_reduce(x, axes, keep != 0, row.f), tolerance, row.op);
        }
      }
    }
  }
}

TEST(Reduce, NoAxesMeansAllOrNone) {
  const Array x = random_array(DType::F32, {2, 3}, 1, 1, 4);
  for (const ReductionRow& row : kRows) {
    expect_close(run_op(row.op, {x})[0], naive_reduce(x, {0, 1}, true, row.f), 1e-5, row.op);
    expect_close(run_op(row.op, {x, ints_of({})}, {{"noop_with_empty_axes", int64_t{1}}})[0],
                 naive_reduce(x, {}, true, row.f), 1e-5, row.op);
    // Older versions name the axes in an attribute.
    expect_close(run_op(row.op, {x}, {{"axes", Ints{-1}}})[0], naive_reduce(x, {1}, true, row.f),
                 1e-5, row.op);
  }
}

TEST(Reduce, IntegersAndTruthValues) {
  const Array x = array_of(DType::I32, {2, 2}, {-7, 2, 3, 5});
  expect_close(run_op("ReduceSum", {x, ints_of({1})}, {{"keepdims", int64_t{0}}})[0],
               array_of(DType::I32, {2}, {-5, 8}));
  expect_close(run_op("ReduceMean", {x, ints_of({1})}, {{"keepdims", int64_t{0}}})[0],
               array_of(DType::I32, {2}, {-2, 4}));
  expect_close(run_op("ReduceL2", {x, ints_of({0})}, {{"keepdims", int64_t{0}}})[0],
               array_of(DType::I32, {2}, {7, 5}));
  const Array b = array_of(DType::Bool, {2, 2}, {0, 1, 0, 0});
  expect_close(run_op("ReduceMax", {b, ints_of({1})}, {{"keepdims", int64_t{0}}})[0],
               array_of(DType::Bool, {2}, {1, 0}));
  expect_close(run_op("ReduceMin", {b, ints_of({0})}, {{"keepdims", int64_t{0}}})[0],
               array_of(DType::Bool, {2}, {0, 0}));
  const Array u = array_of(DType::U8, {2}, {3, 250});
  EXPECT_EQ(run_op("ReduceMax", {u})[0].get_int(0), 250);
}

TEST(Reduce, EmptyAndInfiniteGroups) {
  const Array none(DType::F32, {2, 0});
  const auto over_none = [&](const char* op) {
    return run_op(op, {none, ints_of({1})}, {{"keepdims", int64_t{0}}})[0].get(0);
  };
  EXPECT_EQ(over_none("ReduceSum"), 0);
  EXPECT_EQ(over_none("ReduceProd"), 1);
  EXPECT_EQ(over_none("ReduceMax"), -INFINITY);
  EXPECT_EQ(over_none("ReduceMin"), INFINITY);
  EXPECT_EQ(over_none("ReduceLogSumExp"), -INFINITY);
  const auto log_sum_exp = [&](const std::vector<double>& v) {
    return run_op("ReduceLogSumExp", {array_of(DType::F32, {2}, v)})[0].get(0);
  };
  EXPECT_NEAR(log_sum_exp({1000, 1000}), 1000 + std::log(2), 1e-3);
  EXPECT_EQ(log_sum_exp({-INFINITY, -INFINITY}), -INFINITY);
  EXPECT_EQ(log_sum_exp({INFINITY, 0}), INFINITY);
  EXPECT_TRUE(std::isnan(log_sum_exp({NAN, 0})));
}

TEST(Reduce, RejectsBadAxes) {
  const Array x(DType::F32, {2, 3});
  EXPECT_THAT(error_of(call_of("ReduceSum", {x, ints_of({2})})),
              HasSubstr("axis 2 is outside a tensor of rank 2"));
  EXPECT_THAT(error_of(call_of("ReduceSum", {x, ints_of({0, -2})})), HasSubstr("named twice"));
  OpCall call = call_of("ReduceSum", {x, ints_of({0})});
  call.inputs[1].value.reset();
  EXPECT_THAT(error_of(call), HasSubstr("input 1 is computed at run time"));
}

TEST(ArgMax, FirstLastAndNan) {
  const Array x = array_of(DType::F32, {2, 3}, {1, 5, 5, 7, 2, 7});
  const auto arg = [&](const char* op, int64_t axis, int64_t last, const Array& in) {
    return run_op(op, {in},
                  {{"axis", axis}, {"keepdims", int64_t{0}}, {"select_last_index", last}})[0];
  };
  expect_close(arg("ArgMax", 1, 0, x), array_of(DType::I64, {2}, {1, 0}));
  expect_close(arg("ArgMax", -1, 1, x), array_of(DType::I64, {2}, {2, 2}));
  expect_close(arg("ArgMin", 0, 0, x), array_of(DType::I64, {3}, {0, 1, 0}));
  expect_close(arg("ArgMax", 0, 0, array_of(DType::F32, {3}, {1, NAN, 9})),
               array_of(DType::I64, {}, {1}));
  expect_close(arg("ArgMin", 0, 0, array_of(DType::I8, {3}, {5, -128, -128})),
               array_of(DType::I64, {}, {1}));
  EXPECT_EQ(run_op("ArgMax", {x}, {{"axis", int64_t{1}}})[0].shape(), (Shape{2, 1}));
  EXPECT_THAT(error_of(call_of("ArgMax", {Array(DType::F32, {2, 0})}, {{"axis", int64_t{1}}})),
              HasSubstr("no elements"));
}

TEST(CumSum, ExclusiveAndReverse) {
  const Array x = random_array(DType::F16, {2, 5, 3}, 1);
  for (const int64_t axis : {0, 1, -1}) {
    const size_t a = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
    for (const int64_t exclusive : {0, 1}) {
      for (const int64_t reverse : {0, 1}) {
        const Array want = testing::filled(DType::F16, x.shape(), [&](const Ints& at) {
          double total = 0;
          for (int64_t i = 0; i < x.shape()[a]; ++i) {
            const bool before = reverse ? i > at[a] : i < at[a];
            Ints p = at;
            p[a] = i;
            if (before || (i == at[a] && exclusive == 0)) total += value_at(x, p);
          }
          return total;
        });
        expect_close(run_op("CumSum", {x, ints_of({axis})},
                            {{"exclusive", exclusive}, {"reverse", reverse}})[0],
                     want);
      }
    }
  }
  expect_close(run_op("CumProd", {array_of(DType::I32, {4}, {2, 3, 4, 5}), ints_of({0})})[0],
               array_of(DType::I32, {4}, {2, 6, 24, 120}));
  EXPECT_THAT(error_of(call_of("CumSum", {x, ints_of({3})})), HasSubstr("axis 3"));
}

}  // namespace
}  // namespace tilewright::tensor
