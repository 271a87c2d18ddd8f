// An agent and a submitter against a real server; children are functions of the test.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tilewright/base/file.h"
#include "tilewright/base/npy.h"
#include "tilewright/fleet/agent.h"
#include "tilewright/fleet/package_job.h"
#include "tilewright/fleet/remote_run.h"
#include "tilewright/fleet/schema/migrate.h"
#include "tilewright/postgres/testing/test_server.h"

namespace tilewright::fleet {
namespace {

using testing::HasSubstr;

std::string new_fleet() {
  const std::string url = postgres::new_database();
  const Status made = migrate(*postgres::connect(url));
  EXPECT_TRUE(made) << to_string(made.error());
  return url;
}

/// Bytes like those of a package: a tar of one member.
std::string package_of(const std::string& text) {
  std::string file(512, '\0');
  file.replace(0, 7, "weights");
  file.replace(124, 11, fmt::format("{:011o}", text.size()));
  file += text;
  file.resize((file.size() + 511) / 512 * 512 + 1024);
  return file;
}

Array ramp(int64_t n) {
  Array array(DType::F32, {n});
  for (int64_t i = 0; i < n; ++i) array.set(i, static_cast<double>(i));
  return array;
}

/// A child that answers with its first input.
Result<ToolResult> echo(const std::string& folder) {
  TW_TRY_STATUS(write_file(folder + "/outputs/0.npy", TW_TRY(read_file(folder + "/inputs/0.npy"))));
  TW_TRY_STATUS(
      write_file(folder + "/result.json",
                 R"({"ok": true, "open_ms": 1.5, "run_ns": [7, 8], "outputs": [{"name": "y"}]})"));
  return ToolResult{};
}

/// An agent in a thread, with one device for which `child` runs.
class TestAgent {
 public:
  using Child = std::function<Result<ToolResult>(const std::string& folder,
                                                 const std::function<bool()>& stop)>;
  TestAgent(const std::string& url, const std::string& name, Child child,
            std::function<std::string()> unfit = {}) {
    options_.url = url;
    options_.unfit = std::move(unfit);
    options_.host = name;
    options_.program = program_version();
    options_.compiler = "test";
    options_.sandbox = "none";
    Offer offer;
    offer.key = offer.name = name + "/cpu";
    offer.device = offer.target = "cpu";
    offer.device_class = "cpu:test";
    offer.rates = R"({"f32": 7})";
    options_.offers = {offer};
    options_.cache_folder = folder_.path();
    options_.services = {{{"run"}, [child](const Offer&) {
                            return package_server([child](const std::string& folder, double,
                                                          const std::function<bool()>& stop) {
                              return child(folder, stop);
                            });
                          }}};
    options_.leave = &leave_;
    thread_ = std::thread([this] {
      const Result<void> ended = run_agent(options_, counts);
      EXPECT_TRUE(ended) << to_string(ended.error());
    });
  }
  ~TestAgent() { end(); }
  void end() {
    leave_ = true;
    wait();
  }
  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  AgentCounts counts;

