#include "tilewright/rules/cpu/axes.h"

#include <gtest/gtest.h>

#include "tilewright/interp/interp.h"
#include "tilewright/ir/join_axes.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/cpu/default_schedule.h"

namespace tilewright::rules {
namespace {

using Ints = std::vector<int64_t>;

hw::CpuTarget avx2() {
  hw::CpuTarget target;
  target.vector_bytes = 32;
  target.vector_registers = 16;
  return target;
}

Shape shape_of_param(const Func& func, size_t param) {
  Shape shape;
  for (const Expr& extent : func.params[param].buffer.shape())
    shape.push_back(as_int(extent).value_or(0));
  return shape;
}

/// The kernel with its best axes computes what it does without.
Func checked(const OpCase& c) {
  const Func func = func_of(c), best = with_best_axes(func, avx2(), 1);
  const auto want = interp::run(func, quarters(func)), got = interp::run(best, quarters(best));
  EXPECT_TRUE(want && got) << c.op;
  if (!want || !got) return best;
  const Array &a = want->outputs.begin()->second, &b = got->outputs.begin()->second;
  EXPECT_EQ(a.size(), b.size()) << c.op;
  for (int64_t i = 0; i < std::min(a.size(), b.size()); ++i) EXPECT_EQ(a.get(i), b.get(i)) << i;
  return best;
}

TEST(BestAxes, PixelsAreRowsOfAProduct) {
  EXPECT_EQ(shape_of_param(checked({"", "MatMul", {{7, 7, 64}, {64, 64}}, {}}), 0),
            (Shape{49, 64}));
  const Func conv = checked(
      {"tilewright",
       "ConvBlocked",
       {{1, 4, 7, 7, 8}, {4, 4, 1, 1, 8, 8}, {32}},
       {{"pads", std::vector<int64_t>{0, 0, 0, 0}}, {"strides", std::vector<int64_t>{1, 1}}}});
  EXPECT_EQ(shape_of_param(conv, 0), (Shape{1, 4, 49, 8}));
}

TEST(BestAxes, FiltersOfAGroupAreRows) {
  const Func conv = checked({"",
                             "Conv",
                             {{1, 15, 11, 14}, {24, 5, 3, 3}, {24}},
                             {{"group", int64_t{3}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}}});
  EXPECT_EQ(shape_of_param(conv, 1), (Shape{3, 8, 5, 3, 3}));
  EXPECT_EQ(schedule_points(conv, avx2(), 1).front().point.rows, 8);
}

TEST(BestAxes, WindowsAndSumsOfOneValueStay) {
  const auto stays = [](const OpCase& c) { return equal(checked(c), func_of(c)); };
  EXPECT_TRUE(stays(
      {"tilewright",
       "ConvBlocked",
       {{1, 4, 9, 9, 8}, {4, 4, 3, 3, 8, 8}, {32}},
       {{"pads", std::vector<int64_t>{0, 0, 0, 0}}, {"strides", std::vector<int64_t>{1, 1}}}}));
  EXPECT_TRUE(stays({"", "Relu", {{7, 7, 24}}, {}}));
}

TEST(BestAxes, PlanesAreReducedByOneLoop) {
  const Ints planes{2, 3}, all{0, 1, 2, 3};
  EXPECT_EQ(shape_of_param(checked({"", "GlobalAveragePool", {{2, 9, 5, 7}}, {}}), 0),
            (Shape{18, 35}));
  EXPECT_EQ(shape_of_param(checked({"", "ReduceMax", {{2, 9, 5, 7}}, {{"axes", planes}}}), 0),
            (Shape{18, 35}));
  EXPECT_EQ(shape_of_param(checked({"", "ReduceMean", {{2, 9, 5, 7}}, {{"axes", all}}}), 0),
            (Shape{630}));
  const OpCase window{
      "", "MaxPool", {{1, 2, 8, 8}}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}};
  EXPECT_EQ(shape_of_param(checked(window), 0), (Shape{2, 8, 8}));
}

TEST(BestAxes, TheFasterFormByTheModel) {
  const auto time = [](const Func& f) {
    return schedule_points(f, avx2(), 1).front().time.total();
  };
  int joined = 0, apart = 0;
  for (const int64_t size : {5, 7, 12, 14, 28, 40, 56, 60})
    for (const int64_t channels : {8, 64, 512}) {
      const Func func = func_of({"", "MatMul", {{size, size, channels}, {channels, 128}}, {}});
      const Func best = with_best_axes(func, avx2(), 1);
      (shape_of_param(best, 0).size() == 2 ? joined : apart) += 1;
      EXPECT_LE(time(best), time(func)) << size << " " << channels;
      EXPECT_LE(time(best), time(join_axes(func))) << size << " " << channels;
    }
  EXPECT_GT(joined, 12);
  EXPECT_GT(apart, 0);
}

}  // namespace
}  // namespace tilewright::rules
