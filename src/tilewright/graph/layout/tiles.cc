// The graph is rebuilt in topological order; each value may exist plain, in tiles of either block,
// or both. Lanes say which channel a place in the tiles holds: concatenations leave gaps where an
// input does not fill its last block, and the weights of readers have zeros there.
//
//   i8 [1, 20, 8, 8] in tiles of 1 x 16  =>  [1, 2, 8, 8, 1, 16]; lanes 0 to 19 hold channels
//   ConvInteger -> Requantize            =>  ToTiles -> TileConv -> Requantize -> FromTiles
#include "tilewright/graph/layout/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/base/check.h"
#include "tilewright/base/integers.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/tensor/tile.h"

namespace tilewright::graph {
namespace {

using Lanes = std::vector<int64_t>;  ///< channel of each lane, -1 for none

Lanes plain_lanes(int64_t channels, int64_t block) {
  Lanes lanes(static_cast<size_t>(ceil_div(channels, block) * block), -1);
  for (int64_t c = 0; c < channels; ++c) lanes[static_cast<size_t>(c)] = c;
  return lanes;
}

struct Tiled {
  ValueId id = -1;
  Lanes lanes;
};

class Tiler : private Rewriter {
 public:
  Tiler(const Graph& graph, const TileShape& tile)
      : Rewriter(graph),
        tile_(tile),
        tiles_(graph.values.size()),
        not_negative_(graph.values.size(), false),
        producer_(producers(graph)),
        users_(consumers(graph)) {}

  Result<Graph> run() {
    for (const Node& node : old().nodes) release(node);
    for (const Node& node : old().nodes) {
      if (is_inner(node)) continue;
      auto done = tiled(node);
      if (done && !*done) {
        const Status copied = copy(node);
        if (!copied) done = tl::unexpected<Error>(copied.error());
      }
      if (!done)
        return tl::unexpected<Error>(std::move(done.error()).at("node '" + node.name + "'"));
    }
    for (ValueId id : old().outputs) output(TW_TRY(plain(id)));
    return finish();
  }

 private:
  /// The forms on tiles that exist of an old value, by block.
  std::map<int64_t, Tiled>& tiles(ValueId id) { return tiles_[static_cast<size_t>(id)]; }

  Result<ValueId> plain(ValueId id) {
    if (id < 0) return id;
    if (now(id) >= 0 || tiles(id).empty()) return keep(id);
    const auto& [block, from] = *tiles(id).begin();
    const auto lanes = static_cast<int64_t>(from.lanes.size());
    const bool dense = from.lanes == plain_lanes(shape(id)[1], block);
    ValueId made = TW_TRY(
        append_own(value(id).name + "/FromTiles", "FromTiles", {from.id},
                   attrs_of({{"channels", dense ? shape(id)[1] : lanes}, {"n", shape(id)[0]}})));
    if (!dense) {
      Lanes places;
      for (size_t lane = 0; lane < from.lanes.size(); ++lane)
        if (from.lanes[lane] >= 0) places.push_back(static_cast<int64_t>(lane));
      made = TW_TRY(append(value(id).name + "/Gather", "Gather",
                           {made, ints(value(id).name + ".lanes", places)},
                           attrs_of({{"axis", int64_t{1}}})));
    }
    Rewriter::define(id, made);
    return made;
  }

  /// The value in tiles of `block` lanes; with `dense`, without gaps.
  Result<Tiled> in_tiles(ValueId id, int64_t block, bool dense = false) {
    const std::map<int64_t, Tiled>& there = tiles(id);
    if (const auto found = there.find(block); found != there.end())
      if (!dense || found->second.lanes == plain_lanes(shape(id)[1], block)) return found->second;
    const ValueId from = TW_TRY(plain(id));
    Tiled made;
    made.id = TW_TRY(append_own(value(id).name + "/ToTiles", "ToTiles", {from},
                                attrs_of({{"batch", tile_.batch}, {"block", block}})));
    made.lanes = plain_lanes(shape(id)[1], block);
    tiles(id)[block] = made;
    return made;
  }
  bool has_tiles(ValueId id) { return id >= 0 && !tiles(id).empty(); }

