#include "tilewright/fleet/confine/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>

#include "tilewright/base/file.h"

namespace tilewright::fleet {
namespace {

constexpr int64_t kStatBlock = 512;  ///< of st_blocks, whatever the file system has

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

/// Calls `visit` with the name of each entry until it gives false.
void each_entry(DIR* folder, const std::function<bool(const char*)>& visit) {
  while (const dirent* entry = ::readdir(folder))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0 &&
        !visit(entry->d_name))
      return;
}

std::string text_of(const std::string& path) { return read_file(path).value_or(""); }

/// Session of a process; -1 if it has ended, waited for or not. Its name, which may hold anything,
/// ends with `)`.
long session_of(const std::string& process) {
  const std::string text = text_of("/proc/" + process + "/stat");
  const size_t end = text.rfind(')');
  char state = 0;
  long parent = 0, group = 0, session = -1;
  if (end == std::string::npos || std::sscanf(text.c_str() + end + 1, " %c %ld %ld %ld", &state,
                                              &parent, &group, &session) != 4)
    return -1;
  return state == 'Z' || state == 'X' ? -1 : session;
}

std::string namespace_of(const std::string& process) {
  char link[64] = {};
  const ssize_t size = ::readlink(("/proc/" + process + "/ns/pid").c_str(), link, sizeof link - 1);
  return size > 0 ? std::string(link) : "";
}

/// Bytes of the files without a name that a process has open, each once.
int64_t hidden_bytes(pid_t process, std::set<std::pair<dev_t, ino_t>>& seen) {
  const Folder files(::opendir(fmt::format("/proc/{}/fd", process).c_str()), ::closedir);
  if (files == nullptr) return 0;
  int64_t bytes = 0;
  each_entry(files.get(), [&](const char* name) {
    struct stat info{};
    if (::fstatat(::dirfd(files.get()), name, &info, 0) == 0 && S_ISREG(info.st_mode) &&
        info.st_nlink == 0 && seen.emplace(info.st_dev, info.st_ino).second)
      bytes += info.st_blocks * kStatBlock;
    return true;
  });
  return bytes;
}

}  // namespace

std::vector<pid_t> members_of(const Family& family) {
  if (!family.grows && !family.inside) return {family.first};
  std::vector<pid_t> members;
  const std::string first = std::to_string(family.first);
  if (!family.grows) {
    const std::string children =
        text_of(fmt::format("/proc/{}/task/{}/children", family.first, family.first));
    for (const char* at = children.c_str(); *at != 0;) {
      char* end = nullptr;
      const long pid = std::strtol(at, &end, 10);
      if (end == at) break;
      members.push_back(static_cast<pid_t>(pid));
      at = end;
    }
    if (!members.empty()) return members;  // else this kernel does not tell
  }
  const std::string space = family.inside ? namespace_of(first) : "";
  if (family.inside && space.empty()) return {};
  const Folder processes(::opendir("/proc"), ::closedir);
  if (processes == nullptr) return {};
  each_entry(processes.get(), [&](const char* name) {
    if (name[std::strspn(name, "0123456789")] == 0 &&
        (family.inside ? namespace_of(name) == space : session_of(name) == family.first))
      members.push_back(static_cast<pid_t>(std::strtol(name, nullptr, 10)));
    return true;
  });
  return members;
}

Usage usage_of(const std::vector<pid_t>& processes) {
  Usage usage;
  std::set<std::pair<dev_t, ino_t>> seen;
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  for (const pid_t process : processes) {
    long size = 0, resident = 0;
    if (std::sscanf(text_of(fmt::format("/proc/{}/statm", process)).c_str(), "%ld %ld", &size,
                    &resident) == 2)
      usage.memory_bytes += resident * page;
    usage.hidden_bytes += hidden_bytes(process, seen);
  }
  return usage;
}

}  // namespace tilewright::fleet
