// Targets as data: what lowering, code generation and cost models need to know of a machine.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/hw/rates.h"

namespace tilewright::hw {

/// A CPU; `host()` describes this machine.
struct CpuTarget {
  std::string name;    ///< `cpu`, `x86-64-v3`, ...
  std::string triple;  ///< LLVM target triple
  /// LLVM processor whose instructions code may use without being listed: `x86-64-v4`, `generic`.
  std::string isa;
  std::string cpu;  ///< LLVM processor whose timings instructions are scheduled by: `znver4`
  /// All that code may use: `+avx512f`, ... in LLVM's spelling, sorted; those of `isa` too.
  std::vector<std::string> features;
  std::string machine;    ///< fingerprint_key of the machine; empty: any such processor
  int vector_bytes = 16;  ///< width of a vector register
  int vector_registers = 16;
  int cores = 1;  ///< of this machine: those that the process may use
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 32 << 20;
  CpuRates rates;  ///< assumed for the kind of processor, until those of the machine are loaded

  int lanes(int bits) const { return vector_bytes * 8 / bits; }
  /// The measured rates, or those assumed for this kind of processor where none are loaded.
  CpuRates rates_or_assumed() const {
    return rates.f32 > 0 ? rates : assumed_rates(vector_bytes, cores);
  }
};

/// This machine, asked of CPUID (or the architecture's baseline) and sysfs; cached.
const CpuTarget& host();
/// What its fingerprint is made of.
std::string host_text();
/// A target by name: `cpu` (= host), `x86-64-v2|v3|v4`, `aarch64`, `aarch64-v8.2|v8.6`. errors:
/// Device, with the closed list of names.
Result<CpuTarget> find_target(const std::string& name);
std::vector<CpuTarget> all_targets();
/// Features `target` needs that this machine lacks; empty means it runs here.
std::vector<std::string> missing_features(const CpuTarget& target);
/// `it lacks avx512f, ...` or `it is for aarch64-unknown-linux-gnu`; empty where it runs here.
std::string why_not_here(const CpuTarget& target);

}  // namespace tilewright::hw
