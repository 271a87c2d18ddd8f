// Blocked channels: [n, c, h, w] becomes [n, c/b, h, w, b], so that one vector holds b channels of
// one pixel. The graph is rebuilt in topological order; each value may exist plain, blocked or
// both, and a conversion is made only when somebody needs the form that is missing.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/graph/edit.h"
#include "tilewright/graph/passes.h"

namespace tilewright::graph {
namespace {

/// Elementwise operators that stay blocked even if the last block is filled up with zeros: they
/// give something finite there, which weights of zero remove again.
const std::set<std::string> kFiniteAtZero = {"Abs",      "Add",         "Ceil",
                                             "Celu",     "Clip",        "Elu",
                                             "Erf",      "Exp",         "Floor",
                                             "Gelu",     "HardSigmoid", "HardSwish",
                                             "Identity", "LeakyRelu",   "Max",
                                             "Mean",     "Min",         "Mish",
                                             "Mul",      "Neg",         "PRelu",
                                             "Relu",     "Round",       "Selu",
                                             "Sigmoid",  "Sign",        "Softplus",
                                             "Softsign", "Sub",         "Sum",
                                             "Swish",    "Tanh",        "ThresholdedRelu"};
/// The same if no last block is filled up.
const std::set<std::string> kElementwise = {
    "Div",     "Pow",   "Sqrt", "Log",         "Reciprocal",     "Cos", "Sin", "Where", "Less",
    "Greater", "Equal", "Cast", "LessOrEqual", "GreaterOrEqual", "Not", "And", "Or"};

class Blocker {
 public:
  Blocker(const Graph& graph, PassContext& context)
      : in_(graph), context_(context), block_(std::max(4, context.vector_bytes / 4)) {}

  Result<Graph> run() {
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

 private:
  /// What exists of a value in the new graph.
  struct Forms {
    ValueId plain = -1;
    std::map<int64_t, ValueId> blocked;  ///< by block
  };

  const Value& value(ValueId id) const { return in_.values[static_cast<size_t>(id)]; }
  const Shape& shape(ValueId id) const { return value(id).type.shape; }
  Forms& forms(ValueId id) { return forms_[static_cast<size_t>(id)]; }
  bool known(ValueId id) const { return id >= 0 && value(id).constant.has_value(); }
  /// Whether the value already exists in blocks of the target's size.
  bool has_blocks(ValueId id) { return id >= 0 && forms(id).blocked.contains(block_); }
  int64_t blocks_of(int64_t channels) const { return (channels + block_ - 1) / block_; }

  /// A value of the old graph that no node of the new one makes: an input or a constant.
  ValueId keep(ValueId id) {
    ValueId& mine = forms(id).plain;
    if (mine < 0) mine = out_.add_value(value(id).name, value(id).type, value(id).constant);
    return mine;
  }

  ValueId constant(const std::string& base, Array array) {
    const tensor::TensorType type{array.dtype(), array.shape()};
    return out_.add_value(names_.value(base), type, std::move(array));
  }

  ValueId ints(const std::string& base, const std::vector<int64_t>& values) {
    Array array(DType::I64, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), array.as<int64_t>().begin());
    return constant(base, std::move(array));
  }

  Result<ValueId> append(const std::string& name, const std::string& domain, const std::string& op,
                         std::vector<ValueId> inputs, tensor::Attrs attrs = {}) {
    Node node;
    node.name = name;
    node.domain = domain;
    node.op = op;
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    return TW_TRY(append_node(out_, names_, std::move(node), 1))[0];
  }

  static tensor::Attrs attrs_of(std::initializer_list<std::pair<const char*, int64_t>> entries) {
    tensor::Attrs attrs;
    for (const auto& [key, number] : entries) attrs.values[key] = number;
    return attrs;
  }

  Result<ValueId> reshape(const std::string& name, ValueId id, const Shape& target) {
    return append(name, "", "Reshape", {id, ints(name + ".shape", target)},
                  attrs_of({{"allowzero", 1}}));
  }

  /// With one pixel and full blocks both forms are the same bytes.
  bool same_bytes(const Shape& s, int64_t block) const {
    return s.size() == 4 && s[2] == 1 && s[3] == 1 && s[1] % block == 0;
  }

