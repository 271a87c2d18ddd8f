// A list of rules becomes a program of the kernel's filter machine, which sees number and arguments
// of each call. A rule of one number, without a condition:
//
//     if (nr != __NR_socket) skip 1
//     return EPERM
//
// and with one, here for kill(pid, signal), which a program may send to itself:
//
//     if (nr != __NR_kill) skip 4
//     load the low half of argument 0
//     if (it == own pid) skip 1
//     return EPERM
//     load nr
//
// Whatever no rule names is allowed, but nothing newer than this list: a new call that opens a way
// out is "not implemented" here.
#include "tilewright/fleet/confine/seccomp.h"

#include <asm/unistd.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstdint>

namespace tilewright::fleet {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

constexpr uint32_t kNewestCall = 450;  // set_mempolicy_home_node, of Linux 5.17

constexpr uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS;

/// When a rule holds, by one of the call's arguments.
struct Condition {
  enum class Kind { Always, Equals, NotOwnPid, NotZeroOrOwnPid, AnyBit, MaskedEquals };
  Kind kind = Kind::Always;
  uint32_t argument = 0, value = 0, mask = 0;
};
constexpr Condition equals(uint32_t argument, uint32_t value) {
  return {Condition::Kind::Equals, argument, value, 0};
}
constexpr Condition any_bit(uint32_t argument, uint32_t mask) {
  return {Condition::Kind::AnyBit, argument, 0, mask};
}
constexpr Condition masked(uint32_t argument, uint32_t mask, uint32_t value) {
  return {Condition::Kind::MaskedEquals, argument, value, mask};
}
constexpr Condition not_own_pid(uint32_t argument = 0) {
  return {Condition::Kind::NotOwnPid, argument, 0, 0};
}
constexpr Condition not_this_process(uint32_t argument = 0) {
  return {Condition::Kind::NotZeroOrOwnPid, argument, 0, 0};
}

/// Puts the filter together, instruction by instruction.
class Assembler {
 public:
  explicit Assembler(CallFilter& filter) : filter_(filter) {
    load(offsetof(seccomp_data, arch));
    jump(BPF_JEQ, kArchitecture, 1, 0);
    give(kKill);  // calls of a 32-bit program have other numbers
    load(offsetof(seccomp_data, nr));
    jump(BPF_JGT, kNewestCall, 0, 1);
    give(kUnknown);  // on x86-64 also those of its third table, whose numbers have bit 30 set
  }

  void rule(uint32_t number, uint32_t action, Condition when = {}) {
    using Kind = Condition::Kind;
    const size_t start = filter_.code.size();
    jump(BPF_JEQ, number, 0, 0);  // to the end of the rule, below
    if (when.kind != Kind::Always)
      load(static_cast<uint32_t>(offsetof(seccomp_data, args) + when.argument * sizeof(uint64_t)));
    switch (when.kind) {
      case Kind::Always:
        break;
      case Kind::Equals:
        jump(BPF_JEQ, when.value, 0, 1);
        break;
      case Kind::NotZeroOrOwnPid:
        jump(BPF_JEQ, 0, 2, 0);
        [[fallthrough]];
      case Kind::NotOwnPid:
        filter_.own_pid.push_back(filter_.code.size());
        jump(BPF_JEQ, 0, 1, 0);
        break;
      case Kind::AnyBit:
        jump(BPF_JSET, when.mask, 0, 1);
        break;
      case Kind::MaskedEquals:
        add(BPF_ALU | BPF_AND | BPF_K, when.mask);
        jump(BPF_JEQ, when.value, 0, 1);
        break;
    }
    give(action);
    if (when.kind != Kind::Always) load(offsetof(seccomp_data, nr));
    filter_.code[start].jf = static_cast<uint8_t>(filter_.code.size() - start - 1);
  }
  void give(uint32_t action) { add(BPF_RET | BPF_K, action); }

