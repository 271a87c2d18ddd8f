// Padding and the operators of known value.
#include <gmock/gmock.h>

#include "tilewright/tensor/ops/movement_testing.h"

namespace tilewright::tensor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The element a padded position shows, walking one step at a time; -1 for the constant.
int64_t walk(const std::string& mode, int64_t position, int64_t n) {
  if (mode == "constant") return position >= 0 && position < n ? position : -1;
  if (mode == "edge") return std::min(std::max<int64_t>(position, 0), n - 1);
  if (mode == "wrap") {
    while (position < 0) position += n;
    while (position >= n) position -= n;
    return position;
  }
  if (n == 1) return 0;
  while (position < 0 || position >= n) {
    if (position < 0) position = -position;
    if (position >= n) position = 2 * (n - 1) - position;
  }
  return position;
}

TEST(Pad, AllModes) {
  const Array x = iota({4, 3});
  for (const std::string mode : {"constant", "reflect", "edge", "wrap"})
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 0}, {1, 0}, {2, 1}, {0, 2}, {2, 2}, {3, 2}, {5, 7}, {-1, 2}, {1, -2}, {-1, -1}}) {
      // The same margins in front of rows and behind columns, and the other way round.
      const auto y =
          run("Pad", {{"mode", mode}},
              {x, known(ints({rows, columns, columns, rows})), array(DType::F32, {}, {-5})});
      const int64_t cut_rows = std::max<int64_t>(-rows, 0),
                    cut_columns = std::max<int64_t>(-columns, 0);
      const int64_t kept_rows = 4 - cut_rows - cut_columns,
                    kept_columns = 3 - cut_columns - cut_rows;
      auto source = [&](int64_t i, int64_t before, int64_t cut, int64_t kept) {
        const int64_t from = walk(mode, i - std::max<int64_t>(before, 0), kept);
        return from < 0 ? from : from + cut;
      };
      const Shape shape{4 + rows + columns, 3 + rows + columns};
      expect_elements(y[0], shape, [&](const Shape& i) {
        const int64_t r = source(i[0], rows, cut_rows, kept_rows);
        const int64_t c = source(i[1], columns, cut_columns, kept_columns);
        return r < 0 || c < 0 ? -5 : at(x, {r, c});
      });
    }
}

TEST(Pad, AxesAndErrors) {
  const Array x = iota({2, 3});
  const auto y = run("Pad", {}, {x, known(ints({1, 0})), absent(), known(ints({-1}))});
  expect_elements(y[0], {2, 4},
                  [&](const Shape& i) { return i[1] == 0 ? 0 : at(x, {i[0], i[1] - 1}); });
  EXPECT_THAT(error_of("Pad", {}, {x, known(ints({1, 0}))}), HasSubstr("2 pads for 2 axes"));
  EXPECT_THAT(error_of("Pad", {}, {x, known(ints({-3, 0, 0, 0}))}), HasSubstr("axis 0"));
  EXPECT_THAT(error_of("Pad", {{"mode", std::string("mirror")}}, {x, known(ints({0, 0, 0, 0}))}),
              HasSubstr("mirror"));
  EXPECT_THAT(error_of("Pad", {{"mode", std::string("edge")}}, {iota({0}), known(ints({1, 0}))}),
              HasSubstr("0 elements"));
}

TEST(CenterCropPad, CropsAndPads) {
  const Array x = iota({5, 2});
  const auto y = run("CenterCropPad", {}, {x, known(ints({2, 5}))});
  // Rows 1, 2 of 0..4; one zero column before, two after.
  expect_elements(y[0], {2, 5}, [&](const Shape& i) {
    return i[1] < 1 || i[1] > 2 ? 0 : at(x, {i[0] + 1, i[1] - 1});
  });
  EXPECT_THAT(run("CenterCropPad", {{"axes", std::vector<int64_t>{-1}}}, {x, known(ints({1}))})[0]
                  .to_doubles(),
              ElementsAre(0, 2, 4, 6, 8));
}