  Result<ValueId> plain(ValueId id) {
    if (id < 0) return id;
    Forms& f = forms(id);
    if (f.plain >= 0) return f.plain;
    if (f.blocked.empty()) return keep(id);
    const auto [block, from] = *f.blocked.rbegin();
    const std::string name = value(id).name + "/FromBlocked";
    if (same_bytes(shape(id), block)) {
      f.plain = TW_TRY(reshape(name, from, shape(id)));
    } else {
      ++conversions_;
      f.plain = TW_TRY(append(name, "tilewright", "FromBlocked", {from},
                              attrs_of({{"channels", shape(id)[1]}})));
    }
    out_.values[static_cast<size_t>(f.plain)].name = value(id).name;
    return f.plain;
  }

  /// `id` in blocks of `block` channels.
  Result<ValueId> in_blocks(ValueId id, int64_t block) {
    Forms& f = forms(id);
    if (const auto found = f.blocked.find(block); found != f.blocked.end()) return found->second;
    const ValueId from = TW_TRY(plain(id));
    const Shape& s = shape(id);
    const std::string name = value(id).name + "/ToBlocked";
    ValueId made = -1;
    if (same_bytes(s, block) || (block == 1 && s[1] == 1)) {
      made = TW_TRY(reshape(name, from, {s[0], s[1] / block, s[2], s[3], block}));
    } else {
      conversions_ += !known(id);
      made = TW_TRY(append(name, "tilewright", "ToBlocked", {from}, attrs_of({{"block", block}})));
    }
    forms(id).blocked[block] = made;
    return made;
  }

