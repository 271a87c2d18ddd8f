// Products on matrix instructions of GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// Bytes left free behind a row in shared memory: then eight rows of 16 bytes, which matrix
/// instructions load together, are in different banks. Also what a thread copies at a time.
inline constexpr int64_t kMmaRowBytes = 16;

/// GpuMma::types of factors of f32 that are rounded to TF32 (rules/gpu/tf32.h).
inline constexpr const char* kTf32 = "tf32";

/// A product of matrices, perhaps many of them (convolutions too: pixels of all images are rows or
/// columns, channels and places in the window are terms): a block of warps keeps block_m x block_n
/// results in registers, a warp warp_m x warp_n of them, and block_k terms of both factors at a
/// time are in shared memory. Sizes that do not divide are padded with zeros where factors are
/// staged.
struct GpuMma {
  /// A factor: its buffer; whether a copy of it will do, or it is gathered from where the product
  /// finds it; whether elements that lie side by side in memory then do so in shared memory.
  struct Factor {
    std::string buffer;
    std::string type;  ///< as in the names of loads: bf16
    bool as_is = true, in_order = true;
    /// What one thread gathers for 16 bytes is in one place of the window: conditions hold for all
    /// of it.
    bool whole_windows = false;
    /// A kernel lays it out by rows and terms first, once for all runs where it is known.
    bool packed = false;
  };
  std::vector<std::string> batch;  ///< iterations of which each has a product of its own
  /// Iterations along rows, columns and terms, the slowest first; several are counted as one.
  std::vector<std::string> m, n, k;
  /// An iteration that counts groups and what is in one: `<grouped>.o` is in `batch`, `<grouped>.i`
  /// in `m` or `n`. Empty: none.
  std::string grouped;
  int64_t per_group = 1;
  int64_t extent_m = 1, extent_n = 1, extent_k = 1, extent_batch = 1;
  Factor a, b;
  bool b_by_rows = false;  ///< terms of a column of `b` lie side by side
  std::string types;       ///< of the factors, as in the names of products: bf16, u8i8
  int64_t bytes = 2;       ///< of an element of them
  int64_t block_m = 128, block_n = 128, block_k = 32, warp_m = 64, warp_n = 32;
  /// Rounds of block_k terms that shared memory holds: copies run depth - 1 rounds ahead.
  int64_t depth = 1;
  /// Groups of four warps multiply together, straight from shared memory (sm_90a): `warp_m`, which
  /// is 64, and `warp_n` are a group's.
  bool groups = false;
  /// Where both factors lie in order, the copy engine brings them, in panels (sm_90a). requires:
  /// groups.
  bool bulk = false;
  /// Blocks that run at about the same time share rows: so many tiles below each other come before
  /// the next ones beside them.
  int64_t raster = 1;
  /// Tiles beside each other that a block computes, one after the other (persistent blocks, where
  /// then all blocks of the grid run at once).
  int64_t turns = 1;
  /// Blocks that share the terms of a tile: each takes a part of those of iteration `split` (of
  /// split_extent of them), and a second kernel adds up.
  int64_t splits = 1;
  std::string split;
  int64_t split_extent = 1;

  int64_t warps() const { return block_m / warp_m * (block_n / warp_n); }
  /// Terms of an instruction, and elements of 16 bytes.
  int64_t terms() const { return 2 * kMmaRowBytes / bytes; }
  int64_t per_row() const { return kMmaRowBytes / bytes; }
  /// Rounds of a block over its terms.
  int64_t rounds() const { return (extent_k / splits + block_k - 1) / block_k; }
  /// Numbers of blocks that can share the terms: 1 and what divides those of `split` into parts
  /// that keep copies of 16 bytes together.
  std::vector<int64_t> split_choices() const;
};

/// The product that `block` is on matrix instructions, its tile not chosen yet; absent where it is
/// none, or the target has no instructions for it.
std::optional<GpuMma> find_gpu_mma(const BlockFacts& block, const hw::GpuTarget& target);

/// The same, with the reason where there is none.
Answer<GpuMma> match_gpu_mma(const BlockFacts& block, const hw::GpuTarget& target);

/// `mma` in the tiles that take the shortest time, of warps, or of groups of them where the copy
/// engine brings both factors; absent where too little of any would be used.
std::optional<GpuMma> in_best_tiles(const GpuMma& mma, const hw::GpuTarget& target);

/// find_gpu_mma in its best tiles.
std::optional<GpuMma> choose_gpu_mma(const BlockFacts& block, const hw::GpuTarget& target);

/// How long `mma` takes: what blocks of a wave ask of tensor units, shared memory, the L2 cache,
/// device memory and for gathering elements one by one, rounds in a row, the start of kernels.
/// Absent where a block asks for more shared memory, registers or threads than there are. units:
/// ns.
std::optional<double> mma_time(const GpuMma& mma, const hw::GpuTarget& target);

/// `mma` in every tile that fits the product, and rounds in flight that fit shared memory; of
/// groups of warps where it has `groups`; not split.
std::vector<GpuMma> mma_tiles(const GpuMma& mma, const hw::GpuTarget& target);

/// `mma` in the tiles and as many parts as take the shortest time. False: none is small enough.
bool choose_mma_tiles(GpuMma& mma, const hw::GpuTarget& target);

/// Rows of `mma` whose tiles fill whole waves of blocks, such that these rows and then the others,
/// each in their own tiles and parts, take less time than all of them at once; 0: there are none.
int64_t rows_of_whole_waves(const GpuMma& mma, const hw::GpuTarget& target);

/// The same product by groups of warps, fetched by the copy engine where it can; absent where the
/// target has no instructions for that, or the product is too small for them.
std::optional<GpuMma> in_groups(const GpuMma& mma, const hw::GpuTarget& target);

/// Counts rows, columns and terms of the reduction `name`, of its initial values and readers by one
/// iteration and one loop each, and lays the result out as matrices: gives `mma` with the new
/// names; absent, with some steps taken, where that does not go.
std::optional<GpuMma> as_matrices(Draft& draft, const std::string& name, GpuMma mma);

/// Schedules the reduction `name` with `mma`. False, with some steps taken, where it does not
/// apply.
bool apply_gpu_mma(Draft& draft, const std::string& name, const GpuMma& mma);

}  // namespace tilewright::rules
