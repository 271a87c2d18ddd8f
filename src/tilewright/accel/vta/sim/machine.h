// The state of a VTA (memories and DRAM) and what one instruction does to it, without order or
// time: those are the simulators' part.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "tilewright/accel/vta/device.h"

namespace tilewright::vta {

class Machine {
 public:
  /// SRAM and DRAM begin as zeros. units: `dram_bytes`.
  Machine(const Config& config, uint64_t dram_bytes);

  const Config& config() const { return config_; }
  Status write(uint64_t address, std::string_view bytes);
  Status read(uint64_t address, char* into, uint64_t bytes) const;

  /// requires: the instruction passed `split`. errors: Invalid (DRAM ranges, indices, shift
  /// amounts), without naming the instruction; part of it may have been done.
  Status run(const Insn& insn);

 private:
  Status check_dram(uint64_t address, uint64_t bytes, const char* verb) const;
  uint8_t* dram() const { return dram_.get(); }
  Status load(const Transfer& transfer);
  Status store(const Transfer& transfer);
  Status gemm(const Gemm& gemm);
  Status alu(const Alu& alu);
  Status alu_step(const Alu& alu, uint32_t dst, uint32_t src);

  void clear(Mem mem, size_t begin, size_t count);
  void fill(Mem mem, size_t begin, size_t count, const uint8_t* bytes);
  void fill_wgt(size_t element, const uint8_t* bytes);
  void settle_out(size_t begin, size_t count);
  uint8_t* out_element(size_t element) { return out_.data() + element * out_bytes_; }
  Status check_indices(const Loops& loops, bool source, bool weight, Mem source_mem) const;

  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };

  Config config_;
  int64_t acc_scalars_;             ///< of one accumulator element
  size_t inp_stride_, wgt_stride_;  ///< int16 of one element
  int pairs_;                       ///< pairs of inputs along block_in, a lone one padded by zero
  size_t out_bytes_;

  uint64_t dram_bytes_;
  std::unique_ptr<uint8_t[], Free> dram_;
  std::vector<Uop> uop_;
  std::vector<int16_t> inp_;   ///< [element][batch][2 pairs]
  std::vector<int16_t> wgt_;   ///< [element][pair][block_out][2]: what `accumulate` takes
  std::vector<int16_t> tile_;  ///< one unpacked weight element
  std::vector<int32_t> acc_;   ///< [element][batch][block_out]
  /// OUT is what GEMM and ALU last wrote beside ACC. While ACC still holds that (`mirrored_`), the
  /// bytes here are stale and STORE narrows ACC; a LOAD of ACC settles them first.
  std::vector<uint8_t> out_;
  std::vector<uint8_t> mirrored_;
};

/// Runs `insns[index]`. errors: as Machine::run, naming the instruction.
Status run_at(Machine& machine, const std::vector<Insn>& insns, size_t index);

}  // namespace tilewright::vta
