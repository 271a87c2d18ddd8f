#include "tilewright/codegen/gpu/nvrtc.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "tilewright/base/dynamic_library.h"

namespace tilewright::codegen {
namespace {

using Program = struct NvrtcProgram*;
using NvrtcResult = int;
constexpr NvrtcResult kSuccess = 0, kCompilation = 6;

/// NVRTC's entry points. source: NVRTC documentation 13.0, section 3.
struct Nvrtc {
  NvrtcResult (*version)(int*, int*) = nullptr;
  const char* (*error_text)(NvrtcResult) = nullptr;
  NvrtcResult (*count_archs)(int*) = nullptr;
  NvrtcResult (*archs)(int*) = nullptr;
  NvrtcResult (*create)(Program*, const char* text, const char* name, int headers,
                        const char* const*, const char* const*) = nullptr;
  NvrtcResult (*destroy)(Program*) = nullptr;
  NvrtcResult (*compile)(Program, int count, const char* const* options) = nullptr;
  NvrtcResult (*log_size)(Program, size_t*) = nullptr;
  NvrtcResult (*log)(Program, char*) = nullptr;
  NvrtcResult (*ptx_size)(Program, size_t*) = nullptr;
  NvrtcResult (*ptx)(Program, char*) = nullptr;
  NvrtcResult (*cubin_size)(Program, size_t*) = nullptr;
  NvrtcResult (*cubin)(Program, char*) = nullptr;

  Status check(NvrtcResult code, const char* call) const {
    if (code == kSuccess) return {};
    return fail(ErrorKind::Tool, fmt::format("NVRTC: {} failed", call),
                fmt::format("{} (code {})", error_text(code), code));
  }
};

Result<Nvrtc> load_nvrtc() {
  const Result<DynamicLibrary> library =
      DynamicLibrary::open("TILEWRIGHT_NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
  if (!library)
    return fail(ErrorKind::Tool, "CUDA's compiler NVRTC is not there",
                library.error().what + ": " + library.error().why,
                "install a CUDA toolkit from 12 on, or `pip install nvidia-cuda-nvrtc` and set "
                "TILEWRIGHT_NVRTC to its libnvrtc.so");
  Nvrtc api;
  TW_TRY_STATUS(library->bind(api.version, "nvrtcVersion"));
  TW_TRY_STATUS(library->bind(api.error_text, "nvrtcGetErrorString"));
  TW_TRY_STATUS(library->bind(api.count_archs, "nvrtcGetNumSupportedArchs"));
  TW_TRY_STATUS(library->bind(api.archs, "nvrtcGetSupportedArchs"));
  TW_TRY_STATUS(library->bind(api.create, "nvrtcCreateProgram"));
  TW_TRY_STATUS(library->bind(api.destroy, "nvrtcDestroyProgram"));
  TW_TRY_STATUS(library->bind(api.compile, "nvrtcCompileProgram"));
  TW_TRY_STATUS(library->bind(api.log_size, "nvrtcGetProgramLogSize"));
  TW_TRY_STATUS(library->bind(api.log, "nvrtcGetProgramLog"));
  TW_TRY_STATUS(library->bind(api.ptx_size, "nvrtcGetPTXSize"));
  TW_TRY_STATUS(library->bind(api.ptx, "nvrtcGetPTX"));
  TW_TRY_STATUS(library->bind(api.cubin_size, "nvrtcGetCUBINSize"));
  TW_TRY_STATUS(library->bind(api.cubin, "nvrtcGetCUBIN"));
  return api;
}

Result<std::string> version_of(const Nvrtc& api) {
  int major = 0, minor = 0;
  TW_TRY_STATUS(api.check(api.version(&major, &minor), "nvrtcVersion"));
  return fmt::format("{}.{}", major, minor);
}

/// Whether this NVRTC knows `sm_90a` by its number, 90.
Status check_arch(const Nvrtc& api, const std::string& arch) {
  int number = 0, count = 0;
  if (arch.starts_with("sm_")) std::from_chars(arch.data() + 3, arch.data() + arch.size(), number);
  TW_TRY_STATUS(api.check(api.count_archs(&count), "nvrtcGetNumSupportedArchs"));
  std::vector<int> known(static_cast<size_t>(count));
  TW_TRY_STATUS(api.check(api.archs(known.data()), "nvrtcGetSupportedArchs"));
  for (const int each : known)
    if (each == number) return {};
  return fail(ErrorKind::Unsupported,
              fmt::format("NVRTC {} cannot compile for '{}'", TW_TRY(version_of(api)), arch),
              fmt::format("it knows sm_{}", fmt::join(known, ", sm_")));
}

/// Frees a program at the end of a scope.
struct ProgramOwner {
  const Nvrtc& api;
  Program program = nullptr;
  ~ProgramOwner() {
    if (program != nullptr) api.destroy(&program);
  }
};

/// One of the texts that NVRTC keeps of a program.
Result<std::string> fetch(const Nvrtc& api, Program program,
                          NvrtcResult (*size_of)(Program, size_t*),
                          NvrtcResult (*get)(Program, char*), const char* what) {
  size_t size = 0;
  TW_TRY_STATUS(api.check(size_of(program, &size), what));
  std::string text(size, '\0');
  if (size > 0) TW_TRY_STATUS(api.check(get(program, text.data()), what));
  return text;
}

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
  return text;
}

/// The number right before `unit` in a line, or 0.
int64_t number_before(std::string_view line, std::string_view unit) {
  const size_t end = line.find(unit);
  if (end == std::string_view::npos) return 0;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t number = 0;
  std::from_chars(line.data() + begin, line.data() + end, number);
  return number;
}

}  // namespace

std::vector<CudaKernelUse> parse_ptxas_log(std::string_view log) {
  constexpr std::string_view kEntry = "Compiling entry function '";
  std::vector<CudaKernelUse> kernels;
  while (!log.empty()) {
    const size_t length = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, length);
    log.remove_prefix(std::min(length + 1, log.size()));
    if (const size_t at = line.find(kEntry); at != std::string_view::npos) {
      const std::string_view symbol = line.substr(at + kEntry.size());
      kernels.push_back({std::string(symbol.substr(0, symbol.find('\''))), 0, 0, 0, 0});
    }
    if (kernels.empty()) continue;
    CudaKernelUse& use = kernels.back();
    use.registers += number_before(line, " registers");
    use.shared_bytes += number_before(line, " bytes smem");
    use.stack_bytes += number_before(line, " bytes stack frame");
    use.spill_bytes +=
        number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
  }
  return kernels;
}

