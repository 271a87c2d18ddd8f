#include "tilewright/cost/contraction.h"

#include <algorithm>
#include <cstdlib>

namespace tilewright::cost {
namespace {

constexpr int64_t kLine = 64;

/// Distinct values of an index over a block of `sizes` iterations.
int64_t values_of(const Index& index, const Sizes& sizes) {
  int64_t reach = 1, all = 1;
  for (const IndexTerm& term : index.terms) {
    int64_t count = sizes[static_cast<size_t>(term.axis)];
    count = (count + term.divide - 1) / term.divide;
    if (term.modulo > 0) count = std::min(count, term.modulo);
    reach += std::abs(term.coefficient) * (count - 1);
    all *= count;
  }
  // Steps wider than the window skip elements; overlapping windows share them.
  return std::max<int64_t>(1, std::min({reach, all, index.extent}));
}

}  // namespace

bool Contraction::moves(int operand, int axis) const {
  for (const Index& index : operands[static_cast<size_t>(operand)].indices)
    for (const IndexTerm& term : index.terms)
      if (term.axis == axis) return true;
  return false;
}

double footprint(const Operand& operand, const Sizes& sizes) {
  double lines = 1;
  for (size_t i = 0; i < operand.indices.size(); ++i) {
    int64_t count = values_of(operand.indices[i], sizes);
    if (i + 1 == operand.indices.size())
      count = (count * operand.element_bytes + kLine - 1) / kLine;
    lines *= static_cast<double>(count);
  }
  return lines * static_cast<double>(kLine);
}

std::vector<double> traffic(const Contraction& contraction, const std::vector<NestLoop>& nest,
                            const Sizes& tile, double capacity) {
  const size_t count = contraction.operands.size();
  std::vector<double> fetched(count), held(count);
  Sizes sizes = tile;
  for (size_t i = 0; i < count; ++i)
    held[i] = fetched[i] = footprint(contraction.operands[i], sizes);
  for (size_t depth = nest.size(); depth-- > 0;) {
    double body = 0;
    for (const double bytes : held) body += bytes;
    const bool stays = body <= capacity;
    const NestLoop& loop = nest[depth];
    sizes[static_cast<size_t>(loop.axis)] *= loop.trips;
    for (size_t i = 0; i < count; ++i) {
      if (contraction.moves(static_cast<int>(i), loop.axis))
        held[i] = footprint(contraction.operands[i], sizes);
      fetched[i] = stays ? held[i] : fetched[i] * static_cast<double>(loop.trips);
    }
  }
  return fetched;
}

int64_t stride_bytes(const Operand& operand, int axis) {
  int64_t stride = operand.element_bytes, total = 0;
  for (size_t i = operand.indices.size(); i-- > 0;) {
    for (const IndexTerm& term : operand.indices[i].terms)
      if (term.axis == axis) total += term.divide > 1 ? 0 : stride * term.coefficient;
    stride *= operand.indices[i].extent;
  }
  return std::abs(total);
}

}  // namespace tilewright::cost
