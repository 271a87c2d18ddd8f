// Hostile children (testing/hostile.cc) in each sandbox, run by root, where the test is, and by an
// ordinary user. Each must be contained and counted with a reason. Where it is harmless, the same
// child also runs without a sandbox, and does what it tries: else the test would show nothing.
#include "tilewright/fleet/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tilewright/base/file.h"
#include "tilewright/fleet/testing/in_process.h"

namespace tilewright::fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

std::string text_of(const Result<ToolResult>& result) {
  if (!result) return Json{{"error", to_string(result.error())}}.dump();
  return Json{{"status", result->status},
              {"timed_out", result->timed_out},
              {"output", result->output},
              {"seconds", result->seconds},
              {"peak", result->peak_bytes}}
      .dump();
}

ToolResult result_of(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.contains("error")) {
    ADD_FAILURE() << (json.is_object() ? json["error"].get<std::string>() : text);
    return {.status = 255};
  }
  ToolResult result;
  result.status = json["status"];
  result.timed_out = json["timed_out"];
  result.output = json["output"];
  result.seconds = json["seconds"];
  result.peak_bytes = json["peak"];
  return result;
}

/// In which sandbox, and by whom.
struct Where {
  SandboxKind kind;
  bool ordinary;
};

class SandboxSlow : public ::testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    if (GetParam().ordinary && ::geteuid() != 0) GTEST_SKIP() << "is run by an ordinary user";
    // Readable by all, wherever the build is.
    ASSERT_EQ(::chmod(shared_.path().c_str(), 0755), 0);
    fs::copy_file(HOSTILE_PROGRAM, program_);
    give(shared_.file("folder"), 0755);
    write(shared_.file("folder/key"), "a secret");
    fs::create_directory(folder_);
    if (GetParam().ordinary) {
      ASSERT_EQ(::chown(folder_.c_str(), kNobody, kNobody), 0);
    }
    static std::map<int, std::string> reasons;  // why a sandbox does not work here
    const auto key = static_cast<int>(GetParam().kind) * 2 + (GetParam().ordinary ? 1 : 0);
    if (!reasons.contains(key))
      reasons[key] = in_process(GetParam().ordinary, [] {
        const Status status = check_sandbox(GetParam().kind);
        return status ? std::string() : to_string(status.error());
      });
    if (!reasons[key].empty()) GTEST_SKIP() << reasons[key];
  }

  void give(const std::string& path, mode_t mode) {
    fs::create_directory(path);
    ::chmod(path.c_str(), mode);
  }
  /// A file of the one who runs the child.
  void write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(write_file(path, text));
    ::chmod(path.c_str(), 0644);
    if (GetParam().ordinary) {
      ASSERT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
      ASSERT_EQ(::chown(fs::path(path).parent_path().c_str(), kNobody, kNobody), 0);
    }
  }

  Confined confined(std::vector<std::string> arguments) const {
    Confined child;
    child.argv = {program_};
    child.argv.insert(child.argv.end(), arguments.begin(), arguments.end());
    child.writable_folder = folder_;
    child.limit_seconds = 60;
    child.memory_bytes = 256 << 20;
    child.file_bytes = 8 << 20;
    child.files = 100;
    child.processes = 16;
    return child;
  }
  ToolResult run_in(SandboxKind kind, Confined child) const {
    return result_of(in_process(GetParam().ordinary, [&] {
      for (std::string& argument : child.argv)
        if (argument == "@PID") argument = std::to_string(::getpid());
      return text_of(run_confined(kind, child));
    }));
  }
  ToolResult run(const Confined& child) const { return run_in(GetParam().kind, child); }
  ToolResult run(std::vector<std::string> arguments) const {
    return run(confined(std::move(arguments)));
  }
  /// Without a sandbox the child does what it tries.
  void expect_power(std::vector<std::string> arguments) const {
    EXPECT_EQ(run_in(SandboxKind::None, confined(std::move(arguments))).status, 0);
  }
  /// It was refused and said so: an outcome like any other failure.
  void expect_refused(const ToolResult& result) const {
    EXPECT_GE(result.status, 10) << result.output;
    EXPECT_LT(result.status, 20) << result.output;
    EXPECT_EQ(ending_of(result).outcome, "crash");
    EXPECT_THAT(ending_of(result).reason, HasSubstr("it ended with 1"));
  }
  /// Processes of the hostile program that have not ended.
  std::string left() const {
    std::string found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const auto command = read_file(entry.path() / "cmdline");
      if (!command || command->find(program_) == std::string::npos) continue;
      const std::string stat = read_file(entry.path() / "stat").value_or(") Z");
      if (stat[stat.rfind(')') + 2] != 'Z') found += entry.path().string() + " " + *command + "\n";
    }
    return found;
  }
  void expect_nothing_left() const { EXPECT_EQ(left(), ""); }

  const TemporaryFolder shared_ = *TemporaryFolder::create();
  const std::string program_ = shared_.file("hostile");
  const std::string folder_ = shared_.file("own");
};

