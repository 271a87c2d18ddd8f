// Reading computations out of Funcs: what is a sum of products, what is folded, what is left over.
#include "tilewright/codesign/computation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/rng.h"
#include "tilewright/codesign/association.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/tensor/text.h"
#include "tilewright/tensor/workload.h"

namespace tilewright::codesign {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Func parsed(const std::string& text) {
  const Result<Func> func = tensor::parse_tensor_file(text);
  EXPECT_TRUE(func) << to_string(func.error());
  return *func;
}

Func operation(const std::string& name, const std::map<std::string, int64_t>& params,
               DType dtype = DType::I8) {
  const auto call = tensor::workload_call(name, params, dtype);
  EXPECT_TRUE(call) << to_string(call.error());
  const auto func = tensor::op_func(*call);
  EXPECT_TRUE(func) << to_string(func.error());
  return *func;
}

std::vector<std::string> texts(const Computations& found) {
  std::vector<std::string> out;
  for (const Computation& sum : found.sums) out.push_back(to_string(sum));
  return out;
}

/// Small random numbers for every input.
interp::Arguments arguments(const Func& func, uint64_t seed) {
  Rng rng(seed);
  interp::Arguments args;
  for (const Param& param : func.params) {
    if (param.mode == ParamMode::Out) continue;
    Shape shape;
    for (const Expr& extent : param.buffer.shape()) shape.push_back(*as_int(extent));
    Array array(param.buffer.dtype(), shape);
    for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, rng.between(-9, 9));
    args.arrays.emplace(param.buffer.name(), std::move(array));
  }
  return args;
}

/// The first output, flat; inputs by name, in whatever shape `func` has them.
std::vector<int64_t> result(const Func& func, const interp::Arguments& flat) {
  interp::Arguments args;
  std::string output;
  for (const Param& param : func.params) {
    Shape shape;
    for (const Expr& extent : param.buffer.shape()) shape.push_back(*as_int(extent));
    if (param.mode == ParamMode::Out) {
      output = param.buffer.name();
      continue;
    }
    const Array& values = flat.arrays.at(param.buffer.name());
    Array array(param.buffer.dtype(), shape);
    EXPECT_EQ(array.size(), values.size()) << param.buffer.name();
    for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, values.get_int(i));
    args.arrays.emplace(param.buffer.name(), std::move(array));
  }
  const auto outcome = interp::run(func, args);
  EXPECT_TRUE(outcome) << to_string(outcome.error()) << print(func);
  std::vector<int64_t> values;
  if (!outcome) return values;
  const Array& array = outcome->outputs.at(output);
  for (int64_t i = 0; i < array.size(); ++i) values.push_back(array.get_int(i));
  return values;
}

void expect_same_results(const Func& one, const Func& other, const std::string& what) {
  const interp::Arguments args = arguments(one, 7);
  const std::vector<int64_t> expected = result(one, args);
  EXPECT_EQ(result(other, args), expected) << what;
  EXPECT_NE(expected, std::vector<int64_t>(expected.size(), 0)) << what;
}

const std::map<std::string, int64_t> kMttkrp = {{"i", 3}, {"j", 4}, {"k", 5}, {"l", 2}};

TEST(Computations, MttkrpHasTwo) {
  const Computations found = computations_of(operation("mttkrp", kMttkrp));
  EXPECT_THAT(texts(found), ElementsAre("mttkrp_half[i, k, j] += x0[i, k, l] * x1[l, j]",
                                        "y0[i, j] += mttkrp_half[i, k, j] * x2[k, j]"));
  EXPECT_THAT(found.sums[1].sources, ElementsAre(0, -1));
  EXPECT_TRUE(found.others.empty());
  EXPECT_EQ(found.sums[0].macs(), 3 * 4 * 5 * 2);
}

std::map<std::string, int64_t> convolution(int64_t batch, int64_t channels, int64_t outputs,
                                           int64_t groups) {
  return {{"batch", batch},
          {"in_channels", channels},
          {"out_channels", outputs},
          {"groups", groups},
          {"height", 7},
          {"width", 6},
          {"kernel_h", 3},
          {"kernel_w", 3},
          {"stride_h", 2},
          {"stride_w", 1},
          {"pad_h", 1},
          {"pad_w", 1}};
}

