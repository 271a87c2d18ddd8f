// The programs that every back-end is tested with, run on the first OpenCL device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/codegen/gpu/testing/runner.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

/// Loops outside of others whose iterations may run at the same time are bound: parallel ones to
/// blocks, vectors (with `threads`) to threads. A program without memory of its own becomes one
/// kernel, in which threads of several loops wait for each other.
Func bind_loops(const Func& func, bool threads) {
  bool allocates = false;
  walk(func.body, [&](const Stmt& s) { allocates |= s.as<Alloc>() != nullptr; });
  const auto bind = [&](const auto& self, const Stmt& s, bool in_block) -> Stmt {
    if (const auto* list = s.as<Seq>()) {
      std::vector<Stmt> out;
      for (const Stmt& child : list->stmts) out.push_back(self(self, child, in_block));
      return seq(std::move(out));
    }
    const auto* loop = s.as<For>();
    if (loop == nullptr) return s;
    For out = *loop;
    if (loop->kind == ForKind::Vector && threads) {
      out.kind = ForKind::Bind, out.axis = "thread.x", out.marks.clear();
      return make(std::move(out));
    }
    if (loop->kind == ForKind::Parallel && !in_block) {
      out.kind = ForKind::Bind, out.axis = "block.x", out.marks.clear();
      out.body = self(self, loop->body, true);
    }
    return make(std::move(out));
  };
  Func out = func;
  if (allocates) {
    out.body = bind(bind, func.body, false);
    return out;
  }
  out.body = make(For{Var("whole"), int_imm(1), ForKind::Bind, "block.x", {},
                      bind(bind, func.body, true)});
  return out;
}

/// Whether the lowering for GPUs takes such programs at all: their sizes are numbers.
bool has_sizes(const testing::Case& test) { return test.func.scalars.empty(); }

/// Runs the cases in groups, vector loops on threads or each in one thread.
void expect_agreement(const std::vector<testing::Case>& cases, bool threads) {
  const auto device = runtime::open_gpu("opencl");
  if (!device) GTEST_SKIP() << to_string(device.error());
  const hw::GpuTarget target = *hw::find_gpu_target("opencl");
  constexpr size_t kGroup = 24;
  for (size_t begin = 0; begin < cases.size(); begin += kGroup) {
    testing::GpuBatch batch(target);
    std::vector<const testing::Case*> taken;
    std::vector<std::map<std::string, Array>> expected;
    for (size_t i = begin; i < std::min(begin + kGroup, cases.size()); ++i) {
      const testing::Case& test = cases[i];
      if (!has_sizes(test)) continue;
      const auto arguments = testing::random_arguments(test.func, 1, test.real_data);
      const Status added = batch.add(test.func, bind_loops(test.func, threads), arguments);
      ASSERT_TRUE(added) << test.name << to_string(added.error());
      const auto outcome = interp::run(test.func, arguments);
      ASSERT_TRUE(outcome) << test.name << to_string(outcome.error());
      expected.push_back(outcome->outputs);
      taken.push_back(&test);
    }
    const auto got = batch.run(**device);
    ASSERT_TRUE(got) << taken.front()->name << " and others: " << to_string(got.error());
    for (size_t i = 0; i < taken.size(); ++i) {
      const Status same = testing::compare(expected[i], (*got)[i], taken[i]->tolerance);
      EXPECT_TRUE(same) << taken[i]->name << "\n" << to_string(same.error())
                        << print(bind_loops(taken[i]->func, threads));
    }
  }
}

TEST(GpuSlow, ProgramsAgreeOnThreads) { expect_agreement(testing::standard_cases(), true); }

TEST(GpuSlow, ProgramsAgreeOnVectors) { expect_agreement(testing::standard_cases(), false); }

TEST(GpuSlow, RandomProgramsAgree) { expect_agreement(testing::random_cases(61, 150), true); }

TEST(GpuSlow, CudaTextCompiles) {
  if (const auto version = nvrtc_version(); !version) GTEST_SKIP() << to_string(version.error());
  testing::GpuBatch batch(*hw::find_gpu_target("cuda"));
  for (const testing::Case& test : testing::standard_cases()) {
    if (!has_sizes(test)) continue;
    const Status added =
        batch.add(test.func, bind_loops(test.func, true), testing::random_arguments(test.func, 1));
    ASSERT_TRUE(added) << test.name << to_string(added.error());
  }
  const auto source = batch.source();
  ASSERT_TRUE(source) << to_string(source.error());
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const auto code = compile_cuda(*source, arch);
    EXPECT_TRUE(code) << to_string(code.error()).substr(0, 4000);
  }
}

}  // namespace
}  // namespace tilewright::codegen
