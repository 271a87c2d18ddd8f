// The instruction set: plain structs, and their 128-bit encoding for a configuration.
// source: the public hardware repository (docs/vta.md), whose layouts isa.cc writes down.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/accel/common/image.h"
#include "tilewright/accel/vta/config.h"

namespace tilewright::vta {

/// The modules that execute, in the order in which they are linked by token queues. The published
/// design has no Alu module: Compute does its work. With Extensions::pipeline4, Compute has LOAD
/// UOP and GEMM, Alu has LOAD ACC, ALU and FINISH.
enum class Module { Load, Compute, Alu, Store };

/// Dependence flags; previous and next are seen from the executing module.
struct Deps {
  bool pop_prev = false, pop_next = false, push_prev = false, push_next = false;
  friend bool operator==(const Deps&, const Deps&) = default;
};

/// LOAD and STORE. Sizes, stride and DRAM base in elements of `mem`.
struct Transfer {
  bool store = false;
  Mem mem = Mem::Inp;
  uint32_t sram = 0, dram = 0;
  uint32_t y_size = 0, x_size = 0, x_stride = 0;
  uint32_t y_pad_top = 0, y_pad_bottom = 0, x_pad_left = 0, x_pad_right = 0;
  friend bool operator==(const Transfer&, const Transfer&) = default;

  bool moves() const { return x_size > 0; }  ///< a zero-size transfer only passes tokens
  uint32_t sram_width() const { return x_pad_left + x_size + x_pad_right; }
  uint32_t sram_elements() const {
    return moves() ? sram_width() * (y_pad_top + y_size + y_pad_bottom) : 0;
  }
};

/// The two hardware loops around a range of micro-ops. A factor is what one iteration adds to the
/// index of the micro-op.
struct Loops {
  uint32_t uop_begin = 0, uop_end = 0;  ///< in the micro-op memory; end exclusive
  uint32_t outer = 1, inner = 1;        ///< iterations
  uint32_t dst_outer = 0, dst_inner = 0, src_outer = 0, src_inner = 0;
  uint32_t wgt_outer = 0, wgt_inner = 0;  ///< GEMM only
  friend bool operator==(const Loops&, const Loops&) = default;
  uint64_t steps() const { return uint64_t{outer} * inner * (uop_end - uop_begin); }
};

struct Gemm {
  bool reset = false;
  /// Extensions::fused_reset only: steps of the first iteration of the outer loop replace.
  bool replace_first = false;
  Loops loops;
  friend bool operator==(const Gemm&, const Gemm&) = default;
};

enum class AluOp { Min = 0, Max = 1, Add = 2, Shr = 3, Mul = 4 };
struct Alu {
  AluOp op = AluOp::Min;
  bool use_imm = false;
  int16_t imm = 0;
  Loops loops;
  friend bool operator==(const Alu&, const Alu&) = default;
};

struct Finish {
  friend bool operator==(const Finish&, const Finish&) = default;
};

struct Insn {
  Deps deps;
  std::variant<Transfer, Gemm, Alu, Finish> op;
  friend bool operator==(const Insn&, const Insn&) = default;
};

/// One step's indices: accumulator, source (input for GEMM, accumulator for ALU), weight.
struct Uop {
  uint32_t dst = 0, src = 0, wgt = 0;
  friend bool operator==(const Uop&, const Uop&) = default;
};

inline constexpr uint64_t kInsnBytes = 16;
using accel::kPage;
inline constexpr uint64_t kDramLimit = uint64_t{1} << 32;  ///< addresses have 32 bits
using Word = std::array<uint64_t, 2>;  ///< an encoded instruction, low word first

Module module_of(const Config& config, const Insn& insn);
/// The modules of this design, in the order of the chain.
std::vector<Module> modules(const Config& config);

/// requires: every value fits its field (`fits`). Unused bits are zero.
Word encode(const Config& config, const Insn& insn);
uint32_t encode(const Config& config, const Uop& uop);
/// errors: Invalid (undefined opcode, memory id or ALU opcode). Ignores unused bits.
Result<Insn> decode(const Config& config, const Word& word);
Uop decode_uop(const Config& config, uint32_t word);
/// errors: Capacity, naming each field whose value does not fit, with its width.
Status fits(const Config& config, const Insn& insn);

/// One line per instruction, as people read it: `  12  load.inp  sram 0 dram 0x40 8x14+16 ...`.
std::string disassemble(const Config& config, const Insn& insn);

struct FieldInfo {
  std::string_view name;
  int begin = 0, width = 0;  ///< bits
};
/// Layout of an instruction's fields, for checks, RTL and documentation. `form`: `transfer`,
/// `gemm`, `alu` or `uop`. Fields that would straddle a word start at the next one. Works for
/// configurations that do not fit, too: fields then end beyond bit 128 (micro-ops: 32).
/// `replace_first` (Extensions::fused_reset) is bit 63 of the low word and nothing shares it.
std::vector<FieldInfo> field_layout(const Config& config, std::string_view form);

}  // namespace tilewright::vta
