// Blocked layout: convolutions and matrix products, which start a region of blocked values.
//
//   Conv x, w [64, 32, 3, 3], blocks of 16  =>  ConvBlocked(ToBlocked(x), PackConvWeight(w))
//   MatMul x, w [256, 1000]                 =>  GemmPacked(x, PackGemmWeight(w)): x stays plain
//
// Packed weights are computed at compile time. Where the target has dot-product instructions for
// the types, the forms with groups come first (passes/dot_form.h).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tilewright/base/integers.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/layout/blocker.h"
#include "tilewright/graph/passes/transposed.h"

namespace tilewright::graph {

namespace {

/// A convolution stays plain whose filters fit into a block so many times: it would compute the
/// rest of the block for nothing, which takes longer than copying its input out of blocks. source:
/// heads of 1 to 6 filters in bench/results/cpu.md, "Few filters".
constexpr int64_t kFewFilters = 5;

/// Channels [first, first + count) of w [k, c, taps...].
Array channels_of(const Array& w, int64_t first, int64_t count) {
  Shape shape = w.shape();
  const auto channel =
      static_cast<size_t>(product({shape.begin() + 2, shape.end()}) * bit_width(w.dtype()) / 8);
  const auto all = static_cast<size_t>(shape[1]) * channel;
  shape[1] = count;
  Array part(w.dtype(), shape);
  const size_t bytes = static_cast<size_t>(count) * channel;
  for (int64_t k = 0; k < shape[0]; ++k)
    std::memcpy(static_cast<char*>(part.data()) + static_cast<size_t>(k) * bytes,
                static_cast<const char*>(w.data()) + static_cast<size_t>(k) * all +
                    static_cast<size_t>(first) * channel,
                bytes);
  return part;
}

bool all_finite(const Array& array) {
  for (int64_t i = 0; i < array.size(); ++i)
    if (!std::isfinite(array.get(i))) return false;
  return true;
}

/// Of a convolution of so many input channels (of a group) in blocks of `block`.
tensor::Attrs conv_attrs(const Node& node, bool skip, int64_t channels, int64_t block) {
  tensor::Attrs attrs = node.attrs;
  if (skip) attrs.values["skip_padding"] = int64_t{1};
  if (channels % block != 0) attrs.values["channels"] = channels;
  return attrs;
}

}  // namespace

ValueId Blocker::padded_to(const Node& node, const Array& bias, int64_t padded) {
  Array wide(bias.dtype(), {padded});
  for (int64_t i = 0; i < bias.size(); ++i) copy_element(wide, i, bias, i);
  return constant(node.name + ".bias", std::move(wide));
}

ValueId Blocker::padded_bias(const Node& node, int64_t padded) {
  if (node.inputs.size() < 3 || node.inputs[2] < 0) return -1;
  return padded_to(node, array_of(value(node.inputs[2])), padded);
}

Result<bool> Blocker::dot_conv(const Node& node, const DotForm& form) {
  const Shape &x = shape(node.inputs[0]), &w = shape(node.inputs[1]);
  const int64_t groups = node.attrs.get_int("group", 1), channels = x[1];
  const int64_t merged = merged_groups(w, groups, block_);
  const bool there = has_blocks(node.inputs[0]);
  if (x.size() != 4 || block_ % form.depth != 0 || merged == 0 || (!there && w[0] * 2 < block_))
    return false;
  const int64_t few = (channels + form.depth - 1) / form.depth * form.depth;
  const int64_t block_in = there || channels >= block_ ? block_ : few;
  std::vector<ValueId> inputs = {TW_TRY(in_blocks(node.inputs[0], block_in))};
  const ValueId weight =
      merged == groups ? TW_TRY(plain(node.inputs[1]))
                       : constant(node.name + ".weight",
                                  merge_groups(array_of(value(node.inputs[1])), groups, merged));
  inputs.push_back(TW_TRY(append_own(
      node.name + "/PackConvDotWeight", "PackConvDotWeight", {weight},
      attrs_of({{"block_in", block_in}, {"block_out", block_}, {"depth", form.depth}}))));
  if (form.offset) inputs.push_back(padded_to(node, *form.offset, blocks_of(w[0]) * block_));
  tensor::Attrs attrs = node.attrs;
  attrs.values["zero"] = form.zero;
  if (groups > 1) attrs.values["group"] = merged;
  define(node, 0, TW_TRY(append_own(node.name, "ConvDotBlocked", std::move(inputs), attrs)));
  return true;
}

Result<bool> Blocker::dot_depthwise(const Node& node, const DotForm& form) {
  const Shape& w = shape(node.inputs[1]);
  if (is_float(value(node.inputs[0]).type.dtype)) return false;
  if (!has_blocks(node.inputs[0]) && w[0] * 2 < block_) return false;
  const std::vector<int64_t> dilations = node.attrs.get_ints("dilations");
  // One tap of four would count where a row has no more, or not beside each other.
  const bool rows = w.size() == 4 && w[3] > 1 && (dilations.empty() || dilations[1] == 1);
  const std::string pack = rows ? "PackDepthwiseDotWeight" : "PackDepthwiseWeight";
  tensor::Attrs pack_attrs = attrs_of({{"block", block_}});
  tensor::Attrs attrs = node.attrs;
  attrs.values["zero"] = form.zero;
  if (rows) {
    pack_attrs.values["depth"] = form.depth;
    attrs.values["width"] = w[3];
  }
  std::vector<ValueId> inputs = {TW_TRY(in_blocks(node.inputs[0], block_))};
  inputs.push_back(TW_TRY(append_own(node.name + "/" + pack, pack, {TW_TRY(plain(node.inputs[1]))},
                                     std::move(pack_attrs))));
  if (form.offset) inputs.push_back(padded_to(node, *form.offset, blocks_of(w[0]) * block_));
  const char* op = rows ? "DepthwiseDotBlocked" : "DepthwiseConvBlocked";
  define(node, 0, TW_TRY(append_own(node.name, op, std::move(inputs), std::move(attrs))));
  return true;
}

Result<bool> Blocker::dot_product(const Node& node, const DotForm& form) {
  const Shape &a = shape(node.inputs[0]), &b = shape(node.inputs[1]);
  const bool trans_b = node.op == "Gemm" && node.attrs.get_int("transB", 0) != 0;
  const int64_t columns = b[trans_b ? 0 : 1], wide = blocks_of(columns) * block_;
  int64_t depth = form.depth;
  if (context_.tile_depth && !a.empty() && element_count(a) > a.back()) {
    const int64_t tile =
        context_.tile_depth(value(node.inputs[0]).type.dtype, value(node.inputs[1]).type.dtype);
    if (tile > 0 && a.back() % tile == 0) depth = tile;
  }
  if (a.empty() || a.size() > 4 || b.size() != 2 || a.back() % depth != 0 || columns < block_ / 2 ||
      (form.offset && (form.offset->size() != columns || form.offset->shape().back() != columns)))
    return false;
  std::vector<ValueId> inputs = {TW_TRY(plain(node.inputs[0]))};
  inputs.push_back(TW_TRY(append_own(
      node.name + "/PackGemmDotWeight", "PackGemmDotWeight", {TW_TRY(plain(node.inputs[1]))},
      attrs_of({{"transB", trans_b}, {"block", block_}, {"depth", depth}}))));
  if (form.offset) inputs.push_back(padded_to(node, *form.offset, wide));
  ValueId made =
      TW_TRY(append_own(node.name, "GemmDotPacked", std::move(inputs), attrs_of({{"n", wide}})));
  if (wide != columns) {
    const std::string name = node.name + "/Slice";
    made = TW_TRY(append(name, "Slice",
                         {made, ints(name + ".starts", {0}), ints(name + ".ends", {columns}),
                          ints(name + ".axes", {static_cast<int64_t>(a.size()) - 1})}));
  }
  Rewriter::define(node.outputs[0], made);
  ++packed_;
  return true;
}

Result<bool> Blocker::block_conv(const Node& node) {
  const Shape &x = shape(node.inputs[0]), &w = shape(node.inputs[1]);
  if (const auto dots = dot_form(old(), node, context_)) {
    const bool depthwise = is_depthwise(w, node.attrs.get_int("group", 1));
    if (TW_TRY(depthwise ? dot_depthwise(node, *dots) : dot_conv(node, *dots))) return true;
  }
  const bool bias_known = node.inputs.size() < 3 || node.inputs[2] < 0 || known(node.inputs[2]);
  if (!known(node.inputs[1]) || !bias_known) return false;
  if (!is_float(value(node.inputs[0]).type.dtype)) return false;
  const int64_t groups = node.attrs.get_int("group", 1), channels = x[1], filters = w[0];
  const bool there = has_blocks(node.inputs[0]);
  if (groups == channels && filters == channels && channels > 1) {
    if (!there && channels * 2 < block_) return false;
    return make_conv(node, "DepthwiseConvBlocked", "PackDepthwiseWeight", block_,
                     attrs_of({{"block", block_}}), node.attrs);
  }
  const bool whole = channels / groups % block_ == 0 && filters / groups % block_ == 0;
  if (groups > 1 && !whole) return false;
  if (!there && filters * 2 < block_) return false;
  if (groups == 1 && filters * kFewFilters <= block_) return false;
  if ((there || channels >= block_) && TW_TRY(block_winograd(node))) return true;
  const tensor::DirectForm direct = direct_form(node);
  if (direct.parts > 1) return add_parts(node, direct);
  // The few channels of an image are read as they are; so are rows that fill a cache line, since
  // single elements are broadcast anyway.
  const bool as_rows = x.back() >= block_ && !context_.copies_apart && direct.rows;
  const int64_t block_in = there || (channels >= block_ && !as_rows) ? block_ : 1;
  return make_conv(node, "ConvBlocked", "PackConvWeight", block_in,
                   attrs_of({{"block_in", block_in}, {"block_out", block_}}),
                   conv_attrs(node, direct.skip, w[1], block_in));
}

tensor::DirectForm Blocker::direct_form(const Node& node) {
  const Shape &x = shape(node.inputs[0]), &w = shape(node.inputs[1]);
  if (!context_.direct_form || value(node.inputs[0]).type.dtype != DType::F32) return {};
  if (w.size() != 4 || node.attrs.get_int("group", 1) > 1 || x[0] > 1) return {};
  const auto window = tensor::conv_window(op_call(old(), node), x, w);
  if (!window || window->strides != std::vector<int64_t>{1, 1}) return {};
  tensor::DirectForm form =
      context_.direct_form({x[0], blocks_of(w[1]) * block_, blocks_of(w[0]) * block_,
                            window->output[0], window->output[1], w[2], w[3], window->dilations[0],
                            window->dilations[1], window->begin[0], window->begin[1], x[2], x[3]});
  // What is not finite would show in sums that multiply it with the zeros of the padding.
  if (form.skip && !all_finite(array_of(value(node.inputs[1])))) form = {};
  if (blocks_of(w[1]) % form.parts != 0) form.parts = 1;
  return form;
}

Result<bool> Blocker::add_parts(const Node& node, const tensor::DirectForm& form) {
  const int64_t parts = form.parts;
  const Array weight = *value(node.inputs[1]).constant;
  const int64_t channels = weight.shape()[1], blocks = blocks_of(channels) / parts;
  const int64_t filters = blocks_of(weight.shape()[0]) * block_;
  const std::string& name = node.name;
  Node split{name + "/Split", "", "Split", attrs_of({{"axis", 1}}), {}, {}};
  split.inputs = {TW_TRY(in_blocks(node.inputs[0], block_)),
                  ints(name + ".parts", std::vector<int64_t>(static_cast<size_t>(parts), blocks))};
  const auto pieces = TW_TRY(append_like(std::move(split), static_cast<int>(parts)));
  ValueId sum = -1;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t first = p * blocks * block_;
    const int64_t count = std::min(blocks * block_, channels - first);
    const ValueId w = constant(name + ".weight", channels_of(weight, first, count));
    std::vector<ValueId> inputs = {
        pieces[static_cast<size_t>(p)],
        TW_TRY(append_own(name + "/PackConvWeight", "PackConvWeight", {w},
                          attrs_of({{"block_in", block_}, {"block_out", block_}})))};
    const ValueId bias = p == 0 ? padded_bias(node, filters) : -1;
    if (bias >= 0) inputs.push_back(bias);
    const ValueId made = TW_TRY(append_own(name + "/Part", "ConvBlocked", std::move(inputs),
                                           conv_attrs(node, form.skip, count, block_)));
    sum = sum < 0 ? made : TW_TRY(append(name + "/Add", "Add", {made, sum}));
  }
  define(node, 0, sum);
  return true;
}

