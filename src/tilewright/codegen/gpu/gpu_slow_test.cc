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
  out.body = make(
      For{Var("whole"), int_imm(1), ForKind::Bind, "block.x", {}, bind(bind, func.body, true)});
  return out;
}

/// All memory is that of a thread: one does everything.
Func serial(const Func& func) {
  BufferMap local;
  walk(func.body, [&](const Stmt& s) {
    if (const auto* alloc = s.as<Alloc>())
      local[alloc->buffer] =
          Buffer(alloc->buffer.name(), alloc->buffer.dtype(), alloc->buffer.shape(), "local");
  });
  Func out = func;
  out.body = replace_buffers(func.body, local);
  return out;
}

/// Adds a case. False where its memory has no place in kernels that run at the same time.
bool add_bound(testing::GpuBatch& batch, const testing::Case& test, bool threads) {
  const auto arguments = testing::random_arguments(test.func, 1, test.real_data);
  if (batch.add(test.func, bind_loops(test.func, threads), arguments)) return true;
  const Status added = batch.add(test.func, serial(test.func), arguments);
  EXPECT_TRUE(added) << test.name << to_string(added.error());
  return false;
}

/// The lowering for GPUs takes programs whose sizes are numbers. Loops that random programs bind
/// say nothing about a grid.
std::vector<testing::Case> sized(std::vector<testing::Case> cases) {
  std::erase_if(cases, [](const testing::Case& c) { return !c.func.scalars.empty(); });
  for (testing::Case& c : cases)
    c.func.body = rewrite(c.func.body, [](const Stmt& s) {
      const auto* loop = s.as<For>();
      if (loop == nullptr || loop->kind != ForKind::Bind) return s;
      return make(For{loop->var, loop->extent, ForKind::Serial, {}, loop->marks, loop->body});
    });
  return cases;
}

/// Runs the cases in groups, vector loops on threads or each in one thread.
void expect_agreement(const std::vector<testing::Case>& cases, bool threads) {
  const auto device = runtime::open_gpu("opencl");
  if (!device) GTEST_SKIP() << to_string(device.error());
  constexpr size_t kGroup = 24;
  size_t bound = 0;
  for (size_t begin = 0; begin < cases.size(); begin += kGroup) {
    const size_t end = std::min(begin + kGroup, cases.size());
    testing::GpuBatch batch(*hw::find_gpu_target("opencl"));
    for (size_t i = begin; i < end; ++i) bound += add_bound(batch, cases[i], threads);
    const auto got = batch.run(**device);
    ASSERT_TRUE(got) << cases[begin].name << " and others: " << to_string(got.error());
    for (size_t i = begin; i < end; ++i) {
      const testing::Case& test = cases[i];
      const auto expected =
          interp::run(test.func, testing::random_arguments(test.func, 1, test.real_data));
      ASSERT_TRUE(expected) << test.name << to_string(expected.error());
      const Status same = testing::compare(expected->outputs, (*got)[i - begin], test.tolerance);
      EXPECT_TRUE(same) << test.name << "\n"
                        << to_string(same.error()) << print(bind_loops(test.func, threads));
    }
  }
  EXPECT_GE(bound, cases.size() / 2);
}

TEST(GpuSlow, ProgramsAgreeOnThreads) { expect_agreement(sized(testing::standard_cases()), true); }

TEST(GpuFull, ProgramsAgreeOnVectors) {
  std::vector<testing::Case> cases = sized(testing::standard_cases());
  // Long lists of elementwise statements, which compile slowly, differ in nothing but expressions.
  std::erase_if(cases, [](const testing::Case& c) {
    return c.name.starts_with("ops_") || c.name.starts_with("cast_") ||
           c.name.starts_with("math_") || c.name.starts_with("random_");
  });
  expect_agreement(cases, false);
}

TEST(GpuSlow, RandomProgramsAgree) {
  expect_agreement(sized(testing::random_cases(61, 150)), true);
}

void expect_cuda_compiles(const char* arch) {
  if (const auto version = nvrtc_version(); !version) GTEST_SKIP() << to_string(version.error());
  testing::GpuBatch batch(*hw::find_gpu_target("cuda"));
  for (const testing::Case& test : sized(testing::standard_cases())) add_bound(batch, test, true);
  const auto source = batch.source();
  ASSERT_TRUE(source) << to_string(source.error());
  const auto code = compile_cuda(*source, arch);
  EXPECT_TRUE(code) << to_string(code.error()).substr(0, 4000);
}

TEST(GpuSlow, CudaTextCompiles) { expect_cuda_compiles("sm_90a"); }

TEST(GpuFull, CudaTextCompilesForOlderDevices) { expect_cuda_compiles("sm_80"); }

}  // namespace
}  // namespace tilewright::codegen
