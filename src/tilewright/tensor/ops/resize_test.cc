// Resize, GridSample and AffineGrid against direct formulas in double precision.
#include <gmock/gmock.h>

#include <algorithm>

#include "tilewright/tensor/ops/movement_testing.h"

namespace tilewright::tensor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Sample = std::function<double(const std::vector<double>& row, int64_t i, int64_t n)>;

Array floats(const std::vector<double>& values) {
  return array(DType::F32, {static_cast<int64_t>(values.size())}, values);
}

/// Coordinates of the ONNX document; scale = n / row.size() here.
double coordinate(const std::string& mode, double i, double in, double out) {
  const double scale = out / in;
  if (mode == "align_corners") return out == 1 ? 0 : i * (in - 1) / (out - 1);
  if (mode == "asymmetric") return i / scale;
  if (mode == "pytorch_half_pixel" && out == 1) return 0;
  return (i + 0.5) / scale - 0.5;  // half_pixel_symmetric too, as the sizes are whole
}

const char* const kCoordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                    "align_corners", "asymmetric"};

double nearest(const std::string& mode, const std::vector<double>& row, double x) {
  const double below = std::floor(x), above = std::ceil(x);
  double at = below;
  if (mode == "ceil") at = above;
  if (mode == "round_prefer_floor") at = x - below <= 0.5 ? below : above;
  if (mode == "round_prefer_ceil") at = x - below < 0.5 ? below : above;
  return row[static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(row.size() - 1)))];
}

double linear(const std::vector<double>& row, double x) {
  x = std::clamp(x, 0.0, static_cast<double>(row.size() - 1));
  const auto k = static_cast<size_t>(x);
  const double f = x - static_cast<double>(k);
  return row[k] * (1 - f) + row[std::min(k + 1, row.size() - 1)] * f;
}

double cubic(const std::vector<double>& row, double x, double a, bool exclude) {
  const double base = std::floor(x), f = x - base;
  // Distances 1 + f, f, 1 - f, 2 - f; the two polynomials of Keys expanded.
  const double w[] = {a * (f * f * f - 2 * f * f + f), (a + 2) * f * f * f - (a + 3) * f * f + 1,
                      -(a + 2) * f * f * f + (2 * a + 3) * f * f - a * f, a * (f * f - f * f * f)};
  double sum = 0, weights = 0;
  for (int k = 0; k < 4; ++k) {
    const double at = base - 1 + k, top = static_cast<double>(row.size() - 1);
    if (exclude && (at < 0 || at > top)) continue;
    sum += w[k] * row[static_cast<size_t>(std::clamp(at, 0.0, top))];
    weights += w[k];
  }
  return exclude ? sum / weights : sum;
}

/// Resizes the last two axes of [n, c, h, w] by a function of one row.
Array naive(const Array& x, int64_t height, int64_t width, const Sample& sample) {
  const Shape& s = x.shape();
  Array wide(DType::F64, {s[0], s[1], s[2], width}), out(DType::F64, {s[0], s[1], height, width});
  for_each_index(wide.shape(), [&](const Shape& i, int64_t flat) {
    std::vector<double> row;
    for (int64_t k = 0; k < s[3]; ++k) row.push_back(at(x, {i[0], i[1], i[2], k}));
    wide.set(flat, sample(row, i[3], width));
  });
  for_each_index(out.shape(), [&](const Shape& i, int64_t flat) {
    std::vector<double> column;
    for (int64_t k = 0; k < s[2]; ++k) column.push_back(at(wide, {i[0], i[1], k, i[3]}));
    out.set(flat, sample(column, i[2], height));
  });
  return out;
}

const Array kX = random({1, 2, 4, 5}, 9);

void check(std::map<std::string, AttrValue> attrs, const Sample& sample, double tolerance) {
  for (const auto& [h, w] :
       std::vector<std::pair<int64_t, int64_t>>{{8, 10}, {4, 5}, {2, 3}, {7, 1}, {12, 4}}) {
    SCOPED_TRACE(to_string(Shape{h, w}));
    const Array want = naive(kX, h, w, sample);
    const auto y = run("Resize", attrs, {kX, absent(), absent(), known(ints({1, 2, h, w}))});
    ASSERT_EQ(y.size(), 1u);
    expect_elements(y[0], want.shape(), [&](const Shape& i) { return at(want, i); }, tolerance);
  }
}

