#include "tilewright/measure/measurer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>

#include <chrono>
#include <map>
#include <thread>

#include "tilewright/base/available_cpus.h"
#include "tilewright/base/process.h"
#include "tilewright/ir/text.h"
#include "tilewright/measure/job.h"
#include "tilewright/measure/target_text.h"
#include "tilewright/search/searcher.h"

namespace tilewright::measure {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

#if defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

Task small_task(int threads = 1) {
  Task task;
  task.name = "double";
  const auto func = parse_func(R"(func double(X: f32[64], out Y: f32[64]) {
  for Y.i in 64 {
    block Y(i: space 64 = Y.i) {
      Y[i] = X[i] * 2.0 + 1.0
    }
  }
}
)");
  EXPECT_TRUE(func) << to_string(func.error());
  task.func = *func;
  task.target = hw::as_target(hw::host());
  task.threads = threads;
  return task;
}

/// A candidate for which the worker of these tests makes the kernel `name`.
Candidate candidate(const std::string& name) {
  return {{}, {schedule::CacheRead{"Y", "X", name, ""}}};
}

/// What a candidate without end takes; others have more than a busy machine needs for them.
constexpr double kShort = kSanitized ? 5 : 2, kPatience = 60;

MeasureOptions options(double limit_seconds = kPatience) {
  MeasureOptions chosen;
  chosen.worker = {MEASURE_WORKER};
  chosen.limit_seconds = limit_seconds;
  chosen.memory_bytes = 256 << 20;
  return chosen;
}

struct Rig {
  explicit Rig(const MeasureOptions& chosen = options(), const Task& task = small_task()) {
    auto started = start_measurer(chosen);
    EXPECT_TRUE(started) << to_string(started.error());
    measurer = *std::move(started);
    auto made = measurer->evaluator(task);
    EXPECT_TRUE(made) << to_string(made.error());
    evaluator = *std::move(made);
  }
  Reading one(const std::string& name) { return evaluator->evaluate({candidate(name)}).at(0); }

  std::unique_ptr<Measurer> measurer;
  std::unique_ptr<Evaluator> evaluator;
};

/// All children of this process were waited for.
void expect_no_children() {
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Measure, GoodCandidatesGetACost) {
  Rig rig;
  const auto readings = rig.evaluator->evaluate({candidate("fast"), candidate("fast2")});
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].kind, OutcomeKind::Ok) << readings[0].reason;
  EXPECT_GE(readings[0].cost, 50e3);
  EXPECT_LE(readings[0].least, readings[0].cost);
  EXPECT_EQ(readings[0].readings, 7);
  EXPECT_EQ(readings[1].kind, OutcomeKind::Ok) << readings[1].reason;
}

TEST(Measure, ClearlyWorseOnesAreGivenUpEarly) {
  Rig rig;
  const Reading fast = rig.one("fast"), slow = rig.one("slow");
  EXPECT_EQ(slow.kind, OutcomeKind::Ok);
  EXPECT_EQ(slow.readings, 2);
  EXPECT_GT(slow.cost, fast.cost);
  // A faster one becomes the anchor, whichever worker measured it.
  Rig other;
  EXPECT_EQ(other.one("slow").readings, 7);
  EXPECT_EQ(other.one("fast").kind, OutcomeKind::Ok);
  for (const Reading& reading : other.evaluator->evaluate(
           {candidate("slow"), candidate("slow"), candidate("slow"), candidate("slow")}))
    EXPECT_EQ(reading.readings, 2);
}

struct Fault {
  std::string name;
  OutcomeKind kind;
  std::string reason;
};

class Faults : public ::testing::TestWithParam<Fault> {};

