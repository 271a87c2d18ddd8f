#include "tilewright/fleet/package_job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "tilewright/base/file.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

/// A job of two pieces and one input, and what a child makes of it.
struct Fixture {
  std::map<std::string, std::string> blobs, put;
  LeasedJob job;
  /// Leaves something in the folder; its exit status.
  std::function<int(const std::string& folder)> child;

  Fixture() {
    PackageRun run;
    run.device = "cpu";
    run.runs = 2;
    for (const char* piece : {"first ", "second"}) run.pieces.push_back(keep(piece));
    run.inputs.push_back(keep("input"));
    job.kind = "run";
    job.payload = to_json(run);
    job.limit_s = 60;
  }
  std::string keep(const std::string& bytes) {
    blobs[sha256(bytes)] = bytes;
    return sha256(bytes);
  }
  Result<ItemResult> run() {
    JobTools tools;
    tools.append = [this](const std::string& sha, const std::string& path) -> Status {
      if (blobs.count(sha) == 0) return fail(ErrorKind::Package, "no such blob");
      std::ofstream(path, std::ios::app) << blobs[sha];
      return {};
    };
    tools.put = [this](const std::string& sha, std::string_view bytes) -> Status {
      put[sha] = bytes;
      return {};
    };
    tools.child = [this](const std::string& folder, double) -> Result<ToolResult> {
      ToolResult result;
      result.status = child(folder);
      return result;
    };
    return run_package_job(job, tools);
  }
};

int leave(const std::string& folder, const std::string& name, const std::string& bytes) {
  EXPECT_TRUE(write_file(folder + "/" + name, bytes));
  return 0;
}

TEST(PackageJob, LaysOutTheFolderAndSendsTheOutputs) {
  Fixture f;
  f.child = [](const std::string& folder) {
    EXPECT_EQ(*read_file(folder + "/model.twm"), "first second");
    EXPECT_EQ(*read_file(folder + "/inputs/0.npy"), "input");
    const Json job = Json::parse(*read_file(folder + "/job.json"));
    EXPECT_EQ(job["runs"], 2);
    EXPECT_EQ(job["device"], "cpu");
    leave(folder, "outputs/0.npy", "output");
    return leave(folder, "result.json",
                 R"({"ok": true, "run_ns": [5, 6], "outputs": [{"name": "y"}]})");
  };
  const auto result = f.run();
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->outcome, "ok") << result->reason;
  EXPECT_EQ(result->output["outputs"], Json::array({sha256("output")}));
  EXPECT_EQ(f.put.at(sha256("output")), "output");
}

TEST(PackageJob, WhatAChildDoesIsAnOutcome) {
  struct Case {
    std::function<int(const std::string&)> child;
    const char *outcome, *reason;
  };
  const std::vector<Case> cases = {
      {[](const std::string&) { return 3; }, "crash", "3"},
      {[](const std::string&) { return 128 + 11; }, "crash", "11"},
      {[](const std::string&) { return 0; }, "invalid", "no result.json"},
      {[](const std::string& f) { return leave(f, "result.json", "{"); }, "invalid", "is none"},
      {[](const std::string& f) { return leave(f, "result.json", "[1]"); }, "invalid", "is none"},
      {[](const std::string& f) {
         return leave(f, "result.json", R"({"ok": false, "error": "wrong shape"})");
       },
       "invalid", "wrong shape"},
      {[](const std::string& f) { return leave(f, "result.json", R"({"ok": true})"); }, "invalid",
       "lists no outputs"},
      {[](const std::string& f) {
         return leave(f, "result.json", R"({"ok": true, "outputs": [{"name": "y"}]})");
       },
       "invalid", ""},  // listed, and not there
      {[](const std::string& f) {
         EXPECT_EQ(::symlink("/etc/passwd", (f + "/outputs/0.npy").c_str()), 0);
         return leave(f, "result.json", R"({"ok": true, "outputs": [{"name": "y"}]})");
       },
       "invalid", ""},
      {[](const std::string& f) {
         return leave(f, "result.json", std::string(300 << 10, ' ') + R"({"ok": true})");
       },
       "invalid", ""}};
  for (const Case& one : cases) {
    Fixture f;
    f.child = one.child;
    const auto result = f.run();
    ASSERT_TRUE(result) << to_string(result.error());
    EXPECT_EQ(result->outcome, one.outcome) << result->reason;
    EXPECT_THAT(result->reason, HasSubstr(one.reason));
    EXPECT_TRUE(f.put.empty());
  }
}

