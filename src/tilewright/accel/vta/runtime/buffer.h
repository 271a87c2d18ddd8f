// The memory of a device, handed out in blocks.
#pragma once

#include <cstdint>
#include <map>

#include "tilewright/base/result.h"

namespace tilewright::vta {

/// A block of device memory; units: bytes.
struct Buffer {
  uint64_t address = 0, bytes = 0;
};

/// Allocator over [begin, end). Blocks begin at pages, so any element is aligned in them; the
/// smallest free block that is large enough is taken.
class DramPool {
 public:
  DramPool(uint64_t begin, uint64_t end);

  /// errors: Capacity (with what is free), Invalid (no bytes).
  Result<Buffer> alloc(uint64_t bytes);
  /// errors: Invalid (not a live buffer: never allocated, or freed before).
  Status free(const Buffer& buffer);
  /// Address of bytes [offset, offset + bytes) of a buffer.
  /// errors: Invalid (not a live buffer, or beyond its end).
  Result<uint64_t> locate(const Buffer& buffer, uint64_t offset, uint64_t bytes) const;

  uint64_t free_bytes() const;
  uint64_t high_water() const { return high_water_; }  ///< no block ever ended after this

 private:
  Status check_live(const Buffer& buffer) const;

  std::map<uint64_t, uint64_t> free_;  ///< begin to end, never adjacent
  std::map<uint64_t, uint64_t> live_;  ///< begin to size as asked for
  uint64_t high_water_ = 0;
};

}  // namespace tilewright::vta
