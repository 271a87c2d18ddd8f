// What stands around a kernel: the program of the host, files to build it, the entry to run it
// here.
#pragma once

#include <string>

#include "tilewright/codegen/hls/statements.h"

namespace tilewright::codegen {

/// Adds host.cpp, link.cfg, build.sh and README.md.
void add_host_files(const Func& func, const hw::FpgaDevice& device, const HlsOptions& options,
                    HlsKernel& kernel);

/// A `tw_kernel` that copies its buffers into whole words, runs the top function and copies them
/// back. errors: Unsupported (memory of its own without an upper bound).
Result<std::string> hls_csim_entry(const Func& func, const HlsKernel& kernel, HlsScope& scope,
                                   const std::string& word_type);

}  // namespace tilewright::codegen
