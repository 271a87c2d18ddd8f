// The commands of Gemmini as values, and as what the processor sends: a number that selects one
// (funct) and two registers. docs/gemmini.md has the bits.
//
// Example: 16 rows of 16 bytes from DRAM 0x1000 to row 0 of the scratchpad, then all of it as A
//   mvin 2, rs1 0x1000, rs2 0x0010'0010'0000'0000
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/accel/gemmini/config.h"

namespace tilewright::gemmini {

/// What a processor sends.
struct RawCommand {
  uint32_t funct = 0;
  uint64_t rs1 = 0, rs2 = 0;
  friend bool operator==(const RawCommand&, const RawCommand&) = default;
};

enum class Activation { None = 0, Relu = 1 };

/// A place in the scratchpad or the accumulator: 32 bits, a row and what is done with it.
struct Local {
  uint32_t bits = 0xFFFFFFFF;  ///< all ones: none

  static constexpr uint32_t kAcc = 1u << 31, kAdds = 1u << 30, kWhole = 1u << 29;
  static constexpr Local spad(int64_t row) { return {static_cast<uint32_t>(row)}; }
  static constexpr Local acc(int64_t row, uint32_t flags = 0) {
    return {kAcc | flags | static_cast<uint32_t>(row)};
  }
  bool none() const { return bits == 0xFFFFFFFF; }
  bool in_acc() const { return (bits & kAcc) != 0; }
  bool adds() const { return (bits & kAdds) != 0; }    ///< written: to what is there
  bool whole() const { return (bits & kWhole) != 0; }  ///< read: int32, neither scaled nor clipped
  int64_t row() const { return bits & (kWhole - 1); }
  friend bool operator==(const Local&, const Local&) = default;
};

/// `rows` rows of `cols` elements from a place on.
struct Block {
  Local at;
  uint16_t cols = 0, rows = 0;
  friend bool operator==(const Block&, const Block&) = default;
};

struct ConfigEx {
  bool weights_stay = true;                  ///< ws; false: sums stay (os)
  Activation activation = Activation::None;  ///< of results that go to the scratchpad
  bool only_strides = false;                 ///< everything but the two strides stays as it is
  bool a_transposed = false, b_transposed = false;
  uint16_t a_stride = 1, c_stride = 1;  ///< local rows from one row of the matrix to the next
  float scale = 1;     ///< of sums read as operands; not used by what is supported here
  uint32_t shift = 0;  ///< os: of results, half to even
  friend bool operator==(const ConfigEx&, const ConfigEx&) = default;
};

struct ConfigMvin {
  int which = 0;              ///< which of the three mvin
  bool narrow = false;        ///< what goes to the accumulator is int8 in DRAM
  uint8_t pixels = 0;         ///< per row; 0 counts as 1
  uint16_t block_stride = 0;  ///< local rows between blocks of DIM columns
  float scale = 1;
  uint64_t stride = 0;  ///< bytes between rows in DRAM
  friend bool operator==(const ConfigMvin&, const ConfigMvin&) = default;
};

struct ConfigMvout {
  Activation activation = Activation::None;
  uint32_t stride = 0;  ///< bytes between rows in DRAM
  float scale = 1;
  friend bool operator==(const ConfigMvout&, const ConfigMvout&) = default;
};

struct Mvin {
  int which = 0;
  uint64_t dram = 0;  ///< 0: zeros
  Block to;
  friend bool operator==(const Mvin&, const Mvin&) = default;
};

struct Mvout {
  uint64_t dram = 0;
  Block from;
  friend bool operator==(const Mvout&, const Mvout&) = default;
};

struct Preload {
  Block held;    ///< B (ws) or D (os)
  Block result;  ///< where C goes
  friend bool operator==(const Preload&, const Preload&) = default;
};

struct Compute {
  bool preloaded = true;  ///< with what the last Preload names; false: with what is held
  Block a;
  Block other;  ///< D (ws) or B (os)
  friend bool operator==(const Compute&, const Compute&) = default;
};

/// Of the TLB: nothing that a program computes.
struct Flush {
  bool skip = false;
  friend bool operator==(const Flush&, const Flush&) = default;
};

struct Insn {
  std::variant<ConfigEx, ConfigMvin, ConfigMvout, Mvin, Mvout, Preload, Compute, Flush> op;
  friend bool operator==(const Insn&, const Insn&) = default;
};

RawCommand encode(const Insn& insn);
/// decode(encode(x)) == x. errors: Parse (a command that is not known or experimental, bits that
/// must be zero, pooling).
Result<Insn> decode(const RawCommand& raw);

/// For people: `mvin dram=0x1000 to=spad[0] 16x16`.
std::string to_string(const Insn& insn);
/// `2 0x0000000000001000 0x0010001000000000  # mvin ...`
std::string line_of(const Insn& insn);
/// Lines as `line_of` makes them, by run: `fence` begins the next one. Empty lines and comments are
/// skipped. errors: Parse, at `place`:line.
Result<std::vector<std::vector<Insn>>> parse_lines(std::string_view text, const std::string& place);

}  // namespace tilewright::gemmini
