// The state of a kernel (memories and DDR) and what one instruction does to it, without order or
// time: those are the simulators' part. Internal.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "tilewright/accel/dpu/device.h"
#include "tilewright/accel/dpu/operands.h"
#include "tilewright/accel/dpu/sim/arithmetic.h"
#include "tilewright/accel/dpu/sim/conv_kernel.h"

namespace tilewright::dpu {

/// What an instruction will write, once it is done: words in the order of its steps.
struct Effects {
  Op op;
  WordWindow write;  ///< of a CONV, POOL or ELEW
  std::vector<uint8_t> bytes;
};

class Machine {
 public:
  /// Memories begin undefined, DDR as zeros. units: `ddr_bytes`.
  Machine(const Config& config, uint64_t ddr_bytes);

  const Config& config() const { return config_; }
  Status write(uint64_t address, std::string_view bytes);
  Status read(uint64_t address, char* into, uint64_t bytes) const;
  void set_registers(const Registers& registers) { registers_ = registers; }
  const Registers& registers() const { return registers_; }

  /// FM, PM and the INITs become undefined.
  void begin_launch();
  /// Reads what an instruction reads. An INIT takes effect here: its queue is in order.
  /// errors: Invalid, Capacity (fields, ranges, an INIT that is not there, words that nothing
  /// wrote), without naming the instruction.
  Status compute(const Insn& insn, Effects& into);
  /// Writes what it writes.
  void commit(const Effects& effects);

 private:
  struct Feature {
    std::vector<uint8_t> bytes;     ///< [bank][address][pe][16]
    std::vector<uint32_t> written;  ///< the launch that wrote each word
  };

  Status check_memory(uint64_t address, uint64_t bytes) const;
  uint8_t* ddr() const { return ddr_.get(); }
  int depth(const Rows& rows) const { return config_.fm_depth[static_cast<size_t>(rows.memory)]; }
  size_t bank_begin(int memory, int bank) const;
  Status check_written(int memory, size_t word, size_t count) const;
  Status check_pm(const PmRange& range) const;

  Status load(const Load& op, Effects& into);
  Status save(const Save& op, Effects& into);
  Status conv(const Conv& op, Effects& into);
  Status pool(const Pool& op, Effects& into);
  Status elew(const Elew& op, Effects& into);
  Status gather(const WordWindow& window, uint8_t* into, size_t image_step, size_t row_step) const;
  template <class F>
  Status for_each_needed(const WordWindow& window, F&& f) const;
  Status read_needed(const WordWindow& window, std::vector<uint8_t>& into) const;
  void write_words(const WordWindow& window, const std::vector<uint8_t>& bytes);
  void fill_pm(const Load& op, const std::vector<uint8_t>& bytes);
  const int8_t* packed_weights(const Conv& op, int out_group);
  void sum_row(const ConvSums& job, int pixels, int64_t* sums);
  void pool_window(const PoolInit& init, const WordWindow& in, int row, int column,
                   std::vector<int32_t>& sums, uint8_t* out) const;
  void conv_group(const ConvInit& init, const Conv& op, int out_group, Effects& into);

  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };

  Config config_;
  size_t word_bytes_;
  uint64_t ddr_bytes_;
  std::unique_ptr<uint8_t[], Free> ddr_;
  Registers registers_{};
  Inits inits_;
  uint32_t launch_ = 0;
  std::array<Feature, kMemories> fm_;
  std::vector<int8_t> pm_, packed_;  ///< words as loaded, and as `pack_weights` makes them
  std::vector<uint32_t> pm_written_;
  // Room that instructions use one after the other.
  std::vector<uint8_t> gathered_, second_;
  std::vector<int8_t> unwrapped_;
  std::vector<int32_t> sums_;
};

}  // namespace tilewright::dpu