  void define(ValueId id, int64_t block, Tiled made) {
    new_value(made.id).name = value_name(value(id).name + ".tiles");
    tiles(id)[block] = std::move(made);
  }

  Status copy(const Node& node) {
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(TW_TRY(plain(id)));
    Rewriter::copy(node, std::move(inputs));
    return {};
  }

  // --- Nodes.

  bool is_bytes_image(ValueId id) const {
    return id >= 0 && !known(id) && value(id).type.dtype == DType::I8 && shape(id).size() == 4 &&
           element_count(shape(id)) > 0;
  }

  /// The convolution that `node`, a Requantize, ends; null if it has no tiled form.
  const Node* conv_of(const Node& node) const {
    if (node.domain != "tilewright" || node.op != "Requantize") return nullptr;
    const int p = producer_[static_cast<size_t>(node.inputs[0])];
    if (p < 0 || users_[static_cast<size_t>(node.inputs[0])].size() != 1) return nullptr;
    const Node& conv = old().nodes[static_cast<size_t>(p)];
    const bool fits = conv.domain.empty() && conv.op == "ConvInteger" && conv.inputs.size() == 2 &&
                      is_bytes_image(conv.inputs[0]) && known(conv.inputs[1]) &&
                      value(conv.inputs[1]).type.dtype == DType::I8;
    if (!fits) return nullptr;
    for (const size_t i : {1, 3})
      if (i < node.inputs.size() && node.inputs[i] >= 0 && !is_channel_vector(node, node.inputs[i]))
        return nullptr;
    return &conv;
  }
  bool is_channel_vector(const Node& node, ValueId id) const {
    return known(id) && shape(id) == Shape{1, shape(node.outputs[0])[1], 1, 1};
  }
  /// A convolution that is emitted with the Requantize behind it.
  bool is_inner(const Node& node) const {
    if (!node.domain.empty() || node.op != "ConvInteger") return false;
    const auto& users = users_[static_cast<size_t>(node.outputs[0])];
    if (users.size() != 1) return false;
    return conv_of(old().nodes[static_cast<size_t>(users[0])]) == &node;
  }

  Result<bool> tiled(const Node& node) {
    if (node.inputs.empty() || node.outputs.size() != 1) return false;
    if (const Node* conv = conv_of(node)) return layer(node, *conv);
    if (node.op == "Requantize")
      not_negative_[static_cast<size_t>(node.outputs[0])] = node.attrs.get_int("lo", -128) >= 0;
    if (!node.domain.empty() || !is_bytes_image(node.inputs[0])) return false;
    if (!is_bytes_image(node.outputs[0])) return false;
    if (node.op == "MaxPool") return max_pool(node);
    if (node.op == "Concat") return concat(node);
    if (!has_tiles(node.inputs[0])) return false;
    not_negative_[static_cast<size_t>(node.outputs[0])] =
        not_negative_[static_cast<size_t>(node.inputs[0])];
    if (node.op == "Slice") return slice(node);
    if (node.op == "Pad") return pad(node);
    if (node.op == "Resize") return resize(node);
    return false;
  }

  // --- Layers.

  static bool equal_filters(const Array& w) {
    const int64_t inner = w.size() / w.shape()[0];
    for (int64_t i = inner; i < w.size(); ++i)
      if (w.as<int8_t>()[static_cast<size_t>(i)] != w.as<int8_t>()[static_cast<size_t>(i % inner)])
        return false;
    return true;
  }

  /// How a convolution lies on tiles.
  struct Fit {
    Tiled x;
    Lanes outs;            ///< lanes of the result
    int64_t groups = 1;    ///< of blocks
    bool stacked = false;  ///< channel blocks count as further images
  };

