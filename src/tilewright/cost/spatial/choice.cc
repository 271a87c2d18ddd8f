#include "tilewright/cost/spatial/mapping.h"

namespace tilewright::cost {
namespace {

using spatial::Unit;

/// Both loops move one index of the tensor: their elements cannot be told apart.
bool share_index(const SpatialTensor& tensor, int one, int other) {
  for (const SpatialDim& dim : tensor.dims) {
    int found = 0;
    for (const SpatialTerm& term : dim.terms) found += term.loop == one || term.loop == other;
    if (found > 1) return true;
  }
  return false;
}

/// Loops by where they move: `first` and `second` factor, result.
std::vector<int> loops_where(const SpatialLayer& layer, int factor, bool first, bool second,
                             bool result) {
  std::vector<int> found;
  for (int loop = 0; loop < static_cast<int>(layer.loops.size()); ++loop)
    if (layer.moves(factor, loop) == first && layer.moves(1 - factor, loop) == second &&
        layer.moves(kSpatialResult, loop) == result)
      found.push_back(loop);
  return found;
}

bool sound(const SpatialLayer& layer, const SpatialChoice& choice) {
  const int roles[] = {choice.i, choice.j, choice.k};
  for (const SpatialTensor& tensor : layer.tensors)
    for (int one : roles)
      for (int other : roles)
        if (one >= 0 && other > one && share_index(tensor, one, other)) return false;
  return true;
}

/// The index of k has no second loop: an input channel, not a tap.
bool alone(const SpatialTensor& tensor, int loop) {
  for (const SpatialDim& dim : tensor.dims)
    for (const SpatialTerm& term : dim.terms)
      if (term.loop == loop) return dim.terms.size() == 1;
  return false;
}

/// A convolution's two taps: loops summed over that share an index of the image with another.
int taps(const SpatialLayer& layer, int image) {
  int count = 0;
  for (int loop : loops_where(layer, image, true, true, false))
    count += !alone(layer.tensors[image], loop);
  return count;
}

}  // namespace

std::vector<SpatialChoice> choices(const spatial::Design& design, const SpatialLayer& layer) {
  const Unit unit = design.unit;
  std::vector<SpatialChoice> found;
  for (int first : {0, 1}) {
    std::vector<int> is = loops_where(layer, first, true, false, true);
    std::vector<int> js = loops_where(layer, first, false, true, true);
    const std::vector<int> ks = loops_where(layer, first, true, true, false);
    if (unit == Unit::Dot || unit == Unit::Conv2d) is = {-1};
    if (unit == Unit::Dot || unit == Unit::Gemv) js = {-1};
    if (unit == Unit::Dot && first == 1) continue;  // the same product
    if (unit == Unit::Conv2d && taps(layer, first) != 2) continue;
    for (int i : is)
      for (int j : js)
        for (int k : ks) {
          const SpatialChoice choice{first, i, j, k};
          if (unit == Unit::Conv2d && !alone(layer.tensors[first], k)) continue;
          if (sound(layer, choice)) found.push_back(choice);
        }
  }
  return found;
}

}  // namespace tilewright::cost
