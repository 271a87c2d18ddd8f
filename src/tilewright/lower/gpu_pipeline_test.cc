// Rings of copies that run ahead: one barrier per iteration, waits that are just long enough.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_async.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/gpu_shared.h"
#include "tilewright/lower/testing/gpu_runner.h"

namespace tilewright::lower {
namespace {

using testing::Order;
using testing::run_plan;

/// C = A * B, 8 x 8, by 4 x 4 threads: copies of 3 terms run `depth` - 1 of 6 rounds ahead.
Func pipelined(int64_t depth) {
  const std::string copies = R"(
      for S.i{0} in 8, S.k{0} in 3 bind(thread.x) {{
        block S{0}(i: space 8 = S.i{0}, k: space 18 = {1} * 3 + S.k{0}) @(async) {{
          S[i, k % {2}] = A[i, k]
        }}
      }}
      for T.k{0} in 3 bind(thread.y), T.o{0} in 2, T.j{0} in 4 bind(thread.x) {{
        block T{0}(k: space 18 = {1} * 3 + T.k{0}, j: space 8 = T.o{0} * 4 + T.j{0}) @(async) {{
          T[k % {2}, j] = B[k, j]
        }}
      }})";
  const std::string text = R"(
func product(A: f32[8,18], B: f32[18,8], out D: f32[8,8]) {{
  alloc C: f32[8,8] local
  for g in 1 bind(block.x) {{
    for ci in 4 bind(thread.y), cj in 4 bind(thread.x), ci2 in 2 unroll, cj2 in 2 unroll {{
      block C.init(i: space 8 = ci2 * 4 + ci, j: space 8 = cj2 * 4 + cj) {{ C[i, j] = 0.0 }}
    }}
    alloc S: f32[8,{0}] shared
    alloc T: f32[{0},8] shared
    for p in {1} @(pipeline={2}) {{ {3} }}
    for k in 6 @(pipeline={2}) {{
      if k < {4} {{ {5} }}
      for i.t in 4 bind(thread.y), j.t in 4 bind(thread.x), k.i in 3, i.i in 2 unroll, j.i in 2 unroll {{
        block C(i: space 8 = i.i * 4 + i.t, j: space 8 = j.i * 4 + j.t, k: reduce 18 = k * 3 + k.i) {{
          C[i, j] += S[i, k % {0}] * T[k % {0}, j]
        }}
      }}
    }}
    for di in 4 bind(thread.y), dj in 4 bind(thread.x), di2 in 2, dj2 in 2 {{
      block D(i: space 8 = di2 * 4 + di, j: space 8 = dj2 * 4 + dj) {{ D[i, j] = C[i, j] }}
    }}
  }}
}}
)";
  const int64_t ring = 3 * depth, ahead = depth - 1;
  const auto func = parse_func(fmt::format(
      fmt::runtime(text), ring, ahead, depth, fmt::format(fmt::runtime(copies), "0", "p", ring),
      6 - ahead, fmt::format(fmt::runtime(copies), "1", fmt::format("(k + {})", ahead), ring)));
  if (!func) throw std::runtime_error(to_string(func.error()));
  return *func;
}

std::map<std::string, Array> inputs() {
  std::map<std::string, Array> out;
  for (const auto& [name, shape] : std::map<std::string, Shape>{{"A", {8, 18}}, {"B", {18, 8}}}) {
    Array array(DType::F32, shape);
    for (int64_t i = 0; i < array.size(); ++i)
      array.set(i, static_cast<double>((i * 7 + 13 * shape[0]) % 11 - 5));
    out.emplace(name, array);
  }
  return out;
}

GpuLaunches plan_of(const Func& func, const hw::GpuTarget& target = {}) {
  Result<GpuLaunches> plan = lower_for_gpu(func, target);
  if (!plan) throw std::runtime_error(to_string(plan.error()));
  return *plan;
}

/// What goes wrong in any order of threads and copies; empty if nothing does.
std::string trouble(const Func& func, const GpuLaunches& plan) {
  const auto expected = interp::run(func, {inputs(), {}}, {});
  if (!expected) return to_string(expected.error());
  for (const Order order : {Order::Program, Order::Adversarial, Order::Late})
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const auto run = run_plan(func, plan, inputs(), order, seed);
      if (!run) return to_string(run.error());
      if (!run->findings.empty()) return run->findings[0];
      const Array &got = run->outputs.at("D"), &want = expected->outputs.at("D");
      if (std::memcmp(got.data(), want.data(), static_cast<size_t>(want.bytes())) != 0)
        return "values differ";
    }
  return "";
}

int64_t count(const Stmt& s, bool (*predicate)(const Stmt&)) {
  int64_t n = 0;
  walk(s, [&](const Stmt& x) { n += predicate(x) ? 1 : 0; });
  return n;
}

/// `body` with the statement that is the `index`-th of its kind replaced.
Stmt changed(const Stmt& body, int64_t index, bool (*predicate)(const Stmt&), const Stmt& by) {
  int64_t n = 0;
  return rewrite(body, [&](const Stmt& s) { return predicate(s) && n++ == index ? by : s; });
}

class Depth : public ::testing::TestWithParam<int64_t> {};

