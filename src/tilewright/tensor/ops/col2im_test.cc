#include <gmock/gmock.h>

#include <map>

#include "tilewright/tensor/ops/movement_testing.h"

namespace tilewright::tensor {
namespace {

using testing::at;
using testing::error_of;
using testing::expect_elements;
using ::testing::HasSubstr;
using testing::ints;
using testing::iota;
using testing::known;
using testing::run;
using Integers = std::vector<int64_t>;

struct Col2ImCase {
  Integers image, block, strides, dilations, pads;
};

/// Adds each column's element to the pixel that its tap covers.
void check_col2im(const Col2ImCase& c) {
  const size_t rank = c.image.size();
  Integers places;
  int64_t taps = 1, columns = 1;
  for (size_t i = 0; i < rank; ++i) {
    places.push_back(
        (c.image[i] + c.pads[i] + c.pads[i + rank] - c.dilations[i] * (c.block[i] - 1) - 1) /
            c.strides[i] +
        1);
    taps *= c.block[i], columns *= places[i];
  }
  constexpr int64_t kBatch = 2, kChannels = 3;
  const Array x = iota({kBatch, kChannels * taps, columns});
  Shape shape = {kBatch, kChannels};
  shape.insert(shape.end(), c.image.begin(), c.image.end());
  std::map<Shape, double> want;
  for (int64_t n = 0; n < kBatch; ++n)
    for (int64_t row = 0; row < kChannels * taps; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        Shape pixel(rank + 2);
        int64_t tap = row % taps, place = column;
        bool inside = true;
        for (size_t i = rank; i-- > 0;) {
          const int64_t where =
              place % places[i] * c.strides[i] + tap % c.block[i] * c.dilations[i] - c.pads[i];
          place /= places[i], tap /= c.block[i];
          inside &= where >= 0 && where < c.image[i];
          pixel[i + 2] = where;
        }
        pixel[0] = n, pixel[1] = row / taps;
        if (inside) want[pixel] += at(x, {n, row, column});
      }
  const auto y =
      run("Col2Im", {{"strides", c.strides}, {"dilations", c.dilations}, {"pads", c.pads}},
          {x, known(ints(c.image)), known(ints(c.block))});
  expect_elements(y[0], shape, [&](const Shape& i) { return want[i]; });
}

TEST(Col2Im, AddsWindowsThatOverlap) {
  check_col2im({{3}, {2}, {1}, {1}, {0, 0}});
  check_col2im({{5, 5}, {1, 5}, {1, 1}, {1, 1}, {0, 0, 0, 0}});
  check_col2im({{5, 4}, {3, 2}, {1, 1}, {1, 1}, {1, 0, 1, 2}});
  check_col2im({{6, 5}, {3, 3}, {2, 1}, {1, 1}, {0, 1, 1, 0}});
  check_col2im({{7, 8}, {2, 3}, {2, 3}, {2, 1}, {1, 1, 0, 1}});
  check_col2im({{7, 6}, {2, 2}, {3, 2}, {2, 3}, {1, 0, 0, 1}});
  check_col2im({{3, 4, 3}, {2, 2, 1}, {1, 2, 1}, {1, 1, 1}, {0, 0, 0, 1, 0, 0}});
}

TEST(Col2Im, WindowsAtEachPlaceByDefault) {
  const auto y = run("Col2Im", {}, {iota({1, 2, 2}), known(ints({3})), known(ints({2}))});
  EXPECT_THAT(y[0].to_doubles(), ::testing::ElementsAre(0, 1 + 2, 3));
}

TEST(Col2Im, SaysWhatDoesNotFit) {
  const auto error = [](const Shape& x, const Integers& image, const Integers& block) {
    return error_of("Col2Im", {}, {iota(x), known(ints(image)), known(ints(block))});
  };
  EXPECT_THAT(error({1, 3, 2}, {3}, {2}), HasSubstr("does not hold columns of 2 taps at 2 places"));
  EXPECT_THAT(error({1, 2, 3}, {3}, {2}), HasSubstr("at 2 places"));
  EXPECT_THAT(error({1, 4, 2}, {3}, {4}), HasSubstr("blocks [4] do not fit an image [3]"));
  EXPECT_THAT(error({1, 4, 2}, {3, 3}, {4}), HasSubstr("image_shape has 2 axes, block_shape 1"));
  EXPECT_THAT(error({1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}), HasSubstr("at most 3"));
}

}  // namespace
}  // namespace tilewright::tensor
