// Instructions of `spatial` as values: LOAD copies a box of a tensor from DRAM to the scratchpad,
// COMPUTE runs a tile of multiply-adds on the array, STORE writes finished sums to DRAM.
//
// Example (gemm, weight stationary, 16x16; a tile of 4 rows by 16 results by 32 products):
//   LOAD 4x32 activations, lanes of 16 -> scratchpad 0: two blocks of 4 rows of 16 bytes
//   LOAD 512 packed weights -> scratchpad 128: two blocks of 16 rows of 16 bytes
//   COMPUTE loops {2 blocks of k, 4 rows}, sums begin at zero
//   STORE 4x16 sums + bias, shift, clip -> DRAM
//
// How long each takes: docs/spatial-timing.md. Operands are int8, sums int32 (they wrap around).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/accel/spatial/design.h"
#include "tilewright/base/result.h"

namespace tilewright::spatial {

inline constexpr int kInsnBytes = 128;   ///< of an encoded instruction
inline constexpr int kAxes = 5;          ///< of the box that a LOAD or STORE moves
inline constexpr int kLoops = 6;         ///< of a COMPUTE
inline constexpr int kBiasWords = 1024;  ///< 32-bit words of the bias memory, of every design

/// The queues of the device; tokens pass between any two.
enum class Queue { Load, Compute, Store };
inline constexpr int kQueues = 3;
std::string_view name(Queue queue);  ///< `load`, ...

/// One axis of a LOAD. Positions 0..count; the first `before` and the last `after` are zeros.
struct LoadAxis {
  uint32_t count = 1;
  uint16_t before = 0, after = 0;
  int32_t dram_step = 0;   ///< bytes from one position to the next
  uint32_t spad_step = 0;  ///< the same in the scratchpad
  uint32_t there() const { return count - before - after; }
  friend bool operator==(const LoadAxis&, const LoadAxis&) = default;
};

/// Copies a box of bytes. A position (p0..p4) comes from `dram` + sum of (p - before) * dram_step,
/// or is zero if it is in the zeros of any axis, and goes to `spad` + sum of the axes' places: p *
/// spad_step, but for the lane axis (p / lanes) * lane_pitch + (p % lanes) * spad_step.
///   requires: the last axis has dram_step 1; the last `run_axes` axes follow each other in DRAM
///   (dram_step of one = bytes that are there of the next ones), and are read as one run. No two
///   positions go to the same place, nor those of a STORE.
struct Load {
  uint64_t dram = 0;  ///< of the first byte that is there
  uint32_t spad = 0;
  std::array<LoadAxis, kAxes> axes{};  ///< outermost first; those not needed have count 1
  uint8_t run_axes = 1;
  int8_t lane_axis = -1;  ///< whose positions go to blocks of lanes; -1: none
  uint16_t lanes = 1;
  uint32_t lane_pitch = 0;
  /// Words of 32 bits that stand before the box in DRAM, in the same run, and go to the bias
  /// memory from `bias` on. requires, if any: run_axes = kAxes (the box is one run).
  uint16_t bias_words = 0, bias = 0;
  friend bool operator==(const Load&, const Load&) = default;
};

/// A loop of a COMPUTE, outermost first. Steps: bytes in the scratchpad by factor, sums in each
/// part of the private memory.
struct ComputeLoop {
  uint16_t count = 1;
  bool reduces = false;  ///< summed over: sums begin where all these loops are at 0
  std::array<uint32_t, 2> spad_step{};
  uint32_t sum_step = 0;
  friend bool operator==(const ComputeLoop&, const ComputeLoop&) = default;
};

/// Elements of a role in the whole tile, and the loop that goes through its blocks of lanes: lanes
/// from `count` - index * width on do nothing.
struct Lanes {
  int8_t loop = -1;  ///< -1: all lie in one block
  uint16_t count = 1;
  friend bool operator==(const Lanes&, const Lanes&) = default;
};

/// sum[i, j] += first[i, k] * second[k, j] over the lanes of a step, for all steps of the loops.
/// Lanes by unit (R rows, C columns):
///   dot: k = R*C; gemv: i = R*C; gemm os: i = R, j = C; gemm ws: j = C, k = R; conv2d: j = R, k =
///   C.
/// A step reads its row of the first factor (lanes k; i for gemv and os) at spad[0] + loops, lanes
/// side by side; of the second (lanes k of dot, j of os, one byte of gemv) at spad[1] + loops.
/// Weights that stay (ws, conv2d) are read a block at a time, when a block loop moves: rows of
/// lanes side by side (ws: row k, lanes j; conv2d: row j, lanes k), row r at r * row_step; conv2d:
/// for each tap, whose loops move them by spad_step[1]. Part of a sum: lane j (ws, conv2d), lane i
/// (gemv), lane i * C + lane j (os), 0 (dot); its place in the part: sum + loops. A block, with the
/// weights of all its taps, takes the last words of each part: what was there is lost.
///   requires: lanes of a block change with its loops only; a loop that chooses neither block nor
///   tap leaves weights that stay where they are; roles without lanes have one element.
struct Compute {
  std::array<ComputeLoop, kLoops> loops{};
  uint8_t block_loops = 0;  ///< the first ones choose the block of weights
  uint8_t tap_loops = 0;    ///< conv2d: the last ones choose the tap in the block
  bool begins = false;      ///< sums begin at zero, or go on
  std::array<uint32_t, 2> spad{};
  uint32_t sum = 0;
  uint32_t row_step = 0;  ///< of a block
  Lanes i, j, k;
  friend bool operator==(const Compute&, const Compute&) = default;
};

/// One axis of a STORE. Position p lies p * dram_step further in DRAM; in the private memory (p %
/// lanes) * part_step parts and (p / lanes) * sum_step sums further.
struct StoreAxis {
  uint32_t count = 1;
  int32_t dram_step = 0;  ///< bytes
  uint16_t lanes = 1, part_step = 0;
  uint32_t sum_step = 0;
  friend bool operator==(const StoreAxis&, const StoreAxis&) = default;
};

/// Writes sums as int8: clip(round((sum + bias) / 2^shift)), halves up; or whole.
///   requires: the last axis has dram_step 1 (4 if `wide`), and run_axes as in Load.
struct Store {
  uint64_t dram = 0;
  uint32_t sum = 0;  ///< place of the first one in its part, part 0
  std::array<StoreAxis, kAxes> axes{};
  uint8_t run_axes = 1;
  bool wide = false;      ///< 32-bit sums, with bias, neither shifted nor clipped
  int8_t bias_axis = -1;  ///< whose position chooses the bias; -1: no bias
  uint16_t bias = 0;      ///< word of position 0
  uint8_t shift = 0;      ///< 0..31
  int8_t low = -128, high = 127;
  friend bool operator==(const Store&, const Store&) = default;
};

struct Insn {
  /// Bit q of `takes`: it begins when there is a token of queue q, of `gives`: it gives one to q.
  uint8_t takes = 0, gives = 0;
  std::variant<Load, Compute, Store> work;
  Queue queue() const { return static_cast<Queue>(work.index()); }
  friend bool operator==(const Insn&, const Insn&) = default;
};

/// 128 bytes, little endian (docs/spatial.md has the fields). decode(encode(x)) == x.
std::string encode(const Insn& insn);
/// errors: Parse (length, unknown operation, bits that must be zero).
Result<Insn> decode(std::string_view bytes);
/// One after the other. errors: as `decode`, with the index.
Result<std::vector<Insn>> decode_all(std::string_view bytes);
/// One line for people, and what the assembler reads back.
std::string to_string(const Insn& insn);

/// What a design cannot do: axes, lanes, loops or addresses out of range; all at once.
/// errors: Invalid.
Status check_fields(const Design& design, const Insn& insn);

}  // namespace tilewright::spatial
