// Index expressions as affine values of the counters of a design, and as banks and words of its
// memories. Internal.
//
//   X[c.o * 4 + c.i, w] of shape [16, 30] with partition c4_c1, counters c.o, c.i, w
//     ->  bank c.i, word c.o * 30 + w
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/accel/fpga/design.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/lower/processes.h"

namespace tilewright::codegen::fpga_design {

struct Counter {
  Var var;
  int64_t extent = 1;
};
/// What addresses depend on: loops of the process, counters of the nest, both outermost first.
struct Loops {
  std::vector<Counter> loops, counters;
};

struct IndexRange {
  int64_t lo = 0, hi = 0;
};
IndexRange interval_of(const fpga::Affine& affine, const Loops& loops);
/// a + factor * b.
fpga::Affine plus(const fpga::Affine& a, const fpga::Affine& b, int64_t factor);

/// errors: Unsupported: something else than constants times loops.
Result<fpga::Affine> affine_of(const Expr& index, const Loops& loops);
/// Ranges that hold where `conditions` do; one that always holds is left out.
/// errors: Unsupported: something else than comparisons of affine values joined by `&&`.
Result<std::vector<fpga::Range>> ranges_of(const std::vector<Expr>& conditions, const Loops& loops);

/// How a buffer lies in a memory of the design.
struct BankedBuffer {
  int memory = 0;
  std::vector<int64_t> shape;
  std::vector<lower::Banking> banking;

  int64_t banks() const;
  int64_t words() const;  ///< in each bank
};
/// A counter that must become two for an address to be a bank and a word: `var = o * factor + i`.
struct CounterSplit {
  Var counter;
  int64_t factor = 1;
};
struct Located {
  fpga::Place place;
  std::optional<CounterSplit> split;  ///< then there is no place yet
};
/// Where an element lies. errors: Unsupported: its bank depends on more than a split can tell.
Result<Located> place_of(const BankedBuffer& chip, const std::string& name,
                         const std::vector<Expr>& indices, const Loops& loops);

}  // namespace tilewright::codegen::fpga_design
