#include "tilewright/accel/vta/uop_cache.h"

#include <fmt/format.h>

#include <cstring>

namespace tilewright::vta {
namespace {

std::string content(const std::vector<Uop>& uops) {
  static_assert(sizeof(Uop) == 3 * sizeof(uint32_t), "no padding inside");
  std::string bytes(uops.size() * sizeof(Uop), '\0');
  if (!uops.empty()) std::memcpy(bytes.data(), uops.data(), bytes.size());
  return bytes;
}

}  // namespace

Result<size_t> KernelTable::add(const std::vector<Uop>& uops) {
  if (uops.empty()) return fail(ErrorKind::Invalid, "a micro-op kernel is empty");
  if (uops.size() > depth_)
    return fail(ErrorKind::Capacity, "a micro-op kernel is larger than the micro-op memory",
                fmt::format("{} micro-ops, the memory has {}", uops.size(), depth_),
                "move loops out of the kernel: the two hardware loops, or several instructions");
  const auto [entry, fresh] = by_content_.try_emplace(content(uops), kernels_.size());
  if (fresh) {
    kernels_.push_back(uops);
    uops_ += uops.size();
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
  const size_t kernel = TW_TRY(table_.add(uops));
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

}  // namespace tilewright::vta
