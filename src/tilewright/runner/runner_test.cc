// The program tilewright-runner on folders that are right, wrong and damaged.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/base/file.h"
#include "tilewright/base/npy.h"
#include "tilewright/base/process.h"
#include "tilewright/runner/main/job.h"
#include "tilewright/runtime/package.h"

namespace tilewright::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Place = ValueSpec::Place;

/// A package: y = x * w + 2 for eight floats; where = NonZero(mask) with mask [2, 3].
void write_sample(const std::string& path, DType kind_of_y = DType::F32,
                  const char* kernel = "scale_and_shift") {
  Program program;
  program.name = "sample";
  program.target.name = "cpu";
  program.values = {{Place::Input, "x", DType::F32, {8}, 0, -1},
                    {Place::Weights, "w", DType::F32, {8}, 0, -1},
                    {Place::Output, "y", kind_of_y, {8}, 0, -1},
                    {Place::Input, "mask", DType::Bool, {2, 3}, 0, -1},
                    {Place::Output, "where", DType::I64, {2, 6}, 0, 1}};
  program.inputs = {0, 3};
  program.outputs = {2, 4};
  program.kernels[kernel] = {kernel, 0, 0};
  program.steps = {{"scale", kernel, "", "", {0, 1, 2}, 1}, {"find", "", "NonZero", "", {3, 4}, 1}};
  program.weights_bytes = 32;
  const float weights[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::string code = *read_file(KERNELS_2);
  const Status status = write_package(
      path, {program, "graph", code, {{0, {reinterpret_cast<const char*>(weights), 32}}}, ""});
  ASSERT_TRUE(status) << to_string(status.error());
}

class Runner : public ::testing::Test {
 protected:
  void SetUp() override {
    write_sample(file("model.twm"));
    std::filesystem::create_directory(file("inputs"));
    Array x(DType::F32, {8}), mask(DType::Bool, {2, 3});
    for (int i = 0; i < 8; ++i) x.set(i, i + 1);
    for (const int i : {1, 3, 5}) mask.set(i, 1);
    ASSERT_TRUE(write_npy(file("inputs/0.npy"), x));
    ASSERT_TRUE(write_npy(file("inputs/1.npy"), mask));
    write("job.json", R"({"device": "cpu", "threads": 2, "warmup": 1, "runs": 3})");
  }

  std::string file(const std::string& name) const { return folder_.file(name); }
  void write(const std::string& name, std::string_view bytes) {
    ASSERT_TRUE(write_file(file(name), bytes));
  }
  /// Runs the program. Whatever it finds, it leaves an answer that fits its exit status.
  Json run() {
    const auto ended = run_tool({TILEWRIGHT_RUNNER, folder_.path()}, {.limit_seconds = 60});
    EXPECT_TRUE(ended);
    status_ = ended->status;
    output_ = ended->output;
    const auto text = read_file(file("result.json"));
    EXPECT_TRUE(text) << "status " << status_ << ", " << output_;
    const Json result = Json::parse(text.value_or(""), nullptr, false);
    EXPECT_EQ(result.value("ok", false), status_ == 0) << output_;
    return result;
  }
  /// The kind and text of a failure.
  std::string refused() {
    const Json result = run();
    EXPECT_NE(status_, 0);
    if (status_ == 0) return "";
    const std::string error = result.at("error");
    EXPECT_EQ(output_, "error: " + error + "\n");
    return result.at("kind").get<std::string>() + ": " + error;
  }

  const TemporaryFolder folder_ = *TemporaryFolder::create();
  int status_ = -1;
  std::string output_;
};

TEST_F(Runner, LeavesOutputsAndTimes) {
  const Json result = run();
  ASSERT_EQ(status_, 0) << output_;
  EXPECT_EQ(output_, "");
  EXPECT_GT(result.at("open_ms"), 0);
  EXPECT_GT(result.at("first_ns"), 0);
  ASSERT_EQ(result.at("run_ns").size(), 3u);
  for (const Json& ns : result["run_ns"]) EXPECT_GT(ns, 0);
  EXPECT_EQ(result.at("outputs"), Json::parse(R"([{"name": "y", "dtype": "f32", "shape": [8]},
                            {"name": "where", "dtype": "i64", "shape": [2, 3]}])"));
  EXPECT_FALSE(result.contains("steps"));
  EXPECT_THAT(read_npy(file("outputs/0.npy"))->to_doubles(),
              ElementsAre(2, 4, 8, 14, 22, 32, 44, 58));
  const Array where = *read_npy(file("outputs/1.npy"));
  EXPECT_THAT(where.shape(), ElementsAre(2, 3));
  EXPECT_THAT(where.to_doubles(), ElementsAre(0, 1, 1, 1, 0, 2));
}

TEST_F(Runner, ProfilesSteps) {
  write("job.json", R"({"warmup": 2, "runs": 3, "profile": true})");
  const Json steps = run().at("steps");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].at("callee"), "NonZero");
  EXPECT_EQ(steps[1].at("calls"), 5);
  EXPECT_GE(steps[1].at("total_ns"), steps[1].at("min_ns"));
}

