#include "tilewright/accel/fpga/pairs.h"

#include <gtest/gtest.h>

#include <set>

namespace tilewright::fpga {
namespace {

constexpr Number kI8{Number::Kind::Signed, 8}, kU8{Number::Kind::Unsigned, 8},
    kI16{Number::Kind::Signed, 16};

/// All products of `rows` factors of one memory and `columns` of another one.
Nest grid(int rows, int columns, const Number& row, const Number& column) {
  Nest nest{"grid", {4}};
  for (int i = 0; i < rows + columns; ++i)
    nest.nodes.push_back({Op::Read,
                          i < rows ? row : column,
                          {},
                          0,
                          0,
                          0,
                          {i < rows ? 0 : 1, {i, {}, {}}, {0, {}, {1}}}});
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) nest.nodes.push_back({Op::Mul, kI16, {r, rows + c}, 2});
  return nest;
}

std::vector<ProductPair> pairs_of(const Nest& nest, int bits) {
  Design design;
  design.multiplier_bits = bits;
  design.memories = {{"a", kI8, 64, 4}, {"b", kI8, 64, 4}};
  return product_pairs(design, nest, times_of(design, nest));
}

TEST(FpgaPairs, AllButAnOddOne) {
  for (int rows = 1; rows <= 5; ++rows)
    for (int columns = 1; columns <= 5; ++columns) {
      const Nest nest = grid(rows, columns, kI8, kI8);
      const auto pairs = pairs_of(nest, 25);
      EXPECT_EQ(static_cast<int>(pairs.size()), rows * columns / 2) << rows << " " << columns;
      std::set<int> used;
      for (const ProductPair& pair : pairs) {
        EXPECT_TRUE(used.insert(pair.first).second && used.insert(pair.second).second);
        for (const auto& [product, other] :
             {std::pair{pair.first, pair.a}, std::pair{pair.second, pair.b}}) {
          const std::vector<int>& in = nest.nodes[static_cast<size_t>(product)].inputs;
          EXPECT_EQ((std::set<int>{in[0], in[1]}), (std::set<int>{other, pair.common}));
        }
      }
    }
}

TEST(FpgaPairs, OnlyWhatFitsTheMultiplier) {
  EXPECT_EQ(pairs_of(grid(2, 1, kI8, kI8), 24).size(), 0U);
  EXPECT_EQ(pairs_of(grid(2, 1, kI8, kI8), 25).size(), 1U);
  EXPECT_EQ(pairs_of(grid(2, 1, kI8, kU8), 25).size(), 0U);  // 8 + 8 + 9 + 1 bits
  EXPECT_EQ(pairs_of(grid(2, 1, kI8, kU8), 27).size(), 1U);
  EXPECT_EQ(pairs_of(grid(2, 1, kI16, kI16), 27).size(), 0U);
  EXPECT_EQ(pairs_of(grid(2, 2, kI8, kI8), 0).size(), 0U);
}

TEST(FpgaPairs, NotAtOtherTimesNorWithConstants) {
  Nest nest = grid(2, 1, kI8, kI8);
  nest.nodes.back().latency = 3;
  EXPECT_EQ(pairs_of(nest, 25).size(), 0U);
  nest = grid(2, 1, kI8, kI8);
  nest.nodes[2] = {Op::Const, kI8, {}, 0, 5};
  EXPECT_EQ(pairs_of(nest, 25).size(), 0U);
}

}  // namespace
}  // namespace tilewright::fpga