Result<bool> Blocker::make_conv(const Node& node, const std::string& op, const std::string& pack,
                                int64_t block_in, tensor::Attrs pack_attrs, tensor::Attrs attrs) {
  const ValueId x = TW_TRY(in_blocks(node.inputs[0], block_in));
  const ValueId w =
      TW_TRY(append_own(node.name + "/" + pack, pack, {TW_TRY(plain(node.inputs[1]))}, pack_attrs));
  const int64_t filters = blocks_of(shape(node.inputs[1])[0]) * block_;
  std::vector<ValueId> inputs = {x, w};
  if (const ValueId bias = padded_bias(node, filters); bias >= 0) inputs.push_back(bias);
  define(node, 0, TW_TRY(append_own(node.name, op, std::move(inputs), std::move(attrs))));
  return true;
}

Result<bool> Blocker::block_transposed(const Node& node) {
  const Shape &x = shape(node.inputs[0]), &w = shape(node.inputs[1]), &y = shape(node.outputs[0]);
  const bool bias_known = node.inputs.size() < 3 || node.inputs[2] < 0 || known(node.inputs[2]);
  if (!known(node.inputs[1]) || !bias_known || !is_float(value(node.inputs[0]).type.dtype))
    return false;
  const auto window = tensor::transposed_window(op_call(old(), node));
  const bool there = has_blocks(node.inputs[0]);
  if (!window || !has_phases(*window) || (!there && x[1] < block_)) return false;
  const int64_t filters = blocks_of(w[1]) * block_;
  const ValueId phases =
      constant(node.name + ".phases",
               phase_weights(array_of(value(node.inputs[1])), *window, window->begin, filters));
  std::vector<ValueId> inputs = {
      TW_TRY(in_blocks(node.inputs[0], block_)),
      TW_TRY(append_own(node.name + "/PackConvWeight", "PackConvWeight", {phases},
                        attrs_of({{"block_in", block_}, {"block_out", block_}})))};
  if (const ValueId bias = padded_bias(node, filters); bias >= 0) inputs.push_back(bias);
  tensor::Attrs attrs;
  std::vector<int64_t> output;
  Shape whole = blocked_shape(y, block_);
  for (size_t i = 0; i < window->strides.size(); ++i) {
    output.push_back((y[i + 2] + window->strides[i] - 1) / window->strides[i]);
    whole[i + 2] = output[i] * window->strides[i];
  }
  attrs.values["strides"] = window->strides;
  attrs.values["begin"] = window->begin;
  attrs.values["output"] = output;
  if (x[1] % block_ != 0) attrs.values["channels"] = x[1];
  const ValueId made = TW_TRY(append_own(node.name, "PhaseConvBlocked", std::move(inputs), attrs));
  if (whole == blocked_shape(y, block_)) {
    forms(node.outputs[0]).phases = made;
    return true;
  }
  // The last phases end before the others: what they have too much is cut off.
  std::vector<int64_t> ends(y.begin() + 2, y.end()), axes;
  for (size_t i = 0; i < ends.size(); ++i) axes.push_back(static_cast<int64_t>(i) + 2);
  const ValueId all = TW_TRY(reshape(node.name + "/Reshape", made, whole));
  define(node, 0,
         TW_TRY(append(node.name + "/Slice", "Slice",
                       {all, ints(node.name + ".starts", std::vector<int64_t>(ends.size(), 0)),
                        ints(node.name + ".ends", ends), ints(node.name + ".axes", axes)})));
  return true;
}

