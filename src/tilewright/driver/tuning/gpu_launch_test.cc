// What runs once, and where its results are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/compile/gpu/launch.h"
#include "tilewright/ir/text.h"

namespace tilewright::driver {
namespace {

/// V = W + 1, T = X + 1, Y = T * V.
constexpr const char* kGpuLaunchProgram = R"(
func f(X: f32[8], const W: f32[8], out Y: f32[8]) {
  alloc V: f32[8]
  alloc T: f32[8]
  for v in 8 bind(thread.x) {
    block V(i: space 8 = v) {
      V[i] = W[i] + 1.0
    }
  }
  for t in 8 bind(thread.x) {
    block T(i: space 8 = t) {
      T[i] = X[i] + 1.0
    }
  }
  for y in 8 bind(thread.x) {
    block Y(i: space 8 = y) {
      Y[i] = T[i] * V[i]
    }
  }
}
)";

TEST(GpuLaunch, WhatConstantsDecideIsPreparedApart) {
  Func func = *parse_func(kGpuLaunchProgram);
  Array weights(DType::F32, {8});
  func.params[1].values = weights;
  const auto code = compile::compile_scheduled_gpu_func(func, *hw::find_gpu_target("opencl"));
  ASSERT_TRUE(code) << to_string(code.error());
  const runtime::GpuProgram& program = code->program;
  ASSERT_EQ(program.prepare.size(), 1u);
  ASSERT_EQ(program.calls.size(), 2u);
  ASSERT_TRUE(runtime::validate(program));
  const runtime::GpuBuffer* places[2] = {};
  for (const runtime::GpuBuffer& buffer : program.buffers)
    if (buffer.place == runtime::GpuBuffer::Place::Arena)
      places[buffer.name.ends_with("V") ? 0 : 1] = &buffer;
  ASSERT_TRUE(places[0] && places[1]);
  EXPECT_NE(places[0]->offset, places[1]->offset);
  EXPECT_EQ(program.inputs.size(), 1u);
}

TEST(GpuLaunch, ConstantsThatComeAsInputsArePreparedWhenWritten) {
  const auto code = compile::compile_scheduled_gpu_func(*parse_func(kGpuLaunchProgram),
                                                        *hw::find_gpu_target("opencl"));
  ASSERT_TRUE(code) << to_string(code.error());
  EXPECT_EQ(code->program.prepare.size(), 1u);
  EXPECT_EQ(code->program.inputs.size(), 2u);
  EXPECT_FALSE(runtime::prepares_with(code->program, code->program.inputs[0]));
  EXPECT_TRUE(runtime::prepares_with(code->program, code->program.inputs[1]));
}

}  // namespace
}  // namespace tilewright::driver