  /// Copies a node as it is, on plain values.
  Status copy(const Node& node) {
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

  void define(const Node& node, size_t output, ValueId made) {
    const ValueId old = node.outputs[output];
    out_.values[static_cast<size_t>(made)].name = names_.value(value(old).name + ".blocked");
    forms(old).blocked[block_] = made;
  }

  /// Makes the blocked (or packed) form of `node` if it has one here.
  Result<bool> blocked(const Node& node) {
    if (!node.domain.empty() || node.inputs.empty() || node.inputs[0] < 0) return false;
    if (node.op == "MatMul" || node.op == "Gemm") return pack_product(node);
    for (ValueId id : node.outputs)
      if (shape(id).size() != 4 || value(id).type.dynamic_axis >= 0) return false;
    if (node.op == "Conv") return block_conv(node);
    if (node.op == "MaxPool" || node.op == "AveragePool" || node.op == "GlobalAveragePool")
      return block_pool(node);
    if (node.op == "ReduceMean") return block_mean(node);
    if (node.op == "Concat") return block_concat(node);
    if (node.op == "Split") return block_split(node);
    if (node.op == "Resize") return block_resize(node);
    if (node.op == "Pad") return block_pad(node);
    if (kFiniteAtZero.contains(node.op) || kElementwise.contains(node.op))
      return block_elementwise(node);
    return false;
  }

  // --- Products.

  /// A bias for `channels` channels filled up to `padded`; -1 for none.
  ValueId padded_bias(const Node& node, int64_t padded) {
    if (node.inputs.size() < 3 || node.inputs[2] < 0) return -1;
    const Array& bias = *value(node.inputs[2]).constant;
    Array wide(bias.dtype(), {padded});
    for (int64_t i = 0; i < bias.size(); ++i) wide.set(i, bias.get(i));
    return constant(node.name + ".bias", std::move(wide));
  }

  Result<bool> block_conv(const Node& node) {
    const Shape &x = shape(node.inputs[0]), &w = shape(node.inputs[1]);
    const bool bias_known = node.inputs.size() < 3 || node.inputs[2] < 0 || known(node.inputs[2]);
    if (x.size() != 4 || !known(node.inputs[1]) || !bias_known) return false;
    if (!is_float(value(node.inputs[0]).type.dtype)) return false;
    const int64_t groups = node.attrs.get_int("group", 1), channels = x[1], filters = w[0];
    const bool there = has_blocks(node.inputs[0]);
    if (groups == channels && filters == channels && channels > 1) {
      if (!there && channels * 2 < block_) return false;
      return make_conv(node, "DepthwiseConvBlocked", "PackDepthwiseWeight", block_,
                       attrs_of({{"block", block_}}));
    }
    const bool whole = channels / groups % block_ == 0 && filters / groups % block_ == 0;
    if (groups > 1 && !whole) return false;
    if (!there && filters * 2 < block_) return false;
    const int64_t block_in = there || channels >= block_ ? block_ : channels;
    if (const int64_t m = winograd_tile(node, block_in); m > 0)
      return make_conv(node, "WinogradConvBlocked", "PackWinogradWeight", block_in,
                       attrs_of({{"block_in", block_in}, {"block_out", block_}, {"m", m}}));
    return make_conv(node, "ConvBlocked", "PackConvWeight", block_in,
                     attrs_of({{"block_in", block_in}, {"block_out", block_}}));
  }

  /// The Winograd tile for a convolution, or 0 where it has no such form or is faster without.
  int64_t winograd_tile(const Node& node, int64_t block_in) {
    const Shape &w = shape(node.inputs[1]), &y = shape(node.outputs[0]);
    const auto all_one = [&](const char* key) {
      const std::vector<int64_t> values = node.attrs.get_ints(key, {1, 1});
      return values == std::vector<int64_t>{1, 1};
    };
    if (!context_.winograd_tile || node.attrs.get_int("group", 1) != 1 || block_in != block_ ||
        w[2] != 3 || w[3] != 3 || !all_one("strides") || !all_one("dilations") ||
        value(node.inputs[0]).type.dtype != DType::F32)
      return 0;
    return context_.winograd_tile(
        {y[0], blocks_of(w[1]) * block_, blocks_of(w[0]) * block_, y[2], y[3]});
  }

  Result<bool> make_conv(const Node& node, const std::string& op, const std::string& pack,
                         int64_t block_in, tensor::Attrs pack_attrs) {
    const ValueId x = TW_TRY(in_blocks(node.inputs[0], block_in));
    const ValueId w = TW_TRY(append(node.name + "/" + pack, "tilewright", pack,
                                    {TW_TRY(plain(node.inputs[1]))}, pack_attrs));
    const int64_t filters = blocks_of(shape(node.inputs[1])[0]) * block_;
    std::vector<ValueId> inputs = {x, w};
    if (const ValueId bias = padded_bias(node, filters); bias >= 0) inputs.push_back(bias);
    tensor::Attrs attrs = node.attrs;
    if (pack_attrs.has("m")) attrs.values["m"] = pack_attrs.get_int("m", 0);
    define(node, 0,
           TW_TRY(append(node.name, "tilewright", op, std::move(inputs), std::move(attrs))));
    return true;
  }

  /// A x B with a known matrix B: its columns are stored in panels.
  Result<bool> pack_product(const Node& node) {
    const Value& b = value(node.inputs[1]);
    if (!b.constant || b.type.shape.size() != 2 || !is_float(b.type.dtype)) return false;
    const Shape& a = shape(node.inputs[0]);
    const bool gemm = node.op == "Gemm";
    const bool trans_b = gemm && node.attrs.get_int("transB", 0) != 0;
    if (a.empty() || a.size() > 4) return false;
    if (gemm && (node.attrs.get_int("transA", 0) != 0 || node.attrs.get_float("alpha", 1) != 1 ||
                 node.attrs.get_float("beta", 1) != 1))
      return false;
    const int64_t columns = b.type.shape[trans_b ? 0 : 1];
    if (columns < block_ / 2) return false;
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2] >= 0;
    if (has_bias && (!known(node.inputs[2]) || value(node.inputs[2]).constant->size() != columns ||
                     shape(node.inputs[2]).back() != columns))
      return false;
    const ValueId packed = TW_TRY(append(node.name + "/PackGemmWeight", "tilewright",
                                         "PackGemmWeight", {TW_TRY(plain(node.inputs[1]))},
                                         attrs_of({{"transB", trans_b}, {"block", block_}})));
    std::vector<ValueId> inputs = {TW_TRY(plain(node.inputs[0])), packed};
    if (has_bias) inputs.push_back(padded_bias(node, columns));
    const ValueId made = TW_TRY(append(node.name, "tilewright", "GemmPacked", std::move(inputs),
                                       attrs_of({{"n", columns}})));
    out_.values[static_cast<size_t>(made)].name = value(node.outputs[0]).name;
    forms(node.outputs[0]).plain = made;
    ++packed_;
    return true;
  }

