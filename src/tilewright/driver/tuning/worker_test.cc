// Real kernels through the real worker: `tilewright measure-child`.
#include <gtest/gtest.h>

#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/measure/measured_task.h"
#include "tilewright/measure/measurer.h"
#include "tilewright/measure/target_text.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/tensor/workload.h"

namespace tilewright::driver {
namespace {

using measure::OutcomeKind;

#if defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

measure::Task task_of(const std::string& op, const std::map<std::string, int64_t>& sizes,
                      int threads = 1) {
  measure::Task task;
  task.name = op;
  const auto call = tensor::workload_call(op, sizes);
  EXPECT_TRUE(call) << to_string(call.error());
  const auto func = tensor::op_func(*call);
  EXPECT_TRUE(func) << to_string(func.error());
  task.func = *func;
  task.target = hw::as_target(hw::host());
  task.threads = threads;
  return task;
}

measure::Task conv_task(int threads = 1) {
  return task_of("conv2d",
                 {{"batch", 1},
                  {"in_channels", 5},
                  {"height", 9},
                  {"width", 9},
                  {"kernel_h", 3},
                  {"kernel_w", 3},
                  {"out_channels", 7},
                  {"pad", 1},
                  {"stride", 1}},
                 threads);
}

std::unique_ptr<measure::Measurer> measurer() {
  measure::MeasureOptions options;
  options.worker = {TILEWRIGHT_PROGRAM, "measure-child"};
  options.limit_seconds = 20;
  options.memory_bytes = int64_t{512} << 20;
  auto started = measure::start_measurer(options);
  EXPECT_TRUE(started) << to_string(started.error());
  return *std::move(started);
}

class Worker : public testing::Test {
 protected:
  void SetUp() override {
    if (!compile::has_llvm()) GTEST_SKIP() << "this build has no LLVM";
  }
};

/// What workers compare with is what the interpreter computes.
TEST_F(Worker, ReferencesAreTheMeaning) {
  const measure::Task task = conv_task();
  measure::TaskJob job;
  job.func = print(task.func);
  job.target = measure::print_target(task.target);
  const measure::CompileFor compile = compile::compile_kernel;
  measure::SharedThreads threads;
  const auto measured = measure::MeasuredTask::create(job, threads, compile);
  ASSERT_TRUE(measured) << to_string(measured.error());
  const auto results = (*measured)->reference();
  ASSERT_TRUE(results) << results.error().reason;
  interp::Arguments arguments;
  for (size_t i = 0; i < task.func.params.size(); ++i) {
    const Param& param = task.func.params[i];
    if (param.mode == ParamMode::Out) continue;
    Shape shape;
    for (const Expr& extent : param.buffer.shape()) shape.push_back(*as_int(extent));
    arguments.arrays[param.buffer.name()] = (*measured)->operands()[i].clone().reshaped(shape);
  }
  const auto outcome = interp::run(task.func, arguments);
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  const Array& expected = outcome->outputs.begin()->second;
  EXPECT_TRUE(identical(results->at(0).reshaped(expected.shape()), expected));
  double sum = 0;
  for (int64_t i = 0; i < expected.size(); ++i) sum += std::abs(expected.get(i));
  EXPECT_GT(sum, 0);
}

TEST_F(Worker, MeasuresTheRulesSchedule) {
  const auto pool = measurer();
  for (const int threads : {1, 2}) {
    const measure::Task task = conv_task(threads);
    const auto evaluator = pool->evaluator(task);
    ASSERT_TRUE(evaluator) << to_string(evaluator.error());
    const auto readings =
        (*evaluator)
            ->evaluate({{{}, rules::default_trace(task.func, task.cpu(), threads)}, {{}, {}}});
    for (const measure::Reading& reading : readings) {
      EXPECT_EQ(reading.kind, OutcomeKind::Ok) << reading.reason;
      EXPECT_GT(reading.cost, 0);
    }
  }
}

/// A legal schedule that stages more than there is costs its candidate only.
TEST_F(Worker, A3_TooMuchMemoryIsAnOutcome) {
  if (kSanitized) GTEST_SKIP() << "where memory ends, the sanitizer ends the process";
  const auto pool = measurer();
  measure::Task task = conv_task();
  const auto func = parse_func(R"(func window(X: f32[32767], out Y: f32[16384]) {
  for Y.init.i in 16384 {
    block Y.init(i: space 16384 = Y.init.i) {
      Y[i] = 0.0
    }
  }
  for Y.i in 16384, Y.k in 16384 {
    block Y(i: space 16384 = Y.i, k: reduce 16384 = Y.k) {
      Y[i] += X[i + k]
    }
  }
}
)");
  ASSERT_TRUE(func) << to_string(func.error());
  task.func = *func;
  const auto evaluator = pool->evaluator(task);
  ASSERT_TRUE(evaluator) << to_string(evaluator.error());
  const auto readings =
      (*evaluator)->evaluate({{{}, {schedule::Reindex{"Y", "X", "T", {"i", "k"}}}}, {{}, {}}});
  EXPECT_EQ(readings[0].kind, OutcomeKind::OutOfMemory) << readings[0].reason;
  EXPECT_EQ(readings[1].kind, OutcomeKind::Ok) << readings[1].reason;
}

}  // namespace
}  // namespace tilewright::driver