TEST(Computations, PaddingIsPartOfTheIndex) {
  const Func func = operation("conv2d", convolution(1, 4, 6, 1));
  const Computations found = computations_of(func);
  ASSERT_THAT(texts(found), ElementsAre("y0[k, h, w] += x0[c, 2*h + r - 1, w + s - 1] * "
                                        "x1[k, c, r, s]"));
  ASSERT_EQ(found.others.size(), 1u);
  EXPECT_TRUE(found.others[0].free);
  EXPECT_THAT(found.others[0].reason, HasSubstr("zeros around"));
  const Result<cost::SpatialLayer> layer = layer_of(found.sums[0]);
  ASSERT_TRUE(layer);
  EXPECT_EQ(layer->tensors[0].dims[1].begin, 1);
  EXPECT_EQ(layer->tensors[0].dims[1].extent, 7);
  expect_same_results(func, func_of("again", found.sums), "conv2d");
}

TEST(Computations, GroupsAreALoopOfTheirOwn) {
  const Func func = operation("group_conv2d", convolution(2, 4, 6, 2));
  const Computations found = computations_of(func);
  ASSERT_THAT(texts(found), ElementsAre("y0[n, g, k, h, w] += x0[n, g, c, 2*h + r - 1, w + s - 1] "
                                        "* x1[g, k, c, r, s]"));
  expect_same_results(func, func_of("again", found.sums), "group_conv2d");
  // 5 dimensions and 8 loops fill what there is.
  EXPECT_TRUE(layer_of(found.sums[0]));
  const Func depthwise = operation("depthwise_conv2d", convolution(1, 4, 8, 4));
  const Computations channels = computations_of(depthwise);
  ASSERT_THAT(texts(channels),
              ElementsAre("y0[g, k, h, w] += x0[g, 2*h + r - 1, w + s - 1] * x1[g, k, r, s]"));
  expect_same_results(depthwise, func_of("again", channels.sums), "depthwise_conv2d");
}

// A window of 1 x 1 is one: its taps are in the index although they never move.
TEST(Computations, WindowsOfOneElementKeepTheirTaps) {
  auto params = convolution(2, 4, 6, 1);
  params["kernel_h"] = params["kernel_w"] = 1;
  params["pad_h"] = params["pad_w"] = 0;
  const Func func = operation("conv2d", params);
  const Computations found = computations_of(func);
  ASSERT_THAT(texts(found), ElementsAre("y0[n, k, h, w] += x0[n, c, 2*h + r, w + s] * x1[k, c, r, "
                                        "s]"));
  expect_same_results(func, func_of("again", found.sums), "1 x 1");
}

TEST(Computations, TooManyLoopsAreRefusedWithTheReason) {
  const Func func = operation("conv3d", {{"batch", 2},
                                         {"in_channels", 2},
                                         {"out_channels", 2},
                                         {"depth", 4},
                                         {"height", 4},
                                         {"width", 4},
                                         {"kernel_d", 2},
                                         {"kernel_h", 2},
                                         {"kernel_w", 2}});
  const Computations found = computations_of(func);
  ASSERT_EQ(found.sums.size(), 1u);
  EXPECT_EQ(layer_of(found.sums[0]).error().why, "it has 9 loops, there is room for 8");
}

TEST(Computations, GuardsThatArePaddingAndOthers) {
  const auto sum = [](const std::string& guard) {
    return "tensor w(A: i32[9], B: i32[3, 4]) {\n C[x in 9, k in 4] = sum(r in 3) "
           "select(" +
           guard + ", A[x + r - 1], 0) * B[r, k]\n return C\n}\n";
  };
  const Func padded = parsed(sum("x + r >= 1 && x + r - 1 < 9"));
  const Computations found = computations_of(padded);
  EXPECT_THAT(texts(found), ElementsAre("C[x, k] += A[x + r - 1] * B[r, k]"));
  expect_same_results(padded, func_of("again", found.sums), "guard");
  const Computations other = computations_of(parsed(sum("x + r >= 2 && x + r - 1 < 9")));
  EXPECT_TRUE(other.sums.empty());
  ASSERT_EQ(other.others.size(), 1u);
  EXPECT_THAT(other.others[0].reason, HasSubstr("what is not padding"));
  EXPECT_EQ(other.others[0].macs, 9 * 4 * 3);
}