TEST_P(Faults, A2_A3_AreOutcomesOfOneCandidateOnly) {
  if (kSanitized && GetParam().kind == OutcomeKind::OutOfMemory)
    GTEST_SKIP() << "a sanitizer ends the process itself when memory ends";
  Rig rig(options(GetParam().kind == OutcomeKind::Timeout ? kShort : kPatience));
  const auto readings =
      rig.evaluator->evaluate({candidate("fast"), candidate(GetParam().name), candidate("fast"),
                               candidate(GetParam().name), candidate("fast")});
  for (size_t i : {0u, 2u, 4u}) EXPECT_EQ(readings[i].kind, OutcomeKind::Ok) << readings[i].reason;
  for (size_t i : {1u, 3u}) {
    EXPECT_EQ(readings[i].kind, GetParam().kind) << to_string(readings[i].kind);
    EXPECT_THAT(readings[i].reason, HasSubstr(GetParam().reason));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Measure, Faults,
    ::testing::Values(Fault{"segv", OutcomeKind::Crash, "SIGSEGV"},
                      Fault{"abort", OutcomeKind::Crash, "SIGABRT"},
                      Fault{"exit", OutcomeKind::Crash, "exit status 3"},
                      Fault{"endless", OutcomeKind::Timeout, "no result within"},
                      Fault{"hungry", OutcomeKind::OutOfMemory, "more than 256 MiB"},
                      Fault{"wide", OutcomeKind::OutOfMemory, "more than 256 MiB"},
                      Fault{"wrong", OutcomeKind::WrongResult, "Y[5]: "},
                      Fault{"lazy", OutcomeKind::WrongResult, "nan instead of"},
                      Fault{"refused", OutcomeKind::CompileError, "no code for this: it is a test"},
                      Fault{"X", OutcomeKind::Invalid, "step 0"}),
    [](const auto& test) { return test.param.name; });

TEST(Measure, FirstCandidatesMayFail) {
  Rig rig;
  const auto readings = rig.evaluator->evaluate(
      {candidate("segv"), candidate("refused"), candidate("fast"), candidate("slow")});
  EXPECT_EQ(readings[0].kind, OutcomeKind::Crash);
  EXPECT_EQ(readings[1].kind, OutcomeKind::CompileError);
  EXPECT_EQ(readings[2].readings, 7);
  EXPECT_EQ(readings[3].readings, 2);
}

TEST(Measure, SeveralThreads) {
  Rig rig(options(), small_task(2));
  EXPECT_EQ(rig.one("fast").kind, OutcomeKind::Ok);
  EXPECT_EQ(rig.one("wrong").kind, OutcomeKind::WrongResult);
  EXPECT_EQ(rig.one("fast").kind, OutcomeKind::Ok);
}

TEST(Measure, EvaluatorsTakeTurns) {
  Rig rig;
  auto other = rig.measurer->evaluator(small_task(2));
  ASSERT_TRUE(other);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rig.one("fast").kind, OutcomeKind::Ok);
    EXPECT_EQ((*other)->evaluate({candidate("fast")}).at(0).kind, OutcomeKind::Ok);
  }
  rig.evaluator.reset();
  EXPECT_EQ((*other)->evaluate({candidate("fast")}).at(0).kind, OutcomeKind::Ok);
}

TEST(Measure, NothingStays) {
  {
    Rig rig;
  }
  expect_no_children();
  {
    Rig rig;
    rig.one("segv");
  }
  expect_no_children();
}

TEST(Measure, AnInterruptionEndsItSoon) {
  Rig rig;
  EXPECT_EQ(rig.one("fast").kind, OutcomeKind::Ok);
  std::thread user([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    interrupt_requested = true;
  });
  const auto begin = Clock::now();
  const auto readings =
      rig.evaluator->evaluate({candidate("endless"), candidate("endless"), candidate("endless")});
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), kPatience / 2);
  user.join();
  for (const Reading& reading : readings) {
    EXPECT_EQ(reading.kind, OutcomeKind::Lost);
    EXPECT_EQ(reading.reason, "interrupted");
  }
  interrupt_requested = false;
  EXPECT_EQ(rig.one("fast").kind, OutcomeKind::Ok);
}