INSTANTIATE_TEST_SUITE_P(
    All, SandboxSlow,
    ::testing::Values(Where{SandboxKind::Bubblewrap, false}, Where{SandboxKind::Landlock, false},
                      Where{SandboxKind::Bubblewrap, true}, Where{SandboxKind::Landlock, true}),
    [](const auto& test) {
      return fmt::format("{}_{}", name(test.param.kind), test.param.ordinary ? "ordinary" : "self");
    });

TEST_P(SandboxSlow, ADecentProgramHasWhatItNeeds) {
  Confined child = confined({"decent", folder_});
  child.environment = {"MORE=x y"};
  ::setenv("TILEWRIGHT_SECRET", "1", 1);
  const int open_file = ::dup2(0, 60);  // nobody said that children are not to have it
  const ToolResult result = run(child);
  ::unsetenv("TILEWRIGHT_SECRET");
  ::close(open_file);
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("MORE=x y\n"), HasSubstr("HOME=" + folder_ + "\n"),
                                   HasSubstr("TMPDIR="), HasSubstr("PATH=/usr/bin:/bin\n")));
  EXPECT_THAT(result.output, Not(HasSubstr("SECRET")));
  EXPECT_EQ(read_reply(folder_, "renamed", 100).value_or("none"), "done");
  EXPECT_EQ(ending_of(result).outcome, "ok");
}

TEST_P(SandboxSlow, StatusAndSignalComeThrough) {
  EXPECT_EQ(run({"ends", "7"}).status, 7);
  const ToolResult fault = run({"ends", std::to_string(128 + SIGSEGV)});
  EXPECT_EQ(fault.status, 128 + SIGSEGV);
  EXPECT_EQ(ending_of(fault).reason, "it ended by signal 11");
  const ToolResult abort = run({"ends", std::to_string(128 + SIGABRT)});
  EXPECT_EQ(abort.status, 128 + SIGABRT);
}

