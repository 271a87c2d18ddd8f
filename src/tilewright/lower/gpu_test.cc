// From bound loops to kernels: launches, barriers, private memory, refusals.
#include "tilewright/lower/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/testing/gpu_runner.h"
#include "tilewright/lower/testing/tiled_product.h"

namespace tilewright::lower {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kTiledProduct;
using testing::Order;
using testing::run_plan;

/// Whole numbers, so that every legal order gives the same bits.
Array numbers(const Shape& shape, int seed) {
  Array array(DType::F32, shape);
  auto* data = static_cast<float*>(array.data());
  for (int64_t i = 0; i < array.size(); ++i)
    data[i] = static_cast<float>((i * 7 + seed * 13) % 11 - 5);
  return array;
}

std::map<std::string, Array> gpu_inputs_of(const Func& func) {
  std::map<std::string, Array> inputs;
  for (const Param& p : func.params) {
    Shape shape;
    for (const Expr& extent : p.buffer.shape()) shape.push_back(*as_int(extent));
    if (p.mode == ParamMode::In)
      inputs[p.buffer.name()] = numbers(shape, static_cast<int>(inputs.size()));
  }
  return inputs;
}

GpuLaunches gpu_plan_of(const Func& func, const hw::GpuTarget& target = {}) {
  Result<GpuLaunches> plan = lower_for_gpu(func, target);
  if (!plan) throw std::runtime_error(to_string(plan.error()));
  return *plan;
}

std::string refusal(const char* text, const hw::GpuTarget& target = {}) {
  const Result<GpuLaunches> plan = lower_for_gpu(*parse_func(text), target);
  return plan ? "accepted" : to_string(plan.error());
}

void expect_same(const std::map<std::string, Array>& a, const std::map<std::string, Array>& b) {
  for (const auto& [name, value] : a) {
    const Array& other = b.at(name);
    ASSERT_EQ(value.bytes(), other.bytes());
    EXPECT_EQ(std::memcmp(value.data(), other.data(), static_cast<size_t>(value.bytes())), 0)
        << name;
  }
}

TEST(LowerForGpu, KernelsKeepTheMeaningInEveryOrderOfThreads) {
  const Func func = *parse_func(kTiledProduct);
  const GpuLaunches plan = gpu_plan_of(func);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].grid, (std::array<int64_t, 3>{3, 2, 1}));
  EXPECT_EQ(plan.kernels[0].block, (std::array<int64_t, 3>{4, 4, 1}));
  const auto inputs = gpu_inputs_of(func);
  const auto expected = interp::run(func, {inputs, {}});
  ASSERT_TRUE(expected) << to_string(expected.error());
  const auto in_order = run_plan(func, plan, inputs, Order::Program);
  ASSERT_TRUE(in_order) << to_string(in_order.error());
  expect_same(expected->outputs, in_order->outputs);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const auto threads = run_plan(func, plan, inputs, Order::Adversarial, seed);
    ASSERT_TRUE(threads) << to_string(threads.error());
    EXPECT_THAT(threads->findings, IsEmpty());
    expect_same(expected->outputs, threads->outputs);
  }
}

/// How many barriers a kernel has, and the kernel without the one at `left_out`.
std::pair<int, Stmt> without_sync(const Stmt& body, int left_out) {
  int count = 0;
  const Stmt out =
      rewrite(body, [&](const Stmt& s) { return is_sync(s) && count++ == left_out ? seq({}) : s; });
  return {count, out};
}

TEST(LowerForGpu, EveryBarrierIsNeeded) {
  const Func func = *parse_func(kTiledProduct);
  const GpuLaunches plan = gpu_plan_of(func);
  const int count = without_sync(plan.kernels[0].func.body, -1).first;
  ASSERT_EQ(count, 2);  // between copies and products, and between products and the next copies
  for (int i = 0; i < count; ++i) {
    GpuLaunches broken = plan;
    broken.kernels[0].func.body = without_sync(plan.kernels[0].func.body, i).second;
    const auto run = run_plan(func, broken, gpu_inputs_of(func), Order::Adversarial);
    ASSERT_TRUE(run) << to_string(run.error());
    EXPECT_THAT(run->findings, Contains(HasSubstr("raced for"))) << "without barrier " << i;
  }
}

