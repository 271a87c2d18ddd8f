#include "tilewright/accel/vta/uop_cache.h"

#include <fmt/format.h>

#include <cstring>

namespace tilewright::vta {
namespace {

// Kernels begin at a new 64-byte line: no bus in use is wider, so no beat is shared.
constexpr uint64_t kAlign = 16;

std::string content(const std::vector<Uop>& uops) {
  static_assert(sizeof(Uop) == 3 * sizeof(uint32_t), "no padding inside");
  std::string bytes(uops.size() * sizeof(Uop), '\0');
  if (!uops.empty()) std::memcpy(bytes.data(), uops.data(), bytes.size());
  return bytes;
}

}  // namespace

size_t UopCache::kernel_of(const std::vector<Uop>& uops) {
  const auto [entry, fresh] = by_content_.try_emplace(content(uops), kernels_.size());
  if (fresh) {
    kernels_.push_back(uops);
    offsets_.push_back(dram_uops_);
    dram_uops_ += (uops.size() + kAlign - 1) / kAlign * kAlign;
  }
  return entry->second;
}

/// The first gap of at least `size`.
bool UopCache::find_gap(uint32_t size, uint32_t& begin) const {
  begin = 0;
  for (const auto& entry : residents_) {
    if (entry.first - begin >= size) return true;
    begin = entry.second.end;
  }
  return depth_ - begin >= size;
}

Result<UopCache::Place> UopCache::use(const std::vector<Uop>& uops) {
  if (uops.empty()) return fail(ErrorKind::Invalid, "a micro-op kernel is empty");
  if (uops.size() > depth_)
    return fail(ErrorKind::Capacity, "a micro-op kernel is larger than the micro-op memory",
                fmt::format("{} micro-ops, the memory has {}", uops.size(), depth_),
                "move loops out of the kernel: the two hardware loops, or several instructions");
  const size_t kernel = kernel_of(uops);
  const auto size = static_cast<uint32_t>(uops.size());
  if (const auto found = resident_at_.find(kernel); found != resident_at_.end()) {
    ages_.splice(ages_.end(), ages_, residents_.at(found->second).age);
    return Place{kernel, found->second, found->second + size, false};
  }
  uint32_t begin = 0;
  while (!find_gap(size, begin)) {
    const auto oldest = residents_.find(ages_.front());
    resident_at_.erase(oldest->second.kernel);
    residents_.erase(oldest);
    ages_.pop_front();
  }
  ages_.push_back(begin);
  residents_[begin] = Resident{begin + size, kernel, std::prev(ages_.end())};
  resident_at_[kernel] = begin;
  return Place{kernel, begin, begin + size, true};
}

void UopCache::forget_resident() {
  residents_.clear();
  resident_at_.clear();
  ages_.clear();
}

std::string encode_kernel(const Config& config, const std::vector<Uop>& uops) {
  std::string bytes;
  for (const Uop& uop : uops) {
    const uint32_t word = encode(config, uop);
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<char>(word >> shift & 0xff));
  }
  return bytes;
}

std::string dram_image(const Config& config, const UopCache& cache) {
  std::string bytes(cache.dram_uops() * sizeof(uint32_t), '\0');
  for (size_t k = 0; k < cache.kernels().size(); ++k) {
    const std::string words = encode_kernel(config, cache.kernels()[k]);
    bytes.replace(cache.offset(k) * sizeof(uint32_t), words.size(), words);
  }
  return bytes;
}

}  // namespace tilewright::vta