TEST_P(SandboxSlow, HostileConnects) {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(server, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(server, 8), 0);
  ASSERT_EQ(::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  expect_power({"connect", port});
  expect_refused(run({"connect", port}));
  ::close(server);
}

TEST_P(SandboxSlow, HostileReadsKeys) {
  const std::string key = shared_.file("folder/key");
  expect_power({"read", key});
  const ToolResult result = run({"read", key});
  expect_refused(result);
  EXPECT_THAT(result.output, Not(HasSubstr("secret")));
  Confined allowed = confined({"read", key});
  allowed.read_only = {shared_.file("folder")};
  EXPECT_EQ(run(allowed).status, 0) << "what it is given it reads";
}

TEST_P(SandboxSlow, HostileForks) {
  expect_refused(run({"fork", "1"}));
  Confined child = confined({"fork", "100"});
  child.starts_processes = true;
  const ToolResult result = run(child);
  expect_refused(result);
  // Others of an ordinary user may end meanwhile, and leave theirs.
  EXPECT_LE(std::atoi(result.output.c_str()), 24) << result.output;
  EXPECT_GE(std::atoi(result.output.c_str()), 8) << "it may have some";
  const ToolResult threads = run({"threads", "100"});
  expect_refused(threads);
  EXPECT_LE(std::atoi(threads.output.c_str()), 24) << threads.output;
  expect_nothing_left();
}

TEST_P(SandboxSlow, HostileLeavesADaemon) {
  Confined child = confined({"daemon", folder_ + "/beat"});
  child.starts_processes = true;
  EXPECT_EQ(run(child).status, 0);
  const auto written = [&] { return read_file(folder_ + "/beat").value_or("").size(); };
  const size_t before = written();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(written(), before);
  expect_nothing_left();
}

TEST_P(SandboxSlow, HostileFillsTheDisk) {
  const ToolResult large = run({"file", folder_ + "/large"});
  EXPECT_EQ(large.status, 128 + SIGXFSZ) << large.output;
  EXPECT_EQ(ending_of(large).reason, "it wrote more than it may");
  fs::remove(folder_ + "/large");
  const ToolResult fill = run({"fill", folder_});
  EXPECT_EQ(fill.status, 128 + SIGXFSZ) << fill.output;
  EXPECT_THAT(ending_of(fill).reason, HasSubstr("it wrote more than it may: stopped: it wrote"));
  for (const std::string& place : {folder_, std::string("-")}) {
    const ToolResult hide = run({"hide", place});
    EXPECT_EQ(hide.status, 128 + SIGXFSZ) << place << hide.output;
    EXPECT_THAT(hide.output, HasSubstr("its limit is 8.0"));
  }
  const ToolResult many = run({"many", folder_});
  EXPECT_EQ(many.status, 128 + SIGXFSZ) << many.output;
  EXPECT_THAT(many.output, HasSubstr("its folder has more than 100 files"));
  fs::remove_all(folder_);
  fs::create_directory(folder_);
  // Places that are memory: refused, or small.
  for (const char* place : {"/tmp", "/dev/shm", "/dev", "/"}) {
    Confined child = confined({"fill", place});
    child.file_bytes = int64_t{1} << 30;
    const ToolResult result = run(child);
    expect_refused(result);
  }
}

TEST_P(SandboxSlow, HostileTraces) {
  expect_power({"peek", "@PID"});
  for (const char* how : {"ptrace", "peek"}) {
    const ToolResult result = run({how, "@PID"});
    EXPECT_EQ(result.status, 128 + SIGSYS) << result.output;
    EXPECT_EQ(ending_of(result).outcome, "crash");
    EXPECT_EQ(ending_of(result).reason, "it made a forbidden system call");
  }
}

TEST_P(SandboxSlow, HostileKills) {
  // A process that the child's user could kill if nothing held it.
  const pid_t victim = ::fork();
  if (victim == 0) {
    if (GetParam().ordinary && (::setresgid(kNobody, kNobody, kNobody) != 0 ||
                                ::setresuid(kNobody, kNobody, kNobody) != 0))
      ::_exit(1);
    for (;;) ::pause();
  }
  char space[64] = {};
  ASSERT_GT(::readlink("/proc/self/ns/pid", space, sizeof space - 1), 0);
  expect_refused(run({"kill", std::to_string(victim), space}));
  int status = 0;
  EXPECT_EQ(::waitpid(victim, &status, WNOHANG), 0) << "it was killed";
  expect_power({"kill", std::to_string(victim), space});
  EXPECT_EQ(::waitpid(victim, &status, 0), victim);
}

TEST_P(SandboxSlow, HostileTakesMemory) {
  const ToolResult result = run({"memory", "10240"});
  expect_refused(result);
  EXPECT_THAT(result.output, HasSubstr("mmap: Cannot allocate memory"));
  // Drivers of devices need more addresses than memory: there what is used counts.
  Confined child = confined({"memory", "10240"});
  child.devices = {"/dev/full"};
  child.memory_bytes = 64 << 20;
  const ToolResult watched = run(child);
  EXPECT_TRUE(watched.killed()) << watched.status;
  EXPECT_EQ(ending_of(watched).outcome, "oom");
  EXPECT_THAT(ending_of(watched).reason, HasSubstr("its limit is 64.0"));
  EXPECT_GT(watched.peak_bytes, 64 << 20);
}

TEST_P(SandboxSlow, HostileSpins) {
  Confined child = confined({"spin"});
  child.limit_seconds = 0.3;
  const ToolResult result = run(child);
  EXPECT_TRUE(result.timed_out);
  EXPECT_LT(result.seconds, 30);
  EXPECT_EQ(ending_of(result).outcome, "timeout");
  EXPECT_THAT(ending_of(result).reason, HasSubstr("it ran for 0."));
  expect_nothing_left();
}

TEST_P(SandboxSlow, HostileForgesReplies) {
  const std::string key = shared_.file("folder/key");
  const ToolResult result = run({"forge", folder_, key});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("?[2J? forged")) << "nothing for the terminal";
  for (const char* name : {"link", "folder/key", "pipe", "second", "large", "none", "", "locked",
                           "../folder/key", "/etc/passwd"}) {
    const auto reply = read_reply(folder_, name, 1 << 20);
    ASSERT_FALSE(reply) << name << ": " << *reply;
    EXPECT_EQ(reply.error().kind, ErrorKind::Invalid);
    EXPECT_THAT(reply.error().what, HasSubstr(fmt::format("no usable '{}'", name)));
    EXPECT_FALSE(reply.error().why.empty());
  }
  if (GetParam().kind == SandboxKind::Landlock) {
    for (const char* name : {"link", "folder", "pipe", "second"})
      EXPECT_FALSE(fs::exists(fs::symlink_status(folder_ + "/" + name))) << name;
  }
  EXPECT_THAT(read_reply(folder_, "result.json", 1000).value_or("none"), HasSubstr("1e-300"));
  fs::create_hard_link(folder_ + "/result.json", folder_ + "/twin");
  EXPECT_FALSE(read_reply(folder_, "twin", 1000));
  EXPECT_EQ(in_process(GetParam().ordinary,
                       [&] {
                         std::error_code error;
                         fs::remove_all(folder_, error);
                         return error.message();
                       }),
            GetParam().ordinary ? std::make_error_code(std::errc::permission_denied).message()
                                : std::error_code().message());
  EXPECT_TRUE(!fs::exists(folder_) || fs::is_empty(folder_)) << "what it locked can be removed";
}

