#include "tilewright/fleet/package_job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>

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

}  // namespace
}  // namespace tilewright::fleet
