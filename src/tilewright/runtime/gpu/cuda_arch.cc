#include "tilewright/runtime/gpu/cuda_arch.h"

#include <fmt/format.h>

#include <charconv>

namespace tilewright::runtime {

std::optional<CudaArch> parse_cuda_arch(std::string_view text) {
  if (!text.starts_with("sm_")) return std::nullopt;
  text.remove_prefix(3);
  CudaArch arch;
  if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) {
    arch.suffix = text.back();
    text.remove_suffix(1);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), arch.number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return arch.number >= 10 && arch.number <= 9999 ? std::optional(arch) : std::nullopt;
}

std::string to_string(const CudaArch& arch) {
  return arch.suffix == 0 ? fmt::format("sm_{}", arch.number)
                          : fmt::format("sm_{}{}", arch.number, arch.suffix);
}

bool cubin_runs_on(const CudaArch& code, int device) {
  if (code.suffix == 'a') return code.number == device;
  return code.number / 10 == device / 10 && code.number <= device;
}

bool ptx_runs_on(const CudaArch& code, int device) {
  if (code.suffix == 'a') return code.number == device;
  if (code.suffix == 'f') return code.number / 10 == device / 10 && code.number <= device;
  return code.number <= device;
}

}  // namespace tilewright::runtime