TEST(PackageJob, JobsThatNobodyCanRunAreErrors) {
  Fixture f;
  f.child = [](const std::string&) {
    ADD_FAILURE() << "it must not be started";
    return 0;
  };
  f.blobs.erase(sha256("second"));
  EXPECT_EQ(f.run().error().kind, ErrorKind::Package);
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, Json>>{{"runs", -1},
                                                 {"runs", 20'000},
                                                 {"seconds", 1e9},
                                                 {"seconds", "x"},
                                                 {"pieces", Json::array()},
                                                 {"pieces", 3},
                                                 {"threads", -4}}) {
    Fixture broken;
    broken.child = f.child;
    broken.job.payload[name] = value;
    const auto result = broken.run();
    ASSERT_FALSE(result) << name << value;
    EXPECT_EQ(result.error().kind, ErrorKind::Package);
  }
}

/// What a worker lends to a server of packages, and a server whose children are shells.
struct Served {
  struct Port final : JobPort {
    std::map<std::string, std::string> blobs;
    std::vector<std::string> put_bytes;
    std::optional<ItemResult> result;

    Result<std::string> get(const std::string& sha) override {
      if (blobs.count(sha) == 0) return fail(ErrorKind::Package, "no such blob");
      return blobs.at(sha);
    }
    Status append(const std::string& sha, const std::string& path) override {
      std::ofstream(path, std::ios::app) << TW_TRY(get(sha));
      return {};
    }
    Status put(const std::string&, std::string_view bytes) override {
      put_bytes.emplace_back(bytes);
      return {};
    }
    void add(ItemResult added) override { result = std::move(added); }
    bool stop() override { return false; }
    bool stop_between_items() override { return false; }
  };

  Port port;
  int starts = 0;
  /// Answers requests of one input of 5 bytes with its process, until the package says `die`.
  std::unique_ptr<JobServer> server = package_server(
      [](const std::string&, double, const std::function<bool()>&) -> Result<ToolResult> {
        ADD_FAILURE() << "children stay";
        return ToolResult();
      },
      {}, {[this](int descriptor, int, const ConfinedProcess::Prepare& prepare) {
        ++starts;
        Confined confined;
        confined.argv = {
            "sh", "-c",
            "while read line <&3; do input=$(head -c 5 <&3); test \"$input\" = break "
            "&& kill -SEGV $$; text=$(cat model.twm):$$; printf "
            "'{\"ok\":true,\"run_ns\":[1],\"outputs\":[{\"name\":\"y\",\"bytes\":%d}]}\\n%s' "
            "${#text} $text >&3; test $(cat model.twm) = die && exit; done"};
        confined.limit_seconds = 1e9;
        confined.descriptors = {descriptor};
        return ConfinedProcess::start(SandboxKind::None, std::move(confined), prepare);
      }});

  /// The output of a run of `package` by `login`.
  std::string run(const std::string& login, const std::string& package,
                  const std::string& input = "input") {
    PackageRun run;
    run.pieces = {sha256(package)};
    run.inputs = {sha256(input)};
    port.blobs[sha256(package)] = package;
    port.blobs[sha256(input)] = input;
    LeasedJob job;
    job.login = login;
    job.kind = "run";
    job.payload = to_json(run);
    job.limit_s = 20;
    port.put_bytes.clear();
    port.result.reset();
    const Status status = server->serve(job, port);
    EXPECT_TRUE(status) << to_string(status.error());
    if (!port.result || port.result->outcome != "ok")
      return port.result ? port.result->outcome : "none";
    if (port.put_bytes.empty()) return "";
    EXPECT_EQ(port.result->output["outputs"], Json::array({sha256(port.put_bytes.at(0))}));
    return port.put_bytes.at(0);
  }
};