TEST(Resize, NearestAllModes) {
  for (const std::string coordinates : kCoordinates)
    for (const std::string rounding :
         {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}) {
      SCOPED_TRACE(coordinates + " " + rounding);
      check(
          {{"coordinate_transformation_mode", coordinates}, {"nearest_mode", rounding}},
          [&](const std::vector<double>& row, int64_t i, int64_t n) {
            // Single precision decides ties, as in the definition.
            const auto x = static_cast<float>(coordinate(coordinates, static_cast<double>(i),
                                                         static_cast<double>(row.size()),
                                                         static_cast<double>(n)));
            return nearest(rounding, row, std::round(x * 65536) / 65536);
          },
          0);
    }
}

/// In single precision (0 + 0.5) * 14 / 1 - 0.5 is 6.4999995, and (9 + 0.5) * 14 / 19 - 0.5 is
/// 6.5000005.
TEST(Resize, MiddlesBetweenPixelsAreMiddles) {
  const Array x = random({14}, 4);
  const auto resized = [&](const std::string& rounding, int64_t size) {
    return run("Resize", {{"nearest_mode", rounding}}, {x, absent(), absent(), known(ints({size}))})
        .at(0);
  };
  EXPECT_EQ(resized("round_prefer_ceil", 1).get(0), x.get(7));
  EXPECT_EQ(resized("round_prefer_floor", 1).get(0), x.get(6));
  EXPECT_EQ(resized("round_prefer_ceil", 19).get(9), x.get(7));
  EXPECT_EQ(resized("round_prefer_floor", 19).get(9), x.get(6));
}

TEST(Resize, LinearAllModes) {
  for (const std::string coordinates : kCoordinates) {
    SCOPED_TRACE(coordinates);
    check(
        {{"coordinate_transformation_mode", coordinates}, {"mode", std::string("linear")}},
        [&](const std::vector<double>& row, int64_t i, int64_t n) {
          return linear(row, coordinate(coordinates, static_cast<double>(i),
                                        static_cast<double>(row.size()), static_cast<double>(n)));
        },
        1e-5);
  }
}

TEST(Resize, CubicAllModes) {
  for (const std::string coordinates : kCoordinates)
    for (const double a : {-0.75, -0.5})
      for (const int64_t exclude : {0, 1}) {
        SCOPED_TRACE(coordinates);
        check(
            {{"coordinate_transformation_mode", coordinates},
             {"mode", std::string("cubic")},
             {"cubic_coeff_a", a},
             {"exclude_outside", exclude}},
            [&](const std::vector<double>& row, int64_t i, int64_t n) {
              const double x = coordinate(coordinates, static_cast<double>(i),
                                          static_cast<double>(row.size()), static_cast<double>(n));
              return cubic(row, x, a, exclude != 0);
            },
            2e-5);
      }
}

TEST(Resize, AntialiasIsAStretchedTriangle) {
  check(
      {{"mode", std::string("linear")}, {"antialias", int64_t{1}}},
      [&](const std::vector<double>& row, int64_t i, int64_t n) {
        const double scale =
            std::min(1.0, static_cast<double>(n) / static_cast<double>(row.size()));
        const double x = coordinate("half_pixel", static_cast<double>(i),
                                    static_cast<double>(row.size()), static_cast<double>(n));
        double sum = 0, weights = 0;
        for (int64_t k = -20; k < 40; ++k) {
          const double w = std::max(0.0, 1 - std::abs(static_cast<double>(k) - x) * scale);
          sum += w * row[static_cast<size_t>(
                         std::clamp<int64_t>(k, 0, static_cast<int64_t>(row.size()) - 1))];
          weights += w;
        }
        return sum / weights;
      },
      1e-5);
}

TEST(Resize, SamplesOnPixelsAreThosePixels) {
  // Five pixels become seven: the fourth sample lies on the third pixel, if rounding lets it.
  const auto y = run("Resize",
                     {{"coordinate_transformation_mode", std::string("half_pixel_symmetric")},
                      {"nearest_mode", std::string("floor")}},
                     {iota({5}), absent(), known(floats({1.5f}))});
  ASSERT_EQ(y.size(), 1u);
  const double want[] = {0, 0, 1, 2, 2, 3, 4};  // of ONNX Runtime and of onnx's reference
  for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(y[0].get(i), want[i]) << i;
}

TEST(Resize, WholeFactorsNeedNoTables) {
  const OpCall call = make_call("Resize",
                                {{"coordinate_transformation_mode", std::string("asymmetric")},
                                 {"nearest_mode", std::string("floor")}},
                                {iota({1, 1, 2, 3}), absent(), known(floats({1, 1, 2, 2}))});
  const auto func = op_func(call);
  ASSERT_TRUE(func);
  EXPECT_EQ(func->params.size(), 2u) << print(*func);
}

