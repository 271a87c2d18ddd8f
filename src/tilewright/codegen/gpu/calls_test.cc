#include "tilewright/codegen/gpu/calls.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/expr.h"
#include "tilewright/lower/gpu_fragments.h"

namespace tilewright::codegen {
namespace {

Stmt call_of(std::shared_ptr<const Func> callee) {
  Call call;
  call.callee = std::move(callee);
  return make(std::move(call));
}
/// A call as the lanes of a warp make it.
Stmt lanes_call(const std::string& name) {
  return call_of(lower::lanes_form(*hw::find_gpu_intrinsic(name)));
}
Stmt plain_call(const std::string& name) {
  return call_of(std::make_shared<const Func>(hw::find_gpu_intrinsic(name)->meaning));
}
bool stays(const Stmt& s) { return stays_call(*s.as<Call>()); }

TEST(Calls, InstructionsStayAndTheirMeaningsDoNot) {
  EXPECT_TRUE(stays(lanes_call("cuda.mma_bf16")));
  EXPECT_TRUE(stays(plain_call("cuda.dp4a_u8i8"))) << "a thread's own";
  EXPECT_FALSE(stays(plain_call("cuda.mma_bf16"))) << "nobody gave its operands to lanes";
}

}  // namespace
}  // namespace tilewright::codegen