TEST(Constant, Forms) {
  auto value = [](const char* key, AttrValue v) {
    return run("Constant", {{key, std::move(v)}}, {})[0];
  };
  EXPECT_TRUE(identical(value("value", iota({2, 2}, DType::I8)), iota({2, 2}, DType::I8)));
  EXPECT_TRUE(identical(value("value_int", int64_t{1} << 60), [] {
    Array a(DType::I64, {});
    a.set_int(0, int64_t{1} << 60);
    return a;
  }()));
  EXPECT_TRUE(identical(value("value_float", 1.5), Array::scalar(DType::F32, 1.5)));
  EXPECT_THAT(value("value_ints", std::vector<int64_t>{3, -4}).to_ints(), ElementsAre(3, -4));
  EXPECT_THAT(value("value_floats", std::vector<double>{0.5}).to_doubles(), ElementsAre(0.5));
  EXPECT_THAT(error_of("Constant", {{"value_string", std::string("a")}}, {}),
              HasSubstr("value_string"));
  EXPECT_THAT(error_of("Constant", {}, {}), HasSubstr("no value"));
}

TEST(Constant, OfShape) {
  EXPECT_THAT(run("ConstantOfShape", {}, {known(ints({3}))})[0].to_doubles(), ElementsAre(0, 0, 0));
  const auto y = run("ConstantOfShape", {{"value", ints({-7}, DType::I32)}}, {known(ints({1, 2}))});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(-7, -7));
  EXPECT_THAT(error_of("ConstantOfShape", {}, {known(ints({-1}))}), HasSubstr("negative"));
  EXPECT_THAT(error_of("ConstantOfShape", {}, {known(ints({int64_t{1} << 62, 8}))}),
              HasSubstr("too large"));
}

TEST(Range, CountsUpAndDown) {
  auto range = [](DType dtype, double start, double limit, double delta) {
    return run("Range", {},
               {known(Array::scalar(dtype, start)), known(Array::scalar(dtype, limit)),
                known(Array::scalar(dtype, delta))})[0]
        .to_doubles();
  };
  EXPECT_THAT(range(DType::I64, 3, 9, 3), ElementsAre(3, 6));
  EXPECT_THAT(range(DType::I32, 10, 4, -2), ElementsAre(10, 8, 6));
  EXPECT_THAT(range(DType::F32, 0, 1, 0.375), ElementsAre(0, 0.375, 0.75));
  EXPECT_THAT(range(DType::F64, 1, 1, 1), ElementsAre());
  EXPECT_THAT(error_of("Range", {}, {known(ints({0})), known(ints({1})), known(ints({0}))}),
              HasSubstr("delta 0"));
  EXPECT_THAT(error_of("Range", {},
                       {known(Array::scalar(DType::F32, 0)), known(Array::scalar(DType::F32, 1e30)),
                        known(Array::scalar(DType::F32, 1))}),
              HasSubstr("too large"));
}

TEST(Shape, Slices) {
  const Array x = iota({2, 3, 4});
  auto shape = [&](std::map<std::string, AttrValue> attrs) {
    return run("Shape", std::move(attrs), {x})[0].to_ints();
  };
  EXPECT_THAT(shape({}), ElementsAre(2, 3, 4));
  EXPECT_THAT(shape({{"start", int64_t{-1}}}), ElementsAre(4));
  EXPECT_THAT(shape({{"end", int64_t{-1}}}), ElementsAre(2, 3));
  EXPECT_THAT(shape({{"start", int64_t{1}}, {"end", int64_t{9}}}), ElementsAre(3, 4));
  EXPECT_THAT(shape({{"start", int64_t{2}}, {"end", int64_t{1}}}), ElementsAre());
  EXPECT_EQ(run("Size", {}, {x})[0].get_int(0), 24);
}

TEST(EyeLike, DiagonalsAndTypes) {
  const auto y = run("EyeLike", {{"k", int64_t{-1}}, {"dtype", int64_t{6}}}, {iota({3, 2})});
  EXPECT_EQ(y[0].dtype(), DType::I32);
  EXPECT_THAT(y[0].to_ints(), ElementsAre(0, 0, 1, 0, 0, 1));
  EXPECT_THAT(error_of("EyeLike", {{"dtype", int64_t{8}}}, {iota({3, 2})}), HasSubstr("type 8"));
  EXPECT_THAT(error_of("EyeLike", {}, {iota({3})}), HasSubstr("rank 2"));
}

}  // namespace
}  // namespace tilewright::tensor::testing
