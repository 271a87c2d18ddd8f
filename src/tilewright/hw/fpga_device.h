// FPGAs as data: what steps, cost models and code generators need to know of a chip and its board.
// Files hw/fpga/NAME.toml; what a user writes is read by the same reader (hw/fpga_device_file.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/ir/expr.h"

namespace tilewright::hw {

/// `series7` has DSP48E1 and RAMB18; `ultrascale` DSP48E2, RAMB18 and UltraRAM; `ice40` its own.
enum class FpgaFamily { Series7, UltraScale, Ice40 };
/// `series7`, `ultrascale`, `ice40`.
std::string_view name(FpgaFamily family);

/// Cells; of a device, or of a design that uses a part of one.
struct FpgaCells {
  double luts = 0, ffs = 0, dsps = 0;  ///< a product of i8 may take half a DSP
  int64_t bram18 = 0;                  ///< blocks of 18 Kbit (iCE40: of 4 Kbit)
  int64_t uram = 0;                    ///< UltraRAMs of 288 Kbit
  friend bool operator==(const FpgaCells&, const FpgaCells&) = default;
};

/// Shares of the cells that a design may take before placing and routing get hard.
struct FpgaShares {
  double dsp = 0.9, lut = 0.7, bram = 0.85;  ///< bram: of block RAM and UltraRAM
  std::string source;
  friend bool operator==(const FpgaShares&, const FpgaShares&) = default;
};

/// A port of the kernel to memory (AXI4). Cycles are of the kernel's clock.
struct FpgaPort {
  int bytes = 64;          ///< of one beat
  int burst_beats = 32;    ///< longest burst; never across 4 KiB
  int outstanding = 32;    ///< bursts that may be under way
  int read_latency = 70;   ///< cycles from a request to its first beat
  int write_latency = 42;  ///< of a written burst, besides 3 cycles for each beat
  int write_gap = 4;       ///< cycles between two written bursts
  double read_share = 0.941, write_share = 0.848;  ///< of a channel's rate that ports reach
  int count = 4;                                   ///< ports that there can be
  std::string source;
  friend bool operator==(const FpgaPort&, const FpgaPort&) = default;
};

/// Memory channels that are alike.
struct FpgaMemory {
  std::string name;  ///< `ddr`
  int channels = 1;
  double gigabytes = 19.2;           ///< 10^9 bytes per second of one channel
  int64_t bytes = int64_t{4} << 30;  ///< of one channel
  std::string source;
  friend bool operator==(const FpgaMemory&, const FpgaMemory&) = default;
};

/// What Linux calls a design and the memory that it shares with the host, on boards without a
/// vendor's runtime (runtime/fpga/uio.h). Empty: the usual names.
struct FpgaBoard {
  std::string registers, memory;
  friend bool operator==(const FpgaBoard&, const FpgaBoard&) = default;
};

/// Who makes the netlist: `hls`, a vendor's compiler from our C++; `rtl`, our own Verilog.
enum class FpgaPath { Hls, Rtl };
/// `hls`, `rtl`.
std::string_view name(FpgaPath path);
/// What one operator takes, working on a new pair of operands in each cycle.
struct FpgaOperator {
  std::string op;     ///< `mac`, `add`, `mul`, `max`, ...
  std::string dtype;  ///< of the operands, as programs write it: `f32`, `i8`
  FpgaPath path = FpgaPath::Rtl;
  double luts = 0, ffs = 0, dsps = 0;
  int latency = 1;  ///< cycles from operands to result
  /// Of `mac`: cycles from reading a sum to reading it again: read, add, write.
  int recurrence = 1;
  std::string source;  ///< who says so: a data sheet, a tool, nobody

  /// Of a `mac` of floats: cycles of its sum, which is read in 2 cycles and written in 1, and of
  /// its product.
  int sum_cycles() const { return std::max(1, recurrence - 3); }
  int product_cycles() const { return std::max(1, latency - sum_cycles()); }
  friend bool operator==(const FpgaOperator&, const FpgaOperator&) = default;
};

/// One chip on one board.
struct FpgaDevice {
  std::string name;  ///< `vu9p`, or the file's
  std::string part;  ///< as vendors order it
  FpgaFamily family = FpgaFamily::UltraScale;
  double clock_mhz = 250;
  FpgaCells cells;     ///< that the board's shell leaves
  std::string source;  ///< of the cells
  FpgaShares usable;
  FpgaMemory memory;
  FpgaPort port;
  FpgaBoard board;
  int regions = 1;                      ///< dies (SLRs) that wires between cost
  std::vector<FpgaOperator> operators;  ///< by name, type and path
  friend bool operator==(const FpgaDevice&, const FpgaDevice&) = default;

  /// What a design may take: cells times the shares (flip-flops share with LUTs).
  FpgaCells usable_cells() const;
  /// Who makes netlists for it: no vendor's compiler of C++ knows the iCE40.
  FpgaPath path() const { return family == FpgaFamily::Ice40 ? FpgaPath::Rtl : FpgaPath::Hls; }
  /// Cycles by which an answer to a written burst is later for each of its beats. source: what AMD
  /// published of a U200; the iCE40's RAM answers behind the last beat.
  int write_beat() const { return family == FpgaFamily::Ice40 ? 0 : 3; }
  /// Bits of the wider factor of a multiplier. source: data sheets of DSP48E1, DSP48E2, SB_MAC16.
  int multiplier_bits() const {
    return family == FpgaFamily::Series7 ? 25 : family == FpgaFamily::UltraScale ? 27 : 16;
  }
  /// The row of `op` on `dtype`; null where the device has none.
  const FpgaOperator* find(std::string_view op, std::string_view dtype, FpgaPath path) const;
};

/// Devices of the program's own files, valid by test, in the order in which they are listed.
const std::vector<FpgaDevice>& fpga_devices();

}  // namespace tilewright::hw
