#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/codegen/testing/harness.h"
#include "tilewright/hw/cpu_intrinsics.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"

namespace tilewright::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string type(DType dtype) { return std::string(name(dtype)); }

/// A register tile of `rows` x `columns` dot products, `depth` groups deep.
Func tile_of(const hw::Dot& dot, int rows, int columns, int depth) {
  const std::string text = fmt::format(
      R"({meaning}
func tile(X: {a}[{rows},{inner}], W: {b}[{depth},{columns},{lanes},{group}], out Y: {acc}[{rows},{columns},{lanes}]) {{
  alloc C: {acc}[{rows},{columns},{lanes}] local
  for C.init.r in {rows} unroll, C.init.c in {columns} unroll, C.init.i in {lanes} vector {{
    block C.init(r: space {rows} = C.init.r, c: space {columns} = C.init.c, i: space {lanes} = C.init.i) {{
      C[r, c, i] = {zero}
    }}
  }}
  for k in {depth}, r in {rows} unroll, c in {columns} unroll {{
    block C(r: space {rows} = r, c: space {columns} = c, k: reduce {depth} = k) {{
      call {callee}(C[r:+1, c:+1, 0:+{lanes}], X[r:+1, k*{group}:+{group}], W[k:+1, c:+1, 0:+{lanes}, 0:+{group}])
    }}
  }}
  for Y.r in {rows} unroll, Y.c in {columns} unroll, Y.i in {lanes} vector {{
    block Y(r: space {rows} = Y.r, c: space {columns} = Y.c, i: space {lanes} = Y.i) {{
      Y[r, c, i] = C[r, c, i]
    }}
  }}
}}
)",
      fmt::arg("meaning", print(dot.intrinsic->meaning)), fmt::arg("callee", dot.intrinsic->name()),
      fmt::arg("a", type(dot.a)), fmt::arg("b", type(dot.b)), fmt::arg("acc", type(dot.acc)),
      fmt::arg("lanes", dot.lanes), fmt::arg("group", dot.depth), fmt::arg("rows", rows),
      fmt::arg("columns", columns), fmt::arg("depth", depth), fmt::arg("inner", depth * dot.depth),
      fmt::arg("zero", is_float(dot.acc) ? "0.0" : "0i32"));
  const auto func = parse_func(text);
  EXPECT_TRUE(func) << to_string(func.error()) << text;
  return *func;
}

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(Intrinsics, TheHostsDotProductsMeanWhatTheySay) {
  if (hw::dots_of(hw::host()).empty()) GTEST_SKIP() << "this processor has no dot products";
  std::vector<testing::Case> cases;
  for (const hw::Dot& dot : hw::dots_of(hw::host())) {
    Func func = tile_of(dot, 3, 2, 5);
    cases.push_back({fmt::format("dot_{}", cases.size()), std::move(func), 0, false});
  }
  const auto lowered = testing::lower_all(cases);
  ASSERT_TRUE(lowered) << to_string(lowered.error());
  const auto module = jit(*lowered);
  ASSERT_TRUE(module) << to_string(module.error());
  for (size_t i = 0; i < cases.size(); ++i) {
    const KernelInfo& info = (*module)->kernels()[i];
    const Status ok = testing::check(cases[i], (*module)->find(info.symbol), info);
    EXPECT_TRUE(ok) << to_string(ok.error()) << print(cases[i].func);
  }
}

/// `columns` windows of `rows` rows with four taps each, side by side.
Func windows_of(const hw::Dot& dot, int columns, int rows) {
  const std::string text = fmt::format(
      R"({meaning}
func windows(X: {a}[{rows},{pixels},{lanes}], W: {b}[{rows},{lanes},{group}], inout Y: {acc}[{columns},{lanes}]) {{
  for r in {rows}, x in {columns} unroll {{
    block Y(x: space {columns} = x, r: reduce {rows} = r) {{
      call {callee}(Y[x:+1, 0:+{lanes}], X[r:+1, x:+{group}, 0:+{lanes}], W[r:+1, 0:+{lanes}, 0:+{group}])
    }}
  }}
}}
)",
      fmt::arg("meaning", print(dot.intrinsic->meaning)), fmt::arg("callee", dot.intrinsic->name()),
      fmt::arg("a", type(dot.a)), fmt::arg("b", type(dot.b)), fmt::arg("acc", type(dot.acc)),
      fmt::arg("lanes", dot.lanes), fmt::arg("group", dot.depth), fmt::arg("rows", rows),
      fmt::arg("columns", columns), fmt::arg("pixels", columns + dot.depth - 1));
  const auto func = parse_func(text);
  EXPECT_TRUE(func) << to_string(func.error()) << text;
  return *func;
}

TEST(Intrinsics, TheHostsWindowsMeanWhatTheySay) {
  const std::vector<hw::Dot> dots = hw::dots_of(hw::host(), hw::DotKind::Taps);
  if (dots.empty()) GTEST_SKIP() << "this processor has no dot products";
  std::vector<testing::Case> cases;
  for (const hw::Dot& dot : dots)
    cases.push_back({fmt::format("windows_{}", cases.size()), windows_of(dot, 5, 3), 0, false});
  const auto lowered = testing::lower_all(cases);
  ASSERT_TRUE(lowered) << to_string(lowered.error());
  const auto module = jit(*lowered);
  ASSERT_TRUE(module) << to_string(module.error());
  for (size_t i = 0; i < cases.size(); ++i) {
    const KernelInfo& info = (*module)->kernels()[i];
    const Status ok = testing::check(cases[i], (*module)->find(info.symbol), info);
    EXPECT_TRUE(ok) << to_string(ok.error()) << print(cases[i].func);
  }
}

