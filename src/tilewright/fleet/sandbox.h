// Programs that nobody trusts, run so that they reach nothing but a folder of their own.
//
// A package is native code of whoever submitted it. Its child sees /usr, what it is given to read,
// and one folder to write; no network, no other process, no files of the user; and it ends with the
// limits of time, memory, disk and processes that it is given, with all that it started.
//
//   const SandboxKind kind = TW_TRY(best_sandbox());
//   ToolResult child = TW_TRY(run_confined(kind, {.argv = {runner, folder}, ...}));
//   ChildEnd end = ending_of(child);          // {"crash", "it made a forbidden system call"}
//   std::string reply = TW_TRY(read_reply(folder, "result.json", 256 << 10));
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tilewright/base/process.h"
#include "tilewright/base/result.h"

namespace tilewright::fleet {

enum class SandboxKind {
  Bubblewrap,  ///< namespaces of its own, by the program bwrap, and a filter of system calls
  Landlock,    ///< rules of the kernel for files, and the filter; where namespaces are refused
  None,        ///< limits, no environment, an end; otherwise what its user may
};
/// `bwrap`, `landlock`, `none`.
const char* name(SandboxKind kind);
/// errors: Usage (no such name).
Result<SandboxKind> parse_sandbox(const std::string& name);

/// Whether a child can be confined so here: starts one that does nothing. errors: Tool (no bwrap,
/// or an old one), Device (the system refuses), with what to do.
Status check_sandbox(SandboxKind kind);
/// Bubblewrap where it works, else Landlock. errors: Device, with the reasons against both.
Result<SandboxKind> best_sandbox();

/// A program and all that it may have. Paths are absolute and mean the same to it.
struct Confined {
  std::vector<std::string> argv;       ///< argv[0]: a path, or a name on PATH
  std::vector<std::string> read_only;  ///< files and folders, besides /usr and the program
  std::string writable_folder;         ///< where it runs; nobody else uses it meanwhile
  std::vector<std::string> devices;    ///< `/dev/nvidia0`
  double limit_seconds = 60;
  /// Together. Where there are devices only what is really used counts: their drivers reserve
  /// addresses by the terabyte.
  int64_t memory_bytes = int64_t{4} << 30;
  int64_t file_bytes = int64_t{1} << 30;  ///< of one file, and of the folder
  int64_t files = 10'000;                 ///< in the folder
  int processes = 64;                     ///< threads count too
  bool starts_processes = false;          ///< else it has threads only
  /// `NAME=value`, besides PATH, HOME and TMPDIR (the folder), or instead of these.
  std::vector<std::string> environment = {};
  std::vector<int> descriptors = {};  ///< of this process, for it as 3, 4, ...
  /// Of this process, for it as stdin and stdout; -1: none, and `output`.
  int input = -1, answers = -1;
  std::function<void()> started = nullptr;  ///< called once when it has them. May be empty
};

/// Runs it to its end, a limit, or until `stop` is true, and ends what it has started. As root it
/// runs as a user that owns nothing but the folder, whose owner changes. `output`: the last 64 KiB.
/// A process that exceeds memory or disk ends as if by SIGKILL or SIGXFSZ, the last line of
/// `output` says so.
/// requires: `argv`, `writable_folder`. errors: Tool (cannot be started, bwrap's own errors), Io,
/// Device, Interrupted.
Result<ToolResult> run_confined(SandboxKind kind, const Confined& confined,
                                const std::function<bool()>& stop = {});

/// How a child ended, in the words of records: `ok`, `timeout`, `oom` or `crash`, and why.
struct ChildEnd {
  std::string outcome, reason;
};
ChildEnd ending_of(const ToolResult& child);

/// A file that a child left in its folder. Nothing of it is believed: it is no link, lies behind
/// none, and is not longer than `most_bytes`. requires: the child has ended. errors: Invalid.
Result<std::string> read_reply(const std::string& folder, const std::string& name,
                               int64_t most_bytes);

}  // namespace tilewright::fleet
