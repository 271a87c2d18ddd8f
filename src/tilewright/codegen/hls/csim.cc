#include "tilewright/codegen/hls/csim.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "hls_headers_text.h"
#include "tilewright/base/cache.h"
#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/runtime/sha256.h"

namespace tilewright::codegen {
namespace {

namespace fs = std::filesystem;
constexpr double kLimitSeconds = 600;
constexpr const char* kCompiler = "g++";

/// Warnings are errors: pragmas of the vendor aside, the text is clean. What a program computes is
/// its own business, as `0 > (a != b)`.
const std::vector<std::string>& flags() {
  static const std::vector<std::string> all = {
      "-std=c++17", "-O1", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-Wno-bool-compare",
      "-Wno-bool-operation", "-Wno-int-in-bool-context", "-ffp-contract=off", "-shared", "-fPIC",
      "-pthread", "-fno-strict-aliasing",
      // Each library has a state of its own, which goes when it is closed.
      "-fno-gnu-unique"};
  return all;
}

/// What entries (host.h) use.
constexpr const char* kMemory = R"c(
#include <cstdlib>
#include <cstring>
namespace tw_csim {
/* A copy of a caller's memory that begins and ends with a word. */
class Memory {
 public:
  Memory(void* caller, int64_t bytes) : caller_(caller), bytes_(bytes) {
    const size_t size = (static_cast<size_t>(bytes) + 64) / 64 * 64;
    data_ = std::aligned_alloc(64, size);
    std::memset(data_, 0, size);
    if (caller != nullptr) std::memcpy(data_, caller, static_cast<size_t>(bytes));
  }
  Memory(const Memory&) = delete;
  ~Memory() { std::free(data_); }
  void* data() { return data_; }
  void copy_back() { std::memcpy(caller_, data_, static_cast<size_t>(bytes_)); }

 private:
  void *caller_, *data_;
  int64_t bytes_;
};
inline void begin() { state().error.clear(); }
}
extern "C" const char* tw_csim_error() { return tw_csim::state().error.c_str(); }
)c";

std::string unit(const std::vector<HlsKernel>& kernels) {
  std::string out = "#include \"tw_processes.h\"\n#include \"hls_streamofblocks.h\"\n";
  out += kMemory;
  for (size_t i = 0; i < kernels.size(); ++i)
    out += fmt::format(
        "\n#include \"k{0}/tw_arithmetic.h\"\nnamespace k{0} {{\n"
        "#include \"k{0}/kernel.cpp\"\n{1}}}\n",
        i, kernels[i].csim);
  return out;
}

Status write_sources(const std::vector<HlsKernel>& kernels, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder + "/include", error);
  for (const HlsHeader& header : kHlsHeaders)
    TW_TRY_STATUS(
        write_file(fmt::format("{}/include/{}", folder, header.name), std::string(header.text)));
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string own = fmt::format("{}/k{}", folder, i);
    fs::create_directories(own, error);
    for (const char* name : {"kernel.cpp", "kernel.h", "tw_arithmetic.h"})
      TW_TRY_STATUS(write_file(own + "/" + name, kernels[i].files.at(name)));
  }
  return write_file(folder + "/csim.cc", unit(kernels));
}

std::string key_of(const std::vector<HlsKernel>& kernels) {
  std::string all = unit(kernels) + fmt::format("{}", fmt::join(flags(), " "));
  for (const HlsHeader& header : kHlsHeaders) all += header.text;
  for (const HlsKernel& kernel : kernels)
    for (const auto& [name, text] : kernel.files) all += name + text;
  return sha256(all).substr(0, 32);
}

Status compile(const std::vector<HlsKernel>& kernels, const std::string& cache,
               const std::string& library) {
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create(cache));
  TW_TRY_STATUS(write_sources(kernels, folder.path()));
  std::vector<std::string> argv = {kCompiler};
  argv.insert(argv.end(), flags().begin(), flags().end());
  argv.insert(argv.end(), {"-Iinclude", "-o", "csim.so", "csim.cc", "-lm"});
  ToolOptions options;
  options.folder = folder.path();
  options.limit_seconds = kLimitSeconds;
  TW_TRY(run_checked(argv, options));
  std::error_code error;
  fs::rename(folder.file("csim.so"), library, error);
  if (error) return fail(ErrorKind::Io, fmt::format("cannot write '{}'", library), error.message());
  return {};
}

}  // namespace

Result<CsimLibrary> CsimLibrary::build(const std::vector<HlsKernel>& kernels) {
  const std::string cache = TW_TRY(cache_folder("csim"));
  const std::string library = fmt::format("{}/{}.so", cache, key_of(kernels));
  if (!fs::exists(library)) TW_TRY_STATUS(compile(kernels, cache, library));
  CsimLibrary out;
  out.handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (out.handle_ == nullptr)
    return fail(ErrorKind::Tool, fmt::format("cannot load '{}'", library), dlerror());
  out.error_ = reinterpret_cast<const char* (*)()>(dlsym(out.handle_, "tw_csim_error"));
  return out;
}

CsimLibrary::~CsimLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

tw_kernel CsimLibrary::find(const HlsKernel& kernel) const {
  return reinterpret_cast<tw_kernel>(dlsym(handle_, kernel.info.symbol.c_str()));
}

Status CsimLibrary::finished() const {
  const std::string error = error_ == nullptr ? "" : error_();
  if (!error.empty()) return fail(ErrorKind::Mismatch, error);
  return {};
}

}  // namespace tilewright::codegen