  // --- What follows blocked values.

  Result<bool> block_pool(const Node& node) {
    if (!has_blocks(node.inputs[0]) || node.outputs.size() != 1) return false;
    const ValueId x = TW_TRY(in_blocks(node.inputs[0], block_));
    define(node, 0, TW_TRY(append(node.name, "tilewright", node.op + "Blocked", {x}, node.attrs)));
    return true;
  }

  /// The mean over both spatial axes is a global pool.
  Result<bool> block_mean(const Node& node) {
    auto axes = known_ints(in_, node, 1);
    if (!has_blocks(node.inputs[0]) || !axes || node.attrs.get_int("keepdims", 1) != 1)
      return false;
    for (int64_t& axis : *axes) axis = axis < 0 ? axis + 4 : axis;
    std::sort(axes->begin(), axes->end());
    if (*axes != std::vector<int64_t>{2, 3}) return false;
    const ValueId x = TW_TRY(in_blocks(node.inputs[0], block_));
    define(node, 0, TW_TRY(append(node.name, "tilewright", "GlobalAveragePoolBlocked", {x})));
    return true;
  }

  Result<bool> block_concat(const Node& node) {
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
    define(node, 0, TW_TRY(append(node.name, "", "Concat", inputs, attrs_of({{"axis", axis}}))));
    return true;
  }

  Result<bool> block_split(const Node& node) {
    int64_t axis = node.attrs.get_int("axis", 0);
    if (axis < 0) axis += 4;
    if (axis != 1 || !has_blocks(node.inputs[0])) return false;
    std::vector<int64_t> sizes;
    for (ValueId id : node.outputs) {
      if (shape(id)[1] % block_ != 0) return false;
      sizes.push_back(shape(id)[1] / block_);
    }
    Node mine;
    mine.name = node.name;
    mine.op = "Split";
    mine.attrs = attrs_of({{"axis", 1}});
    mine.inputs = {TW_TRY(in_blocks(node.inputs[0], block_)), ints(node.name + ".parts", sizes)};
    const auto made =
        TW_TRY(append_node(out_, names_, std::move(mine), static_cast<int>(sizes.size())));
    for (size_t i = 0; i < made.size(); ++i) define(node, i, made[i]);
    return true;
  }

  /// Spatial resizing by known scales or sizes.
  Result<bool> block_resize(const Node& node) {
    const std::string mode = node.attrs.get_string("mode", "nearest");
    if (!has_blocks(node.inputs[0]) || (mode != "nearest" && mode != "linear")) return false;
    if (node.attrs.has("axes") || node.attrs.has("keep_aspect_ratio_policy") ||
        node.attrs.get_string("coordinate_transformation_mode", "half_pixel") ==
            "tf_crop_and_resize")
      return false;
    const Shape& from = shape(node.inputs[0]);
    const Shape& to = shape(node.outputs[0]);
    if (from[0] != to[0] || from[1] != to[1]) return false;
    const bool sized = node.inputs.size() > 3 && node.inputs[3] >= 0;
    const ValueId given = node.inputs.size() > 2 ? node.inputs[2] : -1;
    if (!sized && (!known(given) || value(given).constant->size() != 4)) return false;
    std::vector<ValueId> inputs = {TW_TRY(in_blocks(node.inputs[0], block_)), -1};
    if (sized) {
      inputs.push_back(-1);
      inputs.push_back(
          ints(node.name + ".sizes", {from[0], blocks_of(from[1]), to[2], to[3], block_}));
    } else {
      std::vector<double> scales = value(given).constant->to_doubles();
      scales.push_back(1);
      inputs.push_back(constant(node.name + ".scales", Array::of(DType::F32, scales)));
    }
    define(node, 0, TW_TRY(append(node.name, "", "Resize", std::move(inputs), node.attrs)));
    return true;
  }