Result<bool> Blocker::pack_product(const Node& node) {
  const Value& b = value(node.inputs[1]);
  const Shape& a = shape(node.inputs[0]);
  const bool gemm = node.op == "Gemm";
  const bool trans_b = gemm && node.attrs.get_int("transB", 0) != 0;
  if (gemm && (node.attrs.get_int("transA", 0) != 0 || node.attrs.get_float("alpha", 1) != 1 ||
               node.attrs.get_float("beta", 1) != 1))
    return false;
  if (const auto dots = dot_form(old(), node, context_); dots && TW_TRY(dot_product(node, *dots)))
    return true;
  if (!b.constant || b.type.shape.size() != 2 || !is_float(b.type.dtype)) return false;
  if (a.empty() || a.size() > 4) return false;
  const int64_t columns = b.type.shape[trans_b ? 0 : 1];
  if (columns < block_ / 2) return false;
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2] >= 0;
  if (has_bias && (!known(node.inputs[2]) || array_of(value(node.inputs[2])).size() != columns ||
                   shape(node.inputs[2]).back() != columns))
    return false;
  const ValueId packed = TW_TRY(append_own(node.name + "/PackGemmWeight", "PackGemmWeight",
                                           {TW_TRY(plain(node.inputs[1]))},
                                           attrs_of({{"transB", trans_b}, {"block", block_}})));
  std::vector<ValueId> inputs = {TW_TRY(plain(node.inputs[0])), packed};
  if (has_bias) inputs.push_back(padded_bias(node, columns));
  const ValueId made =
      TW_TRY(append_own(node.name, "GemmPacked", std::move(inputs), attrs_of({{"n", columns}})));
  Rewriter::define(node.outputs[0], made);
  ++packed_;
  return true;
}

}  // namespace tilewright::graph
