// Weights of grouped convolutions, several groups side by side.
#include "tilewright/graph/passes/dot_form.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tilewright/base/check.h"
#include "tilewright/graph/ir/known.h"

namespace tilewright::graph {
namespace {

/// Any bits, among them fractions and NaNs with payloads.
Array any_bits(DType dtype, const Shape& shape) {
  Array array(dtype, shape);
  auto* bytes = static_cast<uint8_t*>(array.data());
  for (int64_t i = 0; i < array.bytes(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + 11);
  return array;
}

bool same_bits(const Array& a, int64_t i, const Array& b, int64_t k) {
  const int64_t bytes = bit_width(a.dtype()) / 8;
  return std::memcmp(static_cast<const char*>(a.data()) + i * bytes,
                     static_cast<const char*>(b.data()) + k * bytes,
                     static_cast<size_t>(bytes)) == 0;
}

TEST(Known, ElementsAreCopiedBitByBit) {
  for (const DType dtype : kAllDTypes) {
    const Array from = any_bits(dtype, {64});
    Array to(dtype, {64});
    for (int64_t i = 0; i < 64; ++i) copy_element(to, i, from, 63 - i);
    for (int64_t i = 0; i < 64; ++i) EXPECT_TRUE(same_bits(to, i, from, 63 - i)) << name(dtype);
    EXPECT_THROW(copy_element(to, 0, Array(dtype == DType::F32 ? DType::F64 : DType::F32, {1}), 0),
                 InternalError);
  }
}

TEST(Known, AValueThatIsNoConstantIsNamed) {
  const Value value{"mask", {DType::F32, {1, 1, 4, 4}}, std::nullopt};
  EXPECT_THROW(array_of(value), InternalError);
}

TEST(MergeGroups, KeepsTheBitsOfEveryType) {
  for (const DType dtype : kAllDTypes)
    for (const int64_t merged : {1, 2, 4}) {
      // 4 groups of 3 filters over 2 channels, windows of 1x2.
      const Array w = any_bits(dtype, {12, 2, 1, 2});
      const Array zero(dtype, {1});
      const int64_t joined = 4 / merged;
      const Array out = merge_groups(w, 4, merged);
      ASSERT_EQ(out.shape(), (Shape{12, 2 * joined, 1, 2}));
      for (int64_t i = 0; i < out.size(); ++i) {
        const int64_t k = i / (joined * 4), place = i / 4 % joined;
        const bool own = place == k / 3 % joined;
        EXPECT_TRUE(own ? same_bits(out, i, w, k * 4 + i % 4) : same_bits(out, i, zero, 0))
            << name(dtype) << ", " << merged << " groups, element " << i;
      }
    }
}

TEST(MergedGroups, FillWholeBlocks) {
  EXPECT_EQ(merged_groups({16, 8, 3, 3}, 2, 16), 1);
  EXPECT_EQ(merged_groups({32, 4, 3, 3}, 8, 16), 2);
  EXPECT_EQ(merged_groups({32, 16, 3, 3}, 2, 16), 2);
  EXPECT_EQ(merged_groups({16, 1, 3, 3}, 16, 16), 0);  // zeros would take longer
  EXPECT_EQ(merged_groups({5, 7, 3, 3}, 1, 16), 1);
}

}  // namespace
}  // namespace tilewright::graph
