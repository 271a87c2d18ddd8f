// RoiAlign against a plain loop over the samples of each bin, one after the other.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "tilewright/tensor/ops/movement_testing.h"
#include "tilewright/tensor/value_limits.h"

namespace tilewright::tensor::testing {
namespace {

using ::testing::HasSubstr;

struct RoiCase {
  bool max = false, half_pixel = true;
  int64_t height = 2, width = 3, ratio = 2;
  float scale = 1;

  std::map<std::string, AttrValue> attrs() const {
    return {{"mode", std::string(max ? "max" : "avg")},
            {"coordinate_transformation_mode",
             std::string(half_pixel ? "half_pixel" : "output_half_pixel")},
            {"output_height", height},
            {"output_width", width},
            {"sampling_ratio", ratio},
            {"spatial_scale", double{scale}}};
  }
};

/// One axis of a region, in the arithmetic of ONNX Runtime.
struct RoiSpan {
  float start, bin;
  int64_t samples;
  RoiSpan(const RoiCase& c, double begin, double end, int64_t bins) {
    const float offset = c.half_pixel ? 0.5F : 0.0F;
    start = static_cast<float>(begin) * c.scale - offset;
    float extent = static_cast<float>(end) * c.scale - offset - start;
    if (!c.half_pixel) extent = std::max(extent, 1.0F);
    bin = extent / static_cast<float>(bins);
    samples = c.ratio > 0 ? c.ratio : static_cast<int64_t>(std::ceil(bin));
  }
  float at(int64_t p, int64_t i) const {
    return start + static_cast<float>(p) * bin +
           (static_cast<float>(i) + 0.5F) * bin / static_cast<float>(samples);
  }
};

/// The four weighted pixels around a sample; zeros if it lies outside.
std::vector<double> weighted_pixels(const Array& x, int64_t image, int64_t c, double y, double h) {
  const int64_t rows = x.shape()[2], columns = x.shape()[3];
  if (y < -1 || y > static_cast<double>(rows) || h < -1 || h > static_cast<double>(columns))
    return {0, 0, 0, 0};
  y = std::clamp(y, 0.0, static_cast<double>(rows - 1));
  h = std::clamp(h, 0.0, static_cast<double>(columns - 1));
  const auto row = static_cast<int64_t>(y), column = static_cast<int64_t>(h);
  const double fy = y - static_cast<double>(row), fx = h - static_cast<double>(column);
  const int64_t below = std::min(row + 1, rows - 1), right = std::min(column + 1, columns - 1);
  return {(1 - fy) * (1 - fx) * at(x, {image, c, row, column}),
          (1 - fy) * fx * at(x, {image, c, row, right}),
          fy * (1 - fx) * at(x, {image, c, below, column}),
          fy * fx * at(x, {image, c, below, right})};
}

double plain_roi_align(const RoiCase& c, const Array& x, const Array& rois, const Array& of,
                       const Shape& i) {
  auto corner = [&](int64_t k) { return at(rois, {i[0], k}); };
  const RoiSpan rows(c, corner(1), corner(3), c.height), columns(c, corner(0), corner(2), c.width);
  double sum = 0, most = -std::numeric_limits<double>::infinity();
  for (int64_t sy = 0; sy < rows.samples; ++sy)
    for (int64_t sx = 0; sx < columns.samples; ++sx)
      for (const double v :
           weighted_pixels(x, of.get_int(i[0]), i[1], rows.at(i[2], sy), columns.at(i[3], sx))) {
        sum += v;
        most = std::max(most, v);
      }
  const bool none = rows.samples < 1 || columns.samples < 1;
  if (none) return 0;
  return c.max ? most : sum / static_cast<double>(rows.samples * columns.samples);
}

/// Regions inside the image, over its edges, far larger, beside it, without extent, turned around.
Array varied_regions() {
  std::vector<double> corners{0,  0, 7,    6,   -20, -30, 40,  25,  3,  3,  3,  3,
                              -1, 4, 0.25, 5,   5,   4,   2,   1,   5,  1,  2,  4,
                              80, 1, 90,   2.5, -90, 2,   -75, 3.5, -1, -1, 11, 0.5};
  Rng rng(5);
  while (corners.size() < 18 * 4)
    corners.push_back(static_cast<double>(rng.between(-96, 320)) / 32);
  while (corners.size() < 24 * 4)
    corners.push_back(static_cast<double>(rng.between(-4000, 4000)) / 32);
  return array(DType::F32, {static_cast<int64_t>(corners.size()) / 4, 4}, corners);
}

void expect_plain(const RoiCase& c, const Array& x, const Array& rois) {
  SCOPED_TRACE(fmt::format("max {} half_pixel {} ratio {} scale {} bins {} {}", c.max, c.half_pixel,
                           c.ratio, c.scale, c.height, c.width));
  Array of(DType::I64, {rois.shape()[0]});
  for (int64_t r = 0; r < of.size(); ++r) of.set_int(r, (r + 1) % x.shape()[0]);
  const auto y = run("RoiAlign", c.attrs(), {x, rois, of});
  ASSERT_EQ(y.size(), 1U);
  expect_elements(
      y[0], {rois.shape()[0], x.shape()[1], c.height, c.width},
      [&](const Shape& i) { return plain_roi_align(c, x, rois, of, i); }, 2e-5);
}

TEST(RoiAlign, FixedNumberOfSamples) {
  const Array x = random({2, 2, 6, 7}, 3), rois = varied_regions();
  for (const bool max : {false, true})
    for (const bool half_pixel : {false, true})
      for (const int64_t ratio : {1, 3})
        expect_plain({max, half_pixel, 2, 3, ratio, 0.5F}, x, rois);
}

TEST(RoiAlign, AsManySamplesAsTheRegionHasPixels) {
  const Array rois = varied_regions();
  for (const bool max : {false, true})
    for (const bool half_pixel : {false, true}) {
      expect_plain({max, half_pixel, 2, 3, 0, 1}, random({2, 1, 6, 7}, 3), rois);
      expect_plain({max, half_pixel, 1, 1, 0, 0.25F}, random({2, 1, 5, 3}, 4), rois);
      expect_plain({max, half_pixel, 3, 1, 0, 1}, random({1, 1, 1, 2}, 5), rois);
    }
}

TEST(RoiAlign, MaximumOfNegativePixels) {
  // A sample outside of the image counts as 0, and so takes part in the maximum.
  Array x(DType::F32, {1, 1, 4, 4});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, -1 - static_cast<double>(i));
  for (const int64_t ratio : {0, 2}) {
    expect_plain({true, true, 1, 1, ratio, 1}, x, array(DType::F32, {1, 4}, {0.5, 0.5, 3, 3}));
    expect_plain({true, true, 1, 1, ratio, 1}, x, array(DType::F32, {1, 4}, {-90, 1, 4, 3}));
    expect_plain({true, true, 1, 1, ratio, 1}, x, array(DType::F32, {1, 4}, {1, 1, 3, 900}));
  }
}

TEST(RoiAlign, OtherTypes) {
  const Array of = ints({0});
  for (const DType dtype : {DType::F16, DType::F64}) {
    const Array x = random({1, 1, 4, 4}, 3, dtype), rois = array(dtype, {1, 4}, {0.5, 1, 3, 3.5});
    const RoiCase c{false, true, 2, 2, 0, 1};
    const auto y = run("RoiAlign", c.attrs(), {x, rois, of});
    expect_elements(
        y[0], {1, 1, 2, 2}, [&](const Shape& i) { return plain_roi_align(c, x, rois, of, i); },
        dtype == DType::F16 ? 1e-3 : 1e-6);
  }
}

TEST(RoiAlign, NoRegionReadsOutsideOfTheImage) {
  // The interpreter stops at an index outside.
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Array x = random({1, 1, 3, 4}, 3);
  const Array rois =
      array(DType::F32, {8, 4}, {nan,  0,    2,   2, 0,    0,    inf,   inf,  -inf, -inf,  inf,
                                 inf,  inf,  0,   2, -inf, 3e38, -3e38, 1,    nan,  -3e38, -3e38,
                                 3e38, 3e38, 1e9, 0, 2e9,  2,    -1e9,  -1e9, 1e9,  1e9});
  const Array of = ints({0, 9, -9, 0, 0, 0, 0, 0});  // value_limits refuses some of these
  for (const bool max : {false, true})
    for (const bool half_pixel : {false, true})
      for (const int64_t ratio : {0, 2})
        run("RoiAlign", RoiCase{max, half_pixel, 2, 2, ratio, 1}.attrs(), {x, rois, of});
}

TEST(RoiAlign, InfinityElsewhereIsNotRead) {
  Array x = random({1, 1, 4, 6}, 3);
  for (int64_t row = 0; row < 4; ++row) x.set(row * 6, std::numeric_limits<double>::infinity());
  expect_plain({false, true, 2, 2, 0, 1}, x, array(DType::F32, {1, 4}, {2, 0, 5, 3}));
}

TEST(RoiAlign, LimitsOfItsImages) {
  const OpCall call = make_call("RoiAlign", {}, {iota({3, 1, 4, 4}), iota({2, 4}), ints({0, 1})});
  const auto limits = value_limits(call);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_EQ(limits[0].input, 2U);
  EXPECT_EQ(limits[0].least, std::vector<int64_t>{0});
  EXPECT_EQ(limits[0].most, std::vector<int64_t>{2});
}

TEST(RoiAlign, BadInput) {
  const Array x = iota({1, 1, 3, 4}), rois = iota({2, 4}), of = ints({0, 0});
  auto error = [&](std::map<std::string, AttrValue> attrs) {
    return error_of("RoiAlign", std::move(attrs), {x, rois, of});
  };
  EXPECT_EQ(error({}), "");
  EXPECT_THAT(error({{"mode", std::string("sum")}}), HasSubstr("mode is 'sum'"));
  EXPECT_THAT(error({{"coordinate_transformation_mode", std::string("asymmetric")}}),
              HasSubstr("asymmetric"));
  EXPECT_THAT(error({{"output_width", int64_t{0}}}), HasSubstr("output_width is 0"));
  EXPECT_THAT(error({{"sampling_ratio", int64_t{-1}}}), HasSubstr("sampling_ratio is -1"));
  EXPECT_THAT(error({{"sampling_ratio", int64_t{1} << 40}}), HasSubstr("at most 4096"));
  EXPECT_THAT(error({{"spatial_scale", 0.0}}), HasSubstr("spatial_scale is 0"));
  EXPECT_THAT(error_of("RoiAlign", {}, {x, iota({2, 5}), of}), HasSubstr("[2, 5]"));
  EXPECT_THAT(error_of("RoiAlign", {}, {x, rois, ints({0})}), HasSubstr("[2]"));
  EXPECT_THAT(error_of("RoiAlign", {}, {x, iota({2, 4}, DType::F64), of}), HasSubstr("f64"));
  for (const int64_t image : {-1, 1})
    EXPECT_THAT(error_of("RoiAlign", {}, {x, rois, known(ints({0, image}))}),
                HasSubstr(fmt::format("image {}", image)));
  EXPECT_THAT(error_of("RoiAlign", {}, {iota({1, 1, 0, 4}), rois, of}), HasSubstr("empty"));
}

}  // namespace
}  // namespace tilewright::tensor::testing
