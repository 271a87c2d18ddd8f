#include "tilewright/accel/spatial/cells.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "tilewright/accel/spatial/isa.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/accel/spatial/operands.h"

namespace tilewright::spatial {
namespace {

constexpr double kInsnBits = 8.0 * kInsnBytes;
constexpr double kSumBits = 32;

/// Bits that count to `values`, at least one.
int64_t index_bits(int64_t values) {
  return std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(values - 1))));
}

// What modules take whatever the design, and for each byte of a width.
// source: Yosys 0.23, synth_xilinx -family xc7, each module alone, 2026-11-26 and 27
// (bench/results/codesign.md); registers are counted from the text.
constexpr double kFifoLuts = 42, kTopLuts = 75, kLanesLuts = 100;
constexpr double kLoopsLuts = 781, kLoopsFfs = 288;
constexpr double kStaysLuts = 707, kStaysFfs = 1391;  // COMPUTE that loads blocks that stay
constexpr double kPairLuts = 291, kPairFfs = 1167;    // COMPUTE that reads two rows
constexpr double kRowsLuts = 440, kRowShiftLuts = 12, kRowsFfs = 66;
/// Biases that are turned to the sums of a beat: 4, 8, 16 of them; of each of more.
constexpr double kTurnLuts[] = {368, 1118, 1626}, kTurnMoreLuts = 102;
constexpr double kAloneLuts = 150, kAloneFfs = 151, kAloneDsps = 2;  // each unit fetches for itself
constexpr double kShiftLuts = 13.5;
constexpr double kLoadLuts = 3815, kLoadLineLuts = 42, kLoadBusLuts = 48, kLoadFfs = 1713;
constexpr double kStoreLuts = 2411, kStoreLaneLuts = 548, kStoreFfs = 1518;
constexpr double kRunDsps = 12;  // the extents of a run multiplied: four products of 32 bits
constexpr double kBankLuts = 48, kDivideLuts = 300, kDivideDsps = 2;
constexpr double kSumsReadLuts = 21;

constexpr double kBiases = 1024;
/// Of memories with several ports, as synthesis counts them (accel/common/rtl/synth.h).
constexpr double kLutRamBytes = 512, kBlockBytes = 2048;
/// By which Yosys chooses between four LUTs of 64 words and a block RAM, for a memory read one
/// cycle later. source: its files techlibs/xilinx/lutrams_xc5v.txt, brams_xc4v.txt
constexpr double kLutRamPrice = 8, kBlockRamPrice = 129;

// --- What Yosys makes of parts of a module ---

/// Logic that chooses among `ways` words: a LUT of six inputs chooses among four bits.
double choice(double bits, double ways) { return bits * (ways - 1) / 3; }

/// A memory that is read in the cycle in which it is asked, through one port.
double lut_ram(double words, double bits) {
  if (words <= 32) return 4 * std::ceil(bits / 6);  // RAM32M
  const double blocks = std::ceil(words / 64);      // RAM64M
  return blocks * 4 * std::ceil(bits / 3) + choice(bits, blocks);
}

struct BlockRam {
  double brams = 0, luts = 0, ffs = 0;
};
/// 512 words of 36 bits (32 where each byte has its own write enable), or twice as many of half
/// as many bits, down to one; the block that was read is kept in flip-flops, and LUTs choose it.
BlockRam block_ram(double words, double bits, bool bytes) {
  BlockRam best{HUGE_VAL, HUGE_VAL, 0};
  for (double depth = 512, width = bytes ? 32 : 36; width >= 1; depth *= 2, width /= 2) {
    const double deep = std::ceil(words / depth);
    const BlockRam one{deep * std::ceil(bits / std::floor(width)), choice(bits, deep),
                       deep == 1 ? 0 : double(index_bits(int64_t(deep)))};
    if (one.brams < best.brams || (one.brams == best.brams && one.luts < best.luts)) best = one;
  }
  return best;
}

/// What leaves `cycles` later: up to two registers, then shift registers of 32 bits in a LUT.
ModuleCells delay(double copies, double bits, double cycles) {
  ModuleCells cells{"spatial_delay", CellPart::Wiring, copies};
  if (cycles < 3)
    cells.ffs = bits * cycles;
  else
    cells.luts = bits * std::ceil(cycles / 32);
  return cells;
}

/// The numbers that the Verilog of a design is made with.
struct Widths {
  explicit Widths(const Design& d)
      : line(double(d.banks) * d.bank_bytes),
        parts(double(sum_parts(d))),
        fill(fill_cycles(d)),
        reads(std::min(d.bus_bytes, d.bank_bytes)),
        lanes(all_lanes(d)),
        stays(weights_stay(d)) {
    const auto lanes_of_rows = row_lanes(d, lanes);
    row = {double(lanes_of_rows[0]), double(stays ? d.cols : lanes_of_rows[1])};
    fetches = {double(row_fetches(d, 0)), stays ? 1.0 : double(row_fetches(d, 1))};
  }
  double line;   ///< bytes of an access to the scratchpad
  double parts;  ///< of private memory
  double fill;   ///< stages behind the units, or skew through them
  double reads;  ///< sums that STORE reads at once
  RoleLanes lanes;
  bool stays;
  std::array<double, 2> row,
      fetches;  ///< of both factors; of the second its blocks where they stay
};