TEST_P(Depth, OneBarrierPerIterationSuffices) {
  const Func func = pipelined(GetParam());
  const GpuLaunches plan = plan_of(func);
  const Stmt& body = plan.kernels[0].func.body;
  EXPECT_EQ(count(body, is_sync), 1) << print(plan.kernels[0].func);
  EXPECT_EQ(count(body, is_commit), 2);
  EXPECT_EQ(trouble(func, plan), "") << print(plan.kernels[0].func);
}

TEST_P(Depth, TheBarrierAndTheWaitAreNeeded) {
  const Func func = pipelined(GetParam());
  const GpuLaunches plan = plan_of(func);
  const auto with = [&](const Stmt& body) {
    GpuLaunches out = plan;
    out.kernels[0].func.body = body;
    return trouble(func, out);
  };
  const Stmt& body = plan.kernels[0].func.body;
  EXPECT_NE(with(changed(body, 0, is_sync, seq({}))), "");
  Stmt longer;
  walk(body, [&](const Stmt& s) {
    const auto groups = waits_for(s);
    if (!groups) return;
    EXPECT_EQ(*groups, GetParam() - 2);
    Call call = *s.as<Call>();
    call.args[0] = int_imm(*groups + 1);
    longer = make(std::move(call));
  });
  const auto is_wait = [](const Stmt& s) { return waits_for(s).has_value(); };
  EXPECT_NE(with(changed(body, 0, is_wait, longer)), "");
}

INSTANTIATE_TEST_SUITE_P(GpuPipeline, Depth, ::testing::Values(2, 3, 4));

TEST(GpuPipeline, ConditionsThatStatementsShareNeedNoBarrierInside) {
  // Threads that take no branch pass the barrier too: it stands before the condition.
  const Func func = *parse_func(R"(
func f(A: f32[8], out Y: f32[8]) {
  for g in 1 bind(block.x) {
    alloc S: f32[8] shared
    for a in 8 bind(thread.x) {
      block S(i: space 8 = a) { S[i] = A[i] }
    }
    for r in 3 {
      if r > 1 {
        for b in 8 bind(thread.x) {
          block Y(i: space 8 = b) { Y[i] = S[7 - i] }
        }
      }
    }
  }
}
)");
  const GpuLaunches plan = plan_of(func);
  const Stmt& body = plan.kernels[0].func.body;
  ASSERT_EQ(count(body, is_sync), 1);
  walk(body, [](const Stmt& s) {
    if (const auto* branch = s.as<If>()) {
      EXPECT_EQ(count(branch->then_body, is_sync), 0);
    }
  });
}

TEST(GpuShared, RowsWithRoomBehindAndOffsets) {
  const Func func = *parse_func(R"(
func f(A: f32[8], out Y: f32[8]) {
  for g in 1 bind(block.x) {
    alloc S: f32[3,5,6] shared @(pad=2)
    alloc T: f16[3] shared
    alloc U: f32[4] shared
    for a in 8 bind(thread.x) {
      block Y(i: space 8 = a) { Y[i] = A[i] }
    }
  }
}
)");
  const SharedPlan plan = plan_shared(func.body, 0, 48 << 10);
  ASSERT_EQ(plan.buffers.size(), 3u);
  for (const auto& [buffer, place] : plan.buffers) {
    EXPECT_EQ(place.offset % kSharedAlign, 0);
    EXPECT_EQ(place.offset, buffer.name() == "S" ? 0 : buffer.name() == "T" ? 512 : 640);
    if (buffer.name() != "S") continue;
    EXPECT_EQ(place.elements, 3 * 5 * 8);
    const std::vector<Expr> strides = shared_strides(buffer, place);
    EXPECT_EQ(as_int(strides[0]), 40);
    EXPECT_EQ(as_int(strides[1]), 8);
    EXPECT_EQ(as_int(strides[2]), 1);
  }
  EXPECT_EQ(plan.bytes, 656);
}

TEST(GpuShared, LargeBlocksAskAtLaunch) {
  const char* text = R"(
func f(A: f32[16384], out Y: f32[16384]) {{
  for g in 1 bind(block.x) {{
    alloc S: f32[{0}] shared
    for o in {1}, a in 128 bind(thread.x) {{
      block S(i: space 16384 = o * 128 + a) {{ S[i] = A[i] }}
    }}
    for p in {1}, b in 128 bind(thread.x) {{
      block Y(i: space 16384 = p * 128 + b) {{ Y[i] = S[i / 2] }}
    }}
  }}
}}
)";
  hw::GpuTarget target;
  target.language = hw::GpuLanguage::Cuda;
  target.shared_bytes = 64 << 10;
  const auto bytes = [&](int64_t elements, const hw::GpuTarget& on) {
    const Func func = *parse_func(fmt::format(fmt::runtime(text), elements, elements / 128));
    return plan_of(func, on).kernels[0].shared_bytes;
  };
  EXPECT_EQ(bytes(12288, target), 0);
  EXPECT_EQ(bytes(12416, target), 12416 * 4);
  target.language = hw::GpuLanguage::OpenCl;
  EXPECT_EQ(bytes(12416, target), 0);
}

}  // namespace
}  // namespace tilewright::lower