 private:
  const TemporaryFolder folder_ = *TemporaryFolder::create();
  AgentOptions options_;
  std::atomic<bool> leave_ = false;
  std::thread thread_;
};

/// The devices of class cpu:test, once one of them is free.
Selected devices_of_class(Client& client) {
  for (int i = 0; i < 500; ++i) {
    const auto devices = list_devices(client);
    EXPECT_TRUE(devices) << to_string(devices.error());
    if (auto selected = select_devices(*parse_spec("cpu:test"), *devices)) return *selected;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ADD_FAILURE() << "no device came";
  return {};
}

RemoteRequest request_of(const std::string& package) {
  RemoteRequest request;
  request.command = "test";
  request.package = package;
  request.inputs = {ramp(300'000)};  // more than one part of a blob
  request.wait_s = 30;
  return request;
}

Result<RemoteResult> run(
    Client& client, const RemoteRequest& request, const Stop& stop = [] { return false; }) {
  return run_remotely(client, devices_of_class(client), request, {}, stop);
}

TEST(FleetAgent, RunsAPackageAndSendsItsOutputsBack) {
  const std::string url = new_fleet(), package = package_of(std::string(1 << 20, 'w'));
  TestAgent agent(url, "a", [&](const std::string& folder, const std::function<bool()>&) {
    EXPECT_EQ(*read_file(folder + "/model.twm"), package);
    return echo(folder);
  });
  const auto client = *Client::open(url);
  const RemoteRequest request = request_of(package);
  const auto first = run(*client, request);
  ASSERT_TRUE(first) << to_string(first.error());
  EXPECT_EQ(first->device, "a/cpu");
  EXPECT_THAT(first->run_ns, testing::ElementsAre(7, 8));
  ASSERT_EQ(first->outputs.size(), 1u);
  EXPECT_EQ(*npy_bytes(first->outputs[0].value), *npy_bytes(request.inputs[0]));
  EXPECT_GT(first->uploaded_bytes, 2 << 20);
  const auto second = run(*client, request);
  ASSERT_TRUE(second) << to_string(second.error());
  EXPECT_EQ(second->uploaded_bytes, 0);  // it is there
  agent.end();
  EXPECT_EQ(agent.counts.done, 2);
}

TEST(FleetAgent, OffersWhatItsMachineMeasured) {
  const std::string url = new_fleet();
  TestAgent agent(url, "a", [&](const std::string& folder, const std::function<bool()>&) {
    return echo(folder);
  });
  const auto client = *Client::open(url);
  (void)devices_of_class(*client);
  const auto known = [&] { return client->call("class_rates", {"cpu:test"}); };
  for (int i = 0; i < 500 && !known()->is_object(); ++i)  // after the device is there
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(known()->value("f32", 0), 7);
  EXPECT_TRUE(client->call("class_rates", {"cpu:other"})->is_null());
  for (const char* rates : {"[]", "3"})
    EXPECT_FALSE(client->call("offer_rates", {new_uuid(), "x", int64_t{1}, rates}));
}

TEST(FleetAgent, WhatGoesWrongThereIsSaidHere) {
  const std::string url = new_fleet(), package = package_of("w");
  std::atomic<int> status = 128 + 11;
  TestAgent agent(url, "a", [&](const std::string&, const std::function<bool()>&) {
    ToolResult result;
    result.status = status;
    return Result<ToolResult>(result);
  });
  const auto client = *Client::open(url);
  const auto crashed = run(*client, request_of(package));
  ASSERT_FALSE(crashed);
  EXPECT_EQ(crashed.error().kind, ErrorKind::Device);
  EXPECT_THAT(crashed.error().what, HasSubstr("a/cpu did not run it: crash"));
  EXPECT_THAT(crashed.error().why, HasSubstr("11"));
}

TEST(FleetAgent, H6_AJobMayLastLongerThanItsLease) {
  const std::string url = new_fleet(), package = package_of("w");
  ASSERT_TRUE(postgres::connect(url)->query("UPDATE fleet.meta SET lease_s = 4"));
  // A lease that is not renewed in time stops the child, and what it has counts nowhere.
  TestAgent agent(url, "a", [&](const std::string& folder, const std::function<bool()>& stop) {
    for (int i = 0; i < 500 && !stop(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return stop() ? Result<ToolResult>(ToolResult{}) : echo(folder);
  });
  const auto client = *Client::open(url);
  const auto result = run(*client, request_of(package));
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_THAT(result->run_ns, testing::ElementsAre(7, 8));
}

TEST(FleetAgent, RenewsOnAConnectionThatIsThere) {
  const std::string url = new_fleet(), package = package_of("w");
  const auto database = postgres::connect(url);
  ASSERT_TRUE(database->query("UPDATE fleet.meta SET lease_s = 4"));
  // On a busy machine a new connection with its plans may take longer than there is time.
  const auto value = [&](const std::string& sql) { return database->query(sql)->at(0).at(0); };
  std::optional<std::string> renewed, made_meanwhile;
  TestAgent agent(url, "a", [&](const std::string& folder, const std::function<bool()>& stop) {
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      renewed = value("SELECT renewed > since FROM fleet.devices");
    } while (renewed != "t" && !stop());
    made_meanwhile = value(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND backend_type = 'client backend' "
        "AND backend_start > (SELECT since FROM fleet.devices)");
    return echo(folder);
  });
  const auto client = *Client::open(url);
  const auto result = run(*client, request_of(package));
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(renewed, "t");
  EXPECT_EQ(made_meanwhile, "0");
}

TEST(FleetAgent, AnInterruptedSubmitterEndsTheChild) {
  const std::string url = new_fleet(), package = package_of("w");
  ASSERT_TRUE(postgres::connect(url)->query("UPDATE fleet.meta SET lease_s = 1"));
  std::atomic<bool> begun = false, ended = false;
  TestAgent agent(url, "a", [&](const std::string& folder, const std::function<bool()>& stop) {
    begun = true;
    for (int i = 0; i < 1000 && !stop(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ended = stop();
    return echo(folder);
  });
  const auto client = *Client::open(url);
  const auto stopped = run(*client, request_of(package), [&] { return begun.load(); });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, ErrorKind::Interrupted);
  for (int i = 0; i < 500 && !ended; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(ended);
}

TEST(FleetAgent, AnAgentThatLeavesGivesItsJobBack) {
  const std::string url = new_fleet(), package = package_of("w");
  std::atomic<bool> begun = false;
  auto first = std::make_unique<TestAgent>(
      url, "a", [&](const std::string& folder, const std::function<bool()>& stop) {
        begun = true;
        while (!stop()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return echo(folder);
      });
  const auto client = *Client::open(url);
  const Selected selected = devices_of_class(*client);
  Result<RemoteResult> result = fail(ErrorKind::Io, "not run");
  std::thread submitter([&] {
    const auto own = *Client::open(url);
    result = run_remotely(*own, selected, request_of(package), {}, [] { return false; });
  });
  while (!begun) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  first->end();
  EXPECT_EQ(first->counts.done, 0);
  TestAgent second(url, "b", [&](const std::string& folder, const std::function<bool()>&) {
    return echo(folder);
  });
  submitter.join();
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->device, "b/cpu");
}

TEST(FleetAgent, LeavesOnceItCanDoNoMoreJobs) {
  const std::string url = new_fleet(), package = package_of("w");
  std::atomic<bool> broken = false;
  TestAgent agent(
      url, "a",
      [&](const std::string& folder, const std::function<bool()>&) { return echo(folder); },
      [&] { return broken ? "it is broken" : ""; });
  const auto client = *Client::open(url);
  ASSERT_TRUE(run(*client, request_of(package)));
  broken = true;
  agent.wait();
  RemoteRequest request = request_of(package);
  request.wait_s = .3;
  const auto result = run(*client, request);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().why, HasSubstr("are off"));
}

TEST(FleetAgent, WithoutAWorkerTheWaitEnds) {
  const std::string url = new_fleet(), package = package_of("w");
  {
    TestAgent agent(url, "a", [](const std::string& folder, const std::function<bool()>&) {
      return echo(folder);
    });
    const auto client = *Client::open(url);
    devices_of_class(*client);
  }
  const auto client = *Client::open(url);
  RemoteRequest request = request_of(package);
  request.wait_s = .3;
  const auto result = run(*client, request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Limit);
  EXPECT_THAT(result.error().why, HasSubstr("are off"));
}

}  // namespace
}  // namespace tilewright::fleet
