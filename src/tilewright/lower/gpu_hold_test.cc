// Copies that threads make themselves: read before what hides them, stored after it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/arith/tf32.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/testing/gpu_runner.h"

namespace tilewright::lower {
namespace {

using testing::Order;

/// D[i] = sum over k of S[7 - i, k], where S stages the source by rounds of 3 terms, one ahead.
Func staged(const std::string& type, const std::string& source) {
  const auto copy = [&](const std::string& n, const std::string& round) {
    return fmt::format(R"(
      for S.i{0} in 8 bind(thread.x), S.k{0} in 3 {{
        block S{0}(i: space 8 = S.i{0}, k: space 18 = {1} * 3 + S.k{0}) @(async) {{
          S[i, k % 6] = {2}
        }}
      }})",
                       n, round, source);
  };
  const auto func = parse_func(fmt::format(R"(
func product(A: {0}[18,8], out D: f32[8]) {{
  alloc C: f32[8] local
  for g in 1 bind(block.x) {{
    for ci in 8 bind(thread.x) {{ block C.init(i: space 8 = ci) {{ C[i] = 0.0 }} }}
    alloc S: {0}[8,6] shared
    for p in 1 @(pipeline=2) {{ {1} }}
    for t in 6 @(pipeline=2) {{
      if t < 5 {{ {2} }}
      for i.t in 8 bind(thread.x), k.i in 3 {{
        block C(i: space 8 = i.t, k: reduce 18 = t * 3 + k.i) {{ C[i] += f32(S[7 - i, k % 6]) }}
      }}
    }}
    for di in 8 bind(thread.x) {{ block D(i: space 8 = di) {{ D[i] = C[i] }} }}
  }}
}}
)",
                                           type, copy("0", "p"), copy("1", "(t + 1)")));
  if (!func) throw std::runtime_error(to_string(func.error()));
  return *func;
}

/// Statements of the pipelined loop that copies and sums share, in order: `read` into registers,
/// `store` into shared memory, `sum`.
std::vector<std::string> order_of(const Stmt& body) {
  std::vector<std::string> out;
  walk(body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (loop == nullptr || loop->marks.empty() || !is_const_int(loop->extent, 6)) return;
    walk(loop->body, [&](const Stmt& x) {
      const auto* store = x.as<Store>();
      if (store == nullptr) return;
      const bool held = store->buffer.name().ends_with(".held");
      out.push_back(held ? "read" : store->buffer.scope() == "shared" ? "store" : "sum");
    });
  });
  return out;
}

void expect_meaning(const Func& func, const GpuLaunches& plan) {
  Array a(func.params[0].buffer.dtype(), {18, 8});
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, static_cast<double>(i % 11 - 5));
  const auto expected = interp::run(func, {{{"A", a}}, {}}, {});
  ASSERT_TRUE(expected) << to_string(expected.error());
  for (const Order order : {Order::Program, Order::Adversarial, Order::Late}) {
    const auto run = testing::run_plan(func, plan, {{"A", a}}, order);
    ASSERT_TRUE(run) << to_string(run.error());
    EXPECT_THAT(run->findings, ::testing::IsEmpty()) << print(plan.kernels[0].func);
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(run->outputs.at("D").get(i), expected->outputs.at("D").get(i)) << i;
  }
}

TEST(HoldCopies, OfNarrowElementsAndOfWhatIsComputed) {
  for (const auto& [type, source] : {std::pair("f16", "A[k, i]"), {"f32", "A[k, i] + 1.0"}}) {
    const Func func = staged(type, source);
    const auto plan = lower_for_gpu(func, {});
    ASSERT_TRUE(plan) << to_string(plan.error());
    const Stmt& body = plan->kernels[0].func.body;
    EXPECT_THAT(order_of(body), ::testing::ElementsAre("read", "sum", "store")) << print(func);
    int64_t barriers = 0;
    walk(body, [&](const Stmt& s) { barriers += is_sync(s) ? 1 : 0; });
    EXPECT_EQ(barriers, 1) << print(plan->kernels[0].func);
    expect_meaning(func, *plan);
  }
}

TEST(HoldCopies, WhatIsRoundedIsHeldAsItIs) {
  const Buffer a("A", DType::F32, {int_imm(18), int_imm(8)}, "global");
  const Expr rounded = arith::round_to_tf32(load(a, {ref(Var("k")), ref(Var("i"))}));
  const Func func = staged("f32", print(rounded));
  const auto plan = lower_for_gpu(func, {});
  ASSERT_TRUE(plan) << to_string(plan.error());
  const Stmt& body = plan->kernels[0].func.body;
  EXPECT_THAT(order_of(body), ::testing::ElementsAre("read", "sum", "store"));
  int64_t held = 0;
  walk(body, [&](const Stmt& s) {
    const auto* store = s.as<Store>();
    if (store == nullptr || store->buffer.name().find(".held") == std::string::npos) return;
    EXPECT_NE(store->value.as<Load>(), nullptr) << print(s);
    ++held;
  });
  EXPECT_GT(held, 0);
  expect_meaning(func, *plan);
}

TEST(HoldCopies, NotWhatHardwareCopies) {
  const Func func = staged("f32", "A[k, i]");
  const auto plan = lower_for_gpu(func, {});
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_THAT(order_of(plan->kernels[0].func.body), ::testing::ElementsAre("store", "sum"));
  expect_meaning(func, *plan);
}

}  // namespace
}  // namespace tilewright::lower
