// Blocked layout: operators that keep the form of what they read.
//
//   Add(x, c [64, 1, 1]) with x in blocks of 16  =>  Add on [n, 4, h, w, 16], with c in blocks too
//
// They follow only where most of what they read is blocked already, and where the channels that
// fill up the last block stay finite: weights of zero remove them later.
#include <algorithm>
#include <cmath>

#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/layout/blocker.h"

namespace tilewright::graph {

Result<bool> Blocker::block_pool(const Node& node) {
  if (!has_blocks(node.inputs[0]) || node.outputs.size() != 1) return false;
  const ValueId x = TW_TRY(in_blocks(node.inputs[0], block_));
  define(node, 0, TW_TRY(append_own(node.name, node.op + "Blocked", {x}, node.attrs)));
  return true;
}

Result<bool> Blocker::block_lrn(const Node& node) {
  // Channels that fill a block up stay finite where the base of the power is not zero.
  if (!has_blocks(node.inputs[0]) || node.attrs.get_float("bias", 1) <= 0 ||
      node.attrs.get_float("alpha", 1e-4) < 0)
    return false;
  const ValueId x = TW_TRY(in_blocks(node.inputs[0], block_));
  tensor::Attrs attrs = node.attrs;
  if (const int64_t channels = shape(node.outputs[0])[1]; channels % block_ != 0)
    attrs.values["channels"] = channels;
  define(node, 0, TW_TRY(append_own(node.name, "LRNBlocked", {x}, std::move(attrs))));
  return true;
}

Result<bool> Blocker::block_mean(const Node& node) {
  auto axes = known_ints(old(), node, 1);
  if (!has_blocks(node.inputs[0]) || !axes || node.attrs.get_int("keepdims", 1) != 1) return false;
  for (int64_t& axis : *axes) axis = axis < 0 ? axis + 4 : axis;
  std::sort(axes->begin(), axes->end());
  if (*axes != std::vector<int64_t>{2, 3}) return false;
  const ValueId x = TW_TRY(in_blocks(node.inputs[0], block_));
  define(node, 0, TW_TRY(append_own(node.name, "GlobalAveragePoolBlocked", {x})));
  return true;
}

Result<bool> Blocker::block_concat(const Node& node) {
  int64_t axis = node.attrs.get_int("axis", 0);
  if (axis < 0) axis += 4;
  int64_t blocked_elements = 0, plain_elements = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (known(id)) return false;
    (has_blocks(id) ? blocked_elements : plain_elements) += element_count(shape(id));
    if (axis == 1 && i + 1 < node.inputs.size() && shape(id)[1] % block_ != 0) return false;
  }
  if (axis < 1 || blocked_elements <= plain_elements) return false;
  std::vector<ValueId> inputs;
  for (ValueId id : node.inputs) inputs.push_back(TW_TRY(in_blocks(id, block_)));
  define(node, 0, TW_TRY(append(node.name, "Concat", inputs, attrs_of({{"axis", axis}}))));
  return true;
}

Result<bool> Blocker::block_split(const Node& node) {
  int64_t axis = node.attrs.get_int("axis", 0);
  if (axis < 0) axis += 4;
  if (axis != 1 || !has_blocks(node.inputs[0])) return false;
  std::vector<int64_t> sizes;
  for (ValueId id : node.outputs) {
    if (shape(id)[1] % block_ != 0) return false;
    sizes.push_back(shape(id)[1] / block_);
  }
  Node mine{node.name, "", "Split", attrs_of({{"axis", 1}}), {}, {}};
  mine.inputs = {TW_TRY(in_blocks(node.inputs[0], block_)), ints(node.name + ".parts", sizes)};
  const auto made = TW_TRY(append_like(std::move(mine), static_cast<int>(sizes.size())));
  for (size_t i = 0; i < made.size(); ++i) define(node, i, made[i]);
  return true;
}

