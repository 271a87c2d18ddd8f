// FlexTensor, figure 1: how performance changes over the splits of a matrix product.
#pragma once

#include <string>
#include <vector>

#include "judge.h"

namespace tilewright::bench {

/// Speeds over the size of the tile: rows down, columns across.
struct Surface {
  std::string name;
  std::vector<int64_t> rows, columns;
  std::vector<std::vector<double>> gflops;  ///< by row, column; 0 where it does not work
};

/// A product tiled rows x columns, both powers of two, the reduction whole inside, the last loop
/// vectorised and the rows in registers where they are few. errors: Usage (no matrix product).
Result<Surface> measure_surface(const measure::Task& task, Judge& judge);

/// A table and how rugged it is: steps between neighbours, local optima.
std::string describe(const Surface& surface);
std::string to_html(const Surface& surface);

}  // namespace tilewright::bench