/// Whoever measures for others brings the scale along, and hears of each candidate at once.
TEST(Measure, BesideAGivenAnchor) {
  auto measurer = start_measurer(options());
  ASSERT_TRUE(measurer);
  auto evaluator = (*measurer)->anchored(small_task());
  ASSERT_TRUE(evaluator);
  const Anchor anchor{schedule::print(candidate("slow").trace), 8e6, 1e9};  // it takes 0.5 ms here
  for (int i = 0; i < 2; ++i) {  // again, with what is loaded
    std::map<size_t, Reading> told;
    const auto readings =
        (*evaluator)
            ->evaluate_beside(anchor, {candidate("fast"), candidate("segv"), candidate("slow")},
                              [&](size_t index, const Reading& reading) { told[index] = reading; });
    ASSERT_EQ(readings.size(), 3u);
    ASSERT_EQ(told.size(), 3u);
    EXPECT_EQ(told[1].kind, OutcomeKind::Crash);
    EXPECT_EQ(told[2].cost, readings[2].cost);
    EXPECT_GT(readings[2].cost, 4e6);  // 8e6 where nothing else runs
    EXPECT_LT(readings[0].cost, readings[2].cost / 2);
    EXPECT_GT(readings[0].cost, 10 * readings[0].fastest);  // which is by the clock of here
  }
}

TEST(Measure, WhoWaitsCanStopIt) {
  MeasureOptions chosen = options();
  bool stop = false;
  chosen.stop = [&] { return stop; };
  auto measurer = start_measurer(chosen);
  ASSERT_TRUE(measurer);
  auto evaluator = (*measurer)->anchored(small_task());
  ASSERT_TRUE(evaluator);
  int told = 0;
  const auto readings =
      (*evaluator)
          ->evaluate_beside({}, {candidate("fast"), candidate("endless"), candidate("endless")},
                            [&](size_t, const Reading&) {
                              ++told;
                              stop = true;
                            });
  EXPECT_EQ(told, 1);
  EXPECT_EQ(readings[0].kind, OutcomeKind::Ok);
  EXPECT_EQ(readings[1].kind, OutcomeKind::Lost);
  EXPECT_EQ((*measurer)->race(small_task(), {candidate("fast").trace}, 5).error().kind,
            ErrorKind::Interrupted);
  stop = false;
  EXPECT_EQ((*evaluator)->evaluate({candidate("fast")}).at(0).kind, OutcomeKind::Ok);
}

TEST(Measure, Races) {
  Rig rig;
  const auto ratios = rig.measurer->race(
      small_task(), {candidate("fast").trace, candidate("slow").trace, candidate("refused").trace},
      5);
  ASSERT_TRUE(ratios) << to_string(ratios.error());
  ASSERT_EQ(ratios->size(), 3u);
  EXPECT_EQ(ratios->at(0), 1);
  EXPECT_GT(ratios->at(1), 1);
  EXPECT_EQ(ratios->at(2), search::kInvalid);
  const auto crash = rig.measurer->race(small_task(), {candidate("segv").trace}, 5);
  ASSERT_FALSE(crash);
  EXPECT_EQ(crash.error().kind, ErrorKind::Tool);
  EXPECT_THAT(crash.error().why, HasSubstr("SIGSEGV"));
}

/// The worker of these tests compiles a program of this name once, without a schedule.
TEST(Measure, ARaceTakesRightResultsThatAreKnown) {
  MeasureOptions alone = options();
  alone.workers = 1;
  Task task = small_task();
  task.func.name = "single";
  Rig rig(alone, task);
  const std::vector<schedule::Trace> traces = {candidate("fast").trace, candidate("fast").trace};
  const auto ratios = rig.measurer->race(task, traces, 3);
  EXPECT_TRUE(ratios) << to_string(ratios.error());
  EXPECT_EQ(rig.one("fast").kind, OutcomeKind::Ok) << "the evaluator still has them";
  task.threads = 2;  // another kernel, which is loaded anew
  EXPECT_FALSE(rig.measurer->race(task, traces, 3));
}