TEST(LowerForGpu, IterationsThatWriteOverWhatTheyReadNeedNoBarrierBetweenThem) {
  const auto barriers = [](const std::string& update) {
    const auto func = parse_func(R"(
func scale(A: f32[4,8], out Y: f32[4,8]) {
  for b in 1 bind(block.x) {
    alloc S: f32[4,8] shared
    for i in 4, x in 8 bind(thread.x) { block S(r: space 4 = i, c: space 8 = x) { S[r, c] = A[r, c] } }
    for i1 in 3, x1 in 8 bind(thread.x) { block E(r: space 3 = i1, c: space 8 = x1) { )" +
                                 update + R"( } }
    for i2 in 4, x2 in 8 bind(thread.x) { block Y(r: space 4 = i2, c: space 8 = x2) { Y[r, c] = S[r, c] } }
  }
}
)");
    EXPECT_TRUE(func) << to_string(func.error());
    const auto plan = lower_for_gpu(*func, *hw::find_gpu_target("opencl"));
    EXPECT_TRUE(plan) << to_string(plan.error());
    int found = 0;
    walk(plan->kernels[0].func.body, [&](const Stmt& s) {
      if (const auto* loop = s.as<For>(); loop && loop->kind == ForKind::Serial)
        walk(loop->body, [&](const Stmt& x) { found += is_sync(x); });
    });
    return found;
  };
  EXPECT_EQ(barriers("S[r, c] = S[r, c] * 2.0"), 0);
  EXPECT_EQ(barriers("S[r + 1, c] = S[r, 7 - c] * 2.0"), 1);
}

TEST(LowerForGpu, LocalBuffersGetThreadAxesInFront) {
  const GpuLaunches plan = gpu_plan_of(*parse_func(kTiledProduct));
  bool found = false;
  walk(plan.kernels[0].func.body, [&](const Stmt& s) {
    const auto* alloc = s.as<Alloc>();
    if (alloc == nullptr || alloc->buffer.name() != "C") return;
    found = true;
    ASSERT_EQ(alloc->buffer.rank(), 4u);
    const int64_t extents[] = {4, 4, 2, 2};
    for (size_t axis = 0; axis < 4; ++axis)
      EXPECT_EQ(as_int(alloc->buffer.shape()[axis]), extents[axis]);
    EXPECT_EQ(thread_axes(alloc->buffer, plan.kernels[0].func.body), 2u);
  });
  EXPECT_TRUE(found);
}

TEST(LowerForGpu, SiblingGridsAreLaunchesAndHostLoopsAreScalars) {
  const Func func = *parse_func(R"(
func steps(X: f32[4,8], out H: f32[5,8]) {
  for a in 8 bind(thread.x) {
    block first(j: space 8 = a) {
      H[0, j] = 1.0
    }
  }
  for t in 4 {
    alloc M: f32[4,8]
    for b in 8 bind(block.x) {
      block M(j: space 8 = b, t: space 4 = t) {
        M[t, j] = X[t, j] * 2.0
      }
    }
    for c in 8 bind(thread.x) {
      block H(t: scan 4 = t, j: space 8 = c) {
        H[t + 1, j] = H[t, j] + M[t, 7 - j]
      }
    }
  }
}
)");
  const GpuLaunches plan = gpu_plan_of(func);
  ASSERT_EQ(plan.kernels.size(), 3u);
  ASSERT_EQ(plan.calls.size(), 9u);
  EXPECT_EQ(plan.calls[8].scalars, std::vector<int64_t>{3});
  EXPECT_EQ(plan.temporaries.size(), 1u);
  const auto inputs = gpu_inputs_of(func);
  const auto expected = interp::run(func, {inputs, {}});
  ASSERT_TRUE(expected) << to_string(expected.error());
  for (const Order order : {Order::Program, Order::Adversarial}) {
    const auto run = run_plan(func, plan, inputs, order);
    ASSERT_TRUE(run) << to_string(run.error());
    EXPECT_THAT(run->findings, IsEmpty());
    expect_same(expected->outputs, run->outputs);
  }
}

TEST(LowerForGpu, RefusesWhatHasNoPlaceOnAGpu) {
  EXPECT_THAT(refusal(R"(
func shares(X: f32[8], out Y: f32[8]) {
  alloc L: f32[8] local
  for a in 8 bind(thread.x) {
    block L(i: space 8 = a) {
      L[i] = X[i]
    }
  }
  for b in 8 bind(thread.x) {
    block Y(i: space 8 = b) {
      Y[i] = L[7 - i]
    }
  }
}
)"),
              HasSubstr("'L' would be shared by threads"));
  EXPECT_THAT(refusal(R"(
func counts(X: f32[8], inout Y: f32[1]) {
  for a in 8 bind(thread.x) {
    block Y(i: reduce 8 = a) @(atomic) {
      Y[0] += X[i]
    }
  }
}
)"),
              HasSubstr("'Y' is marked atomic"));
  hw::GpuTarget small;
  small.shared_bytes = 255;
  EXPECT_THAT(refusal(kTiledProduct, small), HasSubstr("needs 256 bytes of shared memory"));
  small.shared_bytes = 1 << 20;
  small.max_threads = 8;
  EXPECT_THAT(refusal(kTiledProduct, small), HasSubstr("16 threads"));
  EXPECT_THAT(refusal(R"(
func symbolic(n: int in 1..8, out Y: f32[8]) {
  for a in n bind(thread.x) {
    block Y(i: space 8 = a) {
      Y[i] = 1.0
    }
  }
}
)"),
              HasSubstr("scalar parameters"));
}

}  // namespace
}  // namespace tilewright::lower
