#include "tilewright/driver/inputs/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/rng.h"

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image_write.h>

namespace tilewright::driver {
namespace {

using ::testing::HasSubstr;

void append(void* to, void* data, int size) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(data), static_cast<size_t>(size));
}

/// A picture of 4 x 2 pixels whose red, green and blue are 10 x, 100 y and 50.
std::string sample_png() {
  std::string pixels, file;
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 4; ++x)
      for (const int value : {10 * x, 100 * y, 50}) pixels += static_cast<char>(value);
  stbi_write_png_to_func(append, &file, 4, 2, 3, pixels.data(), 12);
  return file;
}

std::string grey_jpg(int width, int height, int value) {
  const std::string pixels(static_cast<size_t>(width * height), static_cast<char>(value));
  std::string file;
  stbi_write_jpg_to_func(append, &file, width, height, 1, pixels.data(), 95);
  return file;
}

Result<Array> read(const std::string& file, DType dtype, const Shape& shape,
                   const ImageOptions& options = {}) {
  return image_array(file, "cat.png", dtype, shape, options);
}

TEST(Image, ChannelsGoWhereTheLayoutSays) {
  const auto planes = read(sample_png(), DType::F32, {1, 3, 2, 4});
  ASSERT_TRUE(planes) << to_string(planes.error());
  ImageOptions last;
  last.layout = "nhwc";
  const auto pixels = read(sample_png(), DType::F32, {2, 4, 3}, last);
  ASSERT_TRUE(pixels) << to_string(pixels.error());
  for (int64_t y = 0; y < 2; ++y)
    for (int64_t x = 0; x < 4; ++x) {
      const std::vector<double> want = {10.0 * static_cast<double>(x),
                                        100.0 * static_cast<double>(y), 50};
      for (int64_t c = 0; c < 3; ++c) {
        EXPECT_EQ(planes->get(c * 8 + y * 4 + x), want[static_cast<size_t>(c)]);
        EXPECT_EQ(pixels->get((y * 4 + x) * 3 + c), want[static_cast<size_t>(c)]);
      }
    }
}

TEST(Image, MeanIsTakenOffBeforeTheScale) {
  ImageOptions options;
  options.mean = "10,20,30";
  options.scale = "1/2";
  const auto array = read(sample_png(), DType::F32, {3, 2, 4}, options);
  ASSERT_TRUE(array) << to_string(array.error());
  EXPECT_EQ(array->get(3), 10);   // red 30
  EXPECT_EQ(array->get(8), -10);  // green 0
  EXPECT_EQ(array->get(16), 10);  // blue 50
}

TEST(Image, JpegOfOneGreyStaysGreyAtAnySize) {
  ImageOptions options;
  options.resize = true;
  const auto array = read(grey_jpg(33, 17, 90), DType::U8, {1, 3, 5, 40}, options);
  ASSERT_TRUE(array) << to_string(array.error());
  for (int64_t i = 0; i < array->size(); ++i) ASSERT_NEAR(array->get(i), 90, 2);
}

TEST(Image, ResizingKeepsASlopeAndCountsEveryPixel) {
  ImageOptions options;
  options.resize = true;
  const auto wider = read(sample_png(), DType::F32, {3, 2, 8}, options);
  ASSERT_TRUE(wider) << to_string(wider.error());
  for (int64_t x = 1; x < 7; ++x)  // red is 10 x: half a pixel further, 5 more
    EXPECT_NEAR(wider->get(x), 5.0 * static_cast<double>(x) - 2.5, 1e-4);
  const auto narrow = read(sample_png(), DType::F32, {3, 1, 1}, options);
  ASSERT_TRUE(narrow);
  EXPECT_NEAR(narrow->get(0), 15, 1e-4);
  EXPECT_NEAR(narrow->get(1), 50, 1e-4);
}

TEST(Image, WhatDoesNotFitIsNamedWithTheFix) {
  const auto size = read(sample_png(), DType::F32, {1, 3, 4, 4});
  ASSERT_FALSE(size);
  EXPECT_THAT(size.error().what, HasSubstr("4 wide and 2 high"));
  EXPECT_THAT(size.error().fix, HasSubstr("--resize"));
  const auto layout = read(sample_png(), DType::F32, {1, 2, 4, 3});
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().fix, "--layout nhwc");
  EXPECT_FALSE(read(sample_png(), DType::F32, {2, 3, 2, 4}));
  EXPECT_FALSE(read(sample_png(), DType::F32, {10}));
  const auto range = read(sample_png(), DType::I8, {4, 2, 4});
  ASSERT_FALSE(range);
  EXPECT_THAT(range.error().what, HasSubstr("i8"));
}

TEST(Image, OptionsThatAreNoNumbers) {
  for (const char* text : {"x", "1,2", "1/0", "1,,3", "nan", "1e999"}) {
    ImageOptions options;
    options.mean = text;
    const auto array = read(sample_png(), DType::F32, {3, 2, 4}, options);
    ASSERT_FALSE(array) << text;
    EXPECT_EQ(array.error().kind, ErrorKind::Usage) << text;
  }
}

TEST(Image, OversizedHuffmanTablesAreRefused) {
  std::string file = grey_jpg(8, 8, 90);
  const size_t table = file.find("\xFF\xC4");
  ASSERT_NE(table, file.npos);
  file[table + 5] = file[table + 6] = static_cast<char>(200);  // 400 codes of one and two bits
  const auto refused = read(file, DType::F32, {3, 4, 4}, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().why, testing::HasSubstr("more than 256 codes"));
}

TEST(Image, CutOffOrChangedFilesNeverCrash) {
  ImageOptions options;
  options.resize = true;
  Rng rng(3);
  for (const std::string& file : {sample_png(), grey_jpg(33, 17, 90)}) {
    EXPECT_TRUE(is_image(file));
    for (size_t size = 0; size < file.size(); ++size)
      (void)read(file.substr(0, size), DType::F32, {3, 4, 4}, options);
    for (int trial = 0; trial < 1000; ++trial) {
      std::string changed = file;
      for (int64_t n = rng.between(1, 4); n > 0; --n)
        changed[static_cast<size_t>(rng.below(static_cast<int64_t>(changed.size())))] =
            static_cast<char>(rng.below(256));
      (void)read(changed, DType::F32, {3, 4, 4}, options);
    }
  }
  EXPECT_FALSE(read(sample_png().substr(0, 40), DType::F32, {3, 4, 4}, options));
}

}  // namespace
}  // namespace tilewright::driver