TEST(Resize, ThreeAxesWideKernels) {
  // 4 * 4 * 4 taps: too many to write out, so one axis follows the other.
  const Array x = random({3, 4, 3}, 5);
  const auto y = run("Resize", {{"mode", std::string("cubic")}},
                     {x, absent(), absent(), known(ints({4, 3, 5}))});
  auto line = [](const std::vector<double>& row, int64_t i, int64_t n) {
    return cubic(row,
                 coordinate("half_pixel", static_cast<double>(i), static_cast<double>(row.size()),
                            static_cast<double>(n)),
                 -0.75, false);
  };
  const Array planes = naive(x.reshaped({1, 3, 4, 3}), 3, 5, line);
  const Array want =
      naive(planes.reshaped({1, 1, 3, 15}), 4, 15,
            [&](const std::vector<double>& row, int64_t i, int64_t n) {
              return row.size() == 15 ? row[static_cast<size_t>(i)] : line(row, i, n);
            });
  expect_elements(
      y[0], {4, 3, 5}, [&](const Shape& i) { return at(want, {0, 0, i[0], i[1] * 5 + i[2]}); },
      1e-4);
}

TEST(Resize, CropWithExtrapolation) {
  const Array x = iota({1, 5});
  const auto y = run("Resize",
                     {{"mode", std::string("linear")},
                      {"axes", std::vector<int64_t>{1}},
                      {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                      {"extrapolation_value", -9.0}},
                     {x, known(floats({0.5, 1.5})), absent(), known(ints({5}))});
  // Coordinates 2, 3, 4, 5, 6; the last two are outside.
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(2, 3, 4, -9, -9));
}

TEST(Resize, SizesAndPolicies) {
  const Array x = iota({4, 6});
  auto shape = [&](const std::string& policy, const std::vector<int64_t>& sizes) {
    const auto types = infer(make_call("Resize", {{"keep_aspect_ratio_policy", policy}},
                                       {x, absent(), absent(), known(ints(sizes))}));
    return types ? (*types)[0].shape : Shape{};
  };
  EXPECT_THAT(shape("stretch", {8, 6}), ElementsAre(8, 6));
  EXPECT_THAT(shape("not_larger", {8, 9}), ElementsAre(6, 9));    // scale 1.5
  EXPECT_THAT(shape("not_smaller", {8, 9}), ElementsAre(8, 12));  // scale 2
  EXPECT_THAT(run("Resize", {}, {x, absent(), known(floats({0.5, 0.7f}))})[0].shape(),
              ElementsAre(2, 4));
}

TEST(Resize, IntegersAreRounded) {
  const auto y = run("Resize", {{"mode", std::string("linear")}},
                     {array(DType::U8, {2}, {0, 255}), absent(), known(floats({2}))});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(0, 64, 191, 255));  // 0, 63.75, 191.25, 255
}

TEST(Resize, BadInput) {
  const Array x = iota({2, 3});
  auto error = [&](std::map<std::string, AttrValue> attrs, std::vector<double> scales) {
    return error_of("Resize", std::move(attrs), {x, absent(), known(floats(scales))});
  };
  EXPECT_THAT(error({}, {1}), HasSubstr("1 scales for 2 axes"));
  EXPECT_THAT(error({}, {1, -2}), HasSubstr("axis 1 is -2"));
  EXPECT_THAT(error({}, {1, 1e30}), HasSubstr("scale of axis 1"));
  EXPECT_THAT(error({{"mode", std::string("area")}}, {1, 1}), HasSubstr("area"));
  EXPECT_THAT(
      error({{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}}, {1, 1}),
      HasSubstr("region"));
  EXPECT_THAT(error_of("Resize", {}, {x}), HasSubstr("no scales or sizes"));
  EXPECT_THAT(error_of("Resize", {}, {iota({0}), absent(), absent(), known(ints({2}))}),
              HasSubstr("empty"));
}

// --- GridSample: bilinear and nearest written with explicit pixel positions.

double fold(double x, double lo, double hi) {
  if (lo == hi) return lo;
  while (x < lo || x > hi) x = x < lo ? 2 * lo - x : 2 * hi - x;
  return x;
}

