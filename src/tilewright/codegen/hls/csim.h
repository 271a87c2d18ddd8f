// Generated kernels on this machine: the C++ under the host's compiler, with headers of our own.
// Channels hold exactly as many blocks as they are told to, and processes are threads.
#pragma once

#include <string>
#include <vector>

#include "tilewright/codegen/hls/hls.h"

namespace tilewright::codegen {

/// Kernels in one shared object.
class CsimLibrary {
 public:
  /// Compiles all kernels as one translation unit; what was compiled before comes from the cache
  /// folder. errors: Tool (no compiler, or text that it refuses), Io.
  static Result<CsimLibrary> build(const std::vector<HlsKernel>& kernels);
  CsimLibrary(CsimLibrary&& other) noexcept : handle_(other.handle_), error_(other.error_) {
    other.handle_ = nullptr;
  }
  CsimLibrary& operator=(CsimLibrary&&) = delete;
  ~CsimLibrary();

  /// Null if there is no kernel of that name. requires: one call at a time.
  tw_kernel find(const HlsKernel& kernel) const;
  /// Whether the last call came to its end. errors: Mismatch: which processes waited for which
  /// channels for ever.
  Status finished() const;

 private:
  CsimLibrary() = default;
  void* handle_ = nullptr;
  const char* (*error_)() = nullptr;
};

}  // namespace tilewright::codegen
