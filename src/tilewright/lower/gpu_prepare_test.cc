#include "tilewright/lower/gpu_prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"

namespace tilewright::lower {
namespace {

std::vector<bool> prepared(const std::string& text) {
  const auto func = parse_func(text);
  EXPECT_TRUE(func) << to_string(func.error());
  const auto plan = lower_for_gpu(*func, *hw::find_gpu_target("opencl"));
  EXPECT_TRUE(plan) << to_string(plan.error());
  return prepared_calls(*func, *plan);
}

/// U = W + 1, V = U + 1, then Y = X * V; `more` comes after V.
std::string program(const std::string& mode, const std::string& more = "") {
  return "func f(X: f32[8], " + mode + R"(W: f32[8], out Y: f32[8]) {
  alloc U: f32[8]
  alloc V: f32[8]
  for u in 8 bind(thread.x) {
    block U(i: space 8 = u) {
      U[i] = W[i] + 1.0
    }
  }
  for v in 8 bind(thread.x) {
    block V(i: space 8 = v) {
      V[i] = U[i] + 1.0
    }
  }
)" + more +
         R"(
  for y in 8 bind(thread.x) {
    block Y(i: space 8 = y) {
      Y[i] = X[i] * V[i]
    }
  }
}
)";
}

TEST(GpuPrepare, WhatDependsOnConstantsAlone) {
  EXPECT_THAT(prepared(program("const ")), ::testing::ElementsAre(true, true, false));
}

TEST(GpuPrepare, NotOnInputs) {
  EXPECT_THAT(prepared(program("")), ::testing::ElementsAre(false, false, false));
}

TEST(GpuPrepare, NotWhatIsChangedLater) {
  EXPECT_THAT(prepared(program("const ", R"(
  for z in 8 bind(thread.x) {
    block Z(i: space 8 = z) {
      V[i] += X[i]
    }
  }
)")),
              ::testing::ElementsAre(true, false, false, false));
}

TEST(GpuPrepare, NotResults) {
  const auto done = prepared(R"(
func f(const W: f32[8], out Y: f32[8]) {
  for y in 8 bind(thread.x) {
    block Y(i: space 8 = y) {
      Y[i] = W[i]
    }
  }
}
)");
  EXPECT_THAT(done, ::testing::ElementsAre(false));
}

}  // namespace
}  // namespace tilewright::lower
