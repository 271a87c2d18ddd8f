// Two products in one multiplier. Example: i8, 16 bits for each product:
//
//   (a · 2^16 + b) · common = (a · common) · 2^16 + b · common
//
// The lower 16 bits are b · common. What is above them is a · common, less 1 where b · common is
// negative. The factor on the left has 8 + 16 + 1 = 25 bits.
#include "tilewright/accel/fpga/pairs.h"

#include <algorithm>

namespace tilewright::fpga {
namespace {

/// The other factor's bits of multipliers. source: DSP48E1 and DSP48E2, data sheets.
constexpr int kNarrowFactor = 18;

/// Products that can be in a pair at all: tools make shifts and sums of those with constants.
bool is_product(const Nest& nest, size_t n) {
  const Node& node = nest.nodes[n];
  if (node.op != Op::Mul || node.type.is_float() || node.inputs[0] == node.inputs[1]) return false;
  return std::none_of(node.inputs.begin(), node.inputs.end(), [&](int input) {
    return nest.nodes[static_cast<size_t>(input)].op == Op::Const;
  });
}

/// The pair of two products, if they have a common factor and fit `bits`.
bool paired(const Nest& nest, int bits, size_t first, size_t second, ProductPair& pair) {
  const Node &x = nest.nodes[first], &y = nest.nodes[second];
  if (x.type.bits != y.type.bits || x.latency != y.latency) return false;
  const auto width = [&](int node) {
    return signed_bits(nest.nodes[static_cast<size_t>(node)].type);
  };
  for (const size_t i : {0, 1})
    for (const size_t j : {0, 1}) {
      if (x.inputs[i] != y.inputs[j]) continue;
      pair = {static_cast<int>(first), static_cast<int>(second), x.inputs[i], x.inputs[1 - i],
              y.inputs[1 - j]};
      const int common = width(pair.common), other = std::max(width(pair.a), width(pair.b));
      if (common <= kNarrowFactor && 2 * other + common + 1 <= bits) return true;
    }
  return false;
}

}  // namespace

std::vector<ProductPair> product_pairs(const Design& design, const Nest& nest,
                                       const NestTimes& times) {
  std::vector<ProductPair> pairs;
  std::vector<size_t> open;  // products without a partner
  for (size_t n = 0; n < nest.nodes.size(); ++n) {
    if (!is_product(nest, n)) continue;
    ProductPair pair;
    const auto partner = std::find_if(open.begin(), open.end(), [&](size_t other) {
      return times.issue[other] == times.issue[n] &&
             paired(nest, design.multiplier_bits, other, n, pair);
    });
    if (partner == open.end()) {
      open.push_back(n);
      continue;
    }
    pairs.push_back(pair);
    open.erase(partner);
  }
  return pairs;
}

}  // namespace tilewright::fpga
