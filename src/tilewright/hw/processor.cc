#include "tilewright/hw/processor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "tilewright/base/file.h"
#include "tilewright/hw/target_file.h"

#if defined(__x86_64__)
#include <cpuid.h>

#include <cstring>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace tilewright::hw {
namespace {

using Names = std::vector<std::string>;

/// Both sorted.
bool has_all(const Names& features, const Names& wanted) {
  return std::includes(features.begin(), features.end(), wanted.begin(), wanted.end());
}

/// A processor of LLVM's, with the features beyond a level that tell it from those below it.
struct KnownProcessor {
  const char* name;
  int level;  ///< 3 or 4
  Names beyond;
};
// Newest first. Features that hypervisors often hide (AMX) are not asked for: they change no
// timing. source: LLVM 19, llvm/lib/Target/X86/X86.td.
const KnownProcessor kIntel[] = {
    {"sapphirerapids", 4, {"+avx512bf16", "+avx512vbmi2", "+avx512vnni", "+avxvnni"}},
    {"icelake-server", 4, {"+avx512vbmi2", "+avx512vnni"}},
    {"cooperlake", 4, {"+avx512bf16", "+avx512vnni"}},
    {"cascadelake", 4, {"+avx512vnni"}},
    {"skylake-avx512", 4, {}},
    {"alderlake", 3, {"+avxvnni", "+vaes"}},
    {"skylake", 3, {"+clflushopt"}},
    {"haswell", 3, {}}};
const KnownProcessor kAmd[] = {
    {"znver5", 4, {"+avx512bf16", "+avx512vbmi2", "+avx512vnni", "+avxvnni"}},
    {"znver4", 4, {"+avx512bf16", "+avx512vbmi2", "+avx512vnni"}},
    {"znver3", 3, {"+clwb", "+vaes"}},
    {"znver2", 3, {"+clwb"}},
    {"znver1", 3, {}}};

template <size_t N>
std::string newest(const KnownProcessor (&known)[N], const CpuFacts& facts) {
  for (const KnownProcessor& processor : known)
    if (has_all(facts.features, cpu_levels().at(processor.level - 2).features) &&
        has_all(facts.features, processor.beyond))
      return processor.name;
  return level_of(facts).name;
}

#if defined(__x86_64__)

struct FeatureRow {
  const char* name;
  unsigned leaf, subleaf;
  char reg;  // a, b, c, d
  int bit;
};
// source: Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E.
constexpr FeatureRow kFeatureRows[] = {{"+sse3", 1, 0, 'c', 0},
                                       {"+ssse3", 1, 0, 'c', 9},
                                       {"+fma", 1, 0, 'c', 12},
                                       {"+cx16", 1, 0, 'c', 13},
                                       {"+sse4.1", 1, 0, 'c', 19},
                                       {"+sse4.2", 1, 0, 'c', 20},
                                       {"+movbe", 1, 0, 'c', 22},
                                       {"+popcnt", 1, 0, 'c', 23},
                                       {"+avx", 1, 0, 'c', 28},
                                       {"+f16c", 1, 0, 'c', 29},
                                       {"+bmi", 7, 0, 'b', 3},
                                       {"+avx2", 7, 0, 'b', 5},
                                       {"+bmi2", 7, 0, 'b', 8},
                                       {"+avx512f", 7, 0, 'b', 16},
                                       {"+avx512dq", 7, 0, 'b', 17},
                                       {"+avx512ifma", 7, 0, 'b', 21},
                                       {"+clflushopt", 7, 0, 'b', 23},
                                       {"+clwb", 7, 0, 'b', 24},
                                       {"+avx512cd", 7, 0, 'b', 28},
                                       {"+avx512bw", 7, 0, 'b', 30},
                                       {"+avx512vl", 7, 0, 'b', 31},
                                       {"+avx512vbmi", 7, 0, 'c', 1},
                                       {"+avx512vbmi2", 7, 0, 'c', 6},
                                       {"+gfni", 7, 0, 'c', 8},
                                       {"+vaes", 7, 0, 'c', 9},
                                       {"+avx512vnni", 7, 0, 'c', 11},
                                       {"+avx512bitalg", 7, 0, 'c', 12},
                                       {"+avx512vpopcntdq", 7, 0, 'c', 14},
                                       {"+avx512fp16", 7, 0, 'd', 23},
                                       {"+avxvnni", 7, 1, 'a', 4},
                                       {"+avx512bf16", 7, 1, 'a', 5},
                                       {"+lzcnt", 0x80000001, 0, 'c', 5},
                                       {"+prfchw", 0x80000001, 0, 'c', 8},
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

/// The registers a feature works on, as bits of the saved state.
uint64_t state_of(const std::string& feature) {
  constexpr uint64_t kYmm = 0x6, kZmm = 0xe6;
  if (feature.starts_with("+avx512")) return kZmm;
  const bool ymm =
      feature.starts_with("+avx") || feature == "+fma" || feature == "+f16c" || feature == "+vaes";
  return ymm ? kYmm : 0;
}

CpuFacts ask() {
  CpuFacts facts;
  unsigned a = 0, b = 0, c = 0, d = 0;
  char vendor[12] = {};
  __get_cpuid(0, &a, &b, &c, &d);
  std::memcpy(vendor, &b, 4), std::memcpy(vendor + 4, &d, 4), std::memcpy(vendor + 8, &c, 4);
  facts.vendor.assign(vendor, sizeof vendor);
  __get_cpuid(1, &a, &b, &c, &d);
  const unsigned base = (a >> 8) & 0xf;
  facts.family = base == 0xf ? base + ((a >> 20) & 0xff) : base;
  facts.model = ((a >> 4) & 0xf) | ((a >> 12) & 0xf0);
  facts.stepping = a & 0xf;
  const uint64_t saved = saved_state();
  for (const FeatureRow& row : kFeatureRows) {
    const uint64_t needed = state_of(row.name);
    if (cpuid_bit(row) && (saved & needed) == needed) facts.features.push_back(row.name);
  }
  std::sort(facts.features.begin(), facts.features.end());
  return facts;
}

#else

/// The number in a line `name : 0xd0c` of /proc/cpuinfo; 0 if there is none.
unsigned cpuinfo(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (const size_t colon = line.find(':'); line.starts_with(name) && colon != std::string::npos)
      return static_cast<unsigned>(std::strtoul(line.c_str() + colon + 1, nullptr, 0));
  return 0;
}

CpuFacts ask() {
  CpuFacts facts;
  facts.vendor = fmt::format("implementer {:#x}", cpuinfo("CPU implementer"));
  facts.model = cpuinfo("CPU part");
  facts.stepping = cpuinfo("CPU variant");
  facts.features = {"+neon"};
#if defined(__aarch64__)
  // source: Linux, arch/arm64/include/uapi/asm/hwcap.h
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  if ((first >> 20) & 1) facts.features.push_back("+dotprod");
  if ((second >> 13) & 1) facts.features.push_back("+i8mm");
  if ((second >> 14) & 1) facts.features.push_back("+bf16");
#endif
  std::sort(facts.features.begin(), facts.features.end());
  return facts;
}

#endif

}  // namespace

const CpuFacts& cpu_facts() {
  static const CpuFacts facts = ask();
  return facts;
}

const std::vector<CpuLevel>& cpu_levels() {
  static const std::vector<CpuLevel> levels = [] {
    std::vector<CpuLevel> found;
    for (const CpuTarget& cpu : file_cpus())
      if (cpu.triple.starts_with("x86_64"))
        found.push_back({cpu.name, cpu.features, cpu.vector_bytes, cpu.vector_registers});
    return found;
  }();
  return levels;
}

CpuLevel level_of(const CpuFacts& facts) {
  CpuLevel found{"x86-64", {}, 16, 16};
  for (const CpuLevel& level : cpu_levels())
    if (has_all(facts.features, level.features)) found = level;
  return found;
}

std::string scheduling_model(const CpuFacts& facts) {
  const bool amd = facts.vendor == "AuthenticAMD" || facts.vendor == "HygonGenuine";
  return amd ? newest(kAmd, facts) : newest(kIntel, facts);
}

std::string fingerprint_text(const Fingerprint& print) {
  const CpuFacts& f = print.facts;
  return fmt::format("{} family {} model {} stepping {}, L1 {} L2 {} L3 {} KiB, {} cores, {}",
                     f.vendor, f.family, f.model, f.stepping, print.l1_bytes >> 10,
                     print.l2_bytes >> 10, print.l3_bytes >> 10, print.cores,
                     fmt::join(f.features, " "));
}

std::string fingerprint_key(const Fingerprint& print) {
  return sha256(fingerprint_text(print)).substr(0, 8);
}

}  // namespace tilewright::hw