TEST_P(SandboxSlow, HostileLooksAtItsParent) {
  expect_power({"proc", "@PID"});
  expect_refused(run({"proc", "@PID"}));
}

TEST_P(SandboxSlow, HostileWritesOutside) {
  const std::string file = shared_.file("folder/key");
  expect_refused(run({"write", file, shared_.file("folder")}));
  EXPECT_EQ(read_file(file).value_or(""), "a secret");
  Confined child = confined({"write", file, shared_.file("folder")});
  child.read_only = {shared_.file("folder")};
  expect_refused(run(child));
  EXPECT_EQ(read_file(file).value_or(""), "a secret");
  expect_power({"write", file, shared_.file("folder")});
}

TEST_P(SandboxSlow, HostileCallsTheKernel) {
  struct Call {
    const char* name;
    long number;
    long first;
    int status;
  };
  constexpr int kKilled = 128 + SIGSYS;
  const Call calls[] = {
      {"unshare", SYS_unshare, CLONE_NEWUSER, kKilled},
      {"setns", SYS_setns, 0, kKilled},
      {"clone", SYS_clone, CLONE_NEWUSER | SIGCHLD, kKilled},
      {"clone3", SYS_clone3, 0, ENOSYS},
      {"bpf", SYS_bpf, 0, kKilled},
      {"perf_event_open", SYS_perf_event_open, 0, kKilled},
      {"keyctl", SYS_keyctl, 0, kKilled},
      {"add_key", SYS_add_key, 0, kKilled},
      {"mount", SYS_mount, 0, kKilled},
      {"umount2", SYS_umount2, 0, kKilled},
      {"fsopen", SYS_fsopen, 0, kKilled},
      {"kexec_load", SYS_kexec_load, 0, kKilled},
      {"init_module", SYS_init_module, 0, kKilled},
      {"userfaultfd", SYS_userfaultfd, 0, kKilled},
      {"io_uring_setup", SYS_io_uring_setup, 1, ENOSYS},
      {"socket", SYS_socket, AF_UNIX, EPERM},
      {"shmget", SYS_shmget, 0, EPERM},
      {"pidfd_open", SYS_pidfd_open, 1, EPERM},
      {"prctl", SYS_prctl, PR_SET_PDEATHSIG, EPERM},
      {"openat2", SYS_openat2, 0, ENOSYS},
      {"one of tomorrow", 461, 0, ENOSYS},
#if defined(__x86_64__)
      {"one of the third table", 0x40000000 + SYS_getpid, 0, ENOSYS},
#endif
      {"getpid", SYS_getpid, 0, 0},
  };
  for (const Call& call : calls)
    EXPECT_EQ(run({"call", std::to_string(call.number), std::to_string(call.first)}).status,
              call.status)
        << call.name;
}