TEST(Computations, TransposesAndTypesAreFoldedAndResultsFinished) {
  const Func func = parsed(
      "tensor w(A: i8[5, 4], B: i8[5, 6], bias: i32[6]) {\n"
      " T[i in 4, k in 5] = i32(A[k, i])\n"
      " C[i in 4, j in 6] = sum(k in 5) T[i, k] * i32(B[k, j])\n"
      " D[i in 4, j in 6] = max(C[i, j] + bias[j], 0)\n"
      " E[i in 4, j in 6] = D[i, j] + C[i, j]\n"
      " return E\n}\n");
  const Computations found = computations_of(func);
  EXPECT_THAT(texts(found), ElementsAre("C[i, j] += A[k, i] * B[k, j]"));
  ASSERT_EQ(found.others.size(), 3u);
  EXPECT_TRUE(found.others[0].free);
  EXPECT_TRUE(found.others[1].free);
  EXPECT_FALSE(found.others[2].free);  // two sums
  EXPECT_EQ(found.others[2].bytes, 3 * 24);
}

TEST(Computations, WhatIsNoSumOfProductsSaysWhy) {
  const auto reason = [](const std::string& body) {
    const Computations found = computations_of(
        parsed("tensor w(A: i32[8], B: i32[8], S: i32[8]) {\n" + body + "\n return C\n}\n"));
    EXPECT_TRUE(found.sums.empty()) << body;
    return found.others.empty() ? "" : found.others.back().reason;
  };
  EXPECT_THAT(reason("C[i in 2] = sum(k in 8) A[k]"), HasSubstr("single elements"));
  EXPECT_THAT(reason("C[i in 8] = A[i] * B[i]"), HasSubstr("nothing is summed"));
  EXPECT_THAT(reason("C[i in 2] = max(k in 8) A[k] * B[k]"), HasSubstr("max="));
  EXPECT_THAT(reason("C[i in 2] = sum(k in 8) abs(A[k]) * B[k]"), HasSubstr("no product"));
  EXPECT_THAT(reason("C[i in 2] = sum(k in 8) A[k * k / 9] * B[k]"), HasSubstr("strided loops"));
  const Computations backwards = computations_of(
      parsed("tensor w(A: i32[8], B: i32[8]) {\n C[i in 2] = sum(k in 8) A[7 - k] * B[k]\n return "
             "C\n}\n"));
  ASSERT_EQ(backwards.sums.size(), 1u);
  EXPECT_THAT(layer_of(backwards.sums[0]).error().why, HasSubstr("backwards"));
}

TEST(Computations, LoopsAsTheyAreWritten) {
  const Func func = *parse_func(
      "func gemm(A: i32[6,5], B: i32[5,4], out C: i32[6,4]) {\n for i in 6, j in 4 {\n block "
      "begin(i: space 6 = i, j: space 4 = j) { C[i, j] = 0i32 }\n for k in 5 {\n block mm(i: space "
      "6 = i, j: space 4 = j, k: reduce 5 = k) { C[i, j] += A[i, k] * B[k, j] }\n }\n }\n}\n");
  const Computations found = computations_of(func);
  EXPECT_THAT(texts(found), ElementsAre("C[i, j] += A[i, k] * B[k, j]"));
  EXPECT_TRUE(found.others.empty());
}

// --- Orders of contraction

struct ChainCase {
  std::string text;
  size_t factors, orders;
};

