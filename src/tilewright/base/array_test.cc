#include "tilewright/base/array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tilewright/base/file.h"
#include "tilewright/base/npy.h"

namespace tilewright {
namespace {

TEST(Float16, EveryBitPatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = f16_to_f32(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(wide))));
    } else {
      EXPECT_EQ(f32_to_f16(wide), half);
    }
    const float brain = bf16_to_f32(half);
    if (!std::isnan(brain)) {
      EXPECT_EQ(f32_to_bf16(brain), half);
    }
  }
}

TEST(Float16, RoundsToNearestEvenAsTheCompilerDoes) {
  for (uint32_t i = 0; i < 2000000; ++i) {
    const uint32_t bits = i * 2147u + 12345u;
    float value;
    static_assert(sizeof value == sizeof bits);
    __builtin_memcpy(&value, &bits, sizeof value);
    if (std::isnan(value)) continue;
    const _Float16 expected = static_cast<_Float16>(value);
    uint16_t expected_bits;
    __builtin_memcpy(&expected_bits, &expected, 2);
    ASSERT_EQ(f32_to_f16(value), expected_bits) << value;
  }
}

TEST(Array, CastTruncatesAndSaturates) {
  const double values[] = {1.9, -1.9, 300, -300, NAN};
  const Array cast = Array::of(DType::F32, values).cast(DType::I8);
  EXPECT_EQ(cast.to_ints(), (std::vector<int64_t>{1, -1, 127, -128, 0}));
}

TEST(Array, NpyRoundTripsEveryDType) {
  const std::string path = testing::TempDir() + "tilewright_array_test.npy";
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::BF16) continue;
    const double values[] = {0, 1, 2, 3, 100, 1};
    const Array array = Array::of(dtype, values).reshaped({2, 3});
    ASSERT_TRUE(write_npy(path, array));
    const Result<Array> back = read_npy(path);
    ASSERT_TRUE(back) << to_string(back.error());
    EXPECT_TRUE(identical(array, *back)) << name(dtype);
  }
  std::remove(path.c_str());
}

TEST(Array, BrokenNpyFilesAreErrors) {
  const std::string path = testing::TempDir() + "tilewright_broken.npy";
  ASSERT_TRUE(write_npy(path, Array(DType::F32, {8})));
  const std::string whole = *read_file(path);
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    ASSERT_TRUE(write_file(path, whole.substr(0, cut)));
    EXPECT_FALSE(read_npy(path)) << cut;
  }
  std::remove(path.c_str());
}

TEST(Array, ShapesThatNoNpyFileHasAreErrors) {
  const auto parse = [](const std::string& shape) {
    std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': " + shape + ", }\n";
    header.insert(0, {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(header.size()), 0});
    return parse_npy(header + std::string(16, '\0'), "x");
  };
  EXPECT_EQ(parse("(2, 2)")->shape(), (Shape{2, 2}));
  EXPECT_EQ(parse("()")->shape(), Shape{});
  EXPECT_EQ(parse("(0, 7)")->shape(), (Shape{0, 7}));
  for (const char* shape :
       {"", "(2", "2", "(-2, 2)", "(2.0,)", "(x)", "(9223372036854775808, 0)",
        "(4294967296, 4294967296, 0)", "(0, 4294967296, 4294967296)", "(4294967296, 4294967296)"})
    EXPECT_FALSE(parse(shape)) << shape;
}

TEST(File, ErrorsNameThePathAndTheReason) {
  const auto missing = read_file("no/such/file");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::Io);
  EXPECT_NE(missing.error().what.find("no/such/file"), std::string::npos);
  EXPECT_FALSE(map_file("/"));
  EXPECT_FALSE(write_file("no/such/folder/file", "x"));
}

TEST(File, Sha256OfAbc) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace tilewright
