// Choices of whole Funcs: counts, roles, lanes and reads; and what models of costs know of them.
#include "tilewright/codesign/choices.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "tilewright/accel/spatial/needs.h"
#include "tilewright/cost/spatial/mapper.h"
#include "tilewright/tensor/text.h"

namespace tilewright::codesign {
namespace {

using spatial::Unit;

/// `C[i,j] = A[i,k] * B[k,j]` as a tensor expression: letters are loops of `extent`, digits
/// strides.
std::string expression(const std::string& spec, int64_t extent) {
  struct Access {
    char tensor;
    std::vector<std::vector<std::pair<char, int64_t>>> axes;
  };
  std::vector<Access> accesses;
  int64_t scale = 1;
  for (const char c : spec) {
    if (std::isupper(c)) accesses.push_back({c, {{}}});
    if (c == ',') accesses.back().axes.emplace_back();
    if (std::isdigit(c)) scale = c - '0';
    if (std::islower(c)) accesses.back().axes.back().emplace_back(c, std::exchange(scale, 1));
  }
  std::set<char> of_result, all;
  std::string params, space, over, value;
  for (size_t i = 0; i < accesses.size(); ++i) {
    std::string shape, indices;
    for (const auto& axis : accesses[i].axes) {
      int64_t size = 1;
      std::string sum;
      for (const auto& [c, stride] : axis) {
        (i == 0 ? of_result : all).insert(c);
        size += stride * (extent - 1);
        sum += fmt::format("{}{}*{}", sum.empty() ? "" : " + ", stride, c);
      }
      shape += fmt::format("{}{}", shape.empty() ? "" : ", ", size);
      indices += (indices.empty() ? "" : ", ") + sum;
      if (i == 0)
        space += fmt::format("{}{} in {}", space.empty() ? "" : ", ", axis[0].first, extent);
    }
    if (i == 0) continue;
    params += fmt::format("{}{}: i8[{}]", params.empty() ? "" : ", ", accesses[i].tensor, shape);
    value += fmt::format("{}i32({}[{}])", value.empty() ? "" : " * ", accesses[i].tensor, indices);
  }
  for (const char c : all)
    if (!of_result.contains(c))
      over += fmt::format("{}{} in {}", over.empty() ? "" : ", ", c, extent);
  return fmt::format("tensor w({}) {{\n  {}[{}] = sum({}) {}\n  return {}\n}}\n", params,
                     accesses[0].tensor, space, over, value, accesses[0].tensor);
}

cost::Computations read(const std::string& text) {
  const Result<Func> func = tensor::parse_tensor_file(text);
  EXPECT_TRUE(func) << to_string(func.error()) << text;
  return cost::computations_of(*func);
}

cost::Computation one(const std::string& spec, int64_t extent = 3) {
  const cost::Computations found = read(expression(spec, extent));
  EXPECT_EQ(found.sums.size(), 1u) << spec;
  return found.sums.at(0);
}

spatial::Design design(Unit unit) {
  spatial::Design d;
  d.unit = unit;
  d.links = spatial::usual_links(unit);
  return d;
}

Unit unit_named(const std::string& name) {
  for (const Unit unit : {Unit::Dot, Unit::Gemv, Unit::Gemm, Unit::Conv2d})
    if (spatial::name(unit) == name) return unit;
  ADD_FAILURE() << name;
  return Unit::Dot;
}

const std::string kConv = "O[k,x,y] = A[c,x+r,y+s] * B[k,c,r,s]";
const std::string kTtm = "C[i,j,k] = A[i,j,l] * B[l,k]";

struct Row {
  std::string workload;
  std::map<std::string, std::array<int64_t, 3>> counts;  ///< literal, sound, sets of loops
};

// The same counts as schedule/match_test.cc has, where bijections are counted too; here through
// tensor expressions, Funcs and intrinsics made from designs.
const std::vector<Row> kTable = {
    {kConv,
     {{"gemm", {48, 8, 4}}, {"gemv", {19, 7, 7}}, {"dot", {6, 6, 3}}, {"conv2d", {2, 2, 1}}}},
    {"O[n,k,x,y] = A[n,c,x+r,y+s] * B[k,c,r,s]",
     {{"gemm", {66, 14, 7}}, {"gemv", {22, 10, 10}}, {"dot", {6, 6, 3}}}},
    {"O[k,x,y] = A[c,2x+3r,2y+3s] * B[k,c,r,s]", {{"gemm", {48, 8, 4}}}},
    {"C[i,j] = M[i,k] * N[k,j]",
     {{"gemm", {2, 2, 1}}, {"gemv", {2, 2, 2}}, {"dot", {2, 2, 1}}, {"conv2d", {0, 0, 0}}}},
    {"C[i] = M[i,j] * V[j]", {{"gemm", {0, 0, 0}}, {"gemv", {1, 1, 1}}, {"dot", {2, 2, 1}}}},
    {kTtm, {{"gemm", {4, 4, 2}}, {"gemv", {3, 3, 3}}, {"dot", {2, 2, 1}}}},
    {"E[i,k,j] = A[i,k,l] * B[l,j]",
     {{"gemm", {4, 4, 2}}, {"gemv", {3, 3, 3}}, {"dot", {2, 2, 1}}}},
    {"D[i,j] = E[i,k,j] * C[k,j]", {{"gemm", {4, 0, 0}}, {"gemv", {6, 1, 1}}, {"dot", {4, 2, 1}}}},
    {"D[i,j] = A[i,k,l] * B[l,j] * C[k,j]",
     {{"gemm", {10, 0, 0}}, {"gemv", {8, 2, 2}}, {"dot", {6, 4, 2}}}},
    {"C[b,i,j] = A[b,i,k] * B[b,k,j]",
     {{"gemm", {12, 2, 1}}, {"gemv", {8, 2, 2}}, {"dot", {4, 2, 1}}}},
    {"O[c,x,y] = A[c,x+r,y+s] * B[c,r,s]",
     {{"gemm", {28, 0, 0}}, {"gemv", {16, 2, 2}}, {"dot", {6, 4, 2}}}},
    {"O[g,k,x,y] = A[g,c,x+r,y+s] * B[g,k,c,r,s]",
     {{"gemm", {120, 8, 4}}, {"gemv", {34, 7, 7}}, {"dot", {8, 6, 3}}}},
    {"O[k,x] = A[c,x+r] * B[k,c,r]",
     {{"gemm", {8, 2, 1}}, {"gemv", {7, 3, 3}}, {"dot", {4, 4, 2}}}},
    {"O[k,x,y,z] = A[c,x+r,y+s,z+t] * B[k,c,r,s,t]",
     {{"gemm", {144, 18, 9}}, {"gemv", {37, 13, 13}}, {"dot", {8, 8, 4}}}},
};

TEST(Choices, CountsAreThoseOfTheTable) {
  for (const Row& row : kTable) {
    const cost::Computation c = one(row.workload);
    for (const auto& [unit, counts] : row.counts) {
      const UnitChoices found = choices_of(c, design(unit_named(unit)));
      const std::string what = row.workload + " on " + unit;
      EXPECT_EQ(found.counts.literal, counts[0]) << what;
      EXPECT_EQ(found.counts.sound, counts[1]) << what;
      EXPECT_EQ(static_cast<int64_t>(found.choices.size()), counts[1]) << what;
      std::set<std::set<std::string>> sets;
      for (const TensorizeChoice& choice : found.choices) {
        std::set<std::string> loops;
        for (const auto& [of_unit, loop] : choice.loops) loops.insert(loop);
        sets.insert(loops);
      }
      EXPECT_EQ(static_cast<int64_t>(sets.size()), counts[2]) << what;
      EXPECT_EQ(found.none.empty(), !found.choices.empty()) << what;
    }
  }
}

// The matcher and the models of costs find choices in different ways.
TEST(Choices, ModelsOfCostsKnowTheSame) {
  for (const Row& row : kTable) {
    const cost::Computation c = one(row.workload);
    const Result<cost::SpatialLayer> layer = layer_of(c);
    if (c.factors.size() != 2) {
      EXPECT_FALSE(layer);
      continue;
    }
    ASSERT_TRUE(layer) << to_string(layer.error());
    for (const Unit unit : {Unit::Dot, Unit::Gemv, Unit::Gemm, Unit::Conv2d}) {
      std::vector<cost::SpatialChoice> usable;
      for (const TensorizeChoice& choice : choices_of(c, design(unit)).choices)
        if (choice.mapping && !choice.same_as) usable.push_back(*choice.mapping);
      EXPECT_THAT(usable, ::testing::UnorderedElementsAreArray(cost::choices(design(unit), *layer)))
          << row.workload << " on " << spatial::name(unit);
    }
  }
}

/// `i=j j=k k=l M=A N=B`.
std::string text(const TensorizeChoice& choice) {
  std::string out;
  for (const auto& [unit, loop] : choice.loops) out += unit + "=" + loop + " ";
  for (const OperandUse& use : choice.operands) out += use.role + "=" + use.tensor + " ";
  out.pop_back();
  return out;
}

std::map<std::string, TensorizeChoice> by_text(const UnitChoices& found) {
  std::map<std::string, TensorizeChoice> all;
  for (const TensorizeChoice& choice : found.choices) all.emplace(text(choice), choice);
  return all;
}

// Choice a of the paper takes rows of A that are neighbours, choice b rows J * L apart: the lanes
// of an output stationary array lie along them.
TEST(Choices, RowsOfTtmAreNearOrFar) {
  spatial::Design os = design(Unit::Gemm);
  os.dataflow = spatial::Dataflow::OutputStationary;
  const cost::Computation c =
      read(
          "tensor w(A: i8[20, 24, 40], B: i8[40, 32]) {\n C[i in 20, j in 24, k in 32] = "
          "sum(l in 40) i32(A[i, j, l]) * i32(B[l, k])\n return C\n}\n")
          .sums.at(0);
  const auto all = by_text(choices_of(c, os));
  const TensorizeChoice &a = all.at("i=j j=k k=l M=A N=B"), &b = all.at("i=i j=k k=l M=A N=B");
  EXPECT_EQ(a.operands[0].lane, "j");
  EXPECT_EQ(a.operands[0].stride, 40);
  EXPECT_EQ(b.operands[0].stride, 24 * 40);
  EXPECT_TRUE(a.operands[0].gathered && b.operands[0].gathered);
  EXPECT_EQ(a.operands[0].change_bytes, 20 * 24 * 40);
  EXPECT_FALSE(a.operands[1].gathered);
  EXPECT_EQ(a.operands[1].stride, 1);
  EXPECT_EQ(a.operands[0].row, "l");
  EXPECT_EQ(a.operands[0].row_stride, 1);
  // 16 x 16 lanes: 24 of 32 and 32 of 32; 20 of 32.
  EXPECT_DOUBLE_EQ(a.idle, 0.25);
  EXPECT_DOUBLE_EQ(b.idle, 1 - 20.0 / 32);
  // Weight stationary lanes run along l, which is innermost.
  const auto ws = by_text(choices_of(c, design(Unit::Gemm)));
  EXPECT_FALSE(ws.at("i=j j=k k=l M=A N=B").operands[0].gathered);
  EXPECT_EQ(ws.at("i=j j=k k=l M=A N=B").operands[0].lane, "l");
  EXPECT_EQ(ws.at("i=j j=k k=l M=A N=B").operands[0].row_stride, 40);
  EXPECT_EQ(ws.at("i=i j=k k=l M=A N=B").operands[0].row_stride, 24 * 40);
}

// Rows that lie far apart cost bursts; the best of all choices is the best of one of them.
TEST(Choices, CyclesAreThoseOfTheBestMappingOfEach) {
  const cost::Computation c =
      read(
          "tensor w(A: i8[40, 40, 40], B: i8[40, 40]) {\n C[i in 40, j in 40, k in 40] = "
          "sum(l in 40) i32(A[i, j, l]) * i32(B[l, k])\n return C\n}\n")
          .sums.at(0);
  const spatial::Design gemm = design(Unit::Gemm);
  UnitChoices found = choices_of(c, gemm);
  predict_cycles(c, gemm, found);
  double least = HUGE_VAL, most = 0;
  for (const TensorizeChoice& choice : found.choices) {
    ASSERT_TRUE(choice.cycles) << text(choice);
    least = std::min(least, *choice.cycles);
    most = std::max(most, *choice.cycles);
  }
  EXPECT_EQ(least, cost::best_mapping(gemm, *layer_of(c))->cost.cycles);
  EXPECT_GT(most, least);
  spatial::Design tiny = gemm;
  tiny.spad_kb = 0;
  predict_cycles(c, tiny, found);
  EXPECT_THAT(found.choices[0].unusable, ::testing::HasSubstr("fits"));
}

TEST(Choices, SymmetricOnesPointToTheFirst) {
  const UnitChoices dot = choices_of(one(kTtm), design(Unit::Dot));
  ASSERT_EQ(dot.choices.size(), 2u);
  EXPECT_FALSE(dot.choices[0].same_as);
  EXPECT_EQ(dot.choices[1].same_as, 0u);
  const UnitChoices conv = choices_of(one(kConv), design(Unit::Conv2d));
  ASSERT_EQ(conv.choices.size(), 2u);
  EXPECT_EQ(conv.choices[1].same_as, 0u);
}

TEST(Choices, UnusableOnesSayWhy) {
  const cost::Computation three = one("D[i,j] = A[i,k,l] * B[l,j] * C[k,j]");
  for (const TensorizeChoice& choice : choices_of(three, design(Unit::Gemv)).choices) {
    EXPECT_FALSE(choice.mapping);
    EXPECT_THAT(choice.unusable, ::testing::HasSubstr("contract in pairs"));
  }
  EXPECT_THAT(choices_of(three, design(Unit::Gemm)).none,
              ::testing::HasSubstr("two factors, here are 3"));
  EXPECT_EQ(choices_of(one("D[i,j] = E[i,k,j] * C[k,j]"), design(Unit::Gemm)).none,
            "no loop of the result runs through C and not through E");
  const UnitChoices window =
      choices_of(one("O[k,x,y,z] = A[c,x+r,y+s,z+t] * B[k,c,r,s,t]"), design(Unit::Conv2d));
  ASSERT_FALSE(window.choices.empty());
  for (const TensorizeChoice& choice : window.choices)
    EXPECT_THAT(choice.unusable, ::testing::HasSubstr("two taps"));
}

}  // namespace
}  // namespace tilewright::codesign