TEST(Association, EveryOrderComputesTheSame) {
  const std::vector<ChainCase> cases = {
      {"tensor w(A: i32[3, 5, 2], B: i32[2, 4], C: i32[5, 4]) {\n D[i in 3, j in 4] = sum(k in 5, "
       "l in 2) A[i, k, l] * B[l, j] * C[k, j]\n return D\n}\n",
       3, 3},
      // TTMc in its three-factor form, and as two steps.
      {"tensor w(A: i32[3, 5, 2], B: i32[5, 4], C: i32[2, 7]) {\n D[i in 3, j in 4, n in 7] = "
       "sum(k "
       "in 5, l in 2) A[i, k, l] * B[k, j] * C[l, n]\n return D\n}\n",
       3, 3},
      {"tensor w(A: i32[3, 5, 2], B: i32[5, 4], C: i32[2, 7]) {\n T[i in 3, l in 2, j in 4] = "
       "sum(k "
       "in 5) A[i, k, l] * B[k, j]\n D[i in 3, j in 4, n in 7] = sum(k in 2) T[i, k, j] * C[k, "
       "n]\n "
       "return D\n}\n",
       3, 3},
      // Windows and a loop that one factor has alone.
      {"tensor w(A: i32[6, 3], B: i32[2, 4], C: i32[3, 4], E: i32[5, 2]) {\n D[x in 5, j in 4] = "
       "sum(r in 2, k in 3, u in 2) A[x + r, k] * B[r, j] * C[k, j] * E[x, u]\n return D\n}\n",
       4, 15},
  };
  for (const ChainCase& one : cases) {
    const Func func = parsed(one.text);
    const std::vector<Chain> chains = chains_of(computations_of(func));
    ASSERT_EQ(chains.size(), 1u) << one.text;
    EXPECT_EQ(chains[0].product.factors.size(), one.factors);
    EXPECT_EQ(chains[0].orders.size(), one.orders);
    std::set<std::string> different;
    for (const AssociationOrder& order : chains[0].orders) {
      EXPECT_EQ(order.stages.size(), one.factors - 1);
      for (const Computation& stage : order.stages) EXPECT_EQ(stage.factors.size(), 2u);
      expect_same_results(func, func_of("order", order.stages), order.text);
      different.insert(order.text);
    }
    EXPECT_EQ(different.size(), one.orders);
  }
}

TEST(Association, MttkrpsOrdersHaveTheirCosts) {
  const std::vector<Chain> chains = chains_of(computations_of(operation("mttkrp", kMttkrp)));
  ASSERT_EQ(chains.size(), 1u);
  const int64_t i = 3, j = 4, k = 5, l = 2;
  std::map<std::string, std::pair<int64_t, int64_t>> costs;
  for (const AssociationOrder& order : chains[0].orders)
    costs[order.text] = {order.macs, order.intermediate_bytes};
  const int64_t whole = i * j * k * l;
  EXPECT_EQ(costs.at("(x0 * x1) * x2"), std::pair(whole + i * j * k, i * j * k));
  EXPECT_EQ(costs.at("(x0 * x2) * x1"), std::pair(whole + i * j * l, i * j * l));
  EXPECT_EQ(costs.at("x0 * (x1 * x2)"), std::pair(whole + j * k * l, j * k * l));
  EXPECT_EQ(chains[0].orders[0].text, "(x0 * x2) * x1");
}

TEST(Association, TheOrderOfTheFuncIsKeptUnlessAsked) {
  const Computations as_is = computations_of(operation("mttkrp", kMttkrp));
  EXPECT_EQ(texts(*with_order(as_is, 0)), texts(as_is));
  const Computations first = *with_order(as_is, 1);
  EXPECT_THAT(texts(first), ElementsAre("y0.1[i, j, l] += x0[i, k, l] * x2[k, j]",
                                        "y0[i, j] += y0.1[i, j, l] * x1[l, j]"));
  EXPECT_THAT(first.sums[1].sources, ElementsAre(0, -1));
  EXPECT_EQ(with_order(as_is, 4).error().kind, ErrorKind::Usage);
  const Computations product = computations_of(operation("ttm", kMttkrp));
  EXPECT_EQ(with_order(product, 1).error().kind, ErrorKind::Usage);
}

}  // namespace
}  // namespace tilewright::codesign
