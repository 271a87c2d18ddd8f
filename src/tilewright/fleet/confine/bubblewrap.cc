#include "tilewright/fleet/confine/bubblewrap.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace tilewright::fleet {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTemporaryBytes = 16 << 20;  ///< of /tmp and /dev/shm, which are memory

using Words = std::vector<std::string>;

void add(Words& words, Words more) {
  words.insert(words.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

/// /lib64 and the like: links into /usr on most systems.
void add_system(Words& words) {
  add(words, {"--ro-bind", "/usr", "/usr"});
  for (const char* folder : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code error;
    if (fs::is_symlink(folder, error))
      add(words, {"--symlink", fs::read_symlink(folder, error).string(), folder});
    else if (fs::is_directory(folder, error))
      add(words, {"--ro-bind", folder, folder});
  }
  for (const char* path : {"/etc/ld.so.cache", "/etc/alternatives", "/sys/devices/system/cpu"})
    add(words, {"--ro-bind-try", path, path});
  const std::string bytes = std::to_string(kTemporaryBytes);
  add(words, {"--proc", "/proc", "--dev", "/dev", "--size", bytes, "--tmpfs", "/tmp"});
  add(words, {"--size", bytes, "--tmpfs", "/dev/shm"});
}

/// The number behind `"key": `; -1: no such key.
int number_of(const std::string& text, const std::string& key) {
  const std::string quoted = "\"" + key + "\":";
  const size_t at = text.find(quoted);
  return at == std::string::npos ? -1 : std::atoi(text.c_str() + at + quoted.size());
}

}  // namespace

std::vector<std::string> system_folders() {
  std::vector<std::string> folders = {"/usr"};
  for (const char* folder : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code error;
    if (fs::is_directory(folder, error) && !fs::is_symlink(folder, error))
      folders.emplace_back(folder);
  }
  // Of /proc no more than what libraries count processors and memory by.
  for (const char* path : {"/etc/ld.so.cache", "/etc/alternatives", "/sys/devices/system/cpu",
                           "/proc/cpuinfo", "/proc/meminfo"})
    if (::access(path, R_OK) == 0) folders.emplace_back(path);
  return folders;
}

std::vector<std::string> bubblewrap_command(const Confined& confined, const std::string& program,
                                            const std::vector<std::string>& environment, int status,
                                            int filter) {
  Words words = {
      "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop",
      "ALL"};
  add_system(words);
  add(words, {"--ro-bind", program, program});
  for (const std::string& path : confined.read_only) add(words, {"--ro-bind", path, path});
  add(words, {"--bind", confined.writable_folder, confined.writable_folder});
  for (const std::string& device : confined.devices) add(words, {"--dev-bind", device, device});
  // What holds all these is memory too, and would take files without limit.
  add(words, {"--remount-ro", "/dev", "--remount-ro", "/"});
  for (const std::string& variable : environment) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    add(words, {"--setenv", variable.substr(0, equals), variable.substr(equals + 1)});
  }
  add(words, {"--chdir", confined.writable_folder, "--json-status-fd", std::to_string(status),
              "--seccomp", std::to_string(filter), "--"});
  return words;
}

BubblewrapStatus parse_status(const std::string& text) {
  return {number_of(text, "child-pid"), number_of(text, "exit-code") >= 0};
}

}  // namespace tilewright::fleet
