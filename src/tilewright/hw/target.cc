#include "tilewright/hw/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace tilewright::hw {
namespace {

const std::vector<std::string> kV2 = {"+cx16",   "+popcnt", "+sahf", "+sse3",
                                      "+sse4.1", "+sse4.2", "+ssse3"};
const std::vector<std::string> kV3 = {"+avx",  "+avx2", "+bmi",   "+bmi2",
                                      "+f16c", "+fma",  "+lzcnt", "+movbe"};
const std::vector<std::string> kV4 = {"+avx512bw", "+avx512cd", "+avx512dq", "+avx512f",
                                      "+avx512vl"};

std::vector<std::string> merged(std::initializer_list<std::vector<std::string>> parts) {
  std::vector<std::string> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  std::sort(all.begin(), all.end());
  return all;
}

CpuTarget x86_level(std::string name, std::vector<std::string> features, int vector_bytes,
                    int registers) {
  CpuTarget target;
  target.name = name;
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = std::move(name);
  target.features = std::move(features);
  target.vector_bytes = vector_bytes;
  target.vector_registers = registers;
  return target;
}

/// The baseline, and versions of the architecture by the dot products they bring.
/// source: Arm Architecture Reference Manual, A2: FEAT_DotProd, FEAT_I8MM, FEAT_BF16.
CpuTarget aarch64(std::string name = "aarch64", std::vector<std::string> features = {"+neon"}) {
  CpuTarget target;
  target.name = std::move(name);
  target.triple = "aarch64-unknown-linux-gnu";
  target.cpu = "generic";
  target.features = std::move(features);
  target.vector_registers = 32;
  return target;
}

std::vector<CpuTarget> named_targets() {
  std::vector<CpuTarget> targets = {
      x86_level("x86-64-v2", kV2, 16, 16),
      x86_level("x86-64-v3", merged({kV2, kV3}), 32, 16),
      x86_level("x86-64-v4", merged({kV2, kV3, kV4}), 64, 32),
      aarch64(),
      aarch64("aarch64-v8.2", {"+dotprod", "+neon"}),
      aarch64("aarch64-v8.6", {"+bf16", "+dotprod", "+i8mm", "+neon"})};
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

#if defined(__x86_64__)

struct FeatureRow {
  const char* name;
  unsigned leaf, subleaf;
  char reg;  // a, b, c, d
  int bit;
};
// source: Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E.
constexpr FeatureRow kFeatureRows[] = {
    {"+sse3", 1, 0, 'c', 0},         {"+ssse3", 1, 0, 'c', 9},
    {"+fma", 1, 0, 'c', 12},         {"+cx16", 1, 0, 'c', 13},
    {"+sse4.1", 1, 0, 'c', 19},      {"+sse4.2", 1, 0, 'c', 20},
    {"+movbe", 1, 0, 'c', 22},       {"+popcnt", 1, 0, 'c', 23},
    {"+avx", 1, 0, 'c', 28},         {"+f16c", 1, 0, 'c', 29},
    {"+bmi", 7, 0, 'b', 3},          {"+avx2", 7, 0, 'b', 5},
    {"+bmi2", 7, 0, 'b', 8},         {"+avx512f", 7, 0, 'b', 16},
    {"+avx512dq", 7, 0, 'b', 17},    {"+avx512cd", 7, 0, 'b', 28},
    {"+avx512bw", 7, 0, 'b', 30},    {"+avx512vl", 7, 0, 'b', 31},
    {"+avx512vnni", 7, 0, 'c', 11},  {"+avxvnni", 7, 1, 'a', 4},
    {"+avx512bf16", 7, 1, 'a', 5},   {"+lzcnt", 0x80000001, 0, 'c', 5},
    {"+sahf", 0x80000001, 0, 'c', 0}};

bool cpuid_bit(const FeatureRow& row) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(row.leaf, row.subleaf, &a, &b, &c, &d)) return false;
  const unsigned value = row.reg == 'a' ? a : row.reg == 'b' ? b : row.reg == 'c' ? c : d;
  return (value >> row.bit) & 1;
}

/// The operating system must save the wide registers too, else their instructions fault.
uint64_t saved_state() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !((c >> 27) & 1)) return 0;
  unsigned lo = 0, hi = 0;
  __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return (static_cast<uint64_t>(hi) << 32) | lo;
}

/// LLVM's name for this processor, or the highest level it reaches.
std::string processor_name(const std::string& level) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  __get_cpuid(0, &a, &b, &c, &d);
  const bool amd = b == 0x68747541;
  __get_cpuid(1, &a, &b, &c, &d);
  const unsigned base = (a >> 8) & 0xf;
  const unsigned family = base == 0xf ? base + ((a >> 20) & 0xff) : base;
  const unsigned model = ((a >> 4) & 0xf) | ((a >> 12) & 0xf0);
  if (amd && family == 0x1a) return "znver5";
  if (amd && family == 0x19) {
    const bool zen4 = (model >= 0x10 && model <= 0x1f) || (model >= 0x60 && model <= 0xaf);
    return zen4 ? "znver4" : "znver3";
  }
  if (!amd && family == 6 && model == 0x8f) return "sapphirerapids";
  if (!amd && family == 6 && model == 0x6a) return "icelake-server";
  if (!amd && family == 6 && model == 0x55) return "skylake-avx512";
  return level;
}

CpuTarget detect() {
  constexpr uint64_t kYmmState = 0x6, kZmmState = 0xe6;
  const uint64_t saved = saved_state();
  CpuTarget target = x86_level("cpu", {}, 16, 16);
  for (const FeatureRow& row : kFeatureRows) {
    const std::string feature = row.name;
    const bool zmm = feature.starts_with("+avx512");
    const bool ymm = feature.starts_with("+avx") || feature == "+fma" || feature == "+f16c";
    const uint64_t needed = zmm ? kZmmState : ymm ? kYmmState : 0;
    if (cpuid_bit(row) && (saved & needed) == needed) target.features.push_back(feature);
  }
  std::sort(target.features.begin(), target.features.end());
  std::string level = "x86-64";
  for (const CpuTarget& named : named_targets()) {
    if (named.triple != target.triple) continue;
    if (!std::includes(target.features.begin(), target.features.end(), named.features.begin(),
                       named.features.end()))
      continue;
    level = named.name;
    target.vector_bytes = named.vector_bytes;
    target.vector_registers = named.vector_registers;
  }
  target.cpu = processor_name(level);
  return target;
}

#else

CpuTarget detect() {
  CpuTarget target = aarch64("cpu");
#if defined(__aarch64__)
  // source: Linux, arch/arm64/include/uapi/asm/hwcap.h
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  if ((first >> 20) & 1) target.features.push_back("+dotprod");
  if ((second >> 13) & 1) target.features.push_back("+i8mm");
  if ((second >> 14) & 1) target.features.push_back("+bf16");
  std::sort(target.features.begin(), target.features.end());
#endif
  return target;
}

#endif

}  // namespace

const CpuTarget& host() {
  static const CpuTarget target = [] {
    CpuTarget found = detect();
    found.cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    found.l1_bytes = cache_bytes(0, found.l1_bytes);
    found.l2_bytes = cache_bytes(2, found.l2_bytes);
    found.l3_bytes = cache_bytes(3, found.l3_bytes);
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
