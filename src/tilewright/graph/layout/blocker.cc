// Blocked channels: [n, c, h, w] becomes [n, c/b, h, w, b], so that one vector holds b channels of
// one pixel: forms of values and their conversions.
#include "tilewright/graph/layout/blocker.h"

#include <fmt/format.h>

#include "tilewright/base/check.h"

namespace tilewright::graph {

Result<Graph> Blocker::run() {
  out_.name = in_.name;
  out_.warnings = in_.warnings;
  // Names of plain values and nodes stay theirs.
  names_ = Names(in_);
  forms_.resize(in_.values.size());
  for (ValueId id : in_.inputs) out_.inputs.push_back(keep(id));
  for (const Node& node : in_.nodes) {
    names_.release_node(node.name);
    if (TW_TRY(blocked(node))) {
      ++blocked_nodes_;
      continue;
    }
    TW_TRY_STATUS(copy(node));
  }
  for (ValueId id : in_.outputs) out_.outputs.push_back(TW_TRY(plain(id)));
  if (blocked_nodes_ > 0)
    context_.notes.push_back(fmt::format("{} nodes with blocks of {} channels, {} conversions",
                                         blocked_nodes_, block_, conversions_));
  if (packed_ > 0)
    context_.notes.push_back(fmt::format("{} products with packed weights", packed_));
  return compact(out_);
}

ValueId Blocker::keep(ValueId id) {
  ValueId& mine = forms(id).plain;
  if (mine < 0) mine = out_.add_value(value(id).name, value(id).type, value(id).constant);
  return mine;
}

ValueId Blocker::constant(const std::string& base, Array array) {
  return add_constant(out_, names_, base, std::move(array));
}

ValueId Blocker::ints(const std::string& base, const std::vector<int64_t>& values) {
  Array array(DType::I64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.as<int64_t>().begin());
  return constant(base, std::move(array));
}

Result<ValueId> Blocker::append(const std::string& name, const std::string& domain,
                                const std::string& op, std::vector<ValueId> inputs,
                                tensor::Attrs attrs) {
  return append_node(out_, names_, {name, domain, op, std::move(attrs), std::move(inputs), {}});
}

Result<ValueId> Blocker::reshape(const std::string& name, ValueId id, const Shape& target) {
  return append(name, "", "Reshape", {id, ints(name + ".shape", target)},
                attrs_of({{"allowzero", 1}}));
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
  Forms& f = forms(id);
  if (f.plain >= 0) return f.plain;
  if (f.blocked.empty() && f.phases < 0) return keep(id);
  if (f.blocked.empty()) TW_TRY(in_blocks(id, block_));
  const auto [block, from] = *forms(id).blocked.rbegin();
  const std::string name = value(id).name + "/FromBlocked";
  if (same_bytes(shape(id), block)) {
    f.plain = TW_TRY(reshape(name, from, shape(id)));
  } else {
    ++conversions_;
    f.plain = TW_TRY(
        append(name, "tilewright", "FromBlocked", {from}, attrs_of({{"channels", shape(id)[1]}})));
  }
  out_.values[static_cast<size_t>(f.plain)].name = value(id).name;
  return f.plain;
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
    made = TW_TRY(append(name, "tilewright", "ToBlocked", {from}, attrs_of({{"block", block}})));
  }
  forms(id).blocked[block] = made;
  return made;
}

Status Blocker::copy(const Node& node) {
  Node mine = node;
  mine.name = names_.node(node.name);
  for (ValueId& id : mine.inputs) id = TW_TRY(plain(id));
  for (ValueId& id : mine.outputs) {
    const ValueId old = id;
    id = out_.add_value(value(old).name, value(old).type, value(old).constant);
    forms(old).plain = id;
  }
  out_.nodes.push_back(std::move(mine));
  return {};
}

void Blocker::define(const Node& node, size_t output, ValueId made) {
  const ValueId old = node.outputs[output];
  const Shape& is = out_.values[static_cast<size_t>(made)].type.shape;
  TW_CHECK(is == blocked_shape(shape(old), block_), "'{}', {}, became {} in blocks of {}",
           value(old).name, to_string(shape(old)), to_string(is), block_);
  out_.values[static_cast<size_t>(made)].name = names_.value(value(old).name + ".blocked");
  forms(old).blocked[block_] = made;
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
