// Cases of the interpreter as generated kernels that run on this machine.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tilewright/codegen/hls/csim.h"
#include "tilewright/codegen/testing/harness.h"
#include "tilewright/ir/text.h"

namespace tilewright::codegen::testing {

inline hw::FpgaDevice device_of(int port_bytes) {
  hw::FpgaDevice device;
  device.name = "test";
  device.port.bytes = port_bytes;
  return device;
}

inline Result<HlsKernel> kernel_of(const Case& test, const HlsOptions& options,
                                   int port_bytes = 64) {
  Func func = test.func;
  func.name = test.name;
  func = TW_TRY(prepare_hls(func));
  return emit_hls(func, TW_TRY(lower::processes_of(func)), device_of(port_bytes), options);
}

/// Compiles all cases as one library and compares each with the interpreter.
inline void check_all(const std::vector<Case>& cases, const HlsOptions& options,
                      int port_bytes = 64) {
  std::vector<HlsKernel> kernels;
  for (const Case& test : cases) {
    auto kernel = kernel_of(test, options, port_bytes);
    ASSERT_TRUE(kernel) << test.name << "\n" << to_string(kernel.error()) << print(test.func);
    kernels.push_back(std::move(*kernel));
  }
  const auto library = CsimLibrary::build(kernels);
  ASSERT_TRUE(library) << to_string(library.error());
  for (size_t i = 0; i < cases.size(); ++i) {
    const tw_kernel kernel = library->find(kernels[i]);
    ASSERT_NE(kernel, nullptr) << cases[i].name;
    const Status ok = check(cases[i], kernel, kernels[i].info);
    EXPECT_TRUE(ok) << cases[i].name << "\n" << to_string(ok.error()) << print(cases[i].func);
    EXPECT_TRUE(library->finished());
  }
}

}  // namespace tilewright::codegen::testing