TEST_F(Runner, GoesOnForTheSecondsThatWereAskedFor) {
  write("job.json", R"({"runs": 2, "seconds": 0.05})");
  const Json result = run();
  int64_t sum = 0;
  for (const Json& ns : result.at("run_ns")) sum += ns.get<int64_t>();
  EXPECT_GT(result["run_ns"].size(), 2u);
  EXPECT_TRUE(sum > 10'000'000 || result["run_ns"].size() == runner::kMostRuns) << sum;
  write("job.json", R"({"runs": 0})");
  EXPECT_EQ(run().at("run_ns").size(), 1u) << "there must be outputs";
}

TEST_F(Runner, AnEarlierResultIsNeverTakenForThisOne) {
  write("result.json", R"({"ok": true})");
  std::filesystem::remove(file("job.json"));
  EXPECT_THAT(refused(), HasSubstr("io: cannot open"));
  EXPECT_EQ(status_, 20);
  write("result.json", R"({"ok": true})");
  write("job.json", R"({"warmup": 1000000})");
  EXPECT_TRUE(run_tool({TILEWRIGHT_RUNNER, folder_.path()}, {.limit_seconds = 0.2})->timed_out);
  EXPECT_FALSE(std::filesystem::exists(file("result.json")));
  std::filesystem::create_directory(file("result.json"));
  const auto ended = run_tool({TILEWRIGHT_RUNNER, folder_.path()});
  EXPECT_EQ(ended->status, 20);
  EXPECT_THAT(ended->output, HasSubstr("cannot write"));
}

