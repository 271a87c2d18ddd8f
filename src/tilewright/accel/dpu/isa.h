// The instruction set of the DPU: plain structs whose fields are declared once; encoding, text,
// ranges and checks follow from the declarations.
//
// No public document gives the encoding: names are the paper's, widths those of its published
// siblings, and this file is the contract (docs/dpu.md).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "tilewright/accel/dpu/config.h"

namespace tilewright::dpu {

/// The queues, in the order of mask bits. Their letters in text: L, S, C, P.
enum class Unit { Load, Save, Conv, Misc };
inline constexpr int kUnits = 4;
char letter(Unit unit);

/// The values of a field that mean something: `low` to `high` without `hole`.
struct Values {
  int low = std::numeric_limits<int>::min(), high = std::numeric_limits<int>::max();
  int hole = std::numeric_limits<int>::min();
};
inline constexpr Values kCount = {.low = 1};
inline constexpr Values kKernel = {.low = 1, .high = 16};
inline constexpr Values kStride = {.low = 1, .high = 8};

/// A field of an instruction: where its value is, and its width in bits.
template <class Op>
struct BitField {
  std::string_view name;
  int Op::* member;
  int bits;
  Values values = {};  ///< of those that the width permits
  bool is_signed = false;
};

/// DDR to a row of a feature map (mode 0) or to PM (mode 1).
struct Load {
  static constexpr std::string_view name = "LOAD";
  static constexpr int opcode = 0;
  int mode = 0, bank_id = 0, bank_addr = 0, jump_read = 0, jump_write = 0, length = 0, channel = 0;
  int reg_id = 0, ddr_addr = 0;
  static constexpr auto fields() {
    using T = BitField<Load>;
    return std::array{T{"mode", &Load::mode, 1},
                      T{"bank_id", &Load::bank_id, 6},
                      T{"bank_addr", &Load::bank_addr, 13},
                      T{"jump_read", &Load::jump_read, 16},    // channels per step in DDR
                      T{"jump_write", &Load::jump_write, 10},  // words per step on chip
                      T{"length", &Load::length, 10, kCount},  // steps
                      T{"channel", &Load::channel, 14, kCount},
                      T{"reg_id", &Load::reg_id, 3, {0, 3}},
                      T{"ddr_addr", &Load::ddr_addr, 29}};  // bytes in the region
  }
  friend bool operator==(const Load&, const Load&) = default;
};

/// A row of a feature map to DDR.
struct Save {
  static constexpr std::string_view name = "SAVE";
  static constexpr int opcode = 1;
  int bank_id = 0, bank_addr = 0, jump_read = 0, jump_write = 0, length = 0, channel = 0;
  int reg_id = 0, ddr_addr = 0;
  static constexpr auto fields() {
    using T = BitField<Save>;
    return std::array{
        T{"bank_id", &Save::bank_id, 6},        T{"bank_addr", &Save::bank_addr, 13},
        T{"jump_read", &Save::jump_read, 10},    // words per step on chip
        T{"jump_write", &Save::jump_write, 16},  // channels per step in DDR
        T{"length", &Save::length, 10, kCount}, T{"channel", &Save::channel, 14, kCount},
        T{"reg_id", &Save::reg_id, 3, {1, 2}},  T{"ddr_addr", &Save::ddr_addr, 29}};
  }
  friend bool operator==(const Save&, const Save&) = default;
};

enum Activation { kNone = 0, kRelu = 1, kLeaky = 3, kRelu6 = 4 };

/// Holds for the CONVs after it.
struct ConvInit {
  static constexpr std::string_view name = "CONVINIT";
  static constexpr int opcode = 2;
  int kernel_w = 1, kernel_h = 1, stride_w = 1, stride_h = 1, dilation_w = 1, dilation_h = 1;
  int shift_cut = 0, shift_bias = 0, act_type = kNone, fp_out = 0, in_groups = 1;
  int jump_read = 0, jump_read_endl = 0, jump_write = 0, jump_write_endl = 0;
  static constexpr auto fields() {
    using T = BitField<ConvInit>;
    return std::array{T{"kernel_w", &ConvInit::kernel_w, 5, kKernel},
                      T{"kernel_h", &ConvInit::kernel_h, 5, kKernel},
                      T{"stride_w", &ConvInit::stride_w, 4, kStride},
                      T{"stride_h", &ConvInit::stride_h, 4, kStride},
                      T{"dilation_w", &ConvInit::dilation_w, 4, kCount},
                      T{"dilation_h", &ConvInit::dilation_h, 4, kCount},
                      T{"shift_cut", &ConvInit::shift_cut, 6, {}, true},
                      T{"shift_bias", &ConvInit::shift_bias, 6, {}, true},
                      T{"act_type", &ConvInit::act_type, 3, {0, 4, 2}},
                      T{"fp_out", &ConvInit::fp_out, 6, {}, true},
                      T{"in_groups", &ConvInit::in_groups, 9, kCount},
                      T{"jump_read", &ConvInit::jump_read, 10},
                      T{"jump_read_endl", &ConvInit::jump_read_endl, 13},
                      T{"jump_write", &ConvInit::jump_write, 10},
                      T{"jump_write_endl", &ConvInit::jump_write_endl, 13}};
  }
  friend bool operator==(const ConvInit&, const ConvInit&) = default;
};

/// Up to eight rows of a convolution.
struct Conv {
  static constexpr std::string_view name = "CONV";
  static constexpr int opcode = 3;
  int mode = 0;  ///< 1: the input was made by the format unit
  int pad_left = 0, pad_top = 0, pad_right = 0, pad_bottom = 0;
  int bank_id_in = 0, bank_addr_in = 0, bank_id_out = 0, bank_addr_out = 0;
  int bank_addr_weights = 0, bank_addr_bias = 0, length = 0, out_groups = 0, valid_rows = 0;
  static constexpr auto fields() {
    using T = BitField<Conv>;
    return std::array{T{"mode", &Conv::mode, 1},
                      T{"pad_left", &Conv::pad_left, 4},
                      T{"pad_top", &Conv::pad_top, 4},
                      T{"pad_right", &Conv::pad_right, 4},
                      T{"pad_bottom", &Conv::pad_bottom, 4},
                      T{"bank_id_in", &Conv::bank_id_in, 6},
                      T{"bank_addr_in", &Conv::bank_addr_in, 13},
                      T{"bank_id_out", &Conv::bank_id_out, 6},
                      T{"bank_addr_out", &Conv::bank_addr_out, 13},
                      T{"bank_addr_weights", &Conv::bank_addr_weights, 13},
                      T{"bank_addr_bias", &Conv::bank_addr_bias, 15},  // 4 * word + quarter
                      T{"length", &Conv::length, 10, kCount},          // output columns
                      T{"out_groups", &Conv::out_groups, 9, kCount},
                      T{"valid_rows", &Conv::valid_rows, 4, {1, 8}}};  // output rows: 1 to 8
  }
  friend bool operator==(const Conv&, const Conv&) = default;
};

enum PoolType { kMaxPool = 0, kAveragePool = 1, kCopy = 2, kUpsample = 3 };

struct PoolInit {
  static constexpr std::string_view name = "POOLINIT";
  static constexpr int opcode = 4;
  int type = kMaxPool, kernel_w = 1, kernel_h = 1, stride_w = 1, stride_h = 1;
  int factor = 0, shift_avg = 0;
  int jump_read = 0, jump_read_endl = 0, jump_write = 0, jump_write_endl = 0;
  static constexpr auto fields() {
    using T = BitField<PoolInit>;
    return std::array{T{"type", &PoolInit::type, 2},
                      T{"kernel_w", &PoolInit::kernel_w, 5, kKernel},
                      T{"kernel_h", &PoolInit::kernel_h, 5, kKernel},
                      T{"stride_w", &PoolInit::stride_w, 4, kStride},
                      T{"stride_h", &PoolInit::stride_h, 4, kStride},
                      T{"factor", &PoolInit::factor, 10},
                      T{"shift_avg", &PoolInit::shift_avg, 5},
                      T{"jump_read", &PoolInit::jump_read, 10},
                      T{"jump_read_endl", &PoolInit::jump_read_endl, 13},
                      T{"jump_write", &PoolInit::jump_write, 10},
                      T{"jump_write_endl", &PoolInit::jump_write_endl, 13}};
  }
  friend bool operator==(const PoolInit&, const PoolInit&) = default;
};

/// One or two rows of a pool, a copy or an upsampling.
struct Pool {
  static constexpr std::string_view name = "POOL";
  static constexpr int opcode = 5;
  int pad_left = 0, pad_top = 0, pad_right = 0, pad_bottom = 0;
  int bank_id_in = 0, bank_addr_in = 0, bank_id_out = 0, bank_addr_out = 0;
  int length = 0, channel_group = 0, valid_rows = 0;
  static constexpr auto fields() {
    using T = BitField<Pool>;
    return std::array{T{"pad_left", &Pool::pad_left, 4},
                      T{"pad_top", &Pool::pad_top, 4},
                      T{"pad_right", &Pool::pad_right, 4},
                      T{"pad_bottom", &Pool::pad_bottom, 4},
                      T{"bank_id_in", &Pool::bank_id_in, 6},
                      T{"bank_addr_in", &Pool::bank_addr_in, 13},
                      T{"bank_id_out", &Pool::bank_id_out, 6},
                      T{"bank_addr_out", &Pool::bank_addr_out, 13},
                      T{"length", &Pool::length, 10, kCount},
                      T{"channel_group", &Pool::channel_group, 9, kCount},
                      T{"valid_rows", &Pool::valid_rows, 2, {1, 2}}};
  }
  friend bool operator==(const Pool&, const Pool&) = default;
};

struct ElewInit {
  static constexpr std::string_view name = "ELEWINIT";
  static constexpr int opcode = 6;
  int num = 2;  ///< operands: 1 or 2
  int act_type = kNone, fp_out = 0, shift_read_a = 0, shift_read_b = 0, shift_write = 0;
  int jump_read_a = 0, jump_read_a_endl = 0, jump_read_b = 0, jump_read_b_endl = 0;
  int jump_write = 0, jump_write_endl = 0;
  static constexpr auto fields() {
    using T = BitField<ElewInit>;
    return std::array{T{"num", &ElewInit::num, 2, {1, 2}},
                      T{"act_type", &ElewInit::act_type, 3, {0, 4, 2}},
                      T{"fp_out", &ElewInit::fp_out, 6, {}, true},
                      T{"shift_read_a", &ElewInit::shift_read_a, 5},
                      T{"shift_read_b", &ElewInit::shift_read_b, 5},
                      T{"shift_write", &ElewInit::shift_write, 6, {}, true},
                      T{"jump_read_a", &ElewInit::jump_read_a, 10},
                      T{"jump_read_a_endl", &ElewInit::jump_read_a_endl, 13},
                      T{"jump_read_b", &ElewInit::jump_read_b, 10},
                      T{"jump_read_b_endl", &ElewInit::jump_read_b_endl, 13},
                      T{"jump_write", &ElewInit::jump_write, 10},
                      T{"jump_write_endl", &ElewInit::jump_write_endl, 13}};
  }
  friend bool operator==(const ElewInit&, const ElewInit&) = default;
};

/// One or two rows of a sum of two feature maps, or of one with another scale.
struct Elew {
  static constexpr std::string_view name = "ELEW";
  static constexpr int opcode = 7;
  int bank_id_a = 0, bank_addr_a = 0, bank_id_b = 0, bank_addr_b = 0;
  int bank_id_out = 0, bank_addr_out = 0, length = 0, channel_group = 0, valid_rows = 0;
  static constexpr auto fields() {
    using T = BitField<Elew>;
    return std::array{T{"bank_id_a", &Elew::bank_id_a, 6},
                      T{"bank_addr_a", &Elew::bank_addr_a, 13},
                      T{"bank_id_b", &Elew::bank_id_b, 6},
                      T{"bank_addr_b", &Elew::bank_addr_b, 13},
                      T{"bank_id_out", &Elew::bank_id_out, 6},
                      T{"bank_addr_out", &Elew::bank_addr_out, 13},
                      T{"length", &Elew::length, 10, kCount},
                      T{"channel_group", &Elew::channel_group, 9, kCount},
                      T{"valid_rows", &Elew::valid_rows, 2, {1, 2}}};
  }
  friend bool operator==(const Elew&, const Elew&) = default;
};

/// Only passes tokens.
struct Nop {
  static constexpr std::string_view name = "NOP";
  static constexpr int opcode = 8;
  int queue = 0;  ///< a Unit
  static constexpr auto fields() {
    using T = BitField<Nop>;
    return std::array{T{"queue", &Nop::queue, 2}};
  }
  friend bool operator==(const Nop&, const Nop&) = default;
};

/// The last instruction of a stream.
struct End {
  static constexpr std::string_view name = "END";
  static constexpr int opcode = 9;
  static constexpr auto fields() { return std::array<BitField<End>, 0>{}; }
  friend bool operator==(const End&, const End&) = default;
};

using Op = std::variant<Load, Save, ConvInit, Conv, PoolInit, Pool, ElewInit, Elew, Nop, End>;

/// Bit u of `dpon`: it waits for a token of unit u; of `dpby`: it gives one to unit u when it is
/// done. The own unit's bits are 0; END has none.
struct Insn {
  uint8_t dpon = 0, dpby = 0;
  Op op;
  friend bool operator==(const Insn&, const Insn&) = default;
};

std::string_view op_name(const Op& op);  ///< `LOAD`, ...
/// The queue it runs in. requires: not End.
Unit unit_of(const Insn& insn);
/// 32-bit words of its encoding.
int encoded_words(const Op& op);

/// That every value fits its field, whatever it means; all problems. errors: Invalid.
Status check_widths(const Insn& insn, const std::string& place);
/// Every value that does not fit its field or is undefined: counts, kernels, strides of 0 or beyond
/// the limits, an undefined type; all problems. `place` begins each message.
/// errors: Invalid.
Status check_fields(const Insn& insn, const std::string& place);

/// Appends its words, little endian. requires: every value fits its field.
void encode(const Insn& insn, std::string& out);
std::string encode(const std::vector<Insn>& insns);
/// All of `bytes`. errors: Parse, with the byte offset (undefined opcode, cut off, unused bits
/// set).
Result<std::vector<Insn>> decode(std::string_view bytes);
/// The first `count` of them; what follows is not looked at.
Result<std::vector<Insn>> decode(std::string_view bytes, size_t count);

/// `CONV dpon=LP dpby=S pad_left=1 ...`: one line, every field by its name; what `parse_asm` reads.
std::string disassemble(const Insn& insn);
std::string disassemble(const std::vector<Insn>& insns);
/// One instruction per line; `#` begins a comment; fields not named are 0, one named twice is an
/// error. errors: Parse, every line that is wrong, with its number and the nearest name.
Result<std::vector<Insn>> parse_asm(std::string_view text, const std::string& place);

}  // namespace tilewright::dpu
