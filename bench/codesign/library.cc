#include "library.h"

#include <algorithm>

namespace tilewright::bench {
namespace {

/// Starts with one block of the array's size and adds a block to columns, rows and depth in turn,
/// as long as two copies of everything fit.
cost::SpatialMapping by_rule(const spatial::Design& design, const cost::SpatialLayer& product) {
  cost::SpatialMapping mapping;
  mapping.choice = {0, 0, 1, 2};
  mapping.order = {0, 1, 2};
  const cost::SpatialEvaluator evaluator(design, product, mapping.choice);
  const int64_t block = std::max(design.rows, design.cols);
  for (int loop = 0; loop < 3; ++loop)
    mapping.tile[loop] = std::min(block, product.loops[loop].extent);
  for (bool grew = true; grew;) {
    grew = false;
    for (const int loop : {1, 0, 2}) {
      cost::SpatialMapping larger = mapping;
      larger.tile[loop] = std::min(mapping.tile[loop] + block, product.loops[loop].extent);
      if (larger.tile == mapping.tile || !evaluator.fits(larger)) continue;
      mapping = larger;
      grew = true;
    }
  }
  return mapping;
}

}  // namespace

LibraryCost library_cost(const spatial::Design& design, const cost::SpatialLayer& conv) {
  constexpr int kImage = 0, kWeights = 1;
  int64_t rows = 1, columns = 1, depth = 1;
  for (int loop = 0; loop < static_cast<int>(conv.loops.size()); ++loop) {
    const bool pixel = !conv.moves(kWeights, loop);
    (conv.loops[loop].reduces ? depth : pixel ? rows : columns) *= conv.loops[loop].extent;
  }
  const cost::SpatialLayer product = cost::matmul(rows, columns, depth);
  int64_t image = 1;
  for (const cost::SpatialDim& dim : conv.tensors[kImage].dims) image *= dim.extent;
  LibraryCost result;
  result.mapping = by_rule(design, product);
  result.accelerator = cost::evaluate(design, product, result.mapping).cycles;
  if (image != rows * depth) result.host_bytes = 2 * rows * depth;
  return result;
}

}  // namespace tilewright::bench