/// Bytes at the ends of their ranges: nothing saturates on the way.
TEST(Intrinsics, SumsOfExtremeBytesAreExact) {
  const auto dot = hw::find_dot(hw::host(), DType::U8, DType::I8);
  if (!dot) GTEST_SKIP() << "this processor has no products of unsigned and signed bytes";
  const Func func = tile_of(*dot, 2, 1, 3);
  const auto lowered = lower::run_pipeline(func, "cpu");
  ASSERT_TRUE(lowered);
  const auto module = jit({*lowered});
  ASSERT_TRUE(module);
  interp::Arguments arguments = testing::random_arguments(func, 1);
  for (const int sign : {-128, 127}) {
    Array &x = arguments.arrays.at("X"), &w = arguments.arrays.at("W");
    for (int64_t i = 0; i < x.size(); ++i) x.set_int(i, 255);
    for (int64_t i = 0; i < w.size(); ++i) w.set_int(i, sign);
    const KernelInfo& info = (*module)->kernels()[0];
    const auto got = testing::call_kernel(func, (*module)->find(info.symbol), info, arguments);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->at("Y").get_int(0), int64_t{255} * sign * 3 * dot->depth);
  }
}

struct Emitted {
  const char* target;
  const char* feature;
  DType a, b;
  int rows, columns;
  const char* instruction;
};

TEST(Intrinsics, TilesAreOneInstructionEachWithoutSpills) {
  const std::vector<Emitted> rows = {
      {"x86-64-v4", "+avx512vnni", DType::U8, DType::I8, 14, 2, "vpdpbusd"},
      {"x86-64-v4", "+avx512bf16", DType::BF16, DType::BF16, 14, 2, "vdpbf16ps"},
      {"x86-64-v3", "+avxvnni", DType::U8, DType::I8, 6, 2, "vpdpbusd"},
      {"aarch64-v8.2", "", DType::I8, DType::I8, 8, 3, "sdot"},
      {"aarch64-v8.2", "", DType::U8, DType::U8, 8, 3, "udot"},
      {"aarch64-v8.6", "", DType::U8, DType::I8, 8, 3, "usdot"},
      {"aarch64-v8.6", "", DType::BF16, DType::BF16, 8, 3, "bfdot"}};
  for (const Emitted& row : rows) {
    LlvmOptions options;
    options.target = *hw::find_target(row.target);
    if (*row.feature) options.target.features.emplace_back(row.feature);
    const auto dot = hw::find_dot(options.target, row.a, row.b);
    ASSERT_TRUE(dot) << row.target << " " << row.instruction;
    const auto lowered = lower::run_pipeline(tile_of(*dot, row.rows, row.columns, 64), "cpu");
    ASSERT_TRUE(lowered) << to_string(lowered.error());
    const auto assembly = emit_assembly(*lowered, options);
    ASSERT_TRUE(assembly) << to_string(assembly.error());
    const size_t tile = static_cast<size_t>(row.rows * row.columns);
    EXPECT_EQ(count(*assembly, std::string("\t") + row.instruction + "\t"), tile) << *assembly;
    EXPECT_THAT(*assembly, Not(HasSubstr("Spill"))) << *assembly;
  }
}

/// Where the processor lacks the instruction, a call is what it means.
TEST(Intrinsics, OtherTargetsExpandTheMeaning) {
  LlvmOptions with;
  with.target = *hw::find_target("x86-64-v4");
  with.target.features.emplace_back("+avx512vnni");
  const Func func = tile_of(*hw::find_dot(with.target, DType::U8, DType::I8), 2, 1, 3);
  const auto lowered = lower::run_pipeline(func, "cpu");
  ASSERT_TRUE(lowered);
  LlvmOptions without;
  without.target = *hw::find_target("x86-64-v2");
  EXPECT_THAT(*emit_assembly(*lowered, without), Not(HasSubstr("vpdpbusd")));
  if (!hw::missing_features(without.target).empty()) return;
  const auto module = jit({*lowered}, without);
  ASSERT_TRUE(module);
  const KernelInfo& info = (*module)->kernels()[0];
  const testing::Case test{"expanded", func, 0, false};
  const Status ok = testing::check(test, (*module)->find(info.symbol), info);
  EXPECT_TRUE(ok) << to_string(ok.error());
}

/// Elements that do not lie side by side cannot be one operand of an instruction.
TEST(Intrinsics, ScatteredOperandsExpandTheMeaning) {
  LlvmOptions options;
  options.target = *hw::find_target("x86-64-v4");
  options.target.features.emplace_back("+avx512vnni");
  const hw::Dot dot = *hw::find_dot(options.target, DType::U8, DType::I8);
  const auto func = parse_func(fmt::format(
      R"({}
func far(X: u8[4,3], W: i8[16,4], inout C: i32[16]) {{
  block C(k: reduce 1 = 0) {{ call {}(C[0:+16], X[0:+4, 1:+1], W[0:+16, 0:+4]) }}
}}
)",
      print(dot.intrinsic->meaning), dot.intrinsic->name()));
  ASSERT_TRUE(func) << to_string(func.error());
  const auto assembly = emit_assembly(*func, options);
  ASSERT_TRUE(assembly) << to_string(assembly.error());
  EXPECT_THAT(*assembly, Not(HasSubstr("llvm.x86")));
  if (!hw::missing_features(options.target).empty()) return;
  const auto module = jit({*func}, options);
  ASSERT_TRUE(module);
  const KernelInfo& info = (*module)->kernels()[0];
  const Status ok = testing::check({"far", *func, 0, false}, (*module)->find(info.symbol), info);
  EXPECT_TRUE(ok) << to_string(ok.error());
}

}  // namespace
}  // namespace tilewright::codegen