Result<std::string> nvrtc_version() {
  const Nvrtc api = TW_TRY(load_nvrtc());
  return version_of(api);
}

Result<CudaCode> compile_cuda(const std::string& source, const std::string& arch) {
  const Nvrtc api = TW_TRY(load_nvrtc());
  TW_TRY_STATUS(check_arch(api, arch));
  ProgramOwner owner{api};
  TW_TRY_STATUS(
      api.check(api.create(&owner.program, source.c_str(), "kernels.cu", 0, nullptr, nullptr),
                "nvrtcCreateProgram"));
  const std::string target = "--gpu-architecture=" + arch;
  const char* options[] = {target.c_str(), "--std=c++17", "--ptxas-options=-v"};
  const NvrtcResult code = api.compile(owner.program, 3, options);
  if (code != kSuccess && code != kCompilation)
    return tl::unexpected<Error>(api.check(code, "nvrtcCompileProgram").error());
  const std::string log =
      without_end(TW_TRY(fetch(api, owner.program, api.log_size, api.log, "the log")));
  if (code == kCompilation)
    return fail(ErrorKind::Tool, fmt::format("NVRTC does not compile the program for {}", arch),
                log);
  CudaCode result;
  result.kernels = parse_ptxas_log(log);
  result.cubin = TW_TRY(fetch(api, owner.program, api.cubin_size, api.cubin, "nvrtcGetCUBIN"));
  result.ptx = without_end(TW_TRY(fetch(api, owner.program, api.ptx_size, api.ptx, "nvrtcGetPTX")));
  if (result.cubin.empty())
    return fail(ErrorKind::Tool, fmt::format("NVRTC gives a cubin of 0 bytes for {}", arch));
  return result;
}

}  // namespace tilewright::codegen
