// Prints what every legal register tile reaches through the code generator, on one thread, in
// percent of the FMA peak measured beside it; then the summary over tiles that can hide latency.
// Usage: bench_microkernel [ROWSxCOLUMNS]; with a tile, writes tile.lowered.tw, tile.ll and tile.s.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "tilewright/base/file.h"
#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"
#include "tilewright/measure/tile_probe.h"

namespace tilewright {
namespace {

Result<runtime::CompiledKernel> compile(const Func& lowered) {
  const std::shared_ptr<const codegen::JitModule> module = TW_TRY(codegen::jit({lowered}));
  runtime::CompiledKernel kernel;
  kernel.info = module->kernels().at(0);
  kernel.run = module->find(kernel.info.symbol);
  kernel.owner = module;
  return kernel;
}

Status dump(const measure::ProbeTile& tile) {
  const Func lowered = TW_TRY(lower::run_pipeline(measure::tile_func(tile, hw::host()), "cpu"));
  TW_TRY_STATUS(write_file("tile.lowered.tw", print(lowered)));
  TW_TRY_STATUS(write_file("tile.ll", TW_TRY(codegen::emit_llvm_ir(lowered))));
  return write_file("tile.s", TW_TRY(codegen::emit_assembly(lowered)));
}

/// Smallest shares among tiles of at least 12 accumulators of one type.
struct Worst {
  double wide = 1, narrow = 1;  ///< two or more vector columns; one

  void add(const measure::ProbeTile& tile, double share) {
    if (tile.rows * tile.columns < 12) return;
    double& worst = tile.columns > 1 ? wide : narrow;
    worst = std::min(worst, share);
  }
};

Status run(const std::vector<measure::ProbeTile>& tiles) {
  std::map<DType, Worst> worst;
  for (const measure::ProbeTile& tile : tiles) {
    const double share = TW_TRY(measure::read_tile(tile, hw::host(), compile)).share;
    fmt::print("{} tile {:2}x{}: {:5.1f} % of peak\n", name(tile.dtype), tile.rows, tile.columns,
               100 * share);
    worst[tile.dtype].add(tile, share);
  }
  if (tiles.size() > 1)
    for (const auto& [dtype, shares] : worst)
      fmt::print(
          "{}, 12 or more accumulators, worst: {:.1f} % (two or more columns), {:.1f} % (one)\n",
          name(dtype), 100 * shares.wide, 100 * shares.narrow);
  return {};
}

Status run_all(const char* only) {
  if (only == nullptr) return run(measure::legal_tiles(hw::host()));
  measure::ProbeTile tile;
  if (std::sscanf(only, "%dx%d", &tile.rows, &tile.columns) != 2 || tile.rows < 1 ||
      tile.columns < 1)
    return fail(ErrorKind::Usage, fmt::format("'{}' is no tile", only), {}, "14x2");
  TW_TRY_STATUS(dump(tile));
  return run({tile});
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  const auto status = tilewright::run_all(argc > 1 ? argv[1] : nullptr);
  if (!status) fmt::print(stderr, "{}", to_string(status.error()));
  return status ? 0 : 1;
}
