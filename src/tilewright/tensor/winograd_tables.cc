#include <algorithm>
#include <map>
#include <utility>

#include "tilewright/base/integers.h"
#include "tilewright/tensor/winograd.h"

namespace tilewright::tensor {
namespace {

/// Finite points, those of opposite sign side by side; the last point is infinity. All are exact in
/// binary. The last pair gave F(4, 7) smaller errors than 1/4, 2/3, 4/3, 3/2, 3 and 4.
const std::vector<double> kPoints = {0, 1, -1, 2, -2, .5, -.5, .75, -.75};

/// Coefficients of the product of (x - root), lowest power first.
std::vector<double> polynomial(const std::vector<double>& roots) {
  std::vector<double> c = {1};
  for (const double root : roots) {
    c.push_back(0);
    for (size_t i = c.size(); i-- > 0;) c[i] = (i > 0 ? c[i - 1] : 0) - root * c[i];
  }
  return c;
}

/// Interpolation at the points (Toom and Cook), transposed: the rows of G carry the denominators.
WinogradTables make_tables(int64_t m, int64_t taps) {
  WinogradTables t;
  t.m = m, t.taps = taps;
  const auto n = static_cast<size_t>(t.points());
  const std::vector<double> points(kPoints.begin(), kPoints.begin() + static_cast<long>(n - 1));
  for (size_t j = 0; j + 1 < n; ++j) {
    std::vector<double> others = points;
    others.erase(others.begin() + static_cast<long>(j));
    double denominator = 1;
    for (const double other : others) denominator *= points[j] - other;
    // At 0 the sign is free: G gets the positive one.
    const double sign = j == 0 && denominator < 0 ? -1 : 1;
    for (const double c : polynomial(others)) t.input.push_back(sign * c);
    t.input.push_back(0);
    double power = sign;
    for (int64_t s = 0; s < taps; ++s, power *= points[j]) t.filter.push_back(power / denominator);
  }
  for (const double c : polynomial(points)) t.input.push_back(c);
  t.filter.insert(t.filter.end(), static_cast<size_t>(taps - 1), 0);
  t.filter.push_back(1);
  std::vector<double> powers(n - 1, 1);
  for (int64_t i = 0; i < m; ++i) {
    t.output.insert(t.output.end(), powers.begin(), powers.end());
    t.output.push_back(i + 1 == m ? 1 : 0);
    for (size_t j = 0; j < powers.size(); ++j) powers[j] *= points[j];
  }
  return t;
}

using TableMap = std::map<std::pair<int64_t, int64_t>, WinogradTables>;

TableMap all_tables() {
  TableMap tables;
  tables[{1, 1}] = {1, 1, {1}, {1}, {1}};
  for (const int64_t points : {4, 5, 6, 8, 10})
    for (int64_t taps = 2; taps < points; ++taps) {
      const int64_t m = points + 1 - taps;
      tables[{m, taps}] = make_tables(m, taps);
    }
  return tables;
}

}  // namespace

const WinogradTables* winograd_tables(int64_t m, int64_t taps) {
  static const TableMap tables = all_tables();
  const auto at = tables.find({m, taps});
  return at == tables.end() ? nullptr : &at->second;
}

int64_t winograd_columns(int64_t height, int64_t width, int64_t m) {
  constexpr int64_t kEven = 8, kMany = 32;
  const int64_t tiles = ceil_div(width, m);
  return height == 1 && tiles > kMany ? ceil_div(tiles, kEven) * kEven : tiles;
}

std::array<int64_t, 2> winograd_taps(const Shape& u, int64_t m) {
  const auto taps = [m](int64_t points) { return points == 1 ? 1 : points - m + 1; };
  return {taps(u[1]), taps(u[2])};
}

}  // namespace tilewright::tensor
