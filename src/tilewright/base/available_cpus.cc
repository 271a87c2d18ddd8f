#include "tilewright/base/available_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <thread>
#include <utility>

namespace tilewright {
namespace {

/// The first two words of a file; empty ones where it has fewer or is not there.
std::pair<std::string, std::string> words_of(const std::string& path) {
  std::ifstream file(path);
  std::pair<std::string, std::string> words;
  file >> words.first >> words.second;
  return words;
}

/// Time granted / period, of texts such as `150000` and `100000`; absent for `max`, -1 or nothing.
std::optional<double> share(const std::string& granted, const std::string& period) {
  const double time = std::atof(granted.c_str()), of = std::atof(period.c_str());
  return time > 0 && of > 0 ? std::optional(time / of) : std::nullopt;
}

/// One group of a process: a line `4:cpu,cpuacct:/user.slice` or `0::/user.slice` (version 2).
struct Group {
  std::string controllers, path;

  bool version_2() const { return controllers.empty(); }
  bool has_cpu() const { return ("," + controllers + ",").find(",cpu,") != std::string::npos; }
};

std::optional<Group> parse_group(const std::string& line) {
  const size_t first = line.find(':');
  const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
  if (second == std::string::npos) return std::nullopt;
  return Group{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

/// Calls `visit` with the folder of `path` below `mount` and of each group above it. Inside a
/// container the path may be that of the host, of which only the end of the way is there.
template <class Visit>
void each_folder(const std::string& mount, std::string path, Visit&& visit) {
  while (!path.empty() && path != "/") {
    visit(mount + path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  visit(mount);
}

}  // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  if (cpus.empty()) {
    cpus.resize(std::max(1u, std::thread::hardware_concurrency()));
    std::iota(cpus.begin(), cpus.end(), 0);
  }
  return cpus;
}

std::optional<double> cpu_quota(const std::string& root) {
  std::optional<double> least;
  const auto take = [&](std::optional<double> quota) {
    if (quota && (!least || *quota < *least)) least = quota;
  };
  const std::string mount = root + "/sys/fs/cgroup";
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::optional<Group> group = parse_group(line);
    if (!group) continue;
    if (group->version_2()) {
      each_folder(mount, group->path, [&](const std::string& folder) {
        const auto [granted, period] = words_of(folder + "/cpu.max");
        take(share(granted, period));
      });
    } else if (group->has_cpu()) {
      for (const std::string& name : {std::string("cpu"), group->controllers})
        each_folder(mount + "/" + name, group->path, [&](const std::string& folder) {
          take(share(words_of(folder + "/cpu.cfs_quota_us").first,
                     words_of(folder + "/cpu.cfs_period_us").first));
        });
    }
  }
  return least;
}

int usable_cpus(size_t allowed, std::optional<double> quota) {
  const double cpus = std::max(1.0, static_cast<double>(allowed));
  return static_cast<int>(quota ? std::clamp(std::round(*quota), 1.0, cpus) : cpus);
}

int usable_cpus() { return usable_cpus(allowed_cpus().size(), cpu_quota()); }

}  // namespace tilewright
