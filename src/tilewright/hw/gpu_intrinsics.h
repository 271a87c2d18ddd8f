// Instructions of GPUs, described in hw/intrinsics/cuda.tw: what they compute. Most are matrix
// instructions, which all lanes of a warp do together: which lane holds what of their operands.
// Others are a thread's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/hw/intrinsic.h"

namespace tilewright::hw {

/// Lanes of a warp, all of which take part in an instruction; of a group of four warps.
inline constexpr int64_t kWarpLanes = 32, kGroupLanes = 128;

/// How lanes hold a tile: its element at `axes` is register `reg` of lane `lane`. Each register of
/// each lane holds one element.
struct LaneLayout {
  std::string text;           ///< `16x8 [i, j] -> [i % 8 * 4 + j / 2, i / 8 * 2 + j % 2]`
  std::vector<int64_t> tile;  ///< extents
  std::vector<Var> axes;
  Expr lane, reg;
  int64_t lanes = kWarpLanes;
  int64_t registers = 0;  ///< of a lane, in elements
};
/// errors: Parse; Invalid (lanes or registers are left out or hold several elements).
Result<LaneLayout> parse_lane_layout(const std::string& text);

/// Shared memory that an instruction reads by rows of 16 bytes: lane `lane` hands over the address
/// of the element at `at`.
struct LaneRows {
  Var lane;
  std::vector<Expr> at;
};
/// `rows [lane] -> [lane % 16, lane / 16 * 8]`. errors: Parse.
Result<LaneRows> parse_lane_rows(const std::string& text);

/// Shared memory in cores of 8 rows of 16 bytes, one behind the other: which of the first two axes
/// counts cores along rows and which along the terms of sums.
struct CoreAxes {
  size_t rows = 0, terms = 1;
};
/// `cores [rows, terms]` or `cores [terms, rows]`. errors: Parse.
Result<CoreAxes> parse_core_axes(const std::string& text);

/// Shared memory in panels: rows of 128 bytes, one behind the other from a multiple of 1024 bytes
/// on, whose groups of 16 bytes are exchanged: row r has group g at g xor r % 8. With terms of sums
/// side by side, or rows of the operand (then the first axis counts panels).
struct PanelAxes {
  bool terms_along = true;
};
inline constexpr int64_t kPanelBytes = 128, kPanelAlign = 1024;
/// The value of a mark `async` whose copies the device's copy engine makes (lower/gpu_bulk.h).
inline constexpr const char* kBulk = "bulk";
/// `panels [rows, terms]` or `panels [terms, rows]`. errors: Parse.
Result<PanelAxes> parse_panel_axes(const std::string& text);

/// How an instruction is written. The first operand is the result.
struct GpuInstruction {
  struct Operand {
    size_t param;  ///< of the meaning
    std::optional<LaneLayout> lanes;
    std::optional<LaneRows> rows;
    std::optional<CoreAxes> cores;
    std::optional<PanelAxes> panels;  ///< one of these four, or
    bool one = false;                 ///< an element of memory that the first lane writes, or
    bool own = false;                 ///< an element of the thread's own, or
    bool word = false;                ///< four bytes side by side, at a multiple of four
  };
  std::string ptx;
  std::string combine;  ///< instead: `add` or `max` of all lanes' values, by shuffles
  std::string opencl;   ///< the function of OpenCL C that does the same; empty: there is none
  std::vector<Operand> operands;
  std::string immediates;  ///< behind the operands
  int needs = 0;           ///< the first architecture that has it: 80
  /// Threads that do it together: a warp, or a group of four; 1: each by itself.
  int64_t lanes() const {
    if (operands[0].own) return 1;
    return operands[0].lanes ? operands[0].lanes->lanes : kWarpLanes;
  }
  /// Whether it runs on while threads go on, until they wait.
  bool asynchronous() const { return ptx.find("mma_async") != std::string::npos; }
};
/// errors: Parse, Invalid (fields are missing or do not fit the meaning).
Result<GpuInstruction> gpu_instruction(const Intrinsic& intrinsic);

/// All of the file; valid by test.
const std::vector<Intrinsic>& gpu_intrinsics();
/// Whether programs of `target` may be written in terms of the instruction.
bool has_intrinsic(const GpuTarget& target, const Intrinsic& intrinsic);
/// Types of the factors of a product in the names of instructions: `bf16`, or `u8i8` for two.
std::string factor_types(const std::string& a, const std::string& b);
/// Whether an instruction of `target` multiplies matrices of these types.
bool multiplies_matrices(const GpuTarget& target, const std::string& factor_types);
/// The instruction of `target` that adds up four products of bytes of these types; null if it has
/// none.
const Intrinsic* find_dot_of_bytes(const GpuTarget& target, DType a, DType b);
/// Whether `intrinsic` is one that a thread does by itself.
bool is_of_thread(const Intrinsic& intrinsic);
/// The instruction that means `callee`; null if there is none.
const Intrinsic* find_gpu_intrinsic(const Func& callee);
/// By name; null if there is none.
const Intrinsic* find_gpu_intrinsic(std::string_view name);

}  // namespace tilewright::hw
