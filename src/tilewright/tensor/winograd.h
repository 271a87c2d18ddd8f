// Winograd's minimal filtering F(m, r) of windows of r taps: the transforms as tables.
// source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, section 4.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

/// Row-major matrices of one F(m, r) along one axis; n = m + r - 1 points.
struct WinogradTables {
  int64_t m = 1, taps = 1;
  std::vector<double> input;   ///< B^T, n x n
  std::vector<double> filter;  ///< G, n x r
  std::vector<double> output;  ///< A^T, m x n
  int64_t points() const { return m + taps - 1; }
};

/// Tables for 4, 5, 6, 8 or 10 points and the identity F(1, 1); null for others. Products per
/// output drop to n / m of the direct form's r along each axis; rounding errors grow with n.
const WinogradTables* winograd_tables(int64_t m, int64_t taps);

/// Taps along rows and columns of the window whose transformed weight is u [ko, n, n, c, ki]: an
/// axis with one point is left as it is, the others make `m` outputs of a tile each.
std::array<int64_t, 2> winograd_taps(const Shape& u, int64_t m);

/// Tiles of m columns in each row of an image. A long single row gets a few more than it needs, so
/// that strips of it come out even.
int64_t winograd_columns(int64_t height, int64_t width, int64_t m);

}  // namespace tilewright::tensor