Result<bool> Blocker::block_resize(const Node& node) {
  const std::string mode = node.attrs.get_string("mode", "nearest");
  if (!has_blocks(node.inputs[0]) || (mode != "nearest" && mode != "linear")) return false;
  if (node.attrs.has("axes") || node.attrs.has("keep_aspect_ratio_policy") ||
      node.attrs.get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
    return false;
  const Shape& from = shape(node.inputs[0]);
  const Shape& to = shape(node.outputs[0]);
  if (from[0] != to[0] || from[1] != to[1]) return false;
  const bool sized = node.inputs.size() > 3 && node.inputs[3] >= 0;
  const ValueId given = node.inputs.size() > 2 ? node.inputs[2] : -1;
  if (!sized && (!known(given) || array_of(value(given)).size() != 4)) return false;
  std::vector<ValueId> inputs = {TW_TRY(in_blocks(node.inputs[0], block_)), -1};
  if (sized) {
    inputs.push_back(-1);
    inputs.push_back(
        ints(node.name + ".sizes", {from[0], blocks_of(from[1]), to[2], to[3], block_}));
  } else {
    std::vector<double> scales = array_of(value(given)).to_doubles();
    scales.push_back(1);
    inputs.push_back(constant(node.name + ".scales", Array::of(DType::F32, scales)));
  }
  define(node, 0, TW_TRY(append(node.name, "Resize", std::move(inputs), node.attrs)));
  return true;
}

Result<bool> Blocker::block_pad(const Node& node) {
  const auto pads = known_ints(old(), node, 1);
  const bool axes = node.inputs.size() > 3 && node.inputs[3] >= 0;
  if (!has_blocks(node.inputs[0]) || !pads || pads->size() != 8 || axes) return false;
  if ((*pads)[0] != 0 || (*pads)[1] != 0 || (*pads)[4] != 0 || (*pads)[5] != 0) return false;
  const std::vector<int64_t> wide = {0, 0, (*pads)[2], (*pads)[3], 0,
                                     0, 0, (*pads)[6], (*pads)[7], 0};
  std::vector<ValueId> inputs = {TW_TRY(in_blocks(node.inputs[0], block_)),
                                 ints(node.name + ".pads", wide)};
  if (node.inputs.size() > 2 && node.inputs[2] >= 0) {
    if (!known(node.inputs[2]) || !stays_finite(node.inputs[2], shape(node.outputs[0])))
      return false;
    inputs.push_back(TW_TRY(plain(node.inputs[2])));
  }
  define(node, 0, TW_TRY(append(node.name, "Pad", std::move(inputs), node.attrs)));
  return true;
}

Result<bool> Blocker::block_slice(const Node& node) {
  auto axes = known_ints(old(), node, 3);
  if (!has_blocks(node.inputs[0]) || !axes) return false;
  for (int64_t& axis : *axes) {
    if (axis < 0) axis += 4;
    if (axis < 2) return false;
  }
  std::vector<ValueId> inputs = {TW_TRY(in_blocks(node.inputs[0], block_))};
  for (size_t i = 1; i < node.inputs.size(); ++i)
    inputs.push_back(i == 3 ? ints(node.name + ".axes", *axes) : TW_TRY(plain(node.inputs[i])));
  define(node, 0, TW_TRY(append(node.name, "Slice", std::move(inputs), node.attrs)));
  return true;
}

Result<bool> Blocker::block_elementwise(const Node& node) {
  if (node.outputs.size() != 1) return false;
  const Shape& out = shape(node.outputs[0]);
  if (node.inputs.size() == 1 && forms(node.inputs[0]).phases >= 0 &&
      (out[1] % block_ == 0 || kFiniteAtZero.contains(node.op))) {
    forms(node.outputs[0]).phases =
        TW_TRY(append(node.name, node.op, {forms(node.inputs[0]).phases}, node.attrs));
    return true;
  }
  if (node.op == "QuantizeLinear" || node.op == "DequantizeLinear")
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (node.inputs[i] >= 0 && element_count(shape(node.inputs[i])) != 1) return false;
  const bool finite = kFiniteAtZero.contains(node.op) || divides_by_number(node);
  if (out[1] % block_ != 0 && !finite) return false;
  int64_t blocked_elements = 0, plain_elements = 0;
  for (ValueId id : node.inputs) {
    if (known(id) && node.op != "Clip" && !stays_finite(id, out)) return false;
    if (id < 0 || known(id)) continue;
    const Shape& s = shape(id);
    if (s.size() != out.size() || (s[1] != out[1] && s[1] != 1)) return false;
    (has_blocks(id) ? blocked_elements : plain_elements) += element_count(s);
  }
  if (blocked_elements == 0 || blocked_elements < plain_elements) return false;
  std::vector<ValueId> inputs;
  for (ValueId id : node.inputs) inputs.push_back(TW_TRY(operand(id, out)));
  define(node, 0, TW_TRY(append(node.name, node.op, std::move(inputs), node.attrs)));
  return true;
}

bool Blocker::stays_finite(ValueId id, const Shape& out) const {
  if (out[1] % block_ == 0 || !is_float(value(id).type.dtype)) return true;
  const std::vector<double> all = array_of(value(id)).to_doubles();
  return std::all_of(all.begin(), all.end(), [](double x) { return std::isfinite(x); });
}

bool Blocker::divides_by_number(const Node& node) const {
  if (node.op != "Div" || node.inputs.size() != 2 || !known(node.inputs[1])) return false;
  const Array& divisor = array_of(value(node.inputs[1]));
  return divisor.size() == 1 && divisor.get(0) != 0;
}

Result<ValueId> Blocker::operand(ValueId id, const Shape& out) {
  if (id < 0) return id;
  const Shape& s = shape(id);
  // What has the channels of the result or is there in blocks keeps its lanes: the result takes
  // its own from them, even where there is one channel.
  if (s.size() == out.size() && s[1] == out[1] && (s[1] > 1 || has_blocks(id)))
    return in_blocks(id, block_);
  const auto broadcast = [&](const Shape& target) -> Result<ValueId> {
    if (known(id)) return constant(value(id).name, array_of(value(id)).reshaped(target));
    return reshape(value(id).name + "/Reshape", TW_TRY(plain(id)), target);
  };
  if (element_count(s) == 1) {
    // One element broadcasts anywhere, but only if it does not add axes of its own.
    return s.size() < 2 ? plain(id) : broadcast({1});
  }
  Shape wide(out.size() - s.size(), 1);
  wide.insert(wide.end(), s.begin(), s.end());
  if (wide[1] == 1) {
    wide.push_back(1);
    return broadcast(wide);
  }
  // A constant with a channel axis: one ToBlocked, computed at compile time.
  const ValueId full = constant(value(id).name, array_of(value(id)).reshaped(wide));
  return append_own(value(id).name + "/ToBlocked", "ToBlocked", {full},
                    attrs_of({{"block", block_}}));
}

}  // namespace tilewright::graph
