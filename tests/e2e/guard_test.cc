// Kernels touch nothing but their buffers, and give the same bits whatever the number of threads.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/e2e/kernel_matrix.h"
#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/codegen/testing/harness.h"
#include "tilewright/compile/compile.h"
#include "tilewright/driver/inputs/inputs.h"
#include "tilewright/ir/text.h"
#include "tilewright/runtime/executor.h"
#include "tilewright/zoo/zoo.h"

namespace tilewright::e2e {
namespace {

using codegen::testing::Side;

/// The matrix for `target`, every `step`-th operator, with schedules for `threads`.
void expect_guarded(const hw::CpuTarget& target, int threads, size_t step, size_t first = 0) {
  const std::vector<OperatorCase> all = kernel_matrix(target);
  std::vector<codegen::testing::Case> cases;
  std::vector<Func> lowered;
  for (size_t i = first; i < all.size(); i += step) {
    const auto func = func_of(all[i]);
    ASSERT_TRUE(func) << all[i].name << " " << to_string(func.error());
    const auto made = scheduled(*func, target, threads);
    ASSERT_TRUE(made) << all[i].name << " " << to_string(made.error());
    const bool narrow = all[i].inputs[0].dtype == DType::BF16;
    cases.push_back({all[i].name, *func, narrow ? 1e-2 : 1e-5, false});
    lowered.push_back(*made);
  }
  codegen::LlvmOptions options;
  options.target = target;
  const auto module = codegen::jit(lowered, options);
  ASSERT_TRUE(module) << to_string(module.error());
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& info = (*module)->kernels()[i];
    const Status ok = codegen::testing::check(cases[i], (*module)->find(info.symbol), info);
    EXPECT_TRUE(ok) << target.name << " " << cases[i].name << "\n" << to_string(ok.error());
  }
}

TEST(GuardSample, KernelsTouchOnlyTheirBuffers) { expect_guarded(hw::host(), 2, 9); }

TEST(GuardSample, TheFencesCatchWhatReachesBeyond) {
  for (const char* index : {"min(k + 1, 100)", "max(k - 1, -100)"}) {
    const auto func = parse_func(fmt::format(
        "func f(A: f32[100], out Y: f32[100]) {{\n  for i in 100 vector {{\n    block Y(k: space "
        "100 = i) {{ Y[k] = A[{}] }}\n  }}\n}}\n",
        index));
    ASSERT_TRUE(func) << to_string(func.error());
    const auto module = codegen::jit({*func});
    ASSERT_TRUE(module);
    const auto& info = (*module)->kernels()[0];
    bool caught = false;
    for (const Side side : {Side::Front, Side::Back}) {
      const auto got =
          codegen::testing::call_kernel(*func, (*module)->find(info.symbol), info,
                                        codegen::testing::random_arguments(*func, 1), side);
      caught |= !got && to_string(got.error()).find(" of A") != std::string::npos;
    }
    EXPECT_TRUE(caught) << index;
  }
}

TEST(GuardSlow, EveryKernelTouchesOnlyItsBuffers) {
  for (const char* name : {"cpu", "x86-64-v4", "x86-64-v3", "x86-64-v2"}) {
    const hw::CpuTarget target = *hw::find_target(name);
    if (!hw::missing_features(target).empty()) continue;
    for (const int threads : {1, 2}) expect_guarded(target, threads, 1);
  }
}

std::vector<Array> outputs_of(const compile::CompiledModel& model, int threads) {
  runtime::SessionOptions options;
  options.threads = threads;
  const auto session = compile::open_session(model, options);
  EXPECT_TRUE(session) << to_string(session.error());
  std::vector<Array> out;
  const graph::Graph& graph = model.graph;
  for (const graph::ValueId id : graph.inputs) {
    const auto& value = graph.values[static_cast<size_t>(id)];
    const Array array = driver::random_array(value.type.dtype, value.type.shape, 7);
    EXPECT_TRUE((*session)->set_input(value.name, array));
  }
  EXPECT_TRUE((*session)->run());
  for (const graph::ValueId id : graph.outputs) {
    const auto array = (*session)->get_output(graph.values[static_cast<size_t>(id)].name);
    EXPECT_TRUE(array);
    out.push_back(array->clone());
  }
  return out;
}

/// The same bits from code made for one and for two threads, run by one and by two.
void expect_deterministic(const std::string& network, int64_t size) {
  zoo::Options options;
  options.size = size;
  const auto graph = zoo::build(network, options);
  ASSERT_TRUE(graph) << to_string(graph.error());
  std::vector<std::vector<Array>> results;
  for (const int made_for : {2, 1}) {
    compile::CompileOptions compile;
    compile.threads = made_for;
    const auto model = compile::compile_graph(*graph, compile);
    ASSERT_TRUE(model) << to_string(model.error());
    for (const int threads : {1, 2, 2}) results.push_back(outputs_of(*model, threads));
  }
  for (size_t r = 1; r < results.size(); ++r)
    for (size_t i = 0; i < results[0].size(); ++i)
      EXPECT_TRUE(identical(results[r][i], results[0][i])) << network << " run " << r;
}

TEST(ThreadsSlow, NetworksGiveTheSameBits) {
  expect_deterministic("mobilenet_v2", 96);
  expect_deterministic("resnet18", 64);
}

TEST(ThreadsSlow, OperatorsGiveTheSameBits) {
  const hw::CpuTarget& target = hw::host();
  std::vector<Func> funcs, one, two;
  for (const OperatorCase& test : kernel_matrix(target)) {
    const auto func = func_of(test);
    ASSERT_TRUE(func);
    funcs.push_back(*func);
    for (const int threads : {1, 2}) {
      auto made = scheduled(*func, target, threads);
      ASSERT_TRUE(made) << test.name;
      (threads == 1 ? one : two).push_back(*made);
    }
  }
  const auto first = codegen::jit(one), second = codegen::jit(two);
  ASSERT_TRUE(first && second);
  for (size_t i = 0; i < funcs.size(); ++i) {
    const auto& a = (*first)->kernels()[i];
    const auto& b = (*second)->kernels()[i];
    const auto arguments = codegen::testing::random_arguments(funcs[i], 3, true);
    // The harness runs parallel loops backwards, with two workers in turn.
    const auto x = codegen::testing::call_kernel(funcs[i], (*first)->find(a.symbol), a, arguments);
    const auto y = codegen::testing::call_kernel(funcs[i], (*second)->find(b.symbol), b, arguments);
    ASSERT_TRUE(x && y) << funcs[i].name;
    for (const auto& [name, array] : *x)
      EXPECT_TRUE(identical(array, y->at(name))) << funcs[i].name << " " << name;
  }
}

}  // namespace
}  // namespace tilewright::e2e
