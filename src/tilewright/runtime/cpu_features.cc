// Which of a target's features this processor lacks.
#include <algorithm>

#include "tilewright/runtime/package.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace tilewright::runtime {
namespace {

struct Feature {
  const char* name;  ///< LLVM's spelling
  bool present;
};

#if defined(__x86_64__)
/// The compiler's run-time support also asks whether the system saves the wide registers.
const std::vector<Feature>& known_features() {
  __builtin_cpu_init();
#define TW_FEATURE(llvm, gcc) {"+" llvm, __builtin_cpu_supports(gcc) != 0}
  static const std::vector<Feature> features = {
      TW_FEATURE("sse3", "sse3"),
      TW_FEATURE("ssse3", "ssse3"),
      TW_FEATURE("sse4.1", "sse4.1"),
      TW_FEATURE("sse4.2", "sse4.2"),
      TW_FEATURE("popcnt", "popcnt"),
      TW_FEATURE("avx", "avx"),
      TW_FEATURE("avx2", "avx2"),
      TW_FEATURE("fma", "fma"),
      TW_FEATURE("bmi", "bmi"),
      TW_FEATURE("bmi2", "bmi2"),
      TW_FEATURE("avx512f", "avx512f"),
      TW_FEATURE("avx512bw", "avx512bw"),
      TW_FEATURE("avx512cd", "avx512cd"),
      TW_FEATURE("avx512dq", "avx512dq"),
      TW_FEATURE("avx512vl", "avx512vl"),
      TW_FEATURE("avx512vnni", "avx512vnni"),
      TW_FEATURE("avx512bf16", "avx512bf16"),
      TW_FEATURE("avx512fp16", "avx512fp16"),
      TW_FEATURE("avx512ifma", "avx512ifma"),
      TW_FEATURE("avx512vbmi", "avx512vbmi"),
      TW_FEATURE("avx512vbmi2", "avx512vbmi2"),
      TW_FEATURE("avx512bitalg", "avx512bitalg"),
      TW_FEATURE("avx512vpopcntdq", "avx512vpopcntdq"),
      TW_FEATURE("avxvnni", "avxvnni"),
      TW_FEATURE("gfni", "gfni"),
      TW_FEATURE("vaes", "vaes"),
  };
#undef TW_FEATURE
  return features;
}
constexpr const char* kArchitecture = "x86_64";
#elif defined(__aarch64__)
const std::vector<Feature>& known_features() {
  // source: Linux, arch/arm64/include/uapi/asm/hwcap.h
  static const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  static const std::vector<Feature> features = {{"+neon", true},
                                                {"+dotprod", ((first >> 20) & 1) != 0},
                                                {"+i8mm", ((second >> 13) & 1) != 0},
                                                {"+bf16", ((second >> 14) & 1) != 0}};
  return features;
}
constexpr const char* kArchitecture = "aarch64";
#else
const std::vector<Feature>& known_features() {
  static const std::vector<Feature> features;
  return features;
}
constexpr const char* kArchitecture = "";
#endif

}  // namespace

std::vector<std::string> missing_cpu_features(const TargetSpec& required) {
  const std::string architecture = required.triple.substr(0, required.triple.find('-'));
  if (!architecture.empty() && architecture != kArchitecture) return {architecture};
  std::vector<std::string> missing;
  for (const Feature& feature : known_features())
    if (!feature.present && std::find(required.features.begin(), required.features.end(),
                                      feature.name) != required.features.end())
      missing.push_back(feature.name);
  return missing;
}

}  // namespace tilewright::runtime