using Modules = std::vector<ModuleCells>;

// --- Modules ---

/// A bank for each sum that STORE reads at once; what they give is turned to the first one's lane.
void add_biases(Modules& out, double reads) {
  const double words = kBiases / reads;
  const double bank =
      words <= 32 ? lut_ram(words, kSumBits) : lut_ram(64, kSumBits) * std::ceil(words / 64);
  const double turn = reads == 4    ? kTurnLuts[0]
                      : reads == 8  ? kTurnLuts[1]
                      : reads == 16 ? kTurnLuts[2]
                                    : kTurnMoreLuts * reads;
  out.push_back({"spatial_biases", CellPart::Control, 1, reads * bank + turn});
}

void add_control(Modules& out, const Design& d, const Widths& w) {
  const double depth = std::exp2(double(index_bits(d.timing.command_queue)));
  const BlockRam queue = block_ram(depth, kInsnBits, false);
  const double log_depth = std::log2(depth);
  // The head is what was read, or what was written when that is the same word.
  out.push_back({"spatial_fifo", CellPart::Control, 3, kInsnBits + kFifoLuts + queue.luts,
                 kInsnBits + 2 + 3 * log_depth, 0, queue.brams});
  out.push_back({"spatial_tokens", CellPart::Control, 9, 10, 8});
  if (d.timing.token_latency > 1) out.push_back(delay(9, 1, d.timing.token_latency - 1));
  // An instruction is put together.
  out.push_back({"spatial", CellPart::Control, 1, kTopLuts, kInsnBits + 18});
  add_biases(out, w.reads);
  out.push_back({"spatial_compute", CellPart::Control, 1, w.stays ? kStaysLuts : kPairLuts,
                 (w.stays ? kStaysFfs : kPairFfs) + 8 * (w.row[0] + (w.stays ? 0 : w.row[1]))});
  out.push_back({"spatial_loops", CellPart::Control, w.stays ? 4.0 : 3.0, kLoopsLuts, kLoopsFfs});
}

/// Lanes that do something: a place times a width, which is a DSP unless it is a shift.
ModuleCells lanes_module(double copies, int64_t width) {
  return {"spatial_lanes",
          CellPart::Control,
          copies,
          kLanesLuts,
          0,
          std::has_single_bit(static_cast<uint64_t>(width)) ? 0.0 : 1.0};
}

/// Reads a row of `row` bytes out of lines: what is kept of one and what came are shifted to the
/// row's begin, masked, and shifted to where the row goes on.
ModuleCells rows_module(const Widths& w, size_t factor) {
  const double row = w.row[factor], fetches = w.fetches[factor];
  const double bytes = w.line + row;
  ModuleCells cells{"spatial_rows", CellPart::Control, 1};
  if (fetches == 1) {
    cells.luts = kRowsLuts + kRowShiftLuts * bytes * std::log2(row + 1);
    const auto longest = static_cast<int64_t>(std::max(w.line, row));
    cells.ffs = kRowsFfs + 5.0 * double(index_bits(longest + 1)) + 8 * bytes;
  } else {  // each unit fetches for itself: nothing is kept of a line, and bytes are multiplied
    cells.luts = kAloneLuts + kShiftLuts * bytes * std::log2(bytes) / 2;
    cells.ffs = kAloneFfs + 8 * row;
    cells.dsps = std::has_single_bit(static_cast<uint64_t>(fetches)) ? 0 : kAloneDsps;
  }
  return cells;
}

ModuleCells ahead_module(double bytes) {
  return {"spatial_ahead", CellPart::Control, 1, 3 + lut_ram(8, 8 * bytes), 9};
}

void add_rows(Modules& out, const Widths& w) {
  out.push_back(lanes_module(1, w.lanes.i));
  out.push_back(lanes_module(w.stays ? 2 : 1, w.lanes.j));
  out.push_back(lanes_module(1, static_cast<int64_t>(w.row[0])));
  out.push_back(lanes_module(1, w.stays ? w.lanes.k : static_cast<int64_t>(w.row[1])));
  out.push_back(rows_module(w, 0));
  out.push_back(rows_module(w, 1));
  out.push_back(ahead_module(w.row[0]));
  if (!w.stays) out.push_back(ahead_module(w.row[1]));
}

void add_port(Modules& out, const Design& d, const Widths& w) {
  // Two lines, one being filled; a beat is shifted down to its first byte and up into the line.
  ModuleCells load{"spatial_load", CellPart::Port, 1};
  load.luts = kLoadLuts + kLoadLineLuts * w.line + kLoadBusLuts * d.bus_bytes;
  load.ffs = kLoadFfs + 18 * w.line;
  load.dsps = kRunDsps;
  out.push_back(load);
  ModuleCells store{"spatial_store", CellPart::Port, 1};
  store.luts = kStoreLuts + kStoreLaneLuts * w.reads;
  store.ffs = kStoreFfs;
  store.dsps = kRunDsps;
  out.push_back(store);
}

