// What one command does under the configuration commands before it: with strides, flags and scales
// filled in, and refused where Gemmini does not allow it. The simulator does what it says, the
// checker looks at what it touches.
#pragma once

#include <optional>
#include <variant>

#include "tilewright/accel/gemmini/isa.h"

namespace tilewright::gemmini {

/// Rows of one of the two memories.
struct LocalRows {
  bool acc = false;
  int64_t row = 0;           ///< of the first
  int64_t stride = 1;        ///< rows from one to the next
  int64_t block_stride = 0;  ///< rows from a block of DIM columns to the next
  int64_t rows = 0, cols = 0;
};

/// DRAM to a memory; `dram` 0: zeros.
struct MoveIn {
  uint64_t dram = 0, stride = 0;
  int element_bytes = 1;  ///< in DRAM: 4 only to the accumulator
  LocalRows to;
  bool adds = false;
  float scale = 1;  ///< 1: copied
};

struct MoveOut {
  uint64_t dram = 0, stride = 0;
  int element_bytes = 1;  ///< in DRAM: 4: whole sums
  LocalRows from;
  Activation activation = Activation::None;
  float scale = 1;
};

/// C = A*B + D. Absent operands are zeros. Rows are as stored: of a transposed operand, columns of
/// the matrix.
struct Multiply {
  bool weights_stay = true;
  bool loads = true;              ///< what `held` names becomes what is held
  std::optional<LocalRows> held;  ///< ws: B, os: D
  bool held_transposed = false;
  LocalRows a;
  bool a_transposed = false;
  std::optional<LocalRows> other;  ///< ws: D, os: B
  bool other_transposed = false;
  std::optional<LocalRows> result;
  bool adds = false;
  Activation activation = Activation::None;  ///< to the scratchpad
  uint32_t shift = 0;                        ///< os: of results, half to even
};

struct Nothing {};
using Work = std::variant<Nothing, MoveIn, MoveOut, Multiply>;

/// Follows the commands of a stream that later ones depend on.
class Context {
 public:
  explicit Context(const Config& config) : config_(config) {}
  /// errors: Invalid: a command before the one that configures it, what is not allowed, rows
  /// beyond a memory, more rows or columns than there are.
  Result<Work> next(const Insn& insn);

 private:
  Result<Work> configure(const ConfigEx& c);
  Result<Work> move_in(const Mvin& c) const;
  Result<Work> move_out(const Mvout& c) const;
  Result<Work> multiply(const Compute& c);
  Result<LocalRows> rows_of(const Block& block, int64_t stride, int64_t most_cols,
                            std::string_view what) const;
  /// An operand in the scratchpad, or none.
  Result<std::optional<LocalRows>> operand(const Block& block, int64_t stride,
                                           std::string_view what) const;

  Config config_;
  std::optional<ConfigEx> ex_;
  std::optional<ConfigMvin> in_[3];
  std::optional<ConfigMvout> out_;
  std::optional<Preload> preload_;
  bool holds_ = false;  ///< something was held by a Compute
};

/// Bytes of DRAM from the first to the last that a move touches. requires: it has rows and columns.
struct DramSpan {
  uint64_t begin = 0, end = 0;
};
DramSpan dram_span(uint64_t dram, uint64_t stride, int64_t rows, int64_t row_bytes);

}  // namespace tilewright::gemmini