/// The pixel at a whole position under a padding mode.
double pixel(const Array& x, const std::string& padding, bool align, int64_t r, int64_t c) {
  const int64_t h = x.shape()[2], w = x.shape()[3];
  auto place = [&](int64_t i, int64_t n) -> int64_t {
    if (padding == "zeros") return i >= 0 && i < n ? i : -1;
    if (padding == "border") return std::clamp<int64_t>(i, 0, n - 1);
    const double lo = align ? 0 : -0.5, hi = static_cast<double>(n) - (align ? 1 : 0.5);
    return static_cast<int64_t>(fold(static_cast<double>(i), lo, hi));
  };
  const int64_t row = place(r, h), column = place(c, w);
  return row < 0 || column < 0 ? 0 : at(x, {0, 0, row, column});
}

TEST(GridSample, TwoAxes) {
  const Array x = random({1, 1, 3, 4}, 2);
  Array grid(DType::F32, {1, 5, 6, 2});
  Rng rng(8);
  for (int64_t i = 0; i < grid.size(); ++i)
    grid.set(i, static_cast<double>(rng.between(-60, 60)) / 32 + 1.0 / 128);
  for (const std::string padding : {"zeros", "border", "reflection"})
    for (const bool align : {false, true})
      for (const std::string mode : {"linear", "nearest"}) {
        SCOPED_TRACE(padding + " " + mode);
        const auto y =
            run("GridSample",
                {{"padding_mode", padding}, {"mode", mode}, {"align_corners", int64_t{align}}},
                {x, grid});
        expect_elements(
            y[0], {1, 1, 5, 6},
            [&](const Shape& i) {
              auto position = [&](int64_t component, double n) {
                const double g = at(grid, {0, i[2], i[3], component});
                return align ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
              };
              const double c = position(0, 4), r = position(1, 3);
              auto get = [&](double row, double column) {
                return pixel(x, padding, align, static_cast<int64_t>(row),
                             static_cast<int64_t>(column));
              };
              if (mode == "nearest") return get(std::nearbyint(r), std::nearbyint(c));
              const double r0 = std::floor(r), c0 = std::floor(c), fr = r - r0, fc = c - c0;
              return (1 - fr) * ((1 - fc) * get(r0, c0) + fc * get(r0, c0 + 1)) +
                     fr * ((1 - fc) * get(r0 + 1, c0) + fc * get(r0 + 1, c0 + 1));
            },
            1e-5);
      }
}

TEST(GridSample, OwnGridGivesTheInputBack) {
  const Array x = random({2, 3, 4, 5}, 4);
  Array theta(DType::F32, {2, 2, 3});
  for (const int64_t i : {0, 4, 6, 10}) theta.set(i, 1);  // the identity, twice
  for (const int64_t align : {0, 1}) {
    const auto grid =
        run("AffineGrid", {{"align_corners", align}}, {theta, known(ints({2, 3, 4, 5}))});
    for (const std::string mode : {"linear", "nearest", "cubic"}) {
      const auto y =
          run("GridSample",
              {{"mode", mode}, {"align_corners", align}, {"padding_mode", std::string("border")}},
              {x, grid[0]});
      expect_elements(y[0], x.shape(), [&](const Shape& i) { return at(x, i); }, 1e-5);
    }
  }
}

TEST(AffineGrid, ShiftsAndScales) {
  const Array theta = array(DType::F32, {1, 2, 3}, {2, 0, 0.5, 0, 3, -0.25});
  const auto y =
      run("AffineGrid", {{"align_corners", int64_t{1}}}, {theta, known(ints({1, 1, 3, 2}))});
  expect_elements(
      y[0], {1, 3, 2, 2},
      [](const Shape& i) {
        const double column = i[2] == 0 ? -1 : 1, row = static_cast<double>(i[1] - 1);
        return i[3] == 0 ? 2 * column + 0.5 : 3 * row - 0.25;
      },
      1e-6);
  EXPECT_THAT(error_of("AffineGrid", {}, {theta, known(ints({1, 1, 3}))}), HasSubstr("3 elements"));
}

TEST(GridSample, BadInput) {
  const Array x = iota({1, 1, 3, 4});
  EXPECT_THAT(error_of("GridSample", {}, {x, iota({1, 2, 2, 3})}), HasSubstr("[1, 2, 2, 3]"));
  EXPECT_THAT(error_of("GridSample", {{"mode", std::string("area")}}, {x, iota({1, 2, 2, 2})}),
              HasSubstr("area"));
}

}  // namespace
}  // namespace tilewright::tensor::testing