TEST(Measure, OneProcessMeasuresWhereThereIsOneCpu) {
  const std::vector<int> cpus = allowed_cpus();
  EXPECT_EQ(processor_workers(), usable_cpus() > 1 ? 2 : 1);
  std::thread([&] {  // affinity is the thread's own
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus.at(0), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(processor_workers(), 1);
  })
      .join();
}

TEST(Measure, WorkersThatAreNone) {
  for (const std::string program : {"/bin/false", "/no/such/program"}) {
    MeasureOptions chosen = options();
    chosen.worker = {program};
    const auto started = start_measurer(chosen);
    ASSERT_FALSE(started) << program;
    EXPECT_EQ(started.error().kind, ErrorKind::Tool);
  }
  expect_no_children();
}

TEST(Measure, TasksThatCannotBeMeasured) {
  Rig rig;
  Task task = small_task();
  const char* other = hw::host().triple.starts_with("x86") ? "aarch64" : "x86-64-v3";
  task.target = hw::as_target(*hw::find_target(other));
  auto made = rig.measurer->evaluator(task);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Device);
  task = small_task();
  task.func.scalars.push_back({Var("n", DType::I64), 1, 64});
  made = rig.measurer->evaluator(task);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Unsupported);
}

TEST(MeasureJob, MessagesComeBack) {
  MeasureJob job;
  job.task = 3;
  job.trace = "split(loop=\"a\", factor=4)\n";
  job.anchor_cost = 12.5;
  const auto parsed = parse_job(to_line(job));
  ASSERT_TRUE(parsed) << to_string(parsed.error());
  const auto* back = std::get_if<MeasureJob>(&*parsed);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->task, 3);
  EXPECT_EQ(back->trace, job.trace);
  EXPECT_EQ(back->anchor, -1);
  EXPECT_EQ(back->anchor_cost, 12.5);
  const Reading reading{OutcomeKind::WrongResult, "a \"b\"\n\xff", 1, 2, 3, 4};
  const auto reply = parse_reply(to_line(reply_of(reading)));
  ASSERT_TRUE(reply);
  const Reading again = reading_of(*reply);
  EXPECT_EQ(again.kind, OutcomeKind::WrongResult);
  EXPECT_THAT(again.reason, HasSubstr("a \"b\"\n"));
  EXPECT_EQ(again.readings, 4);
}

/// Workers need to know no target by name: a machine of a kind that this program has no name for.
TEST(Measure, TargetsTravelWithTheJob) {
  Task task = small_task();
  hw::CpuTarget board = hw::host();
  board.name = "a board of mine";
  task.target = hw::as_target(board);
  Rig rig(options(), task);
  EXPECT_EQ(rig.one("fast").kind, OutcomeKind::Ok);
}

TEST(MeasureJob, TargetsComeBack) {
  hw::CpuTarget cpu = *hw::find_target("x86-64-v4");
  cpu.machine = "1a2b3c4d", cpu.cores = 48, cpu.l3_bytes = 7LL << 30;
  const auto cpu_back = parse_target(print_target(hw::as_target(cpu)));
  ASSERT_TRUE(cpu_back) << to_string(cpu_back.error());
  ASSERT_NE(cpu_back->cpu(), nullptr);
  EXPECT_EQ(cpu_back->cpu()->features, cpu.features);
  EXPECT_EQ(cpu_back->cpu()->triple, cpu.triple);
  EXPECT_EQ(cpu_back->cpu()->l3_bytes, cpu.l3_bytes);
  EXPECT_EQ(print_target(*cpu_back), print_target(hw::as_target(cpu)));
  for (hw::GpuTarget gpu : hw::all_gpu_targets()) {
    gpu.units = 17, gpu.tf32 = true;
    const auto back = parse_target(print_target(hw::as_target(gpu)));
    ASSERT_TRUE(back) << to_string(back.error());
    ASSERT_NE(back->gpu(), nullptr);
    EXPECT_EQ(back->gpu()->language, gpu.language);
    EXPECT_EQ(back->gpu()->units, 17);
    EXPECT_EQ(back->gpu()->rates.mma_tf32, gpu.rates.mma_tf32);
    EXPECT_EQ(print_target(*back), print_target(hw::as_target(gpu)));
  }
  for (const char* text :
       {"", "{}", "[]", "x86-64-v4", R"({"name": 3})", R"({"language": "cuda"})"})
    EXPECT_FALSE(parse_target(text)) << text;
}

