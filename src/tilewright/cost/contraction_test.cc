// Traffic by closed form against a simulated cache; footprints against counted elements.
#include "tilewright/cost/contraction.h"

#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <map>
#include <set>

#include "tilewright/cost/testing/contractions.h"

namespace tilewright::cost {
namespace {

constexpr int64_t kLine = 64;

/// Lines of cache, the least recently used leaves first.
class Cache {
 public:
  explicit Cache(int64_t lines) : lines_(lines) {}
  /// True if `line` had to be fetched.
  bool touch(int64_t line) {
    const auto found = where_.find(line);
    const bool miss = found == where_.end();
    if (!miss) order_.erase(found->second);
    order_.push_front(line);
    where_[line] = order_.begin();
    if (static_cast<int64_t>(order_.size()) > lines_) {
      where_.erase(order_.back());
      order_.pop_back();
    }
    return miss;
  }

 private:
  int64_t lines_;
  std::list<int64_t> order_;
  std::map<int64_t, std::list<int64_t>::iterator> where_;
};

int64_t line_of(const Operand& operand, const Sizes& at) {
  int64_t element = 0;
  for (const Index& index : operand.indices) {
    int64_t value = 0;
    for (const IndexTerm& term : index.terms) {
      int64_t part = at[static_cast<size_t>(term.axis)] / term.divide;
      if (term.modulo > 0) part %= term.modulo;
      value += term.coefficient * part;
    }
    element = element * index.extent + value;
  }
  return element * operand.element_bytes / kLine;
}

/// Calls `body` for every iteration of a block of `sizes` at `at`.
template <class Body>
void each(const Sizes& sizes, const Sizes& at, size_t axis, Sizes& now, const Body& body) {
  if (axis == sizes.size()) {
    body(now);
    return;
  }
  for (int64_t i = 0; i < sizes[axis]; ++i) {
    now[axis] = at[axis] + i;
    each(sizes, at, axis + 1, now, body);
  }
}

std::set<int64_t> lines_of(const Operand& operand, const Sizes& sizes, const Sizes& at) {
  std::set<int64_t> lines;
  Sizes now = at;
  each(sizes, at, 0, now, [&](const Sizes& i) { lines.insert(line_of(operand, i)); });
  return lines;
}

/// Bytes each operand misses while the nest runs, tile by tile.
std::vector<double> simulate(const Contraction& c, const std::vector<NestLoop>& nest,
                             const Sizes& tile, int64_t capacity) {
  Cache cache(capacity / kLine);
  std::vector<double> missed(c.operands.size());
  std::function<void(size_t, Sizes, Sizes)> run = [&](size_t depth, Sizes at, Sizes steps) {
    if (depth == nest.size()) {
      for (size_t i = 0; i < c.operands.size(); ++i)
        for (const int64_t line : lines_of(c.operands[i], tile, at))
          if (cache.touch(line * 8 + static_cast<int64_t>(i))) missed[i] += kLine;
      return;
    }
    const auto axis = static_cast<size_t>(nest[depth].axis);
    int64_t step = tile[axis];
    for (size_t inner = depth + 1; inner < nest.size(); ++inner)
      if (nest[inner].axis == nest[depth].axis) step *= nest[inner].trips;
    for (int64_t i = 0; i < nest[depth].trips; ++i) {
      run(depth + 1, at, steps);
      at[axis] += step;
    }
  };
  run(0, Sizes(c.axes.size(), 0), tile);
  return missed;
}

/// Y[h, w] += X[2 * h + r, 2 * w + s] * W[r, s] over an image of 2 * size + 1.
Contraction window(int64_t size) {
  Contraction c;
  c.axes = {{"h", size, false}, {"w", size, false}, {"r", 3, true}, {"s", 3, true}};
  const int64_t image = 2 * size + 1;
  c.operands = {
      {{{{{0, 2, 1, 0}, {2, 1, 1, 0}}, image}, {{{1, 2, 1, 0}, {3, 1, 1, 0}}, image}}, 4, false},
      {{plain(2, 3), plain(3, 3)}, 4, true},
      {{plain(0, size), plain(1, size)}, 4, false}};
  c.rows = 0, c.lanes = 1;
  return c;
}

void expect_footprints(const Contraction& c, const Sizes& sizes) {
  for (const Operand& operand : c.operands) {
    const auto lines = lines_of(operand, sizes, Sizes(sizes.size(), 0));
    EXPECT_NEAR(footprint(operand, sizes), static_cast<double>(lines.size()) * kLine,
                0.15 * static_cast<double>(lines.size()) * kLine);
  }
}

TEST(ContractionTest, FootprintsAreTheLinesThatABlockTouches) {
  const Contraction product = matmul(64, 64, 64);
  for (const Sizes& sizes :
       {Sizes{4, 16, 1}, Sizes{4, 32, 64}, Sizes{64, 64, 64}, Sizes{1, 16, 16}})
    expect_footprints(product, sizes);
  const Contraction conv = window(47);  // rows of 95 elements start anywhere in a line
  EXPECT_EQ(footprint(conv.operands[0], {4, 16, 3, 3}), 9 * 3 * kLine);
  EXPECT_EQ(footprint(conv.operands[0], {4, 16, 1, 1}), 4 * kLine) << "a step of 2 skips rows";
  EXPECT_EQ(footprint(conv.operands[1], {4, 16, 3, 3}), 3 * kLine);
}

/// Compares at capacities at which one iteration of some loop fits with room and one of the loop
/// around it is far too big: between those the closed form steps where a cache glides.
int compare(const Contraction& c, const std::vector<NestLoop>& nest, const Sizes& tile) {
  int compared = 0;
  Sizes sizes = tile;
  std::vector<double> bodies;
  for (size_t depth = nest.size() + 1; depth-- > 0;) {
    double body = 0;
    for (const Operand& operand : c.operands) body += footprint(operand, sizes);
    bodies.push_back(body);
    if (depth > 0) sizes[static_cast<size_t>(nest[depth - 1].axis)] *= nest[depth - 1].trips;
  }
  for (size_t i = 0; i < bodies.size(); ++i) {
    const double capacity = 2.2 * bodies[i];
    if (i + 1 < bodies.size() && bodies[i + 1] < 1.5 * capacity) continue;
    const std::vector<double> want = simulate(c, nest, tile, static_cast<int64_t>(capacity));
    const std::vector<double> got = traffic(c, nest, tile, capacity);
    for (size_t o = 0; o < want.size(); ++o)
      EXPECT_NEAR(got[o], want[o], 0.2 * want[o]) << "operand " << o << ", capacity " << capacity;
    ++compared;
  }
  return compared;
}

TEST(ContractionTestSlow, TrafficIsWhatASimulatedCacheFetches) {
  const Contraction c = matmul(48, 128, 128);
  const Sizes tile = {4, 32, 1};
  const NestLoop m{0, 12}, n{1, 4}, k{2, 128};
  int compared = 0;
  compared += compare(c, {n, m, k}, tile);
  compared += compare(c, {m, n, k}, tile);
  compared += compare(c, {k, n, m}, tile);
  compared += compare(c, {{2, 8}, n, m, {2, 16}}, tile);  // blocks of the reduction
  EXPECT_GE(compared, 6);
}

TEST(ContractionTest, OverlappingWindowsAreFetchedOnce) {
  const Contraction c = window(48);
  const Sizes tile = {1, 16, 1, 1};
  const std::vector<NestLoop> nest = {{0, 48}, {1, 3}, {2, 3}, {3, 3}};
  const double plenty = 1 << 20;
  const std::vector<double> want = simulate(c, nest, tile, 1 << 20);
  const std::vector<double> got = traffic(c, nest, tile, plenty);
  for (size_t o = 0; o < want.size(); ++o) EXPECT_NEAR(got[o], want[o], 0.2 * want[o] + 2 * kLine);
}

TEST(ContractionTest, ALargerCacheNeverFetchesMore) {
  const Contraction c = matmul(48, 128, 128);
  const std::vector<NestLoop> nest = {{1, 4}, {0, 12}, {2, 128}};
  double last = 1e18;
  for (double capacity = 256; capacity < 1e6; capacity *= 1.5) {
    double sum = 0;
    for (const double bytes : traffic(c, nest, {4, 32, 1}, capacity)) sum += bytes;
    EXPECT_LE(sum, last);
    last = sum;
  }
}

TEST(ContractionTest, StridesAreInBytes) {
  const Contraction c = matmul(48, 128, 100);
  EXPECT_EQ(stride_bytes(c.operands[0], 0), 400);
  EXPECT_EQ(stride_bytes(c.operands[0], 2), 4);
  EXPECT_EQ(stride_bytes(c.operands[0], 1), 0);
  EXPECT_EQ(stride_bytes(c.operands[1], 2), 64);
}

}  // namespace
}  // namespace tilewright::cost
