#include "tilewright/hw/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "tilewright/base/available_cpus.h"
#include "tilewright/hw/processor.h"
#include "tilewright/hw/target_file.h"

namespace tilewright::hw {
namespace {

/// Bytes of one cache as Linux reports it (`32K`, `1024K`), or the fallback.
int64_t cache_bytes(int index, int64_t fallback) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
  int64_t size = 0;
  char unit = 0;
  if (!(file >> size >> unit)) return fallback;
  return size * (unit == 'M' ? 1 << 20 : unit == 'K' ? 1 << 10 : 1);
}

CpuTarget detect() {
  const CpuFacts& facts = cpu_facts();
  CpuTarget target;
  target.name = "cpu";
#if defined(__x86_64__)
  const CpuLevel level = level_of(facts);
  target.triple = "x86_64-unknown-linux-gnu";
  target.isa = level.name;
  target.cpu = scheduling_model(facts);
  target.vector_bytes = level.vector_bytes;
  target.vector_registers = level.vector_registers;
#else
  target.triple = "aarch64-unknown-linux-gnu";
  target.isa = target.cpu = "generic";
  target.vector_registers = 32;
#endif
  target.features = facts.features;
  return target;
}

Fingerprint host_fingerprint(const CpuTarget& found) {
  return {cpu_facts(), found.l1_bytes, found.l2_bytes, found.l3_bytes, found.cores};
}

}  // namespace

std::string host_text() { return fingerprint_text(host_fingerprint(host())); }

const CpuTarget& host() {
  static const CpuTarget target = [] {
    CpuTarget found = detect();
    found.cores = usable_cpus();
    found.l1_bytes = cache_bytes(0, found.l1_bytes);
    found.l2_bytes = cache_bytes(2, found.l2_bytes);
    found.l3_bytes = cache_bytes(3, found.l3_bytes);
    found.machine = fingerprint_key(host_fingerprint(found));
    found.rates = assumed_rates(found.vector_bytes, found.cores);
    return found;
  }();
  return target;
}

std::vector<CpuTarget> all_targets() {
  std::vector<CpuTarget> targets = {host()};
  for (const CpuTarget& target : file_cpus()) targets.push_back(target);
  return targets;
}

Result<CpuTarget> find_target(const std::string& name) {
  std::vector<std::string> names;
  for (const CpuTarget& target : all_targets()) {
    if (target.name == name) return target;
    names.push_back(target.name);
  }
  return fail(ErrorKind::Device, fmt::format("there is no target '{}'", name),
              fmt::format("the targets are {}", fmt::join(names, ", ")), "tilewright targets");
}

std::vector<std::string> missing_features(const CpuTarget& target) {
  if (target.triple != host().triple) return {target.triple};
  std::vector<std::string> missing;
  for (const std::string& feature : target.features)
    if (!std::binary_search(host().features.begin(), host().features.end(), feature))
      missing.push_back(feature);
  return missing;
}

std::string why_not_here(const CpuTarget& target) {
  if (target.triple != host().triple) return "it is for " + target.triple;
  const std::vector<std::string> missing = missing_features(target);
  return missing.empty() ? "" : fmt::format("it lacks {}", fmt::join(missing, ", "));
}

}  // namespace tilewright::hw
