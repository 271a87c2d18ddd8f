// An accelerator of the family `spatial` as a value: one array of multiply-accumulate units, a
// scratchpad in banks, private memory for sums, and one port to DRAM. Each primitive of HASCO's
// section V (reshapeArray, linkPEs, addCache, partitionBanks, distributeCache, burstTransfer) is a
// field. One struct drives model, compiler, simulators and Verilog.
//
// Example: `{unit = Gemm, dataflow = WeightStationary, rows = 16, cols = 16}` multiplies one row of
// 16 activations with 16 x 16 weights that stay, in each step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::spatial {

/// What the array does in one step; R = rows, C = cols.
enum class Unit {
  Dot,    ///< a product of two vectors of R*C elements, added to one sum
  Gemv,   ///< one column of a matrix of R*C rows times one element
  Gemm,   ///< by `dataflow`
  Conv2d  ///< one tap at one pixel: R output channels from C input channels
};

/// What stays in the array of a Gemm.
enum class Dataflow {
  WeightStationary,  ///< R x C weights; a step is one row of the other operand
  OutputStationary   ///< R x C sums; a step is an outer product
};

/// How operands reach the units.
enum class Links {
  None,      ///< each fetches for itself
  Systolic,  ///< neighbours pass them on
  Full       ///< multicast and adder trees
};

/// Units: cycles. The defaults are those of VTA's public hardware (docs/vta-timing.md).
struct Timing {
  int read_latency = 16;        ///< from a granted burst to its first beat
  int burst_gap = 1;            ///< between the beats of two bursts
  int load_overhead = 9;        ///< of a LOAD, before its first request
  int store_row_overhead = 9;   ///< of a burst of a STORE
  int store_element_extra = 1;  ///< of an element of a STORE, beside its beats
  int compute_overhead = 7;     ///< of a COMPUTE
  int token_latency = 1;        ///< from a token given to a token taken
  int command_queue = 512;      ///< instructions that each queue holds
  friend bool operator==(const Timing&, const Timing&) = default;
};

/// What does everything that no unit does: an in-order core.
struct Host {
  double macs_per_cycle = 1, bytes_per_cycle = 1;
  friend bool operator==(const Host&, const Host&) = default;
};

struct Design {
  std::string name = "spatial";
  Unit unit = Unit::Gemm;
  Dataflow dataflow = Dataflow::WeightStationary;  ///< of a Gemm
  int rows = 16, cols = 16;                        ///< reshapeArray
  Links links = Links::Systolic;                   ///< linkPEs
  int spad_kb = 256;                               ///< addCache: shared by all units
  int banks = 4, bank_bytes = 16;                  ///< partitionBanks: bytes per bank and cycle
  int local_kb = 64;                               ///< distributeCache: of the array in total
  int bus_bytes = 8, burst_bytes = 2048;           ///< burstTransfer
  double clock_mhz = 200;
  Timing timing;
  Host host;

  int64_t units() const { return int64_t{rows} * cols; }
  int64_t spad_bytes() const { return int64_t{spad_kb} * 1024; }
  int64_t local_bytes() const { return int64_t{local_kb} * 1024; }
  friend bool operator==(const Design&, const Design&) = default;
};

/// Everything that is wrong with a design: ranges, powers of two, links that its unit does not
/// have, memories too small for one step; empty: legal.
std::vector<std::string> problems(const Design& design);

/// From a file of `kind = "spatial"`; what is not there keeps its default.
/// errors: Parse (unknown keys, wrong types), Invalid (as `problems`); all at once.
Result<Design> read_design(std::string_view toml, const std::string& place);
/// The text it reads from.
std::string to_toml(const Design& design);

/// Names as files have them: `gemm`, `ws`, `systolic`.
std::string_view name(Unit unit);
std::string_view name(Dataflow dataflow);
std::string_view name(Links links);

}  // namespace tilewright::spatial
