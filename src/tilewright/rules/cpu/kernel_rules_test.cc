// Which rule takes which kernel on processors, and why those before it decline.
#include "tilewright/rules/cpu/kernel_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/rules/common/testing/rule_cases.h"
#include "tilewright/rules/cpu/rows.h"
#include "tilewright/rules/cpu/testing/chains.h"

namespace tilewright::rules {
namespace {

using graph::Builder;
using graph::ValueId;
using testing::HasSubstr;

constexpr int64_t kTableBlock = 4;  // channels: the lanes of small_target

Func packed_product(DType rows, int64_t depth) {
  tensor::OpCall call;
  call.domain = "tilewright";
  call.op = "GemmDotPacked";
  call.attrs.values["n"] = int64_t{16};
  call.inputs = {{true, rows, {8, 16}, {}}, {true, DType::I8, {4, 16 / depth, 4, depth}, {}}};
  auto func = tensor::op_func(call);
  EXPECT_TRUE(func) << to_string(func.error());
  return *func;
}

Func attention_of_two_heads() {
  Builder b("attention");
  const ValueId q = b.input("q", DType::F32, {2, 16, 8}), k = b.input("k", DType::F32, {2, 8, 24}),
                v = b.input("v", DType::F32, {2, 24, 8});
  b.output(b.node("MatMul", {b.node("Softmax", {b.node("MatMul", {q, k})}), v}), "y");
  return joined(*b.finish());
}

/// `channels`: of the result, in blocks.
ValueId blocked_conv(Builder& b, const char* op, ValueId v, Shape weight, int64_t channels) {
  Rng rng(3);
  const int64_t pad = weight[weight.size() - 2] == kTableBlock ? 0 : 1;
  return b.node(op,
                {v, b.constant("w", small_integers(rng, weight)),
                 b.constant("bias", small_integers(rng, {channels * kTableBlock}))},
                {{"pads", std::vector<int64_t>(4, pad)}, {"strides", std::vector<int64_t>{1, 1}}},
                "", "tilewright");
}

/// A pointwise convolution, a depthwise one, a pointwise one.
Func chain_of_convolutions() {
  Builder b("chain");
  const ValueId x = b.input("x", DType::F32, {1, 2, 13, 7, kTableBlock});
  const ValueId wide = b.node(
      "Relu", {blocked_conv(b, "ConvBlocked", x, {3, 2, 1, 1, kTableBlock, kTableBlock}, 3)});
  const ValueId window =
      b.node("Relu", {blocked_conv(b, "DepthwiseConvBlocked", wide, {3, 3, 3, kTableBlock}, 3)});
  b.output(blocked_conv(b, "ConvBlocked", window, {2, 3, 1, 1, kTableBlock, kTableBlock}, 2), "y");
  return joined(*b.finish());
}

Func depthwise_on_plain_rows() {
  Builder b("layer");
  const ValueId x = b.input("x", DType::F32, {1, 12, 13, 14});
  const ValueId blocks = b.node("ToBlocked", {x}, {{"block", kTableBlock}}, "", "tilewright");
  b.output(blocked_conv(b, "DepthwiseConvBlocked", blocks, {3, 3, 3, kTableBlock}, 3), "y");
  return joined(*b.finish());
}

Func lrn_on_blocks() {
  Builder b("lrn");
  const ValueId x = b.input("x", DType::F32, {1, 3, 12, 7, kTableBlock});
  b.output(b.node("LRNBlocked", {x}, {{"size", int64_t{5}}}, "", "tilewright"), "y");
  return joined(*b.finish());
}

/// Initial values and sums in one nest: no tile can be placed there.
Func loops_of_one_nest() {
  auto func = parse_func(R"(
func f(A: f32[40,64], B: f32[64,48], out C: f32[40,48]) {
  for i in 40, j in 48 {
    block C.init(i: space 40 = i, j: space 48 = j) { C[i, j] = 0.0 }
    for k in 64 {
      block C(i: space 40 = i, j: space 48 = j, k: reduce 64 = k) { C[i, j] += A[i, k] * B[k, j] }
    }
  }
}
)");
  EXPECT_TRUE(func) << to_string(func.error());
  return *func;
}

Func softmax_of_rows() { return func_of(OpCase{"", "Softmax", {{7, 150}}, {}}); }

RuleReport cpu_report(const Func& func, const hw::CpuTarget& target = small_target()) {
  return choose_schedule(func, target, 2).rules;
}

std::vector<TakenKernel> cpu_kernels() {
  const hw::CpuTarget arm = *hw::find_target("aarch64-v8.6");
  const OpCase winograd = {"tilewright",
                           "WinogradConvBlocked",
                           {{1, 2, 8, 8, 4}, {3, 6, 6, 8, 4}, {12}},
                           {{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"m", int64_t{4}}}};
  const OpCase lstm = {
      "", "LSTM", {{3, 2, 5}, {1, 24, 5}, {1, 24, 6}}, {{"hidden_size", int64_t{6}}}};
  return {
      {"winograd", cpu_report(func_of(winograd))},
      {"dot-products", cpu_report(packed_product(DType::U8, 4), arm)},
      {"attention", cpu_report(attention_of_two_heads())},
      {"matrix-tiles", cpu_report(packed_product(DType::U8, 8), arm)},
      {"convolution-chain", cpu_report(chain_of_convolutions())},
      {"channel-blocks", cpu_report(depthwise_on_plain_rows())},
      {"channel-window", cpu_report(lrn_on_blocks())},
      {"recurrence", cpu_report(func_of(lstm))},
      {"register-tile", cpu_report(func_of(OpCase{"", "MatMul", {{40, 64}, {64, 48}}, {}}))},
      {"fused-rows", cpu_report(softmax_of_rows())},
      {"single-results", cpu_report(func_of(OpCase{"", "GlobalAveragePool", {{2, 9, 5, 5}}, {}}))},
      {"loops", cpu_report(loops_of_one_nest())},
      {"element-wise", cpu_report(func_of(OpCase{"", "Relu", {{3, 1001}}, {}}))},
  };
}

TEST(CpuRules, StandInThisOrder) {
  EXPECT_THAT(names_of(cpu_rules()),
              testing::ElementsAre("winograd", "dot-products", "attention", "matrix-tiles",
                                   "convolution-chain", "channel-blocks", "channel-window",
                                   "recurrence", "register-tile", "fused-rows", "single-results",
                                   "loops", "element-wise"));
}

/// Data decides which pixels a region reads: no strip of rows holds them, and copying the image
/// anew for each region took 27 times as long.
TEST(CpuRules, WhatIsLookedUpIsNoWindow) {
  Builder b("regions");
  const ValueId x = b.input("x", DType::F32, {1, 256, 40, 48});
  const ValueId rois = b.input("rois", DType::F32, {1000, 4}),
                of = b.input("of", DType::I64, {1000});
  b.output(b.node("RoiAlign", {x, rois, of},
                  {{"output_height", int64_t{7}},
                   {"output_width", int64_t{7}},
                   {"sampling_ratio", int64_t{2}}}),
           "y");
  EXPECT_EQ(cpu_report(joined(*b.finish()), *hw::find_target("x86-64-v4")).kernel.rule,
            "register-tile");
}

TEST(CpuRules, EachTakesAKernelAndDeclinesAnother) {
  expect_rules(cpu_rules(), cpu_kernels(), {"element-wise"});
}

TEST(CpuRules, SayTheFactThatDecided) {
  hw::CpuTarget wide = small_target();
  wide.vector_bytes = 32;
  const std::vector<TakenKernel> kernels = cpu_kernels();
  const RuleReport& winograd = kernels[0].report;
  EXPECT_TRUE(winograd.kernel.declined.empty());
  EXPECT_EQ(reason_of(cpu_report(func_of(OpCase{"tilewright",
                                                "WinogradConvBlocked",
                                                {{1, 2, 8, 8, 4}, {3, 6, 6, 8, 4}, {12}},
                                                {{"pads", std::vector<int64_t>{1, 1, 1, 1}},
                                                 {"m", int64_t{4}}}}),
                                 wide),
                      "winograd"),
            "the output's channels come in blocks of 4, a vector has 8 lanes");
  const RuleReport product = kernels[8].report;
  EXPECT_EQ(reason_of(product, "dot-products"), "the target has no dot-product instructions");
  EXPECT_EQ(reason_of(product, "attention"), "the kernel's sums of products are 1, not two");
  EXPECT_THAT(reason_of(product, "convolution-chain"), HasSubstr("writes 2 axes"));
  const RuleReport sums = cpu_report(packed_product(DType::U8, 8), *hw::find_target("x86-64-v4"));
  EXPECT_EQ(reason_of(sums, "dot-products"), "the target has no dot-product instructions");
  EXPECT_THAT(reason_of(kernels[3].report, "dot-products"), HasSubstr("groups of 8 products"));
  EXPECT_THAT(reason_of(kernels[11].report, "register-tile"), HasSubstr("does not apply"));
  EXPECT_EQ(reason_of(kernels[12].report, "register-tile"), "no sum is left to schedule");
}

/// Softmax is both for the rule that keeps a row in cache and for the one behind it, which does
/// not.
TEST(CpuRules, OrderDecidesWhereTwoWouldTakeIt) {
  const Func func = softmax_of_rows();
  std::string sum;
  for (const BlockFacts& block : collect_blocks(func))
    if (sum.empty() && block.kind == BlockFacts::Kind::Reduce) sum = block.name;
  Draft first(func), second(func);
  EXPECT_TRUE(fuse_rows(first, sum, small_target()));
  EXPECT_TRUE(reduce_rows(second, sum));
  EXPECT_EQ(cpu_report(func).kernel.rule, "fused-rows");
}

TEST(CpuRules, SumsOfOneKernelAreReportedEach) {
  // Mean and variance: products of nothing.
  const RuleReport report = cpu_report(
      func_of(OpCase{"", "LayerNormalization", {{6, 40}, {40}, {40}}, {{"axis", int64_t{-1}}}}));
  EXPECT_EQ(report.kernel.rule, "fused-rows");
  EXPECT_FALSE(report.kernel.block.empty());
}

}  // namespace
}  // namespace tilewright::rules
