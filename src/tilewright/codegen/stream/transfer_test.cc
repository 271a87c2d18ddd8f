// Random padded copies: what the transfers do to memory is what the loops say.
#include "tilewright/codegen/stream/transfer.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tilewright::codegen::stream {
namespace {

constexpr int64_t kBase = 64;  // first DRAM element of the source

/// Memory after the transfers; DRAM element d holds d, padding holds -1.
std::map<int64_t, int64_t> run(const std::vector<Transfer>& transfers) {
  std::map<int64_t, int64_t> sram;
  for (const Transfer& t : transfers) {
    int64_t at = t.sram;
    const int64_t width = t.x_pad_left + t.x_size + t.x_pad_right;
    const int64_t rows = t.y_pad_top + t.y_size + t.y_pad_bottom;
    for (int64_t y = 0; y < rows; ++y)
      for (int64_t x = 0; x < width; ++x, ++at) {
        const int64_t sy = y - t.y_pad_top, sx = x - t.x_pad_left;
        const bool inside = sy >= 0 && sy < t.y_size && sx >= 0 && sx < t.x_size;
        EXPECT_FALSE(sram.contains(at)) << "written twice";
        sram[at] = inside ? t.dram + sy * t.x_stride + sx : -1;
      }
  }
  return sram;
}

Result<std::vector<Transfer>> transfers_of(const ConcreteNest& nest,
                                           const TransferLimits& limits = {}) {
  std::vector<Transfer> out;
  TW_TRY_STATUS(emit_transfers(nest, limits, [&](const Transfer& t) -> Status {
    out.push_back(t);
    return {};
  }));
  return out;
}

/// That no field has more than one instruction takes.
void expect_within(const Transfer& t, const TransferLimits& limits) {
  for (const int64_t size : {t.y_size, t.x_size, t.x_stride}) EXPECT_LE(size, limits.size);
  for (const int64_t pad : {t.y_pad_top, t.y_pad_bottom, t.x_pad_left, t.x_pad_right}) {
    EXPECT_GE(pad, 0);
    EXPECT_LE(pad, limits.pad);
  }
}

TEST(Transfers, DoWhatTheLoopsDo) {
  std::mt19937 random(11);
  auto pick = [&](int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random);
  };
  for (int round = 0; round < 600; ++round) {
    ConcreteNest nest;
    const size_t n = static_cast<size_t>(pick(1, 3));
    Form to{5, {}}, from{kBase, {}};
    int64_t dense = 1, source = 1;
    for (size_t i = 0; i < n; ++i) {  // innermost first
      nest.extents.push_back(pick(1, i == 0 ? 30 : 7));
      to.k[i] = dense;
      from.k[i] = i == 0 ? pick(0, 4) == 0 ? 2 : 1 : source + pick(0, 3);
      dense *= nest.extents[i];
      source = from.k[i] * nest.extents[i];
    }
    nest.forms = {to, from};
    nest.addresses = 2;
    for (size_t i = 0; i < std::min<size_t>(n, 2); ++i) {
      Form first{-pick(0, nest.extents[i]), {}}, last{pick(0, nest.extents[i]) - 1, {}};
      first.k[i] = 1;
      last.k[i] = -1;
      if (pick(0, 1)) nest.forms.push_back(first);
      if (pick(0, 1)) nest.forms.push_back(last);
    }
    std::map<int64_t, int64_t> expected;
    for (int64_t t = 0; t < nest.iterations(); ++t) {
      std::vector<int64_t> value;
      for (const Form& f : nest.forms) {
        int64_t v = f.c, rest = t;
        for (size_t i = 0; i < n; rest /= nest.extents[i++]) v += f.k[i] * (rest % nest.extents[i]);
        value.push_back(v);
      }
      bool inside = true;
      for (size_t f = 2; f < value.size(); ++f) inside &= value[f] >= 0;
      expected[value[0]] = inside ? value[1] : -1;
    }
    TransferLimits limits;
    if (round % 2 == 1) limits.pad = pick(1, 4);
    const auto transfers = transfers_of(nest, limits);
    ASSERT_TRUE(transfers) << to_string(transfers.error());
    for (const Transfer& t : *transfers) expect_within(t, limits);
    ASSERT_EQ(run(*transfers), expected) << "round " << round;
  }
}

TEST(Transfers, OneInstructionForAPaddedTile) {
  ConcreteNest nest;  // 2 channel blocks of 6 x 8, of which the first row and column are padding
  nest.extents = {2, 6, 8};
  nest.addresses = 2;
  nest.forms.resize(4);
  nest.forms[0] = {0, {48, 8, 1}};
  nest.forms[1] = {kBase - 15, {196, 14, 1}};
  nest.forms[2] = {-1, {0, 1, 0}};
  nest.forms[3] = {-1, {0, 0, 1}};
  const auto transfers = transfers_of(nest);
  ASSERT_TRUE(transfers);
  EXPECT_EQ(transfers->size(), 2u);
}

TEST(Transfers, SomeMemoriesTakeNoZeros) {
  ConcreteNest nest;
  nest.extents = {4};
  nest.addresses = 2;
  nest.forms.resize(3);
  nest.forms[0] = {0, {1}};
  nest.forms[1] = {kBase, {1}};
  nest.forms[2] = {-1, {1}};
  TransferLimits limits;
  limits.no_zeros = Error{ErrorKind::Unsupported, "no zeros here", {}, {}, {}, {}};
  const auto sent = transfers_of(nest, limits);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().what, "no zeros here");
  nest.forms.pop_back();
  EXPECT_TRUE(transfers_of(nest, limits));
}

}  // namespace
}  // namespace tilewright::codegen::stream