  Result<Fit> fit(const Node& conv, bool adds) {
    const Array& w = array_of(value(conv.inputs[1]));
    const int64_t groups = conv.attrs.get_int("group", 1), outs = w.shape()[0];
    const bool square = tile_.block_in == tile_.block_out;
    const bool depthwise = groups > 1 && w.shape()[1] == 1 && outs == groups && square;
    Fit f;
    f.x = TW_TRY(in_tiles(conv.inputs[0], tile_.block_in, groups > 1 && (adds || !depthwise)));
    f.outs = depthwise ? f.x.lanes : plain_lanes(outs, tile_.block_out);
    if (depthwise) {
      f.stacked = equal_filters(w);
      f.groups = f.stacked ? 1 : static_cast<int64_t>(f.x.lanes.size()) / tile_.block_in;
    } else if (groups > 1) {
      f.groups =
          tensor::tile_blocks(outs, w.shape()[1], groups, tile_.block_in, tile_.block_out).groups;
    }
    return f;
  }

  /// [o/BO, i/BI, r, s, BO, BI]; zero where a lane holds no channel or the groups differ.
  Array packed_weight(const Node& conv, const Fit& f) const {
    const Array& w = array_of(value(conv.inputs[1]));
    const Shape& ws = w.shape();
    const int64_t groups = conv.attrs.get_int("group", 1), outs_per = ws[0] / groups;
    const int64_t bo = tile_.block_out, bi = tile_.block_in;
    const int64_t out_blocks = f.stacked ? 1 : static_cast<int64_t>(f.outs.size()) / bo;
    const int64_t in_blocks =
        f.stacked ? 1 : static_cast<int64_t>(f.x.lanes.size()) / bi / f.groups;
    const int64_t outs_per_group = out_blocks / f.groups;
    Array packed(DType::I8, {out_blocks, in_blocks, ws[2], ws[3], bo, bi});
    const auto from = w.as<int8_t>();
    const auto to = packed.as<int8_t>();
    const int64_t taps = ws[2] * ws[3];
    for (int64_t o = 0; o < out_blocks * bo; ++o) {
      for (int64_t i = 0; i < in_blocks * bi; ++i) {
        int64_t row = 0, column = 0;  // in w
        if (f.stacked) {
          if (o != i) continue;
        } else {
          const int64_t base = o / bo / outs_per_group * in_blocks * bi;
          row = f.outs[static_cast<size_t>(o)];
          column = f.x.lanes[static_cast<size_t>(base + i)];
          if (row < 0 || column < 0 || column / ws[1] != row / outs_per) continue;
          column %= ws[1];
        }
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t at =
              (((o / bo * in_blocks + i / bi) * taps + t) * bo + o % bo) * bi + i % bi;
          to[static_cast<size_t>(at)] =
              from[static_cast<size_t>((row * ws[1] + column) * taps + t)];
        }
      }
    }
    return packed;
  }

  /// A vector over channels as [1, o/BO, 1, 1, B, BO], or [n * o/BO, 1, 1, 1, B, BO] if stacked.
  Array packed_vector(const Array& v, const Fit& f, int64_t images) const {
    const int64_t bo = tile_.block_out, b = tile_.batch;
    const int64_t blocks = static_cast<int64_t>(f.outs.size()) / bo;
    Array packed(DType::I32, f.stacked ? Shape{images * blocks, 1, 1, 1, b, bo}
                                       : Shape{1, blocks, 1, 1, b, bo});
    for (int64_t i = 0; i < packed.size(); ++i) {
      const int64_t lane = i / (b * bo) % blocks * bo + i % bo;
      const int64_t channel = f.outs[static_cast<size_t>(lane)];
      if (channel >= 0) packed.set_int(i, v.get_int(channel));
    }
    return packed;
  }

  /// Channel blocks become images; or back.
  Result<ValueId> stack(const std::string& base, ValueId id) {
    const Shape& s = new_shape(id);
    return reshape(base, id, {s[0] * s[1], 1, s[2], s[3], s[4], s[5]});
  }