TEST_F(Runner, JobsAreCheckedFieldByField) {
  const auto job = [&](const char* text) {
    write("job.json", text);
    return refused();
  };
  EXPECT_THAT(job(""), HasSubstr("no JSON object"));
  EXPECT_THAT(job("[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(job(R"({"runs": 1)"), HasSubstr("no JSON object"));
  EXPECT_THAT(job(R"({"run": 1})"), HasSubstr("'run' is none of"));
  EXPECT_THAT(job(R"({"runs": -1})"), HasSubstr("'runs' is a whole number from 0 to 4000"));
  EXPECT_THAT(job(R"({"runs": 10001})"), HasSubstr("'runs'"));
  EXPECT_THAT(job(R"({"runs": 4294967297})"), HasSubstr("'runs'"));
  EXPECT_THAT(job(R"({"warmup": 1.5})"), HasSubstr("'warmup'"));
  EXPECT_THAT(job(R"({"threads": 18446744073709551615})"), HasSubstr("'threads'"));
  EXPECT_THAT(job(R"({"seconds": -0.1})"), HasSubstr("'seconds'"));
  EXPECT_THAT(job(R"({"seconds": 1e300})"), HasSubstr("'seconds'"));
  EXPECT_THAT(job(R"({"profile": 1})"), HasSubstr("'profile'"));
  EXPECT_THAT(job(R"({"device": null})"), HasSubstr("'device'"));
  EXPECT_THAT(job(R"({"device": "opencl:0"})"), HasSubstr("its code is for the CPU"));
  EXPECT_THAT(job(std::string(100'000, '[').c_str()), HasSubstr("no JSON object"));
}

TEST_F(Runner, InputsAreCheckedOneByOne) {
  const std::string x = *read_file(file("inputs/0.npy"));
  std::filesystem::remove(file("inputs/1.npy"));
  EXPECT_THAT(refused(), HasSubstr("invalid: input 1 ('mask') is missing"));
  EXPECT_EQ(status_, 2);
  ASSERT_TRUE(write_npy(file("inputs/1.npy"), Array(DType::Bool, {3, 2})));
  EXPECT_THAT(refused(), HasSubstr("[2, 3] is expected, [3, 2] was given"));
  ASSERT_TRUE(write_npy(file("inputs/1.npy"), Array(DType::F32, {2, 3})));
  EXPECT_THAT(refused(), HasSubstr("'mask' cannot be used"));
  ASSERT_TRUE(write_npy(file("inputs/1.npy"), Array(DType::U8, {2, 3})));
  EXPECT_TRUE(run().at("ok")) << "bytes may stand for bools";
  for (const char* name : {"2.npy", "00.npy", "-1.npy", "x"}) {
    write(std::string("inputs/") + name, x);
    EXPECT_THAT(refused(), HasSubstr(std::string("'inputs/") + name + "' is for no input"));
    std::filesystem::remove(file("inputs/") + name);
  }
  std::filesystem::remove(file("inputs/0.npy"));
  ASSERT_EQ(::mkfifo(file("inputs/0.npy").c_str(), 0600), 0);
  EXPECT_THAT(refused(), HasSubstr("'inputs/0.npy' is no regular file"));
  std::filesystem::remove_all(file("inputs"));
  EXPECT_THAT(refused(), HasSubstr("input 0 ('x') is missing"));
}

TEST_F(Runner, OutputsThatNoFileHoldsAreToldBeforeTheRun) {
  write_sample(file("model.twm"), DType::BF16);
  EXPECT_THAT(refused(), HasSubstr("unsupported: output 'y' is bf16"));
  EXPECT_FALSE(std::filesystem::exists(file("outputs")));
}

TEST_F(Runner, AFolderThatCannotBeWritten) {
  std::filesystem::create_directory(file("outputs"));
  std::filesystem::create_directories(file("outputs/0.npy/x"));
  EXPECT_THAT(refused(), HasSubstr("io: cannot write"));
}

TEST_F(Runner, ArgumentsOfTheProgram) {
  EXPECT_EQ(run_tool({TILEWRIGHT_RUNNER})->status, 2);
  EXPECT_EQ(run_tool({TILEWRIGHT_RUNNER, "-x"})->status, 2);
  EXPECT_EQ(run_tool({TILEWRIGHT_RUNNER, "/nowhere"})->status, 20);
  EXPECT_THAT(run_tool({TILEWRIGHT_RUNNER, "--version"})->output, HasSubstr("0.1.0"));
}

/// `bytes` with a change: cut off, a byte flipped, a stretch of it repeated or zeroed.
std::string damaged(std::string bytes, std::mt19937_64& random) {
  const size_t at = random() % bytes.size(), length = 1 + random() % 64;
  switch (random() % 4) {
    case 0:
      return bytes.substr(0, at);
    case 1:
      bytes[at] ^= static_cast<char>(1 << random() % 8);
      return bytes;
    case 2:
      return bytes.insert(at, bytes.substr(at, length));
    default:
      return bytes.replace(at, length, length, '\0');
  }
}

using RunnerSlow = Runner;

TEST_F(RunnerSlow, DamagedFilesAreAnsweredNeverACrash) {
  std::mt19937_64 random(7);
  int refusals = 0;
  for (const char* name : {"model.twm", "inputs/0.npy", "job.json"}) {
    const std::string whole = *read_file(file(name));
    for (int i = 0; i < 40; ++i) {
      std::string bytes = whole;
      // Most of a package is code; its other parts are at both ends.
      const size_t edge = std::min<size_t>(bytes.size(), 8192);
      if (i % 2 == 0) bytes = damaged(bytes.substr(0, edge), random) + bytes.substr(edge);
      if (i % 2 == 1) bytes = damaged(bytes, random);
      write(name, bytes);
      const Json result = run();
      EXPECT_LT(status_, 128) << name << " " << i << ": " << output_;
      refusals += result.value("ok", false) ? 0 : 1;
    }
    write(name, whole);
  }
  EXPECT_GT(refusals, 60);
  EXPECT_TRUE(run().at("ok"));
}

/// `tilewright-runner --serve` at the other end of a socket; `-`: that is its stdin and stdout.
class Serving {
 public:
  explicit Serving(const std::string& folder) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = ends[0];
    child_ = ::fork();
    if (child_ == 0) {
      if (folder == "-")
        ::dup2(ends[1], STDIN_FILENO), ::dup2(ends[1], STDOUT_FILENO);
      else if (ends[1] == 3)
        ::fcntl(3, F_SETFD, 0);
      else
        ::dup2(ends[1], 3);
      ::execl(TILEWRIGHT_RUNNER, TILEWRIGHT_RUNNER, "--serve", folder.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
  }
  ~Serving() { (void)end(); }
  void send(const std::string& bytes) const {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// The next reply, with the bytes of its outputs.
  Json reply(std::vector<std::string>* outputs = nullptr) const {
    std::string line;
    for (char c = 0; ::read(socket_, &c, 1) == 1 && c != '\n';) line += c;
    const Json reply = Json::parse(line, nullptr, false);
    for (const Json& output : reply.value("outputs", Json::array())) {
      std::string bytes(output.at("bytes").get<size_t>(), '\0');
      for (size_t have = 0; have < bytes.size();) {
        const ssize_t got = ::read(socket_, bytes.data() + have, bytes.size() - have);
        if (got <= 0) break;
        have += static_cast<size_t>(got);
      }
      if (outputs != nullptr) outputs->push_back(bytes);
    }
    return reply;
  }
  /// Its exit status, once it has been told that nothing more comes.
  int end() {
    if (child_ <= 0) return -1;
    ::close(socket_);
    int status = 0;
    ::waitpid(std::exchange(child_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  int socket_ = -1;
  pid_t child_ = -1;
};

TEST_F(Runner, ServesRunsOneAfterTheOther) {
  Serving serving(folder_.path());
  const std::string mask = *read_file(file("inputs/1.npy"));
  for (int turn = 1; turn <= 3; ++turn) {
    Array x(DType::F32, {8});
    for (int i = 0; i < 8; ++i) x.set(i, turn * (i + 1));
    const std::string input = *npy_bytes(x);
    serving.send(Json{{"runs", turn}, {"inputs", {input.size(), mask.size()}}}.dump() + "\n" +
                 input + mask);
    std::vector<std::string> outputs;
    const Json reply = serving.reply(&outputs);
    ASSERT_TRUE(reply.value("ok", false)) << reply;
    EXPECT_EQ(reply["run_ns"].size(), static_cast<size_t>(turn));
    EXPECT_EQ(reply["open_ms"] > 0, turn == 1) << "opened once";
    EXPECT_EQ(reply["outputs"][0]["name"], "y");
    const Array y = *parse_npy(outputs.at(0), "y");
    for (int i = 0; i < 8; ++i) EXPECT_EQ(y.get(i), turn * (i + 1) * i + 2);
    EXPECT_THAT(parse_npy(outputs.at(1), "where")->shape(), ElementsAre(2, 3));
  }
  // What is wrong with one request is told, and the next one is served.
  serving.send(Json{{"inputs", {mask.size()}}}.dump() + "\n" + mask);
  EXPECT_THAT(serving.reply().value("error", ""), HasSubstr("1 inputs were given"));
  serving.send(Json{{"inputs", {mask.size(), mask.size()}}}.dump() + "\n" + mask + mask);
  EXPECT_THAT(serving.reply().value("error", ""), HasSubstr("[8] is expected"));
  serving.send(Json{{"inputs", {3, mask.size()}}}.dump() + "\nxyz" + mask);
  EXPECT_FALSE(serving.reply().value("ok", true));
  EXPECT_EQ(serving.end(), 0);
  for (const char* none : {"x\n", "{\"inputs\": 3}\n", "{\"inputs\": [-1]}\n",
                           "{\"inputs\": [], \"runs\": -1}\n", "{\"inputs\": [5]}\nxyz"}) {
    Serving wrong(folder_.path());
    wrong.send(none);
    EXPECT_EQ(wrong.end(), 20) << none;
  }
  std::filesystem::remove(file("model.twm"));
  Serving empty(folder_.path());
  empty.send("{\"inputs\": []}\n");
  const Json failed = empty.reply();
  EXPECT_EQ(failed.value("kind", ""), "io") << failed;
}

/// Over ssh nothing but stdin and stdout is there.
TEST_F(Runner, ServesAPackageThatComesThroughAStream) {
  const std::string package = *read_file(file("model.twm"));
  const std::string values = *read_file(file("inputs/0.npy")),
                    mask = *read_file(file("inputs/1.npy"));
  const std::string request =
      Json{{"runs", 2}, {"inputs", {values.size(), mask.size()}}}.dump() + "\n";
  Serving serving("-");
  serving.send(Json{{"threads", 1}, {"package", package.size()}}.dump() + "\n" + package);
  const Json receipt = serving.reply();
  EXPECT_EQ(receipt.value("package", size_t{0}), package.size()) << receipt;
  EXPECT_THAT(receipt.value("runner", ""), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  std::vector<std::string> first, second;
  serving.send(request + values + mask);
  const Json reply = serving.reply(&first);
  ASSERT_TRUE(reply.value("ok", false)) << reply;
  EXPECT_EQ(reply.at("run_ns").size(), 2u);
  serving.send(request + values + mask);
  EXPECT_TRUE(serving.reply(&second).value("ok", false));
  EXPECT_EQ(first, second);
  EXPECT_EQ(serving.end(), 0);
  for (const char* none : {"x\n", "{}\n", "{\"package\": -1}\n", "{\"package\": 9}\nxyz"}) {
    Serving wrong("-");
    wrong.send(none);
    EXPECT_EQ(wrong.end(), 20) << none;
  }
  Serving damaged("-");
  damaged.send("{\"package\": 3}\nxyz{\"inputs\": []}\n");
  EXPECT_EQ(damaged.reply().value("package", 0), 3);
  EXPECT_EQ(damaged.reply().value("kind", ""), "package");
}

/// Whatever it was doing, the package's files included.
TEST_F(RunnerSlow, EndsWhereNobodyReadsItsAnswers) {
  write_sample(file("model.twm"), DType::F32, "never_returns");
  ::setenv("TMPDIR", file("inputs").c_str(), 1);
  const std::string package = *read_file(file("model.twm"));
  const std::string values = *read_file(file("inputs/0.npy")),
                    mask = *read_file(file("inputs/1.npy"));
  Serving halfway("-"), running("-");
  ::unsetenv("TMPDIR");
  halfway.send(Json{{"package", package.size()}}.dump() + "\n" + package.substr(1));
  EXPECT_EQ(halfway.end(), 20);
  running.send(Json{{"package", package.size()}}.dump() + "\n" + package +
               Json{{"inputs", {values.size(), mask.size()}}}.dump() + "\n" + values + mask);
  EXPECT_TRUE(running.reply().contains("runner"));
  EXPECT_EQ(running.end(), 20);
  for (const auto& entry : std::filesystem::directory_iterator(file("inputs")))
    EXPECT_EQ(entry.path().extension(), ".npy") << entry.path();
}

}  // namespace
}  // namespace tilewright::runtime
