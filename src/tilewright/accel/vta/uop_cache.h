// Micro-op kernels by content, and a memory of them that is filled as a stream grows.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {

/// Distinct kernels in the order of their first use.
class KernelTable {
 public:
  /// units: `depth` micro-ops, which the memory holds.
  explicit KernelTable(uint32_t depth) : depth_(depth) {}

  /// Index of the kernel with this content. errors: Capacity (larger than the memory), Invalid
  /// (empty).
  Result<size_t> add(const std::vector<Uop>& uops);

  const std::vector<std::vector<Uop>>& kernels() const { return kernels_; }
  uint64_t uops() const { return uops_; }  ///< of all kernels together

 private:
  uint32_t depth_ = 0;
  std::vector<std::vector<Uop>> kernels_;
  uint64_t uops_ = 0;
  std::unordered_map<std::string, size_t> by_content_;
};

/// Keeps micro-op memory along a stream whose future is unknown: which kernel is where, and who
/// goes when a new one needs room (the least recently used ones until there is a gap).
class UopCache {
 public:
  struct Place {
    size_t kernel = 0;            ///< in the order of first use
    uint32_t begin = 0, end = 0;  ///< in micro-op memory
    bool load = false;            ///< it is not there yet: a LOAD UOP is due
  };

  /// units: `depth` micro-ops.
  explicit UopCache(uint32_t depth) : depth_(depth), table_(depth) {}
  UopCache(UopCache&&) = default;
  UopCache& operator=(UopCache&&) = default;

  /// Where `uops` are for the next instruction; equal kernels share one place.
  /// errors: Capacity (larger than the memory), Invalid (empty).
  Result<Place> use(const std::vector<Uop>& uops);

  /// Nothing is on chip any more (a new launch).
  void forget_resident();

  /// Distinct kernels in the order of their first use.
  const std::vector<std::vector<Uop>>& kernels() const { return table_.kernels(); }
  uint64_t dram_uops() const { return table_.uops(); }  ///< of all kernels together

 private:
  struct Resident {
    uint32_t end = 0;
    size_t kernel = 0;
    std::list<uint32_t>::iterator age;
  };

  bool find_gap(uint32_t size, uint32_t& begin) const;

  uint32_t depth_ = 0;
  KernelTable table_;
  std::map<uint32_t, Resident> residents_;            ///< by begin
  std::unordered_map<size_t, uint32_t> resident_at_;  ///< kernel to begin
  std::list<uint32_t> ages_;                          ///< begins, least recently used first
};

/// The words of one kernel, little-endian.
std::string encode_kernel(const Config& config, const std::vector<Uop>& uops);

}  // namespace tilewright::vta
