#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/codegen/testing/harness.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"

namespace tilewright::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Copies x[c, h, w] to y[h, w, c] by tiles of `rows` elements along w and `lanes` along c.
std::string copy(const char* type, int tiles, int rows, int lanes, const char* value = "{}") {
  const int width = tiles * rows;
  return fmt::format(
      R"(func turn(X: {0}[{3},3,{1}], B: {0}[{3}], out Y: {0}[3,{1},{3}]) {{
  for h in 3, w.o in {4}, w.i in {2} unroll, c in {3} vector {{
    block Y(h: space 3 = h, w: space {1} = w.o * {2} + w.i, c: space {3} = c) {{
      Y[h, w, c] = {5}
    }}
  }}
}}
)",
      type, width, rows, lanes, tiles, fmt::format(fmt::runtime(value), "X[c, h, w]"));
}

TEST(TransposeSlow, EqualsTheInterpreter) {
  std::vector<testing::Case> cases;
  const auto add = [&](const std::string& text) {
    const auto func = parse_func(text);
    ASSERT_TRUE(func) << to_string(func.error()) << text;
    cases.push_back({fmt::format("turn{}", cases.size()), *func, 0, false});
    cases.back().func.name = cases.back().name;
  };
  for (const char* type : {"f32", "u8", "i16", "f16", "f64"})
    for (const auto& [rows, lanes] : {std::pair(16, 16), std::pair(14, 16), std::pair(16, 14),
                                      std::pair(7, 7), std::pair(4, 5), std::pair(20, 6)})
      add(copy(type, 2, rows, lanes));
  add(copy("f32", 2, 16, 16, "max({} + B[c], 0.0)"));
  add(copy("f32", 2, 16, 16, "select(B[c] > 0.0, {}, 1.0)"));  // not all are read: gathered
  const auto lowered = testing::lower_all(cases);
  ASSERT_TRUE(lowered) << to_string(lowered.error());
  const auto module = jit(*lowered, {});
  ASSERT_TRUE(module) << to_string(module.error());
  for (size_t i = 0; i < cases.size(); ++i) {
    const KernelInfo& info = (*module)->kernels()[i];
    const Status ok = testing::check(cases[i], (*module)->find(info.symbol), info);
    EXPECT_TRUE(ok) << cases[i].name << "\n" << to_string(ok.error()) << print(cases[i].func);
  }
}

TEST(Transpose, LoadsRowsInsteadOfGathering) {
  LlvmOptions options;
  options.target = *hw::find_target("x86-64-v4");
  const auto assembly = [&](const std::string& text) {
    const auto lowered = lower::run_pipeline(*parse_func(text), "cpu");
    return *emit_assembly(*lowered, options);
  };
  EXPECT_THAT(assembly(copy("f32", 2, 14, 16)), Not(HasSubstr("vgather")));
  EXPECT_THAT(assembly(copy("f32", 2, 3, 16)), HasSubstr("vgather"));
}

}  // namespace
}  // namespace tilewright::codegen