  Result<bool> block_pad(const Node& node) {
    const auto pads = known_ints(in_, node, 1);
    const bool axes = node.inputs.size() > 3 && node.inputs[3] >= 0;
    if (!has_blocks(node.inputs[0]) || !pads || pads->size() != 8 || axes) return false;
    if ((*pads)[0] != 0 || (*pads)[1] != 0 || (*pads)[4] != 0 || (*pads)[5] != 0) return false;
    const std::vector<int64_t> wide = {0, 0, (*pads)[2], (*pads)[3], 0,
                                       0, 0, (*pads)[6], (*pads)[7], 0};
    std::vector<ValueId> inputs = {TW_TRY(in_blocks(node.inputs[0], block_)),
                                   ints(node.name + ".pads", wide)};
    if (node.inputs.size() > 2 && node.inputs[2] >= 0) {
      if (!known(node.inputs[2])) return false;
      inputs.push_back(TW_TRY(plain(node.inputs[2])));
    }
    define(node, 0, TW_TRY(append(node.name, "", "Pad", std::move(inputs), node.attrs)));
    return true;
  }

  Result<bool> block_elementwise(const Node& node) {
    if (node.outputs.size() != 1) return false;
    const Shape& out = shape(node.outputs[0]);
    const bool finite = kFiniteAtZero.contains(node.op) || divides_by_number(node);
    if (out[1] % block_ != 0 && !finite) return false;
    int64_t blocked_elements = 0, plain_elements = 0;
    for (ValueId id : node.inputs) {
      if (id < 0 || known(id)) continue;
      const Shape& s = shape(id);
      if (s.size() != 4 || (s[1] != out[1] && s[1] != 1)) return false;
      (has_blocks(id) ? blocked_elements : plain_elements) += element_count(s);
    }
    if (blocked_elements == 0 || blocked_elements < plain_elements) return false;
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(TW_TRY(operand(id, out)));
    define(node, 0, TW_TRY(append(node.name, "", node.op, std::move(inputs), node.attrs)));
    return true;
  }

  /// x / c with one known c other than 0.
  bool divides_by_number(const Node& node) const {
    if (node.op != "Div" || node.inputs.size() != 2 || !known(node.inputs[1])) return false;
    const Array& divisor = *value(node.inputs[1]).constant;
    return divisor.size() == 1 && divisor.get(0) != 0;
  }

  /// An operand that broadcasts against the blocked form of a value of shape `out`.
  Result<ValueId> operand(ValueId id, const Shape& out) {
    if (id < 0) return id;
    const Shape& s = shape(id);
    if (element_count(s) == 1) {
      // One element broadcasts anywhere, but only if it does not add axes of its own.
      if (s.size() < 2) return plain(id);
      return known(id) ? constant(value(id).name, value(id).constant->reshaped({1}))
                       : reshape(value(id).name + "/Reshape", TW_TRY(plain(id)), {1});
    }
    if (s.size() == 4 && s[1] == out[1] && s[1] > 1) return in_blocks(id, block_);
    Shape wide(4 - s.size(), 1);
    wide.insert(wide.end(), s.begin(), s.end());
    if (wide[1] == 1 && out[1] > 1) {
      wide.push_back(1);
      return known(id) ? constant(value(id).name, value(id).constant->reshaped(wide))
                       : reshape(value(id).name + "/Reshape", TW_TRY(plain(id)), wide);
    }
    // A constant with a channel axis: one ToBlocked, computed at compile time.
    const ValueId full = constant(value(id).name, value(id).constant->reshaped(wide));
    return append(value(id).name + "/ToBlocked", "tilewright", "ToBlocked", {full},
                  attrs_of({{"block", block_}}));
  }

  const Graph& in_;
  PassContext& context_;
  const int64_t block_;
  Graph out_;
  Names names_;
  std::vector<Forms> forms_;
  int blocked_nodes_ = 0, conversions_ = 0, packed_ = 0;
};

}  // namespace

Result<Graph> block_layout(const Graph& graph, PassContext& context) {
  return Blocker(graph, context).run();
}

}  // namespace tilewright::graph