TEST_P(SandboxSlow, TheChildDiesWithItsParent) {
  Confined child = confined({"survive"});
  child.limit_seconds = 60;
  const pid_t agent = ::fork();
  if (agent == 0) {
    in_process(GetParam().ordinary, [&] {
      // Whoever runs it is killed while it waits.
      std::thread killer([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        ::kill(::getpid(), SIGKILL);
      });
      return text_of(run_confined(GetParam().kind, child));
    });
    ::_exit(0);
  }
  ::waitpid(agent, nullptr, 0);
  for (int i = 0; i < 2000 && !left().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  expect_nothing_left();
}

TEST_P(SandboxSlow, StopsWhenItIsTold) {
  const ToolResult result = result_of(in_process(GetParam().ordinary, [&] {
    const auto begin = std::chrono::steady_clock::now();
    return text_of(run_confined(GetParam().kind, confined({"spin"}), [&] {
      return std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(100);
    }));
  }));
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.status, 128 + SIGKILL);
  EXPECT_LT(result.seconds, 30);
  expect_nothing_left();
}

TEST_P(SandboxSlow, WhatCannotBeStartedIsAnError) {
  const auto error = [&](const Confined& child) {
    return in_process(GetParam().ordinary, [&] {
      const auto result = run_confined(GetParam().kind, child);
      return result ? fmt::format("status {}", result->status) : to_string(result.error());
    });
  };
  Confined child = confined({"decent"});
  child.argv[0] = "/nowhere/program";
  EXPECT_THAT(error(child), HasSubstr("'/nowhere/program' cannot be started"));
  child = confined({"decent"});
  child.read_only = {"/nowhere/data"};
  EXPECT_THAT(error(child), HasSubstr("/nowhere/data"));
  child = confined({"decent"});
  child.writable_folder = "/nowhere/folder";
  EXPECT_THAT(error(child), HasSubstr("cannot use '/nowhere/folder'"));
  ASSERT_TRUE(write_file(folder_ + "/blob", "x"));
  fs::create_hard_link(folder_ + "/blob", shared_.file("folder/blob"));
  EXPECT_THAT(error(confined({"decent"})), HasSubstr("linked elsewhere"));
}

}  // namespace
}  // namespace tilewright::fleet
