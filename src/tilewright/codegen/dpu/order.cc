// The order of layers: pools of branches come first, so that MISC makes them while CONV works on
// the other branches.
//
//   conv a, conv b, pool c, conv d (reads c), concat  =>  pool c, conv a, conv b, conv d, concat
#include <algorithm>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {
namespace {

/// Whether `layer` is a pool of one of several branches that begin at its input.
bool is_branch_pool(const Network& network, const Layer& layer) {
  const auto* pool = std::get_if<PoolLayer>(&layer.op);
  if (pool == nullptr || pool->window.stride_h != 1) return false;
  const auto readers =
      std::count_if(network.layers.begin(), network.layers.end(), [&](const Layer& other) {
        return std::count(other.inputs.begin(), other.inputs.end(), layer.inputs[0]) > 0;
      });
  return readers > 1;
}

}  // namespace

Network with_pools_first(const Network& network) {
  Network ordered = network;
  ordered.layers.clear();
  for (const Layer& layer : network.layers) {
    auto at = ordered.layers.end();
    if (is_branch_pool(network, layer)) {
      at = std::find_if(ordered.layers.rbegin(), ordered.layers.rend(), [&](const Layer& other) {
             return other.output == layer.inputs[0];
           }).base();
    }
    ordered.layers.insert(at, layer);
  }
  return ordered;
}

}  // namespace tilewright::dpu