TEST(PackageServerSlow, APackageStaysOpenForItsLogin) {
  Served served;
  const std::string first = served.run("ann", "one");
  EXPECT_THAT(first, testing::StartsWith("one:"));
  EXPECT_EQ(served.run("ann", "one"), first);
  EXPECT_EQ(served.starts, 1);
  EXPECT_NE(served.run("bob", "one"), first) << "a process is for one login";
  EXPECT_THAT(served.run("bob", "two"), testing::StartsWith("two:"));
  EXPECT_EQ(served.starts, 3);
  served.server->idle(3600);
  served.run("bob", "two");
  EXPECT_EQ(served.starts, 4) << "it does not stay for ever";
}

TEST(PackageServerSlow, AChildThatDiedBetweenRunsIsStartedAgain) {
  Served served;
  EXPECT_THAT(served.run("ann", "die"), testing::StartsWith("die:"));
  EXPECT_THAT(served.run("ann", "die"), testing::StartsWith("die:"));
  EXPECT_EQ(served.starts, 2);
}

TEST(PackageServerSlow, ARunThatCrashesIsAnOutcome) {
  Served served;
  served.run("ann", "one");
  EXPECT_EQ(served.run("ann", "one", "break"), "crash");
  EXPECT_EQ(served.starts, 2) << "a fresh child says whose fault it was";
  EXPECT_THAT(served.run("ann", "one"), testing::StartsWith("one:"));
}

TEST(PackageServerSlow, AnAnswerThatTheStoreWouldRefuseIsAnOutcome) {
  Served served;
  const auto answers = [](size_t times) {
    const Json reply = {{"ok", true},
                        {"outputs", Json::array()},
                        {"run_ns", std::vector<int64_t>(times, 9'999'999'999)}};
    return [text = reply.dump()](const std::string& folder, double,
                                 const std::function<bool()>&) -> Result<ToolResult> {
      TW_TRY_STATUS(write_file(folder + "/result.json", text));
      return ToolResult();
    };
  };
  served.server = package_server(answers(20'000));
  EXPECT_EQ(served.run("ann", "one"), "invalid");
  EXPECT_THAT(served.port.result->reason, testing::HasSubstr("at most 65536 are kept"));
  // As many as `tilewright-runner` tells (runner/main/job.h).
  served.server = package_server(answers(4'000));
  EXPECT_EQ(served.run("ann", "one"), "");
}

TEST(PackageServerSlow, WhatDriversKeepIsThereForTheNextRunOfItsLogin) {
  Served served;
  std::vector<std::string> seen;
  served.server = package_server(
      [&](const std::string& folder, double, const std::function<bool()>&) -> Result<ToolResult> {
        const std::string cache = folder + "/.cache";
        seen.push_back(read_file(cache + "/kernels").value_or("none"));
        const std::string what = *read_file(folder + "/model.twm");
        std::filesystem::create_directory(cache);
        TW_TRY_STATUS(write_file(cache + "/kernels", what));
        if (what == "twin") std::filesystem::create_hard_link(cache + "/kernels", cache + "/twin");
        if (what == "link") {
          std::filesystem::remove_all(cache);
          std::filesystem::create_symlink("/etc", cache);
        }
        for (int i = 0; what == "large" && i < 6000; ++i)
          std::ofstream(cache + "/" + std::to_string(i));
        ToolResult result;
        result.status = what == "crash" ? 1 : 0;
        TW_TRY_STATUS(write_file(folder + "/result.json", R"({"ok": true, "outputs": []})"));
        return result;
      });
  for (const auto& [login, package] :
       std::vector<std::pair<const char*, const char*>>{{"ann", "one"},
                                                        {"bob", "two"},
                                                        {"ann", "three"},
                                                        {"ann", "crash"},
                                                        {"ann", "twin"},
                                                        {"ann", "link"},
                                                        {"ann", "large"},
                                                        {"ann", "four"},
                                                        {"bob", "five"}})
    served.run(login, package);
  EXPECT_EQ(seen, (std::vector<std::string>{"none", "none", "one", "three", "none", "none", "none",
                                            "none", "two"}));
}

TEST(PackageServerSlow, DamagedBlobsAreTheJobsEnd) {
  Served served;
  served.port.blobs.clear();
  LeasedJob job;
  PackageRun run;
  run.pieces = {sha256("gone")};
  job.payload = to_json(run);
  job.limit_s = 20;
  const Status status = served.server->serve(job, served.port);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Package);
}

}  // namespace
}  // namespace tilewright::fleet
