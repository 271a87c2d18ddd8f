// What the memories of a `spatial` hold, and what one instruction does to them, without order or
// time: those are the simulators' part.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/accel/spatial/operands.h"
#include "tilewright/accel/spatial/program.h"

namespace tilewright::spatial {

/// DRAM as far as the host wrote it.
class SimDram {
 public:
  /// errors: Invalid (beyond `kDramBytes`), Capacity (more than this simulator holds).
  Status write(uint64_t address, std::string_view bytes);
  /// Zeros outside of what was written.
  void read(uint64_t address, char* into, uint64_t bytes) const;
  /// For instructions. errors: Invalid (bytes that the host never wrote).
  Status check(const Runs& runs) const;
  int8_t* at(int64_t address) { return bytes_.data() + (address - base_); }

 private:
  int64_t base_ = 0;
  std::vector<int8_t> bytes_;
};

class State {
 public:
  explicit State(const Design& design);

  const Design& design() const { return design_; }
  Status write(uint64_t address, std::string_view bytes) { return dram_.write(address, bytes); }
  Status read(uint64_t address, char* into, uint64_t bytes) const;
  /// Nothing on chip is defined.
  void begin_launch();
  /// errors: Invalid (as `check_fields`; DRAM that the host never wrote; reads of what nothing
  /// wrote), without naming the instruction; part of it may have been done.
  Status run(const Insn& insn);

 private:
  /// Where the loops of a COMPUTE are, and what follows from it.
  struct Place {
    std::array<uint32_t, kLoops> at{};
    int64_t first = 0, second = 0, sum = 0, tap = 0;
    RoleLanes lanes;
    bool begins = false;
  };

  Status load(const Load& load);
  void load_line(const Load& load, const int8_t* from, int64_t to, bool zeros);
  void copy(const int8_t* from, int64_t to, int64_t count, int64_t step);
  Status compute(const Compute& compute);
  void begin_place(const Compute& compute, Place& place) const;
  int next_place(const Compute& compute, Place& place) const;
  void settle(const Compute& compute, Place& place) const;
  Status read_block(const Compute& compute, const Place& place);
  Status step(const Place& place);
  Status begin_sums(int64_t word, int64_t count, bool begins);
  Status check_read(int64_t byte, int64_t count) const;
  Status store(const Store& store);
  Status store_one(const Store& store, int64_t part, int64_t sum, uint32_t bias_at, int8_t* to);

  Design design_;
  int64_t parts_;
  RoleLanes all_;
  SimDram dram_;
  std::vector<int8_t> spad_;
  std::vector<int32_t> sums_;  ///< [place][part], and room for a group
  std::vector<int32_t> bias_;
  /// Whether something wrote each place since the launch began.
  std::vector<uint8_t> spad_written_, sums_written_, bias_written_;
  std::vector<int16_t> block_;  ///< [tap][pair of k][lane j][2], or a row of factor 1 (0 of a gemv)
};

}  // namespace tilewright::spatial
