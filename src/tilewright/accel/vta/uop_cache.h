// Micro-op kernels by content: where they are on chip and in DRAM.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {

/// Keeps micro-op memory along a linear stream: which kernel is where, and who goes when a new one
/// needs room (the least recently used ones until there is a gap). Each distinct kernel has one
/// place in DRAM that never changes, so a stream may load, evict and load it again.
class UopCache {
 public:
  struct Place {
    size_t kernel = 0;            ///< index in kernels()
    uint32_t begin = 0, end = 0;  ///< in micro-op memory
    bool load = false;            ///< it is not there yet: a LOAD UOP is due
  };

  /// units: `depth` micro-ops.
  explicit UopCache(uint32_t depth) : depth_(depth) {}
  UopCache(UopCache&&) = default;
  UopCache& operator=(UopCache&&) = default;

  /// Where `uops` are for the next instruction; equal kernels share one place.
  /// errors: Capacity (larger than the memory), Invalid (empty).
  Result<Place> use(const std::vector<Uop>& uops);

  /// Nothing is on chip any more (a new launch); DRAM places stay.
  void forget_resident();

  /// Distinct kernels in the order of their first use.
  const std::vector<std::vector<Uop>>& kernels() const { return kernels_; }
  /// Where a kernel begins in DRAM, from the first one; units: micro-ops, a multiple of 16.
  uint64_t offset(size_t kernel) const { return offsets_[kernel]; }
  uint64_t dram_uops() const { return dram_uops_; }  ///< size of all kernels in DRAM

 private:
  struct Resident {
    uint32_t end = 0;
    size_t kernel = 0;
    std::list<uint32_t>::iterator age;
  };

  size_t kernel_of(const std::vector<Uop>& uops);
  bool find_gap(uint32_t size, uint32_t& begin) const;

  uint32_t depth_ = 0;
  std::vector<std::vector<Uop>> kernels_;
  std::vector<uint64_t> offsets_;
  uint64_t dram_uops_ = 0;
  std::unordered_map<std::string, size_t> by_content_;
  std::map<uint32_t, Resident> residents_;            ///< by begin
  std::unordered_map<size_t, uint32_t> resident_at_;  ///< kernel to begin
  std::list<uint32_t> ages_;                          ///< begins, least recently used first
};

/// The words of one kernel, little-endian.
std::string encode_kernel(const Config& config, const std::vector<Uop>& uops);
/// The words of all kernels as they stand in DRAM.
std::string dram_image(const Config& config, const UopCache& cache);

}  // namespace tilewright::vta
