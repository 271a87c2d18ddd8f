// Workers of a fleet that measure, against a real server. Their processes are those of the tests of
// measuring: a copy's name in a schedule says what its kernel does, and which crime it commits.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include "tilewright/base/stopwatch.h"
#include "tilewright/fleet/agent.h"
#include "tilewright/fleet/measure/confined_worker.h"
#include "tilewright/fleet/measure/measure_job.h"
#include "tilewright/fleet/measure/measure_server.h"
#include "tilewright/fleet/measure/model_device.h"
#include "tilewright/fleet/schema/migrate.h"
#include "tilewright/ir/text.h"
#include "tilewright/measure/measurer.h"
#include "tilewright/measure/target_text.h"
#include "tilewright/postgres/testing/test_server.h"
#include "tilewright/records/workload.h"

namespace tilewright::fleet {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

constexpr int64_t kMemory = 256 << 20;  ///< per candidate
constexpr double kPatience = 120;       ///< of tests, for what comes sooner on an idle machine

bool within(double seconds, const std::function<bool()>& event) {
  for (const auto begin = SteadyClock::now(); seconds_since(begin) < seconds;) {
    if (event()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return event();
}

std::string fleet_of_leases(double seconds) {
  const std::string url = postgres::new_database();
  const auto connection = postgres::connect(url);
  const Status made = migrate(*connection);
  EXPECT_TRUE(made) << to_string(made.error());
  EXPECT_TRUE(connection->query(fmt::format("UPDATE fleet.meta SET lease_s = {}", seconds)));
  return url;
}

measure::Task task_of_doubling() {
  measure::Task task;
  task.func = *parse_func(R"(func f(X: f32[64], out Y: f32[64]) {
  for Y.i in 64 {
    block Y(i: space 64 = Y.i) {
      Y[i] = X[i] * 2.0 + 1.0
    }
  }
}
)");
  task.target = hw::as_target(hw::host());
  return task;
}

schedule::Trace trace_called(const std::string& name) {
  return {schedule::CacheRead{"Y", "X", name, ""}};
}

MeasureRequest request_of(const std::vector<std::string>& names, double limit_s) {
  const measure::Task task = task_of_doubling();
  MeasureRequest request;
  request.kernel = {records::workload_text(task.func), measure::print_target(task.target), 1};
  request.limit_s = limit_s;
  request.record.workload = records::workload_key(request.kernel.func);
  request.record.name = "doubling";
  request.record.kind = records::kScheduleKind;
  request.record.compiler = "test";
  request.record.unit = "ns";
  request.record.searcher = "test";
  for (const std::string& name : names)
    request.items.push_back({schedule::print(trace_called(name)), "s: a=1 b=2 c=3 d=4 e=5", 1000});
  return request;
}

Job job_of(const MeasureRequest& request, const std::string& device_class) {
  Job job;
  job.id = new_uuid();
  job.kind = "measure";
  job.pool = "default";
  job.device_class = device_class;
  job.band = 2;
  job.payload = to_json(request);
  job.items = static_cast<int>(request.items.size());
  job.key = kernel_key(request.kernel);
  return job;
}

/// Somebody who submits jobs and looks at them.
class Submitter {
 public:
  explicit Submitter(const std::string& url) : client_(*Client::open(url)) {
    EXPECT_TRUE(client_->call("new_run", {run_, "test", true}));
  }
  void submit(const Job& job) {
    const auto answer = client_->call("submit", {run_, Json::array({to_json(job)}).dump()});
    ASSERT_TRUE(answer) << to_string(answer.error());
  }
  JobState look(const std::string& job) {
    (void)client_->call("tick", {});
    const auto states = states_of(*client_->call("look", {run_, Json{{job, 0}}.dump()}));
    EXPECT_TRUE(states && states->size() == 1) << job;
    return states && states->size() == 1 ? states->front() : JobState{};
  }
  JobState wait(const std::string& job) {
    JobState state;
    EXPECT_TRUE(within(kPatience, [&] { return (state = look(job)).over(); })) << state.state;
    return state;
  }
  void cancel() { EXPECT_TRUE(client_->call("cancel", {run_})); }

 private:
  std::unique_ptr<Client> client_;
  std::string run_ = new_uuid();
};

AgentOptions options_of(const std::string& url, const std::string& name,
                        const std::string& device_class, const std::string& cache,
                        const std::function<std::unique_ptr<JobServer>()>& make) {
  AgentOptions options;
  options.url = url;
  options.host = name;
  options.program = program_version();
  options.compiler = "test";
  Offer offer;
  offer.key = offer.name = name + "/" + device_class;
  offer.device = offer.target = offer.device_class = device_class;
  options.offers = {offer};
  options.cache_folder = cache;
  options.services = {{{"measure", "race"}, [make](const Offer&) { return make(); }}};
  return options;
}

/// An agent in a thread.
class TestWorker {
 public:
  TestWorker(const std::string& url, const std::string& name, const std::string& device_class,
             const std::function<std::unique_ptr<JobServer>()>& make,
             decltype(AgentOptions::hold) hold = {})
      : options_(options_of(url, name, device_class, folder_.path(), make)) {
    options_.leave = &leave_;
    options_.hold = std::move(hold);
    thread_ = std::thread([this] {
      const Result<void> ended = run_agent(options_, counts);
      EXPECT_TRUE(ended) << to_string(ended.error());
    });
  }
  ~TestWorker() {
    leave_ = true;
    thread_.join();
  }
  AgentCounts counts;

 private:
  const TemporaryFolder folder_ = *TemporaryFolder::create();
  AgentOptions options_;
  std::atomic<bool> leave_ = false;
  std::thread thread_;
};

/// The program that measures, where every user may read it.
class MeasureServerTest : public testing::Test {
 protected:
  MeasureServerTest() {
    EXPECT_EQ(::chmod(shared_.path().c_str(), 0755), 0);
    std::filesystem::copy_file(MEASURE_WORKER, program_);
  }
  std::unique_ptr<JobServer> measuring() const {
    ServedDevice device;
    device.id = "cpu";
    device.worker = {program_};
    device.memory_bytes = kMemory;
    Confined confined;
    confined.memory_bytes = int64_t{4} << 30;
    device.start =
        confined_workers(best_sandbox().value_or(SandboxKind::None), std::move(confined));
    return measure_server(std::move(device));
  }

  const TemporaryFolder shared_ = *TemporaryFolder::create();
  const std::string program_ = shared_.file("measure_worker");
};

TEST_F(MeasureServerTest, OutcomesAreThoseOfThisMachine) {
  const std::vector<std::string> names = {"fast", "slow",   "wrong",   "segv", "abort",   "exit",
                                          "fast", "hungry", "endless", "X",    "refused", "slow"};
  constexpr double kLimit = 5;
  measure::MeasureOptions here;
  here.worker = {program_};
  here.limit_seconds = kLimit;
  here.memory_bytes = kMemory;
  const auto measurer = *measure::start_measurer(here);
  const auto evaluator = *measurer->evaluator(task_of_doubling());
  std::vector<measure::Candidate> candidates;
  for (const std::string& name : names) candidates.push_back({{}, trace_called(name)});
  // Beside the worker: both wait for the endless one.
  auto here_too = std::async(std::launch::async, [&] { return evaluator->evaluate(candidates); });

  const std::string url = fleet_of_leases(30);
  TestWorker worker(url, "a", "cpu", [this] { return measuring(); });
  Submitter submitter(url);
  MeasureRequest request = request_of(names, kLimit);
  request.items.push_back({"no schedule at all", "s: x=1", 1});
  const Job job = job_of(request, "cpu");
  submitter.submit(job);
  const JobState state = submitter.wait(job.id);
  const std::vector<measure::Reading> expected = here_too.get();
  EXPECT_EQ(state.state, "done") << state.reason;
  ASSERT_EQ(state.results.size(), names.size() + 1);
  for (size_t i = 0; i < names.size(); ++i) {
    const ItemResult& result = state.results[i];
    EXPECT_EQ(result.item, static_cast<int>(i));
    EXPECT_EQ(result.outcome, measure::to_string(expected[i].kind))
        << names[i] << ": " << result.reason << " here: " << expected[i].reason;
    if (result.outcome == "ok") {
      EXPECT_GT(result.cost, 0);
      EXPECT_LE(result.least, result.cost);
      EXPECT_GT(result.readings, 0);
    } else {
      EXPECT_EQ(result.cost, 0);
    }
  }
  EXPECT_EQ(state.results.back().outcome, "invalid");
}

/// On a busy machine one of several attempts is undisturbed; without the anchor none would fit: the
/// slow ones would cost 0.5e6, as they take here.
TEST_F(MeasureServerTest, AnAnchorFromElsewhereIsTheScale) {
  const std::string url = fleet_of_leases(30);
  TestWorker worker(url, "a", "cpu", [this] { return measuring(); });
  Submitter submitter(url);
  MeasureRequest request = request_of({"fast", "slow", "fast", "slow"}, 5);
  request.anchor = schedule::print(trace_called("slow"));
  request.anchor_cost = 8e6;  // it takes 0.5 ms here
  request.best_cost = 1e9;
  const auto fits = [](const std::vector<ItemResult>& results) {
    const auto near = [](double value, double least, double most) {
      return value > least && value < most;
    };
    return results.size() == 4 && near(results[1].cost, 6e6, 10e6) &&
           near(results[3].cost, 6e6, 10e6) && near(results[0].cost, .4e6, 2e6) &&
           near(results[2].cost, .4e6, 2e6) && results[0].fastest < .2e6 &&  // by the clock of here
           results[2].fastest < .2e6;
  };
  std::string seen;
  bool fitted = false;
  for (int attempt = 0; attempt < 5 && !fitted; ++attempt) {
    const Job job = job_of(request, "cpu");
    submitter.submit(job);
    const JobState state = submitter.wait(job.id);
    ASSERT_EQ(state.results.size(), 4u) << state.reason;
    fitted = fits(state.results);
    for (const ItemResult& result : state.results)
      seen += fmt::format("{} ({}) ", result.cost, result.fastest);
  }
  EXPECT_TRUE(fitted) << seen;
}

TEST_F(MeasureServerTest, KernelsForOtherMachinesAreRefused) {
  const std::string url = fleet_of_leases(30);
  TestWorker worker(url, "a", "cpu", [this] { return measuring(); });
  Submitter submitter(url);
  MeasureRequest request = request_of({"fast"}, 5);
  const char* other = hw::host().triple.starts_with("x86") ? "aarch64" : "x86-64-v3";
  request.kernel.target = measure::print_target(hw::as_target(*hw::find_target(other)));
  const Job foreign = job_of(request, "cpu");
  hw::CpuTarget more = hw::host();
  more.features.push_back("no-such-feature");
  request.kernel.target = measure::print_target(hw::as_target(more));
  const Job demanding = job_of(request, "cpu");
  request.kernel.target = measure::print_target(hw::as_target(*hw::find_gpu_target("opencl")));
  const Job gpu = job_of(request, "cpu");
  for (const Job& job : {foreign, demanding, gpu}) {
    submitter.submit(job);
    const JobState state = submitter.wait(job.id);
    EXPECT_EQ(state.state, "failed");
    EXPECT_THAT(state.reason,
                testing::AnyOf(HasSubstr("cannot run code for"), HasSubstr("runs no code for")));
  }
}

/// A job whose results are counted, and nobody waits for.
class CountingPort final : public JobPort {
 public:
  Status append(const std::string&, const std::string&) override { return {}; }
  Result<std::string> get(const std::string&) override { return std::string(); }
  Status put(const std::string&, std::string_view) override { return {}; }
  void add(ItemResult result) override { good += result.outcome == "ok"; }
  bool stop() override { return false; }
  bool stop_between_items() override { return false; }
  int good = 0;
};

/// A search goes round the kernels of a network. A confined process may have 64 threads.
TEST_F(MeasureServerTest, KernelsOfANetworkStayLoaded) {
  const auto server = measuring();
  CountingPort port;
  LeasedJob job{.id = "",
                .kind = "measure",
                .login = "ann",
                .payload = {},
                .limit_s = 600,
                .items = 1,
                .next = 0,
                .blobs = {}};
  constexpr int kKernels = 12;
  for (int i = 0; i < kKernels; ++i) {
    MeasureRequest request = request_of({"fast"}, 60);
    std::string& func = request.kernel.func;
    func.replace(func.find(" 1.0"), 4, fmt::format(" {}.0", i));
    request.kernel.threads = 8;
    job.payload = to_json(request);
    const Status served = server->serve(job, port);
    ASSERT_TRUE(served) << to_string(served.error());
  }
  EXPECT_EQ(port.good, kKernels);
  EXPECT_EQ(server->warm().size(), kKernels);
}

TEST_F(MeasureServerTest, RacesRunInTurn) {
  const std::string url = fleet_of_leases(30);
  TestWorker worker(url, "a", "cpu", [this] { return measuring(); });
  Submitter submitter(url);
  RaceRequest request{request_of({}, 5).kernel, {}, 5, 5};
  for (const char* name : {"fast", "slow", "refused"})
    request.schedules.push_back(schedule::print(trace_called(name)));
  Job job;
  job.id = new_uuid();
  job.kind = "race";
  job.pool = "default";
  job.device_class = "cpu";
  job.payload = to_json(request);
  submitter.submit(job);
  const JobState state = submitter.wait(job.id);
  ASSERT_EQ(state.results.size(), 1u) << state.reason;
  EXPECT_EQ(state.results[0].outcome, "ok") << state.results[0].reason;
  const std::vector<double> ratios = state.results[0].output.at("ratios");
  ASSERT_EQ(ratios.size(), 3u);
  EXPECT_EQ(ratios[0], 1);
  EXPECT_GT(ratios[1], 2);
  EXPECT_EQ(ratios[2], -1);
  job.id = new_uuid();
  request.schedules[0] = schedule::print(trace_called("segv"));
  job.payload = to_json(request);
  submitter.submit(job);
  const JobState crashed = submitter.wait(job.id);
  ASSERT_EQ(crashed.results.size(), 1u) << crashed.reason;
  EXPECT_EQ(crashed.results[0].outcome, "invalid");
  EXPECT_THAT(crashed.results[0].reason, HasSubstr("SIGSEGV"));
}

TEST_F(MeasureServerTest, ACancelledRunEndsItsCandidateAtOnce) {
  const std::string url = fleet_of_leases(60);  // nobody hears of it by a renewal
  TestWorker worker(url, "a", "cpu", [this] { return measuring(); });
  Submitter submitter(url);
  const Job job = job_of(request_of({"fast", "endless", "fast"}, 600), "cpu");
  submitter.submit(job);
  ASSERT_TRUE(within(kPatience, [&] { return !submitter.look(job.id).results.empty(); }));
  submitter.cancel();
  const auto begin = SteadyClock::now();
  EXPECT_TRUE(within(kPatience, [&] { return worker.counts.stale > 0; }));
  EXPECT_LT(seconds_since(begin), 15);  // a second where nothing else runs; renewals come after 20
  EXPECT_EQ(submitter.wait(job.id).state, "cancelled");
}

/// A worker in a process of its own, which may be killed.
pid_t model_worker(const std::string& url, const std::string& name, double seconds) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  const auto folder = *TemporaryFolder::create();
  AgentCounts counts;
  ModelDevice device;
  device.seconds = seconds;
  (void)run_agent(
      options_of(url, name, "model", folder.path(), [&] { return model_server(device, name); }),
      counts);
  ::_exit(0);
}

TEST(MeasureServerLoss, WhatALostWorkerHasPostedStays) {
  const std::string url = fleet_of_leases(1);
  const pid_t lost = model_worker(url, "lost", .2);
  Submitter submitter(url);
  const std::vector<std::string> names(16, "fast");
  const Job job = job_of(request_of(names, 5), "model");
  submitter.submit(job);
  JobState before;
  EXPECT_TRUE(
      within(kPatience, [&] { return (before = submitter.look(job.id)).results.size() >= 4; }));
  ::kill(lost, SIGKILL);
  ::waitpid(lost, nullptr, 0);
  before = submitter.look(job.id);
  ASSERT_LT(before.results.size(), names.size());
  ModelDevice quick;
  quick.seconds = .01;
  quick.other = 1;  // so that its costs tell who measured
  TestWorker second(url, "second", "model", [&] { return model_server(quick, "second"); });
  const JobState after = submitter.wait(job.id);
  EXPECT_EQ(after.state, "done") << after.reason;
  ASSERT_EQ(after.results.size(), names.size());
  for (size_t i = 0; i < before.results.size(); ++i)
    EXPECT_EQ(after.results[i].cost, before.results[i].cost);
  const std::string point = "s: a=1 b=2 c=3 d=4 e=5";
  const double first = model_cost({}, 1000, point), others = model_cost(quick, 1000, point);
  ASSERT_GT(std::abs(first - others), 100);
  EXPECT_NEAR(after.results.front().cost, first, 50);
  EXPECT_NEAR(after.results.back().cost, others, 50);
}

TEST(MeasureServerLoss, NothingIsClaimedWhileTheDeviceIsInUse) {
  const std::string url = fleet_of_leases(60);
  Submitter submitter(url);
  ModelDevice device;
  device.seconds = 0;
  std::atomic<bool> in_use = true;
  std::atomic<int> asked = 0;
  TestWorker worker(
      url, "a", "model", [&] { return model_server(device, "a"); },
      [&](const Offer&) -> std::shared_ptr<void> {
        ++asked;
        return in_use ? nullptr : std::make_shared<int>();
      });
  const Job job = job_of(request_of({"fast"}, 5), "model");
  submitter.submit(job);
  const int before = asked;
  EXPECT_TRUE(within(kPatience, [&] { return asked >= before + 3; }));
  EXPECT_EQ(submitter.look(job.id).state, "ready");
  in_use = false;
  EXPECT_EQ(submitter.wait(job.id).state, "done");
}

TEST(MeasureServerLoss, AWorkerThatLeavesPostsWhatItHas) {
  const std::string url = fleet_of_leases(60);
  Submitter submitter(url);
  const Job job = job_of(request_of(std::vector<std::string>(16, "fast"), 5), "model");
  submitter.submit(job);
  ModelDevice device;
  device.seconds = .1;
  {
    TestWorker first(url, "first", "model", [&] { return model_server(device, "first"); });
    ASSERT_TRUE(within(kPatience, [&] { return !submitter.look(job.id).results.empty(); }));
  }
  const JobState left = submitter.look(job.id);
  EXPECT_EQ(left.state, "ready");  // at once: it was given back
  TestWorker second(url, "second", "model", [&] { return model_server(device, "second"); });
  const JobState done = submitter.wait(job.id);
  EXPECT_EQ(done.state, "done") << done.reason;
  EXPECT_EQ(done.results.size(), 16u);
}

}  // namespace
}  // namespace tilewright::fleet
