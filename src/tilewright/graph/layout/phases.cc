// Blocked layout: the phases of a transposed convolution, each a convolution of its own, put in
// order. The lanes of a block count as one more axis of a single phase, so that PhasesToSpace needs
// no form of its own.
#include "tilewright/graph/layout/blocker.h"

namespace tilewright::graph {

Result<bool> Blocker::block_phases(const Node& node) {
  const Shape& y = shape(node.outputs[0]);
  if (!has_blocks(node.inputs[0]) || y.size() > 4 || y[1] % block_ != 0) return false;
  // The lanes of a block are one more spatial axis, of a single phase.
  tensor::Attrs attrs = node.attrs;
  for (const auto& [key, value] :
       {std::pair<const char*, int64_t>{"strides", 1}, {"begin", 0}, {"output", block_}}) {
    std::vector<int64_t> ints = node.attrs.get_ints(key);
    ints.push_back(value);
    attrs.values[key] = ints;
  }
  const ValueId x = TW_TRY(in_blocks(node.inputs[0], block_));
  define(node, 0, TW_TRY(append_own(node.name, "PhasesToSpace", {x}, attrs)));
  return true;
}

}  // namespace tilewright::graph
