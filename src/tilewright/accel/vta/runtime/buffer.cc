#include "tilewright/accel/vta/runtime/buffer.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {
namespace {

uint64_t round_up(uint64_t value) { return (value + kPage - 1) / kPage * kPage; }

}  // namespace

DramPool::DramPool(uint64_t begin, uint64_t end) : high_water_(round_up(begin)) {
  if (round_up(begin) < end / kPage * kPage) free_[round_up(begin)] = end / kPage * kPage;
}

uint64_t DramPool::free_bytes() const {
  uint64_t sum = 0;
  for (const auto& entry : free_) sum += entry.second - entry.first;
  return sum;
}

Result<Buffer> DramPool::alloc(uint64_t bytes) {
  if (bytes == 0) return fail(ErrorKind::Invalid, "a buffer needs at least one byte");
  auto best = free_.end();
  uint64_t largest = 0;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const uint64_t size = it->second - it->first;
    largest = std::max(largest, size);
    if (size < bytes) continue;
    if (best == free_.end() || size < best->second - best->first) best = it;
  }
  if (best == free_.end())
    return fail(
        ErrorKind::Capacity, "the device's memory is exhausted",
        fmt::format("{} bytes asked for, {} free, {} in one piece", bytes, free_bytes(), largest),
        "free buffers, or open the device with more memory");
  const uint64_t begin = best->first, end = best->second, taken = begin + round_up(bytes);
  free_.erase(best);
  if (taken < end) free_[taken] = end;
  live_[begin] = bytes;
  high_water_ = std::max(high_water_, taken);
  return Buffer{begin, bytes};
}

Status DramPool::check_live(const Buffer& buffer) const {
  const auto found = live_.find(buffer.address);
  if (found != live_.end() && found->second == buffer.bytes) return {};
  return fail(ErrorKind::Invalid, "not a buffer of this device, or already freed",
              fmt::format("{} bytes at {:#x}", buffer.bytes, buffer.address));
}

Status DramPool::free(const Buffer& buffer) {
  TW_TRY_STATUS(check_live(buffer));
  live_.erase(buffer.address);
  uint64_t begin = buffer.address, end = buffer.address + round_up(buffer.bytes);
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && after->first == end) {
    end = after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->second == begin) {
      before->second = end;
      return {};
    }
  }
  free_[begin] = end;
  return {};
}

Result<uint64_t> DramPool::locate(const Buffer& buffer, uint64_t offset, uint64_t bytes) const {
  TW_TRY_STATUS(check_live(buffer));
  if (offset > buffer.bytes || bytes > buffer.bytes - offset)
    return fail(ErrorKind::Invalid, "beyond the end of a buffer",
                fmt::format("{} bytes from byte {} on, the buffer at {:#x} has {}", bytes, offset,
                            buffer.address, buffer.bytes));
  return buffer.address + offset;
}

}  // namespace tilewright::vta
