// Winograd's minimal filtering F(m x m, 3 x 3): the transforms as tables.
// source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, section 4.
#pragma once

#include <cstdint>
#include <vector>

namespace tilewright::tensor {

/// Row-major matrices of one F(m, 3); n = m + 2 points.
struct WinogradTables {
  int64_t m = 4;
  std::vector<double> input;   ///< B^T, n x n
  std::vector<double> filter;  ///< G, n x 3
  std::vector<double> output;  ///< A^T, m x n
  int64_t points() const { return m + 2; }
};

/// Tables for m = 2, 4 or 6; null for others. Multiplications per output drop to
/// (m + 2)^2 / (9 m^2) of the direct form; rounding errors grow with m.
const WinogradTables* winograd_tables(int64_t m);

}  // namespace tilewright::tensor
