// Which sandbox is chosen, on systems that refuse one or the other: filters of system calls play
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tilewright/fleet/confine/landlock.h"
#include "tilewright/fleet/sandbox.h"
#include "tilewright/fleet/testing/in_process.h"

namespace tilewright::fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SandboxKinds, HaveNames) {
  for (const SandboxKind kind : {SandboxKind::Bubblewrap, SandboxKind::Landlock, SandboxKind::None})
    EXPECT_EQ(*parse_sandbox(name(kind)), kind);
  EXPECT_EQ(parse_sandbox("docker").error().kind, ErrorKind::Usage);
}

/// Makes a system call fail for this process and all that it starts.
void deny(std::vector<std::pair<long, long>> calls_with_flags) {
  std::vector<sock_filter> code = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
  for (const auto& [call, flags] : calls_with_flags) {
    if (flags == 0) {
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
      code.push_back(BPF_STMT(BPF_RET | BPF_K, 0x00050000 | EPERM));
      continue;
    }
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 4));
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16));
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, static_cast<uint32_t>(flags), 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, 0x00050000 | EPERM));
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, 0x7fff0000));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, 2, &program, 0, 0) != 0) std::perror("seccomp");
}

constexpr long kLandlock = 444;

std::string best_of() {
  const auto kind = best_sandbox();
  return kind ? name(*kind) : to_string(kind.error());
}

TEST(BestSandbox, IsBubblewrapThenLandlockThenAnExplanation) {
  if (in_process(false, best_of) != "bwrap") GTEST_SKIP() << "there is no bwrap here";
  if (landlock_version() == 0) GTEST_SKIP() << "there is no Landlock here";
  const TemporaryFolder path = *TemporaryFolder::create();
  fs::create_symlink("/usr/bin/true", path.file("true"));
  EXPECT_EQ(in_process(false,
                       [&] {
                         ::setenv("PATH", path.path().c_str(), 1);
                         return best_of();
                       }),
            "landlock");
  // As where namespaces are refused to users.
  EXPECT_EQ(in_process(false,
                       [] {
                         deny({{SYS_unshare, 0}, {SYS_clone, CLONE_NEWUSER | CLONE_NEWNS}});
                         return best_of();
                       }),
            "landlock");
  const std::string none = in_process(false, [] {
    deny({{SYS_unshare, 0}, {SYS_clone, CLONE_NEWUSER | CLONE_NEWNS}, {kLandlock, 0}});
    return best_of();
  });
  EXPECT_THAT(none, AllOf(HasSubstr("error: children cannot be confined here"),
                          HasSubstr("bwrap: bwrap cannot confine a child"),
                          HasSubstr("landlock: this kernel has no Landlock"),
                          HasSubstr("fix: install bubblewrap"), HasSubstr("--sandbox none")));
}

TEST(BestSandbox, RootThatCannotChangeUsersIsTold) {
  if (::geteuid() != 0) GTEST_SKIP() << "is not run by root";
  EXPECT_THAT(in_process(false,
                         [] {
                           deny({{SYS_setresuid, 0}});
                           return best_of();
                         }),
              HasSubstr("cannot be confined as root here"));
}

TEST(Landlock, OlderVersionsForbidLess) {
  EXPECT_EQ(landlock_scope(1).files, 0x1fffu);
  EXPECT_EQ(landlock_scope(2).files, 0x3fffu);
  EXPECT_EQ(landlock_scope(3).files, 0x7fffu);
  EXPECT_EQ(landlock_scope(4).network, 3u);
  EXPECT_EQ(landlock_scope(3).network, 0u);
  EXPECT_EQ(landlock_scope(5).files, 0xffffu);
  EXPECT_EQ(landlock_scope(5).scoped, 0u);
  EXPECT_EQ(landlock_scope(9).scoped, 3u);
}

}  // namespace
}  // namespace tilewright::fleet
