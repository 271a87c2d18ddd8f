// The hot loops of every target's register tiles: vector multiply-adds, nothing on the stack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/e2e/kernel_matrix.h"
#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/ir/text.h"

namespace tilewright::e2e {
namespace {

/// What a target's multiply-adds and its accesses to the stack look like.
struct Look {
  const char* target;
  const char* feature;  ///< beside those of the name
  const char* multiply_add;
  const char* full_vector;  ///< in every such line
  const char* stack;
};

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

/// The innermost loop that holds the most `word`: from a label to the jump back to it.
std::string hot_loop(const std::string& assembly, const std::string& word) {
  std::string label, block, best;
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] == '.' && line.find(':') != std::string::npos) {
      label = line.substr(0, line.find(':'));
      block.clear();
    }
    block += line + "\n";
    const bool jumps_back = line.starts_with('\t') && line.ends_with(label);
    if (!label.empty() && jumps_back && count(block, word) > count(best, word)) best = block;
  }
  return best;
}

void expect_tile(const Look& look, const OperatorCase& test, size_t least) {
  hw::CpuTarget target = *hw::find_target(look.target);
  if (*look.feature) target.features.emplace_back(look.feature);
  std::sort(target.features.begin(), target.features.end());
  const auto func = func_of(test);
  ASSERT_TRUE(func) << to_string(func.error());
  const auto made = scheduled(*func, target, 1);
  ASSERT_TRUE(made) << to_string(made.error());
  codegen::LlvmOptions options;
  options.target = target;
  const auto assembly = codegen::emit_assembly(*made, options);
  ASSERT_TRUE(assembly) << to_string(assembly.error());
  const std::string loop = hot_loop(*assembly, look.multiply_add);
  const std::string where = std::string(look.target) + " " + test.op + "\n" + loop;
  EXPECT_GE(count(loop, look.multiply_add), least) << where;
  std::istringstream lines(loop);
  for (std::string line; std::getline(lines, line);)
    if (line.find(look.multiply_add) != std::string::npos) {
      EXPECT_NE(line.find(look.full_vector), std::string::npos) << line << "\n" << where;
    }
  EXPECT_EQ(count(loop, look.stack), 0u) << where;
}

/// A convolution and a product large enough for any tile, in blocks of `b` channels.
std::vector<OperatorCase> f32_cases(int64_t b) {
  using Ints = std::vector<int64_t>;
  return {{"conv",
           "tilewright",
           "ConvBlocked",
           {{DType::F32, {1, 4, 28, 28, b}}, {DType::F32, {8, 4, 3, 3, b, b}}},
           {{"pads", Ints{1, 1, 1, 1}}}},
          {"gemm",
           "tilewright",
           "GemmPacked",
           {{DType::F32, {64, 64}}, {DType::F32, {16, 64, b}}},
           {{"n", 16 * b}}}};
}

std::vector<OperatorCase> dot_cases(int64_t b, DType x, DType w, int64_t group) {
  using Ints = std::vector<int64_t>;
  return {{"conv",
           "tilewright",
           "ConvDotBlocked",
           {{x, {1, 4, 28, 28, b}}, {w, {8, 4, 3, 3, b / group, b, group}}},
           {{"pads", Ints{1, 1, 1, 1}}}},
          {"gemm",
           "tilewright",
           "GemmDotPacked",
           {{x, {64, 64}}, {w, {16, 64 / group, b, group}}},
           {{"n", 16 * b}}}};
}

TEST(Tiles, OfFloatsAreVectorMultiplyAddsInRegisters) {
  for (const Look& look : {Look{"x86-64-v4", "", "vfmadd", "%zmm", "(%rsp"},
                           Look{"x86-64-v3", "", "vfmadd", "%ymm", "(%rsp"},
                           Look{"aarch64", "", "fmla", ".4s", "[sp"}})
    for (const OperatorCase& test : f32_cases(hw::find_target(look.target)->lanes(32)))
      expect_tile(look, test, std::string_view(look.target) == "x86-64-v4" ? 16 : 8);
}

TEST(Tiles, OfBytesAndBf16AreDotProductsInRegisters) {
  struct Row {
    Look look;
    DType x, w;
    int64_t group;
  };
  for (const Row& row :
       {Row{{"x86-64-v4", "+avx512vnni", "vpdpbusd", "%zmm", "(%rsp"}, DType::U8, DType::I8, 4},
        Row{{"x86-64-v3", "+avxvnni", "vpdpbusd", "%ymm", "(%rsp"}, DType::U8, DType::I8, 4},
        Row{{"x86-64-v4", "+avx512bf16", "vdpbf16ps", "%zmm", "(%rsp"},
            DType::BF16,
            DType::BF16,
            2},
        Row{{"aarch64-v8.2", "", "\tsdot", ".4s", "[sp"}, DType::I8, DType::I8, 4},
        Row{{"aarch64-v8.6", "", "usdot", ".4s", "[sp"}, DType::U8, DType::I8, 4},
        Row{{"aarch64-v8.6", "", "bfdot", ".4s", "[sp"}, DType::BF16, DType::BF16, 2}})
    for (const OperatorCase& test :
         dot_cases(hw::find_target(row.look.target)->lanes(32), row.x, row.w, row.group))
      expect_tile(row.look, test, std::string_view(row.look.target) == "x86-64-v4" ? 16 : 8);
}

}  // namespace
}  // namespace tilewright::e2e
