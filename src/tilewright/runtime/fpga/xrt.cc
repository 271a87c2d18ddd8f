#include "tilewright/runtime/fpga/xrt.h"

#include <fmt/format.h>

#include <filesystem>

#include "tilewright/base/dynamic_library.h"
#include "tilewright/runtime/fpga/xrt_plugin.h"

namespace tilewright::runtime {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPlugin = "libtilewright_xrt.so";

struct XrtCalls {
  decltype(&tw_xrt_card) card = nullptr;
  decltype(&tw_xrt_open) open = nullptr;
  decltype(&tw_xrt_run) run = nullptr;
};

/// The library beside the program, in the folder `lib` beside the program's, or where the loader
/// looks.
Result<XrtCalls> load_xrt() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const Result<DynamicLibrary> library = DynamicLibrary::open(
      "TILEWRIGHT_XRT",
      {(folder / kPlugin).string(), (folder.parent_path() / "lib" / kPlugin).string(), kPlugin});
  if (!library)
    return fail(ErrorKind::Device, "there is no XRT here",
                library.error().why.empty() ? library.error().what : library.error().why,
                "install XRT (Debian: libxrt1) and build Tilewright with its headers (libxrt-dev)");
  XrtCalls calls;
  TW_TRY_STATUS(library->bind(calls.card, "tw_xrt_card"));
  TW_TRY_STATUS(library->bind(calls.open, "tw_xrt_open"));
  TW_TRY_STATUS(library->bind(calls.run, "tw_xrt_run"));
  return calls;
}

tl::unexpected<Error> no_card(const char* text) {
  return fail(ErrorKind::Device, "there is no usable card", fmt::format("XRT says: {}", text),
              "source XRT's setup.sh; `xbutil examine` lists cards");
}

class PluginKernel final : public XrtKernel {
 public:
  PluginKernel(XrtCalls calls, std::string xclbin, std::string kernel)
      : calls_(calls), xclbin_(std::move(xclbin)), kernel_(std::move(kernel)) {}

  const std::string& card() const override { return card_; }

  Status open() {
    char text[512] = "";
    TW_TRY_STATUS(check(calls_.open(xclbin_.c_str(), kernel_.c_str(), text, sizeof text), text));
    card_ = text;
    return {};
  }

  Status run(const std::vector<KernelArgument>& arguments,
             const std::vector<int64_t>& scalars) override {
    std::vector<tw_xrt_argument> passed;
    for (const KernelArgument& a : arguments)
      passed.push_back({a.data, a.bytes, a.reads, a.writes, a.same_as});
    char text[512] = "";
    return check(calls_.run(xclbin_.c_str(), kernel_.c_str(), passed.data(), passed.size(),
                            scalars.data(), scalars.size(), text, sizeof text),
                 text);
  }

 private:
  Status check(int outcome, const char* text) const {
    if (outcome == TW_XRT_DONE) return {};
    if (outcome == TW_XRT_NO_DEVICE) return no_card(text);
    if (outcome == TW_XRT_BAD_XCLBIN)
      return fail(ErrorKind::Package,
                  fmt::format("cannot load kernel '{}' of '{}'", kernel_, xclbin_),
                  fmt::format("XRT says: {}", text),
                  "make it of this program: `tilewright hls`, then build.sh PLATFORM; "
                  "TILEWRIGHT_XCLBIN names its folder");
    return fail(ErrorKind::Device, fmt::format("kernel '{}' failed", kernel_),
                fmt::format("XRT says: {}", text));
  }

  XrtCalls calls_;
  std::string xclbin_, kernel_, card_;
};

}  // namespace

Result<std::string> xrt_card() {
  const XrtCalls calls = TW_TRY(load_xrt());
  char text[512] = "";
  if (calls.card(text, sizeof text) != TW_XRT_DONE) return no_card(text);
  return std::string(text);
}

Result<std::unique_ptr<XrtKernel>> open_xrt(const std::string& xclbin, const std::string& kernel) {
  auto opened = std::make_unique<PluginKernel>(TW_TRY(load_xrt()), xclbin, kernel);
  TW_TRY_STATUS(opened->open());
  return std::unique_ptr<XrtKernel>(std::move(opened));
}

}  // namespace tilewright::runtime
