#include "tilewright/rules/cpu/common_steps.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/cpu/default_schedule.h"

namespace tilewright::rules {
namespace {

/// A row read again after so many elements, or each of its elements so many times, as scheduled by
/// rule; the schedule computes the same.
std::string steps_of(const std::string& place) {
  const Func func = *parse_func(fmt::format(R"(func f(x: f32[3,40], out y: f32[3,120]) {{
  for i in 3, j in 120 {{
    block y(a: space 3 = i, b: space 120 = j) {{
      y[a, b] = x[a, {}]
    }}
  }}
}})",
                                            place));
  hw::CpuTarget target;
  target.vector_bytes = 64;
  const schedule::Trace trace = default_trace(func, target, 1);
  const auto scheduled = schedule::replay(func, trace);
  EXPECT_TRUE(scheduled) << to_string(scheduled.error());
  if (!scheduled) return "";
  const auto want = interp::run(func, quarters(func)),
             got = interp::run(*scheduled, quarters(func));
  EXPECT_TRUE(want && got);
  if (!want || !got) return "";
  const Array &a = want->outputs.begin()->second, &b = got->outputs.begin()->second;
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(a.get(i), b.get(i)) << place << " " << i;
  return schedule::print(trace);
}

TEST(CommonSteps, VectorsLieInOnePeriod) {
  using testing::HasSubstr, testing::Not;
  // 40 elements: two vectors and a half, which stands alone.
  for (const char* place : {"b % 40", "b / 40"}) {
    const std::string steps = steps_of(place);
    EXPECT_THAT(steps, HasSubstr("split(loop=j, factor=40)")) << place;
    EXPECT_THAT(steps, HasSubstr("cut(loop=j.i.o, parts=[2, 1])")) << place;
  }
  EXPECT_THAT(steps_of("b % 12"), HasSubstr("vectorize(loop=j.i)"));  // less than a vector
  EXPECT_THAT(steps_of("b / 3"), Not(HasSubstr("factor=3")));
  EXPECT_THAT(steps_of("b % 32"), Not(HasSubstr("factor=32")));  // does not divide the row
}

/// What repeats elements of a row in front of it and behind is a copy in between: three vectors.
TEST(CommonSteps, PaddedRowsAreCopiesInside) {
  hw::CpuTarget target;
  target.vector_bytes = 64;
  for (const char* mode : {"reflect", "edge", "wrap"}) {
    tensor::OpCall call;
    call.op = "Pad";
    call.attrs.values["mode"] = std::string(mode);
    Array pads(DType::I64, {6});
    for (int64_t i = 0; i < 6; ++i) pads.set_int(i, i % 3 == 2 ? 3 : i % 3);
    call.inputs = {{true, DType::F32, {3, 8, 60}, {}}, {true, DType::I64, {6}, pads}};
    const Result<Func> func = tensor::op_func(call);
    ASSERT_TRUE(func) << to_string(func.error());
    EXPECT_THAT(schedule::print(default_trace(*func, target, 1)),
                testing::HasSubstr("parts=[1, 2, 1, 1]"))
        << mode;
  }
}

}  // namespace
}  // namespace tilewright::rules