void add_memories(Modules& out, const Design& d, const Widths& w) {
  // Words, in and out, and the mask are turned by the bank of the first word: whose place is a
  // division, by a shift or by a product.
  const bool shift = std::has_single_bit(static_cast<uint64_t>(d.banks));
  ModuleCells spad{"spatial_spad", CellPart::Scratchpad, 1};
  const double ways = d.banks == 1 ? 0 : static_cast<double>(std::bit_ceil(unsigned(d.banks)));
  spad.luts = kBankLuts * d.banks + 17 * w.line * ways / 2 + (shift ? 0 : kDivideLuts);
  spad.ffs = d.banks == 1 ? 0 : 2 + double(index_bits(d.banks));
  spad.dsps = shift ? 0 : kDivideDsps;
  out.push_back(spad);
  const double rows = std::ceil(double(d.spad_bytes()) / d.bank_bytes / d.banks);
  const BlockRam bank = block_ram(rows, 8.0 * d.bank_bytes, true);
  out.push_back({"spatial_bank", CellPart::Scratchpad, double(d.banks), bank.luts + d.bank_bytes,
                 bank.ffs, 0, bank.brams});
  // Sums have more ports than a memory: counted by their size, and what adds to them.
  const double bits = kSumBits * std::exp2(double(index_bits(sum_words(d))));
  ModuleCells sums{"spatial_sums", CellPart::Local, 1,
                   kSumBits * w.parts + kSumsReadLuts * w.reads};
  if (bits <= 8 * kLutRamBytes)
    sums.luts += w.parts * std::ceil(bits / 32);
  else
    sums.brams = w.parts * std::ceil(bits / (8 * kBlockBytes));
  out.push_back(sums);
}

/// Products of bytes and their sum: a chain of DSPs.
ModuleCells dot_module(double copies, double bytes) {
  return {"spatial_dot", CellPart::Array, copies, 0, 0, bytes};
}

/// Neighbours pass rows on: operands, weights and sums come in skewed by one cycle per unit.
void add_systolic(Modules& out, const Design& d, const Widths& w) {
  const double units = double(d.units());
  const int diagonals = d.rows + d.cols - (w.stays ? 0 : 1);
  for (int g = 1; g < d.rows; ++g) out.push_back(delay(1, 8, g));
  for (int g = 1; g < d.cols; ++g) out.push_back(delay(1, w.stays ? 41 + 32 : 8, g));
  for (int g = 1; g < diagonals; ++g) out.push_back(delay(1, w.stays ? 1 : 98, g));
  if (w.stays) out.push_back(delay(1, 66, w.fill + 1));
  out.push_back({"spatial_array", CellPart::Wiring, 1,
                 w.stays ? d.cols * (11.0 + d.rows) : 12.0 * diagonals + 3 * units});
  out.push_back({w.stays ? "spatial_ws_unit" : "spatial_os_unit", CellPart::Array, units,
                 w.stays ? kSumBits : 0, w.stays ? kSumBits + 24 : 16});
  out.push_back(dot_module(units, 1));
}

/// All units get the rows at once, and trees add up.
void add_trees(Modules& out, const Design& d, const Widths& w) {
  const double units = double(d.units());
  ModuleCells array{"spatial_array", CellPart::Wiring, 1, 12 + 3 * w.parts};
  if (d.unit == Unit::Gemm && w.stays) array.ffs = 16 * units;  // weights, and the next ones
  if (d.unit == Unit::Conv2d) array.ffs = 2;
  out.push_back(array);
  out.push_back(delay(1, 33 * (w.parts + 1), w.fill));
  out.push_back(dot_module(w.parts, units / w.parts));
  if (d.unit != Unit::Conv2d) return;
  // Weights of all taps, in two copies, of which one is being loaded.
  const double taps =
      std::exp2(double(index_bits(std::max<int64_t>(2, d.local_bytes() / d.units()))));
  ModuleCells channel{"spatial_channel", CellPart::Local, double(d.rows)};
  const BlockRam ram = block_ram(2 * taps, 8.0 * d.cols, false);
  const double lut_rams = std::ceil(2 * taps / 64) * std::ceil(8.0 * d.cols / 3);
  if (lut_rams * kLutRamPrice < ram.brams * kBlockRamPrice) {
    channel.luts = lut_ram(2 * taps, 8.0 * d.cols);
    channel.ffs = 8.0 * d.cols;
  } else {
    channel.luts = ram.luts;
    channel.ffs = ram.ffs;
    channel.brams = ram.brams;
  }
  out.push_back(channel);
}

}  // namespace

std::vector<ModuleCells> predicted_cells(const Design& design) {
  const Widths widths(design);
  Modules modules;
  add_control(modules, design, widths);
  add_rows(modules, widths);
  add_port(modules, design, widths);
  add_memories(modules, design, widths);
  if (design.links == Links::Systolic)
    add_systolic(modules, design, widths);
  else
    add_trees(modules, design, widths);
  return modules;
}

}  // namespace tilewright::spatial
