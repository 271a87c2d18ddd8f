// For tests: the C++ of `hls` as an xclbin that the stand-in of XRT's library (fake_xrt.cc) takes.
#pragma once

#include <string>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/codegen/hls/hls.h"

namespace tilewright::runtime::testing {

/// Behind the kernel's C++, which is KERNEL: what the stand-in looks for.
inline constexpr const char* kFakeEntry = R"c(
#include "tw_processes.h"
#include "hls_streamofblocks.h"
#include "kernel.cpp"
#include <utility>
template <class T>
static T argument(void* at) {
  if constexpr (std::is_pointer_v<T>)
    return static_cast<T>(at);
  else
    return *static_cast<T*>(at);
}
template <class... A, size_t... I>
static void call(void (*kernel)(A...), void* const* all, std::index_sequence<I...>) {
  kernel(argument<A>(all[I])...);
}
template <class... A>
static void call_with(void (*kernel)(A...), void* const* all) {
  call(kernel, all, std::index_sequence_for<A...>());
}
template <class... A>
static constexpr int count(void (*)(A...)) {
  return sizeof...(A);
}
extern "C" {
extern const int KERNEL_arguments;
const int KERNEL_arguments = count(KERNEL);
void KERNEL_fake(void* const* all) { call_with(KERNEL, all); }
}
)c";

inline std::string fake_entry(const std::string& kernel) {
  std::string text = kFakeEntry;
  for (size_t at = text.find("KERNEL"); at != std::string::npos; at = text.find("KERNEL", at))
    text.replace(at, 6, kernel);
  return text;
}

/// Writes the kernel's files into `folder`, and NAME.xclbin. requires: TILEWRIGHT_ROOT_DIR.
inline Status make_fake_xclbin(const codegen::HlsKernel& kernel, const std::string& folder) {
  for (const auto& [name, text] : kernel.files)
    TW_TRY_STATUS(write_file(folder + "/" + name, text));
  TW_TRY_STATUS(write_file(folder + "/fake.cpp", fake_entry(kernel.symbol)));
  const std::string headers =
      std::string(TILEWRIGHT_ROOT_DIR) + "/src/tilewright/codegen/hls/include";
  TW_TRY(run_checked({"g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-pthread",
                      "-Wno-unknown-pragmas", "-ffp-contract=off", "-fno-gnu-unique", "-I", headers,
                      "-o", kernel.symbol + ".xclbin", "fake.cpp"},
                     {folder, 600}));
  return {};
}

}  // namespace tilewright::runtime::testing