TEST(MeasureJob, NonsenseIsRefused) {
  for (const char* line : {"", "{}", "[1]", R"({"job": 4})", R"({"job": "sing"})",
                           R"({"job": "forget"})", R"({"job": "forget", "task": "one"})"})
    EXPECT_FALSE(parse_job(line)) << line;
  EXPECT_FALSE(parse_reply("{}"));
  EXPECT_FALSE(parse_reply("ready"));
}

/// The same kernel for the GPU that the worker of these tests has.
Task gpu_task() {
  Task task = small_task();
  task.target = hw::as_target(*hw::find_gpu_target("opencl"));
  task.device = {"fake:0", "fake"};
  return task;
}

TEST(MeasureOnDevice, TheDevicesClockCounts) {
  Rig rig(options(), gpu_task());
  const Reading slow = rig.one("slow"), fast = rig.one("fast");
  EXPECT_EQ(slow.kind, OutcomeKind::Ok) << slow.reason;
  EXPECT_DOUBLE_EQ(slow.cost, 500e3);  // although nothing takes that long
  EXPECT_DOUBLE_EQ(fast.cost, 50e3);
  EXPECT_EQ(fast.spread, 0);
  const auto ratios = rig.measurer->race(
      gpu_task(), {candidate("slow").trace, candidate("fast").trace, candidate("wrong").trace}, 5);
  ASSERT_TRUE(ratios) << to_string(ratios.error());
  EXPECT_THAT(*ratios, ::testing::ElementsAre(1, 0.1, search::kInvalid));
}

TEST(MeasureOnDeviceSlow, A2_A3_WhateverHappensIsAnOutcome) {
  Rig rig(options(kShort), gpu_task());
  EXPECT_EQ(rig.one("fast").kind, OutcomeKind::Ok);
  EXPECT_EQ(rig.one("refused").kind, OutcomeKind::CompileError);
  const Reading wrong = rig.one("wrong");
  EXPECT_EQ(wrong.kind, OutcomeKind::WrongResult);
  EXPECT_THAT(wrong.reason, HasSubstr("Y[5]"));
  EXPECT_EQ(rig.one("lazy").kind, OutcomeKind::WrongResult);
  EXPECT_EQ(rig.one("endless").kind, OutcomeKind::Timeout);
  const Reading broken = rig.one("broken");
  EXPECT_EQ(broken.kind, OutcomeKind::Crash);
  EXPECT_THAT(broken.reason, HasSubstr("the device is lost"));
  EXPECT_EQ(rig.one("fast").kind, OutcomeKind::Ok);
}

TEST(MeasureOnDevice, AMissingDeviceIsNoCandidatesFault) {
  auto measurer = start_measurer(options());
  ASSERT_TRUE(measurer);
  Task task = gpu_task();
  task.device.id = "fake:7";
  const auto made = (*measurer)->evaluator(task);
  ASSERT_TRUE(made);  // the reference runs here
  const Reading reading = (*made)->evaluate({candidate("fast")}).at(0);
  EXPECT_EQ(reading.kind, OutcomeKind::CompileError);
  EXPECT_THAT(reading.reason, HasSubstr("no such device"));
}

}  // namespace
}  // namespace tilewright::measure
