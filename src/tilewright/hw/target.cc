#include "tilewright/hw/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "tilewright/base/available_cpus.h"
#include "tilewright/hw/processor.h"

namespace tilewright::hw {
namespace {

CpuTarget x86_target(std::string name, const CpuLevel& level) {
  CpuTarget target;
  target.name = std::move(name);
  target.triple = "x86_64-unknown-linux-gnu";
  target.isa = target.cpu = level.name;
  target.features = level.features;
  target.vector_bytes = level.vector_bytes;
  target.vector_registers = level.vector_registers;
  return target;
}

/// The baseline, and versions of the architecture by the dot products they bring.
/// source: Arm Architecture Reference Manual, A2: FEAT_DotProd, FEAT_I8MM, FEAT_BF16.
CpuTarget aarch64(std::string name = "aarch64", std::vector<std::string> features = {"+neon"}) {
  CpuTarget target;
  target.name = std::move(name);
  target.triple = "aarch64-unknown-linux-gnu";
  target.isa = target.cpu = "generic";
  target.features = std::move(features);
  target.vector_registers = 32;
  return target;
}

std::vector<CpuTarget> named_targets() {
  std::vector<CpuTarget> targets;
  for (const CpuLevel& level : cpu_levels()) targets.push_back(x86_target(level.name, level));
  targets.push_back(aarch64());
  targets.push_back(aarch64("aarch64-v8.2", {"+dotprod", "+neon"}));
  targets.push_back(aarch64("aarch64-v8.6", {"+bf16", "+dotprod", "+i8mm", "+neon"}));
  for (CpuTarget& target : targets) target.rates = assumed_rates(target.vector_bytes, target.cores);
  return targets;
}

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
#if defined(__x86_64__)
  const CpuLevel level = level_of(facts);
  CpuTarget target = x86_target("cpu", level);
  target.isa = level.name;
  target.cpu = scheduling_model(facts);
#else
  CpuTarget target = aarch64("cpu");
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
  for (CpuTarget& target : named_targets()) targets.push_back(std::move(target));
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

}  // namespace tilewright::hw
