// Blocked layout: convolutions whose planes have windows of stride 1, by Winograd where that is
// faster. A dilated one is one convolution for each phase of the input; in one with depth, the taps
// along it are further channels; groups of channels are images of a batch with filters of their
// own; one along a single axis is one over planes of one row.
#include <algorithm>
#include <cstring>

#include "tilewright/base/integers.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/layout/blocker.h"
#include "tilewright/tensor/window.h"

namespace tilewright::graph {

/// A batch of plain convolutions over planes and its tile.
struct Blocker::Winograd {
  tensor::Conv2dShape conv;     ///< of the phases
  Ints pads;                    ///< before and behind the rows and columns
  Ints steps, output;           ///< dilation, and extents of the whole result; rows and columns
  int64_t depth = 1, taps = 1;  ///< of the result, of the kernel
  int64_t m = 0, groups = 1;
  bool dilated() const { return steps[0] > 1 || steps[1] > 1; }
};

namespace {

/// Longest window along an axis.
constexpr int64_t kMostTaps = 9;

/// w [k, c, t, r, s] as [k, t * c, r, s]
Array taps_as_channels(const Array& w) {
  const Shape& s = w.shape();
  Array result(w.dtype(), {s[0], s[2] * s[1], s[3], s[4]});
  const auto plane = static_cast<size_t>(s[3] * s[4] * bit_width(w.dtype()) / 8);
  const char* from = static_cast<const char*>(w.data());
  char* to = static_cast<char*>(result.data());
  for (int64_t k = 0; k < s[0]; ++k)
    for (int64_t t = 0; t < s[2]; ++t)
      for (int64_t c = 0; c < s[1]; ++c, to += plane)
        std::memcpy(to, from + static_cast<size_t>((k * s[1] + c) * s[2] + t) * plane, plane);
  return result;
}

}  // namespace

Result<ValueId> Blocker::make_winograd(const Node& node, const Winograd& form, ValueId x,
                                       ValueId w) {
  const ValueId packed =
      TW_TRY(append_own(node.name + "/PackWinogradWeight", "PackWinogradWeight", {w},
                        attrs_of({{"block_in", block_}, {"block_out", block_}, {"m", form.m}})));
  std::vector<ValueId> inputs = {x, packed};
  const int64_t filters = form.conv.filters * form.groups;
  if (const ValueId bias = padded_bias(node, filters); bias >= 0) inputs.push_back(bias);
  tensor::Attrs attrs = attrs_of({{"m", form.m}, {"filter_sets", form.groups}});
  attrs.values["pads"] = form.pads;
  return append_own(node.name, "WinogradConvBlocked", std::move(inputs), std::move(attrs));
}

std::optional<Blocker::Winograd> Blocker::winograd_form(const Node& node,
                                                        const tensor::Window& window) {
  const Shape &x = shape(node.inputs[0]), &w = shape(node.inputs[1]);
  if (!context_.winograd_tile || value(node.inputs[0]).type.dtype != DType::F32) return {};
  const size_t rank = window.rank();
  // Rows, then columns; an image of one axis is one row.
  const auto plane = [&](const Ints& axes, int64_t missing) {
    return Ints{rank > 1 ? axes[rank - 2] : missing, axes[rank - 1]};
  };
  const Ints taps = plane(window.kernel, 1);
  if (plane(window.strides, 1) != Ints{1, 1}) return {};
  if (product(taps) == 1 || std::max(taps[0], taps[1]) > kMostTaps) return {};
  Winograd form;
  form.steps = plane(window.dilations, 1);
  form.output = plane(window.output, 1);
  form.groups = node.attrs.get_int("group", 1);
  if (rank == 3 && (form.dilated() || w[1] % block_ != 0)) return {};
  if (form.groups > 1 && (rank == 3 || form.dilated())) return {};
  if (rank == 3) form.depth = window.output[0], form.taps = w[2];
  tensor::Conv2dShape conv = {x[0] * form.depth * form.groups,
                              blocks_of(w[1]) * block_ * form.taps,
                              blocks_of(w[0] / form.groups) * block_,
                              form.output[0],
                              form.output[1],
                              taps[0],
                              taps[1],
                              form.steps[0],
                              form.steps[1]};
  // What `direct_form` may leave out.
  if (rank == 2 && conv.batch == 1)
    conv.pad_h = window.begin[0], conv.pad_w = window.begin[1], conv.input_h = x[2],
    conv.input_w = x[3];
  form.conv = conv.phases();
  form.pads = plane(window.begin, 0);
  form.pads.push_back(rank > 1 ? window.reached_end(rank - 2) : 0);
  form.pads.push_back(window.reached_end(rank - 1));
  form.m = context_.winograd_tile(conv);
  return form.m == 0 ? std::nullopt : std::optional(form);
}

Result<bool> Blocker::block_winograd(const Node& node) {
  const Shape &x = shape(node.inputs[0]), &w = shape(node.inputs[1]);
  const tensor::Window window = TW_TRY(tensor::conv_window(op_call(old(), node), x, w));
  std::optional<Winograd> form = winograd_form(node, window);
  if (!form) return false;
  ValueId from = TW_TRY(in_blocks(node.inputs[0], block_)), weight = TW_TRY(plain(node.inputs[1]));
  const std::string& name = node.name;
  const bool deep = window.rank() == 3, flat = window.rank() == 1;
  if (flat) {
    from = TW_TRY(reshape(name + "/Plane", from, {x[0], blocks_of(x[1]), 1, x[2], block_}));
    weight =
        constant(name + ".plane", array_of(value(node.inputs[1])).reshaped({w[0], w[1], 1, w[2]}));
  }
  if (form->dilated()) {
    from =
        TW_TRY(append_own(name + "/SpaceToBatch", "SpaceToBatch", {from},
                          attrs_of({{"strides", form->steps},
                                    {"begin", Ints{form->pads[0], form->pads[1]}},
                                    {"output", Ints{form->conv.height + form->conv.taps_h - 1,
                                                    form->conv.width + form->conv.taps_w - 1}}})));
    form->pads = {0, 0, 0, 0};
  }
  if (deep) {
    from = TW_TRY(append_own(name + "/DepthToChannels", "DepthToChannels", {from},
                             attrs_of({{"taps", form->taps},
                                       {"stride", window.strides[0]},
                                       {"dilation", window.dilations[0]},
                                       {"begin", window.begin[0]},
                                       {"output", form->depth}})));
    weight = constant(name + ".taps", taps_as_channels(array_of(value(node.inputs[1]))));
  }
  if (form->groups > 1)
    from = TW_TRY(reshape(name + "/Groups", from,
                          {x[0] * form->groups, w[1] / block_, flat ? 1 : x[2], x.back(), block_}));
  ValueId made = TW_TRY(make_winograd(node, *form, from, weight));
  // Elementwise operators behind it keep the shape it has here, to run in its epilogue.
  if ((flat || form->groups > 1) && !form->dilated()) {
    forms(node.outputs[0]).phases = made;
    return true;
  }
  if (form->dilated())
    made = TW_TRY(append_own(name + "/BatchToSpace", "BatchToSpace", {made},
                             attrs_of({{"strides", form->steps}, {"output", form->output}})));
  if (flat)
    made = TW_TRY(reshape(name + "/Reshape", made, blocked_shape(shape(node.outputs[0]), block_)));
  if (deep)
    made = TW_TRY(append_own(name + "/BatchToDepth", "BatchToDepth", {made},
                             attrs_of({{"depth", form->depth}})));
  define(node, 0, made);
  return true;
}

}  // namespace tilewright::graph
