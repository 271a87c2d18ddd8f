// Memory that tells when somebody reaches beyond it: pages on both sides that fault.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::codegen::testing {

/// Where the bytes stand between the two pages that may not be touched.
enum class Side { Front, Back };

/// Bytes that begin right behind a page without access, or end right before one. The other side
/// holds a pattern up to its own such page.
class Fenced {
 public:
  Fenced(std::string name, int64_t bytes, Side side);
  ~Fenced();
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  unsigned char* data() { return data_; }
  const std::string& name() const { return name_; }
  /// Whether the pattern beside the bytes is as it was.
  bool intact() const;
  /// Bytes from the first one to `address`, if it lies on the memory or its fences.
  bool near(const void* address, int64_t& offset) const;

 private:
  std::string name_;
  int64_t bytes_, length_;  ///< of the data; of everything, fences included
  unsigned char *base_, *data_;
};

/// Runs `body`. errors: Mismatch if it touches a fence of `memory`, saying whose and where, or any
/// other address without access.
Status run_fenced(const std::function<void()>& body,
                  const std::vector<std::unique_ptr<Fenced>>& memory);

}  // namespace tilewright::codegen::testing
