// Bookkeeping of the checker: who touched what last, and whether tokens order it. Internal.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta::check_detail {

/// Per module of the chain, how many of its instructions are known to be complete.
using Clock = std::array<uint32_t, 4>;

/// An instruction in progress: the `seq`-th of its module (from 1), and what it knows.
struct Actor {
  uint8_t module = 0;
  uint32_t seq = 0;
  const Clock* clock = nullptr;
};

/// The other side of a race.
struct Rival {
  uint8_t module = 0;
  uint32_t seq = 0;
  bool write = false;
};

/// Last accesses of one place. After a write only later reads count: what is ordered before the
/// write is ordered before everything that is ordered after it.
struct Cell {
  uint32_t write_seq = 0;
  uint8_t write_module = 0;
  std::array<uint32_t, 4> read_seq{};

  /// Records an access; says what it races with.
  std::optional<Rival> access(const Actor& actor, bool write);
};

/// A set of element indices as bits.
class ElementSet {
 public:
  void clear(size_t depth);
  void add(uint32_t element) { words_[element / 64] |= uint64_t{1} << (element % 64); }
  void add_range(uint32_t begin, uint32_t end);
  /// Adds `count` copies, each `step` further. requires: the largest stays below the depth.
  void repeat(uint32_t count, uint32_t step);
  void remove(const ElementSet& other);

  template <class F>
  void for_each(F&& f) const {
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint64_t bits = words_[w]; bits != 0; bits &= bits - 1)
        f(static_cast<uint32_t>(w * 64 + static_cast<size_t>(__builtin_ctzll(bits))));
  }

 private:
  /// words_ |= words_ << shift.
  void or_shifted(uint64_t shift);

  std::vector<uint64_t> words_;
};

/// One on-chip memory.
struct SramState {
  explicit SramState(size_t depth) : cells(depth), written_run(depth) {}
  std::vector<Cell> cells;
  std::vector<uint32_t> written_run;  ///< index from 1 of the run that wrote it last; 0: none
};

/// Accesses to DRAM as disjoint byte ranges.
class DramState {
 public:
  void clear() { ranges_.clear(); }
  /// The first rival in address order, with the address.
  struct Race {
    Rival rival;
    uint64_t address = 0;
  };
  std::optional<Race> access(uint64_t begin, uint64_t end, const Actor& actor, bool write);

 private:
  struct Range {
    uint64_t end = 0;
    Cell cell;
  };
  void split(uint64_t at);

  std::map<uint64_t, Range> ranges_;
};

/// Byte ranges, merged.
class ByteRanges {
 public:
  void add(uint64_t begin, uint64_t end);
  void remove(uint64_t begin, uint64_t end);
  bool overlaps(uint64_t begin, uint64_t end) const;
  void clear() { ranges_.clear(); }

 private:
  std::map<uint64_t, uint64_t> ranges_;
};

}  // namespace tilewright::vta::check_detail
