// Registers of warps: the layout of instructions, and what has no place in it.
#include "tilewright/lower/gpu_fragments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/verify.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/testing/gpu_runner.h"
#include "tilewright/lower/testing/warp_product.h"

namespace tilewright::lower {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Order;

hw::GpuTarget cuda() { return *hw::find_gpu_target("cuda"); }

/// The product with each `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = testing::warp_product_text();
  EXPECT_NE(text.find(from), std::string::npos) << from;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

Func parsed(const std::string& text) {
  Result<std::vector<Func>> funcs = parse_funcs(text);
  if (!funcs) throw std::runtime_error(to_string(funcs.error()));
  return std::move(funcs->back());
}

std::string refusal(const std::string& text) {
  const auto plan = lower_for_gpu(parsed(text), cuda());
  return plan ? "accepted" : to_string(plan.error());
}

std::map<std::string, Array> inputs_of(const Func& func) {
  std::map<std::string, Array> inputs;
  for (const Param& p : func.params) {
    if (p.mode == ParamMode::Out) continue;
    Shape shape;
    for (const Expr& extent : p.buffer.shape()) shape.push_back(*as_int(extent));
    Array array(p.buffer.dtype(), shape);
    for (int64_t i = 0; i < array.size(); ++i)
      array.set(i, static_cast<double>((i * 37 + i / 29) % 17 - 8));
    inputs.emplace(p.buffer.name(), std::move(array));
  }
  return inputs;
}

TEST(Fragments, AProductKeepsItsMeaning) {
  const Func func = parsed(testing::warp_product_text());
  const auto plan = lower_for_gpu(func, cuda());
  ASSERT_TRUE(plan) << to_string(plan.error());
  ASSERT_EQ(plan->kernels.size(), 1u);
  EXPECT_EQ(plan->kernels[0].block, (std::array<int64_t, 3>{32, 2, 2}));
  const std::string text = print(plan->kernels[0].func);
  EXPECT_THAT(text, HasSubstr("alloc C: f32[2,2,32,1,1,2,4] warp"));
  EXPECT_THAT(text, HasSubstr("C[yz, yy, yl, 0, 0, ym, yi * 2 + yv]"));
  EXPECT_THAT(text, HasSubstr("call cuda.mma_bf16.lanes("));
  const auto inputs = inputs_of(func);
  interp::Arguments arguments;
  arguments.arrays = inputs;
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected) << to_string(expected.error());
  for (const Order order : {Order::Program, Order::Adversarial}) {
    const auto run = testing::run_plan(func, *plan, inputs, order);
    ASSERT_TRUE(run) << to_string(run.error());
    EXPECT_THAT(run->findings, IsEmpty()) << text;
    const Array &want = expected->outputs.at("Y"), &got = run->outputs.at("Y");
    for (int64_t i = 0; i < want.size(); ++i) ASSERT_EQ(got.get(i), want.get(i)) << i;
  }
}

TEST(Fragments, WarpsRaceWithoutBarriers) {
  const Func func = parsed(testing::warp_product_text());
  auto plan = lower_for_gpu(func, cuda());
  ASSERT_TRUE(plan) << to_string(plan.error());
  plan->kernels[0].func.body =
      rewrite(plan->kernels[0].func.body, [](const Stmt& s) { return is_sync(s) ? seq({}) : s; });
  const auto run = testing::run_plan(func, *plan, inputs_of(func), Order::Adversarial);
  ASSERT_TRUE(run) << to_string(run.error());
  EXPECT_THAT(run->findings, Not(IsEmpty()));
}

TEST(Fragments, FormsOfLanesMeanTheSame) {
  for (const hw::Intrinsic& in : hw::gpu_intrinsics()) {
    const auto form = lanes_form(in);
    EXPECT_EQ(find_lanes_form(*form), &in);
    EXPECT_EQ(find_lanes_form(in.meaning), nullptr);
    Func other = *form;
    other.math = MathMode::Exact;
    EXPECT_EQ(find_lanes_form(other), nullptr);
    EXPECT_TRUE(verify(*form, Stage::Scheduled)) << print(*form);
  }
}

TEST(Fragments, LanesUseTheirOwnRegistersOnly) {
  // Neighbours along j are in one lane only two by two.
  EXPECT_THAT(refusal(changed("ym * 8 + yl % 4 * 2 + yv", "ym * 8 + yv * 4 + yl % 4")),
              HasSubstr("that lane yl uses"));
  EXPECT_THAT(refusal(changed("yl in 32 bind(thread.x)", "yl in 32")),
              HasSubstr("that no lane uses"));
  EXPECT_THAT(refusal(changed("yz in 2 bind(thread.z)", "yz in 2")),
              HasSubstr("its accesses are in different loops over threads"));
}

TEST(Fragments, OperandsHaveTheirMemoryAndPlace) {
  EXPECT_THAT(refusal(changed("alloc C: f32[64,32] warp", "alloc C: f32[64,32] local")),
              HasSubstr("'C' is local memory, operand c of cuda.mma_bf16 is warp memory"));
  EXPECT_THAT(refusal(changed("alloc SA: bf16[64,32] shared", "alloc SA: bf16[64,32] local")),
              HasSubstr("operand s of cuda.load_a_bf16 is shared memory"));
  EXPECT_THAT(refusal(changed("FB[k * 16:+16, j * 8:+8]", "FB[k * 16:+16, j * 8 / 2:+8]")),
              HasSubstr("at a place that is no multiple of 8"));
  EXPECT_THAT(refusal(R"(
func f(out Y: f32[32]) {
  for l in 32 bind(thread.x) {
    alloc R: f32[32] warp
    block R(i: space 32 = l) { R[i] = 1.0 }
    block Y(i: space 32 = l) { Y[i] = R[i] }
  }
}
)"),
              HasSubstr("no instruction says which lane holds what of 'R'"));
  // What one instruction loads for the first operand is no second operand.
  EXPECT_THAT(refusal(changed("call cuda.load_a_bf16(FA[i * 16:+16, k * 16:+16], "
                              "SA[i * 16:+16, k * 16:+16])",
                              "call cuda.load_b_bf16(FA[i * 16:+16, k * 16:+16], "
                              "SA[i * 16:+16, k * 16:+16])")),
              HasSubstr("in other registers than another instruction"));
}

}  // namespace
}  // namespace tilewright::lower