 private:
  void add(uint32_t code, uint32_t k) {
    filter_.code.push_back({static_cast<uint16_t>(code), 0, 0, k});
  }
  /// The low half of an argument comes first on the processors above.
  void load(uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void jump(uint32_t test, uint32_t k, uint8_t yes, uint8_t no) {
    filter_.code.push_back({static_cast<uint16_t>(BPF_JMP | test | BPF_K), yes, no, k});
  }

  CallFilter& filter_;
};

/// Other processes, kernel and machine: who asks for these is not computing.
constexpr uint32_t kKilled[] = {
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_kcmp,
    __NR_pidfd_getfd,
    __NR_process_madvise,
    __NR_process_mrelease,
    __NR_migrate_pages,
    __NR_move_pages,
    __NR_unshare,
    __NR_setns,
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    __NR_move_mount,
    __NR_open_tree,
    __NR_fsopen,
    __NR_fsconfig,
    __NR_fsmount,
    __NR_fspick,
    __NR_mount_setattr,
    __NR_open_by_handle_at,
    __NR_fanotify_init,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_keyctl,
    __NR_add_key,
    __NR_request_key,
    __NR_kexec_load,
    __NR_kexec_file_load,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_reboot,
    __NR_swapon,
    __NR_swapoff,
    __NR_acct,
    __NR_quotactl,
    __NR_quotactl_fd,
    __NR_settimeofday,
    __NR_clock_settime,
    __NR_sethostname,
    __NR_setdomainname,
    __NR_vhangup,
    __NR_syslog,
#if defined(__x86_64__)
    __NR_iopl,
    __NR_ioperm,
    __NR_modify_ldt,
    __NR_uselib,
#endif
};

/// What libraries try now and then. Attributes of files are refused because the kernel's other
/// rules for paths do not cover them.
constexpr uint32_t kRefused[] = {
    __NR_socket,        __NR_socketpair,  __NR_pidfd_open,    __NR_pidfd_send_signal,
    __NR_shmget,        __NR_msgget,      __NR_semget,        __NR_mq_open,
    __NR_inotify_init1, __NR_adjtimex,    __NR_clock_adjtime, __NR_name_to_handle_at,
    __NR_truncate,      __NR_fchmod,      __NR_fchmodat,      __NR_fchown,
    __NR_fchownat,      __NR_utimensat,   __NR_setxattr,      __NR_lsetxattr,
    __NR_fsetxattr,     __NR_removexattr, __NR_lremovexattr,  __NR_fremovexattr,
#if defined(__x86_64__)
    __NR_chmod,         __NR_chown,       __NR_lchown,        __NR_utime,
    __NR_utimes,        __NR_futimesat,   __NR_inotify_init,
#endif
};

/// Newer forms of other calls, whose arguments a filter cannot see: callers fall back.
constexpr uint32_t kNotThere[] = {__NR_clone3,         __NR_openat2,           __NR_io_uring_setup,
                                  __NR_io_uring_enter, __NR_io_uring_register, __NR_memfd_secret};

constexpr uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

void process_rules(Assembler& filter, const CallRules& rules) {
  filter.rule(__NR_clone, kKill, any_bit(0, kNamespaces));
  if (!rules.starts_processes) {
    filter.rule(__NR_clone, kRefuse, masked(0, CLONE_THREAD, 0));
#if defined(__x86_64__)
    filter.rule(__NR_fork, kRefuse);
    filter.rule(__NR_vfork, kRefuse);
#endif
  }
  // It dies with its parent, and its parent sees what it has open.
  filter.rule(__NR_prctl, kRefuse, equals(0, PR_SET_PDEATHSIG));
  filter.rule(__NR_prctl, kRefuse, equals(0, PR_SET_DUMPABLE));
  if (!rules.shares_pids) return;
  for (const uint32_t call :
       {__NR_kill, __NR_tkill, __NR_tgkill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo})
    filter.rule(call, kRefuse, not_own_pid());
  for (const uint32_t call : {__NR_prlimit64, __NR_sched_setaffinity, __NR_sched_setscheduler,
                              __NR_sched_setparam, __NR_sched_setattr})
    filter.rule(call, kRefuse, not_this_process());
  // These two may name all processes of a user.
  for (const uint32_t call : {__NR_setpriority, __NR_ioprio_set, __NR_setsid, __NR_setpgid})
    filter.rule(call, kRefuse);
}

void file_rules(Assembler& filter) {
  // Signals by the back door, to whoever is named the owner of a file.
  for (const uint32_t command : {F_SETOWN, F_SETOWN_EX, F_SETSIG, F_NOTIFY})
    filter.rule(__NR_fcntl, kRefuse, equals(1, command));
  constexpr uint32_t kTerminalInput = 0x5412, kConsole = 0x541c;  // TIOCSTI, TIOCLINUX
  constexpr uint32_t kFileOwner = 0x8901, kSocketOwner = 0x8902;  // FIOSETOWN, SIOCSPGRP
  for (const uint32_t request : {kTerminalInput, kConsole, kFileOwner, kSocketOwner})
    filter.rule(__NR_ioctl, kRefuse, equals(1, request));
  // Opened for reading and emptied: older kernels do not count that as writing.
  filter.rule(__NR_openat, kRefuse, masked(2, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY));
#if defined(__x86_64__)
  filter.rule(__NR_open, kRefuse, masked(1, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY));
#endif
}

}  // namespace

CallFilter call_filter(const CallRules& rules) {
  CallFilter filter;
  if (kArchitecture == 0) return filter;
  Assembler assembler(filter);
  for (const uint32_t call : kKilled) assembler.rule(call, kKill);
  for (const uint32_t call : kRefused) assembler.rule(call, kRefuse);
  for (const uint32_t call : kNotThere) assembler.rule(call, kUnknown);
  process_rules(assembler, rules);
  file_rules(assembler);
  assembler.give(SECCOMP_RET_ALLOW);
  return filter;
}

}  // namespace tilewright::fleet
