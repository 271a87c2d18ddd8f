// What CPUID tells of a processor, and what follows from it. Pure functions: tables of facts test
// them without the processors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::hw {

/// A processor by its own account. A hypervisor may hide features, so they count and not the model.
struct CpuFacts {
  std::string vendor;  ///< `GenuineIntel`, `AuthenticAMD`, ...; of Arm processors the implementer
  unsigned family = 0, model = 0, stepping = 0;  ///< of Arm processors 0, part and variant
  /// `+avx512f`, ... in LLVM's spelling, sorted; only those whose registers the system saves too.
  std::vector<std::string> features;
};
/// This machine's; asked once.
const CpuFacts& cpu_facts();

/// A level of the x86-64 architecture: a set of features that software agrees on.
struct CpuLevel {
  std::string name;  ///< `x86-64-v3`
  std::vector<std::string> features;
  int vector_bytes = 16, vector_registers = 16;
};
/// All levels above the baseline, lowest first: the files hw/x86-64-v*.toml.
const std::vector<CpuLevel>& cpu_levels();
/// The highest level whose features are all present; `x86-64` if none is.
CpuLevel level_of(const CpuFacts& facts);

/// LLVM's processor whose timings come nearest: the newest of the vendor that has no feature which
/// `facts` lack, so that an unknown newer one is treated as the newest known. For vendors that LLVM
/// does not know, Intel's. Without AVX2, the name of the level.
std::string scheduling_model(const CpuFacts& facts);

/// What tells machines apart whose code or speed may differ.
struct Fingerprint {
  CpuFacts facts;
  int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  int cores = 1;  ///< that the process may use
};
/// Every field, for people and for the hash: `AuthenticAMD family 25 model 17 stepping 1, ...`.
std::string fingerprint_text(const Fingerprint& print);
/// Eight hexadecimal digits of its hash.
std::string fingerprint_key(const Fingerprint& print);

}  // namespace tilewright::hw
