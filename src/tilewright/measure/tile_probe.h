// What the code generator makes of a register tile: a product of panels that stay in L1, timed
// beside a burst on registers only.
#pragma once

#include <functional>
#include <vector>

#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/runtime/compiled_kernel.h"

namespace tilewright::measure {

/// The back-end, handed in from above.
using CompileKernel = std::function<Result<runtime::CompiledKernel>(const Func& lowered)>;

/// rows x columns accumulators, each one vector wide. bf16 and i8 (u8 times i8) go through the
/// target's dot products.
struct ProbeTile {
  int rows = 1, columns = 1;
  DType dtype = DType::F32;
};

/// Shapes whose accumulators, vector operands and one broadcast fit the registers: of f32 all, of
/// the narrow types that `target` has dot products for those that show the course.
/// A tile that needs more registers spills inside its loop, at half the speed.
std::vector<ProbeTile> legal_tiles(const hw::CpuTarget& target);

/// Y[r, c] = sum over k of A[k, r] * B[k, c], over panels in L1 that are read several times, with
/// its loops as a schedule would leave them: k outside, rows x columns x lanes in registers.
/// requires: `target` has dot products for a narrow type.
Func tile_func(const ProbeTile& tile, const hw::CpuTarget& target);

/// What one tile reached.
struct TileReading {
  double share = 0;  ///< of its type's peak at that moment; 0: every burst was interrupted
  double rate = 0;   ///< the fastest burst; units: operations per ns
};

/// `tile` through `compile`: its share is the median of several short comparisons with the peak of
/// the moment. errors: what lowering and `compile` report.
Result<TileReading> read_tile(const ProbeTile& tile, const hw::CpuTarget& target,
                              const CompileKernel& compile);

}  // namespace tilewright::measure