  /// Whether the window is the whole map, without zeros around it: one result per channel.
  bool covers_map(const Node& conv) const {
    const Shape &x = shape(conv.inputs[0]), &w = shape(conv.inputs[1]);
    const Shape& y = shape(conv.outputs[0]);
    return w[2] * w[3] > 1 && w[2] == x[2] && w[3] == x[3] && y[2] == 1 && y[3] == 1 &&
           !may_have_zeros(conv);
  }
  static bool may_have_zeros(const Node& conv) {
    const auto pads = conv.attrs.get_ints("pads", {});
    return conv.attrs.get_string("auto_pad", "NOTSET") != "NOTSET" ||
           std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; });
  }
  /// Such a window is a product over channel blocks and places alike, as they lie in memory: the
  /// sum over the places can then be cut into tiles too.
  Result<ValueId> taps_to_blocks(const std::string& base, ValueId id) {
    const Shape& s = new_shape(id);
    return reshape(base, id, {s[0], s[1] * s[2] * s[3], 1, 1, s[4], s[5]});
  }

  Result<bool> layer(const Node& node, const Node& conv) {
    const bool adds = node.inputs.size() > 2 && node.inputs[2] >= 0;
    const Fit f = TW_TRY(fit(conv, adds));
    const ValueId old = node.outputs[0];
    const int64_t images = new_shape(f.x.id)[0];
    ValueId x = f.x.id;
    if (f.stacked) x = TW_TRY(stack(conv.name + "/stack", x));
    Array weight = packed_weight(conv, f);
    std::map<std::string, tensor::AttrValue> attrs = {{"groups", f.groups}};
    if (covers_map(conv)) {
      x = TW_TRY(taps_to_blocks(conv.name + "/taps", x));
      const Shape& s = weight.shape();
      weight = weight.reshaped({s[0], s[1] * s[2] * s[3], 1, 1, s[4], s[5]});
    } else {
      for (const char* key : {"strides", "pads", "dilations", "auto_pad"})
        if (conv.attrs.has(key)) attrs[key] = conv.attrs.values.at(key);
    }
    const ValueId w = constant(conv.name + ".tiles", std::move(weight));
    std::vector<ValueId> inputs = {-1};
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id < 0) {
        inputs.push_back(id);
      } else if (i == 2) {
        inputs.push_back(TW_TRY(residual(node, id, f)));
      } else {
        const Array& vector = array_of(value(id));
        inputs.push_back(constant(value(id).name + ".tiles", packed_vector(vector, f, images)));
      }
    }
    inputs[0] = TW_TRY(append_own(conv.name, "TileConv", {x, w}, attrs_of(attrs)));
    ValueId y = TW_TRY(append_own(node.name, "Requantize", std::move(inputs), node.attrs));
    if (f.stacked) {
      const Shape s = new_shape(y);
      y = TW_TRY(
          reshape(node.name + "/unstack", y, {images, s[0] / images, s[2], s[3], s[4], s[5]}));
    }
    define(old, tile_.block_out, {y, f.outs});
    not_negative_[static_cast<size_t>(old)] = node.attrs.get_int("lo", -128) >= 0;
    return true;
  }

  /// The residual on the lanes of the result.
  Result<ValueId> residual(const Node& node, ValueId id, const Fit& f) {
    const bool dense = f.outs == plain_lanes(shape(id)[1], tile_.block_out);
    Tiled r = TW_TRY(in_tiles(id, tile_.block_out, dense));
    if (r.lanes != f.outs)
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' and its residual have different gaps", node.name));
    return f.stacked ? stack(node.name + "/stack", r.id) : Result<ValueId>(r.id);
  }

  // --- Pooling and movement.

  /// The form of an image to go on with: tiles that are there, else new ones.
  Result<std::pair<int64_t, Tiled>> any_tiles(ValueId id) {
    if (has_tiles(id)) return *tiles(id).begin();
    return std::pair(tile_.block_out, TW_TRY(in_tiles(id, tile_.block_out)));
  }

  Result<bool> max_pool(const Node& node) {
    const auto x = TW_TRY(any_tiles(node.inputs[0]));
    const bool positive = not_negative_[static_cast<size_t>(node.inputs[0])];
    not_negative_[static_cast<size_t>(node.outputs[0])] = positive;
    std::map<std::string, tensor::AttrValue> attrs = node.attrs.values;
    attrs.erase("storage_order");
    attrs["floor"] = int64_t{positive ? 0 : -128};
    const ValueId y = TW_TRY(append_own(node.name, "TileMaxPool", {x.second.id}, attrs_of(attrs)));
    define(node.outputs[0], x.first, {y, x.second.lanes});
    return true;
  }

  Result<bool> concat(const Node& node) {
    int64_t axis = node.attrs.get_int("axis", 0);
    if (axis < 0) axis += 4;
    bool any = false, positive = true;
    for (const ValueId id : node.inputs) {
      if (!is_bytes_image(id)) return false;
      any = any || has_tiles(id);
      positive = positive && not_negative_[static_cast<size_t>(id)];
    }
    not_negative_[static_cast<size_t>(node.outputs[0])] = positive;
    if (!any || axis < 1) return false;
    const int64_t block = tile_.block_out;
    std::vector<ValueId> parts;
    Lanes lanes;
    int64_t channels = 0;
    for (const ValueId id : node.inputs) {
      const Tiled part = TW_TRY(in_tiles(id, block, axis != 1));
      parts.push_back(part.id);
      if (axis != 1) lanes = part.lanes;
      for (const int64_t lane : part.lanes)
        if (axis == 1) lanes.push_back(lane < 0 ? -1 : channels + lane);
      channels += shape(id)[1];
    }
    const ValueId y = TW_TRY(append(node.name, "Concat", parts, attrs_of({{"axis", axis}})));
    define(node.outputs[0], block, {y, lanes});
    return true;
  }

  /// The node on tiles instead of its input 0; other inputs as given.
  Result<bool> moved(const Node& node, std::vector<ValueId> others) {
    const auto x = TW_TRY(any_tiles(node.inputs[0]));
    others.insert(others.begin(), x.second.id);
    const ValueId y = TW_TRY(append(node.name, node.op, std::move(others), node.attrs));
    define(node.outputs[0], x.first, {y, x.second.lanes});
    return true;
  }

  Result<bool> slice(const Node& node) {
    const auto axes = known_ints(old(), node, 3);
    if (!axes ||
        std::any_of(axes->begin(), axes->end(), [](int64_t a) { return a != 2 && a != 3; }))
      return false;
    std::vector<ValueId> others;
    for (size_t i = 1; i < node.inputs.size(); ++i) others.push_back(TW_TRY(plain(node.inputs[i])));
    return moved(node, std::move(others));
  }

  Result<bool> pad(const Node& node) {
    const auto p = known_ints(old(), node, 1);
    const bool more =
        std::any_of(node.inputs.begin() + 2, node.inputs.end(), [](ValueId id) { return id >= 0; });
    if (!p || p->size() != 8 || more || (*p)[0] != 0 || (*p)[1] != 0 || (*p)[4] != 0 ||
        (*p)[5] != 0)
      return false;
    return moved(node, {ints(node.name + ".pads",
                             {0, 0, (*p)[2], (*p)[3], 0, 0, 0, 0, (*p)[6], (*p)[7], 0, 0})});
  }

  Result<bool> resize(const Node& node) {
    const ValueId scales = node.inputs.size() > 2 ? node.inputs[2] : -1;
    if (!known(scales) || array_of(value(scales)).size() != 4 || node.inputs.size() > 3)
      return false;
    std::vector<double> wide = array_of(value(scales)).to_doubles();
    if (wide[0] != 1 || wide[1] != 1 || node.attrs.has("axes")) return false;
    wide.insert(wide.end(), {1, 1});
    return moved(node, {-1, constant(node.name + ".scales", Array::of(DType::F32, wide))});
  }

  const TileShape tile_;
  std::vector<std::map<int64_t, Tiled>> tiles_;  ///< of each old value
  std::vector<bool> not_negative_;
  std::vector<int> producer_;
  std::vector<std::vector<int>> users_;
};

}  // namespace

Result<Graph> tile_layout(const Graph& integer, const TileShape& tile) {
  if (tile.batch < 1 || tile.block_in < 1 || tile.block_out < 1)
    return fail(ErrorKind::Invalid,
                fmt::format("tiles of {} x {} and {}", tile.batch, tile.block_in, tile.block_out));
  TW_CHECK(tile.order == TileOrder::BlocksFirst, "there are no layers on pixels of channel blocks");
  return Tiler(integer, tile).run();
}

}  // namespace tilewright::graph
