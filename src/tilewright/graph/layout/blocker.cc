// Blocked channels: [n, c, h, w] becomes [n, c/b, h, w, b], so that one vector holds b channels of
// one pixel: forms of values and their conversions.
#include "tilewright/graph/layout/blocker.h"

#include <fmt/format.h>

#include "tilewright/base/check.h"

namespace tilewright::graph {

Result<Graph> Blocker::run() {
  for (const Node& node : old().nodes) {
    release(node);
    if (TW_TRY(blocked(node))) {
      ++blocked_nodes_;
      continue;
    }
    TW_TRY_STATUS(copy(node));
  }
  for (ValueId id : old().outputs) output(TW_TRY(plain(id)));
  if (blocked_nodes_ > 0)
    context_.notes.push_back(fmt::format("{} nodes with blocks of {} channels, {} conversions",
                                         blocked_nodes_, block_, conversions_));
  if (packed_ > 0)
    context_.notes.push_back(fmt::format("{} products with packed weights", packed_));
  return finish();
}

bool Blocker::same_bytes(const Shape& s, int64_t block) const {
  const bool one = std::all_of(s.begin() + 2, s.end(), [](int64_t n) { return n == 1; });
  return block == 1 || (one && s[1] % block == 0);
}

Shape Blocker::blocked_shape(const Shape& s, int64_t block) const {
  Shape out = s;
  out[1] = (s[1] + block - 1) / block;
  out.push_back(block);
  return out;
}

Result<ValueId> Blocker::plain(ValueId id) {
  if (id < 0) return id;
  const Forms& f = forms(id);
  if (now(id) >= 0 || (f.blocked.empty() && f.phases < 0)) return keep(id);
  if (f.blocked.empty()) TW_TRY(in_blocks(id, block_));
  const auto [block, from] = *f.blocked.rbegin();
  ValueId made = -1;
  const std::string name = value(id).name + "/FromBlocked";
  if (same_bytes(shape(id), block)) {
    made = TW_TRY(reshape(name, from, shape(id)));
  } else {
    ++conversions_;
    made = TW_TRY(append_own(name, "FromBlocked", {from}, attrs_of({{"channels", shape(id)[1]}})));
  }
  Rewriter::define(id, made);
  return made;
}

Result<ValueId> Blocker::in_blocks(ValueId id, int64_t block) {
  Forms& f = forms(id);
  if (const auto found = f.blocked.find(block); found != f.blocked.end()) return found->second;
  const Shape& s = shape(id);
  ValueId made = -1;
  if (f.phases >= 0 && block == block_) {
    made = TW_TRY(reshape(value(id).name + "/Reshape", f.phases, blocked_shape(s, block)));
    forms(id).blocked[block] = made;
    return made;
  }
  const ValueId from = TW_TRY(plain(id));
  const std::string name = value(id).name + "/ToBlocked";
  if (same_bytes(s, block)) {
    made = TW_TRY(reshape(name, from, blocked_shape(s, block)));
  } else {
    conversions_ += !known(id);
    made = TW_TRY(append_own(name, "ToBlocked", {from}, attrs_of({{"block", block}})));
  }
  forms(id).blocked[block] = made;
  return made;
}

Status Blocker::copy(const Node& node) {
  std::vector<ValueId> inputs;
  for (ValueId id : node.inputs) inputs.push_back(TW_TRY(plain(id)));
  Rewriter::copy(node, std::move(inputs));
  return {};
}

void Blocker::define(const Node& node, size_t output, ValueId made) {
  const ValueId id = node.outputs[output];
  const Shape& is = new_shape(made);
  TW_CHECK(is == blocked_shape(shape(id), block_), "'{}', {}, became {} in blocks of {}",
           value(id).name, to_string(shape(id)), to_string(is), block_);
  new_value(made).name = value_name(value(id).name + ".blocked");
  forms(id).blocked[block_] = made;
}

Result<bool> Blocker::blocked(const Node& node) {
  if (node.domain == "tilewright" && node.op == "PhasesToSpace") return block_phases(node);
  if (!node.domain.empty() || node.inputs.empty() || node.inputs[0] < 0) return false;
  if (node.op == "MatMul" || node.op == "Gemm" || node.op == "MatMulInteger")
    return pack_product(node);
  for (ValueId id : node.outputs)
    if (shape(id).size() < 3 || shape(id).size() > 5 || value(id).type.dynamic_axis >= 0)
      return false;
  if (node.op == "Conv" || node.op == "ConvInteger") return block_conv(node);
  if (node.op == "ConvTranspose") return block_transposed(node);
  if (node.op == "MaxPool" || node.op == "AveragePool" || node.op == "GlobalAveragePool")
    return block_pool(node);
  if (node.op == "LRN") return block_lrn(node);
  if (kFiniteAtZero.contains(node.op) || kElementwiseUnfilled.contains(node.op))
    return block_elementwise(node);
  if (shape(node.outputs[0]).size() != 4) return false;
  if (node.op == "ReduceMean") return block_mean(node);
  if (node.op == "Concat") return block_concat(node);
  if (node.op == "Split") return block_split(node);
  if (node.op == "Resize") return block_resize(node);
  if (node.op == "Pad") return block_pad(node);
  if (node.op == "Slice") return block_slice(node);
  return false;
}

Result<Graph> block_layout(const Graph& graph, PassContext& context) {
  return Blocker(graph, context).run();
}

}  // namespace tilewright::graph
