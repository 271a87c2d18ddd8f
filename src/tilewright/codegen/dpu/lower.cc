// From layers to nodes on views of feature maps.
//
// `locate` has said which map each value is in, and in which of its lanes; a layer is one node, or
// a few: the phases of a transposed convolution, the copies that a concat needs.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/codegen/dpu/located.h"

namespace tilewright::dpu {
namespace {

class Lowering {
 public:
  Lowering(const Network& network, const Config& config, const LowerOptions& options)
      : network_(network),
        config_(config),
        options_(options),
        places_(locate(network, config, result_)) {}

  Result<Lowered> run() {
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      layer_ = &network_.layers[i];
      index_ = i;
      TW_TRY_STATUS(std::visit([&](const auto& op) { return add(op); }, layer_->op));
    }
    add_outputs();
    if (options_.fetch_inputs) fetch_inputs(result_);
    for (const Located& located : places_.values) result_.root_of.push_back(located.view.root);
    return std::move(result_);
  }

 private:
  const Value& value(ValueId id) const { return network_.values[static_cast<size_t>(id)]; }
  const Located& located(ValueId id) const { return places_.values[static_cast<size_t>(id)]; }
  bool is_input(ValueId id) const {
    return std::find(network_.inputs.begin(), network_.inputs.end(), id) != network_.inputs.end();
  }

  View new_root(const std::string& name, int64_t height, int64_t width, int64_t groups) {
    return add_root(result_, name, height, width, groups);
  }

  Node node(NodeKind kind) const {
    Node n;
    n.kind = kind;
    n.layer = layer_ == nullptr ? "outputs" : layer_->name;
    return n;
  }
  View output() const { return located(layer_->output).view; }
  int out_fix_point() const { return value(layer_->output).fix_point; }

  void add_copy(const View& from, const View& to) {
    Node n = node(NodeKind::Pool);
    n.pool.type = kCopy;
    n.in = {from};
    n.out = to;
    result_.nodes.push_back(std::move(n));
  }

  void add_conv(const ConvLayer& conv, const View& from, const std::vector<int>& lanes,
                int64_t in_channels_lanes, const View& to, int64_t out_channels, int fix_point,
                bool formatted) {
    Node n = node(NodeKind::Conv);
    n.window = conv.window;
    n.conv.kernel_h = conv.window.kernel_h;
    n.conv.kernel_w = conv.window.kernel_w;
    n.conv.stride_h = conv.window.stride_h;
    n.conv.stride_w = conv.window.stride_w;
    n.conv.dilation_h = conv.window.dilation_h;
    n.conv.dilation_w = conv.window.dilation_w;
    n.conv.shift_cut = conv.shift;
    n.conv.act_type = conv.act;
    n.conv.fp_out = conv.act == kRelu6 ? fix_point : 0;
    n.formatted = formatted;
    n.in = {from};
    n.out = to;
    pack_weights(conv, lanes, in_channels_lanes, out_channels, n);
    result_.nodes.push_back(std::move(n));
  }

  /// A value with channel c in lane c: by a convolution with ones. `alone`: 0 in other lanes.
  Located gathered(ValueId id, bool alone = false) {
    const Located& from = located(id);
    const Value& v = value(id);
    if (from.lanes == dense_lanes(v.channels) && !(alone && from.shared)) return from;
    const ConvLayer ones = copying_conv(v.channels);
    Located to;
    to.lanes = dense_lanes(v.channels);
    to.groups = groups(v.channels);
    to.view = new_root(v.name + ".dense", v.height, v.width, to.groups);
    add_conv(ones, from.view, from.lanes, from.groups, to.view, v.channels, 0, false);
    return to;
  }

  Status add(const ConvLayer& op) {
    const ValueId id = layer_->inputs[0];
    const Located& from = located(id);
    const int64_t out_channels = value(layer_->output).channels;
    if (places_.formatted.count(id) == 0) {
      if (options_.reorder.contains(index_) && add_reordered(op, id)) return {};
      add_conv(op, from.view, from.lanes, from.groups, output(), out_channels, out_fix_point(),
               false);
      return {};
    }
    const ConvLayer conv = with_formatted_input(op, value(id).channels);
    add_conv(conv, from.view, from.lanes, from.groups, output(), out_channels, out_fix_point(),
             true);
    return {};
  }

  /// A map for what strided convolutions read instead of `id`; the second says whether it is new.
  std::pair<View, bool> reordered(ValueId id, const std::string& kind, int64_t height,
                                  int64_t width, int64_t group_count) {
    const auto found = reordered_.find({id, kind});
    if (found != reordered_.end()) return {found->second, false};
    const View view = new_root(value(id).name + "." + kind, height, width, group_count);
    reordered_[{id, kind}] = view;
    return {view, true};
  }

  /// With a row stride of 1. False: not possible.
  bool add_reordered(const ConvLayer& op, ValueId id) {
    const Located& from = located(id);
    const Window& w = op.window;
    const Value& y = value(layer_->output);
    if (from.groups * w.stride_h > 511) return false;
    result_.reordered.push_back(index_);
    if (w.kernel_h == 1) {
      const auto [to, fresh] = reordered(id, fmt::format("every {},{}", w.stride_h, w.stride_w),
                                         y.height, y.width, from.groups);
      if (fresh) {
        Node n = node(NodeKind::Pool);
        n.pool.type = kCopy;
        n.pool.stride_h = w.stride_h;
        n.pool.stride_w = w.stride_w;
        n.in = {from.view};
        n.out = to;
        result_.nodes.push_back(std::move(n));
      }
      ConvLayer conv = op;
      conv.window.stride_h = conv.window.stride_w = 1;
      add_conv(conv, to, from.lanes, from.groups, output(), y.channels, y.fix_point, false);
      result_.nodes.back().note = "strided pixels copied first";
      return true;
    }
    const int64_t s = w.stride_h;
    const auto [to, fresh] =
        reordered(id, fmt::format("folded {}", s), (value(id).height + s - 1) / s, value(id).width,
                  from.groups * s);
    if (fresh) add_folded(id, to, s);
    std::vector<int> lanes = from.lanes;
    const ConvLayer conv = fold_rows(op, from.groups, lanes);
    add_conv(conv, to, lanes, from.groups * s, output(), y.channels, y.fix_point, false);
    result_.nodes.back().note = fmt::format("rows folded {} to one", s);
    return true;
  }

  /// Rows of which the last ones may be missing: those are zeros.
  void add_folded(ValueId id, const View& to, int64_t s) {
    const View& from = located(id).view;
    const bool whole = from.height % s == 0;
    if (options_.in_ddr.count(id) != 0 && whole && !places_.slices.contains(id)) {
      Root& root = result_.roots[static_cast<size_t>(to.root)];
      root.rows_of = from.root;
      root.rows_group = from.group;
      root.folded = s;
      return;
    }
    for (int64_t q = 0; q < s; ++q) {
      View part = from, into = to;
      part.row += q;
      part.height -= q;
      into.group += q * from.groups;
      into.groups = from.groups;
      into.height = (from.height - q + s - 1) / s;
      add_copy(part, into);
      result_.nodes.back().pool.stride_h = static_cast<int>(s);
      if (into.height == to.height) continue;
      Node zeros = node(NodeKind::Zero);
      zeros.out = into;
      zeros.out.row += into.height;
      zeros.out.height = to.height - into.height;
      result_.nodes.push_back(std::move(zeros));
    }
  }

  Status add(const DeconvLayer& op) {
    const Located& from = located(layer_->inputs[0]);
    const Value &x = value(layer_->inputs[0]), &y = value(layer_->output);
    if (!config_.compiler.phase_deconvolution && add_upsampled(op)) return {};
    Result<std::vector<Phase>> split = phases(op, x, y);
    if (!split) return tl::unexpected<Error>(std::move(split.error()).at(layer_->name));
    for (const Phase& phase : *split) {
      View in = from.view, out = output();
      in.row += phase.crop_top;
      in.col += phase.crop_left;
      in.height -= phase.crop_top;
      in.width -= phase.crop_left;
      out.row += phase.row;
      out.col += phase.col;
      out.row_step = op.window.stride_h;
      out.col_step = op.window.stride_w;
      out.height = phase.height;
      out.width = phase.width;
      add_conv(phase.conv, in, from.lanes, from.groups, out, y.channels, y.fix_point, false);
    }
    return {};
  }

  /// As a convolution of stride 1 on the input with zeros in between. False: its pads are too
  /// large.
  bool add_upsampled(const DeconvLayer& op) {
    const Located& from = located(layer_->inputs[0]);
    const Value& y = value(layer_->output);
    const Window& w = op.window;
    const Upsampled conv = upsampled(op, value(layer_->inputs[0]));
    if (conv.conv.window.pad_top > 15 || conv.conv.window.pad_left > 15) return false;
    View zeros = new_root(y.name + ".zeros", conv.height, conv.width, from.groups);
    for (const View& part : zeros_between(op, value(layer_->inputs[0]), zeros)) {
      Node fill = node(NodeKind::Zero);
      fill.out = part;
      result_.nodes.push_back(std::move(fill));
    }
    View to = zeros;
    to.row_step = w.stride_h;
    to.col_step = w.stride_w;
    to.height = from.view.height;
    to.width = from.view.width;
    add_copy(from.view, to);
    zeros.row += conv.crop_top;
    zeros.col += conv.crop_left;
    zeros.height -= conv.crop_top;
    zeros.width -= conv.crop_left;
    add_conv(conv.conv, zeros, from.lanes, from.groups, output(), y.channels, y.fix_point, false);
    return true;
  }

  Status add(const PoolLayer& op) {
    const Located& from = located(layer_->inputs[0]);
    if (const auto dense = dense_factor(network_, config_, *layer_)) {
      const int64_t channels = value(layer_->output).channels;
      const ConvLayer conv = averaging_conv(op, channels, dense->first, dense->second);
      add_conv(conv, from.view, from.lanes, from.groups, output(), channels, 0, false);
      return {};
    }
    for (const PoolPart& part : parts_of(op, from.view, output())) add_pool(op, part);
    return {};
  }

  void add_pool(const PoolLayer& op, const PoolPart& part) {
    Node n = node(NodeKind::Pool);
    n.window = part.window;
    n.pool.type = op.average ? kAveragePool : kMaxPool;
    n.pool.kernel_h = op.window.kernel_h;
    n.pool.kernel_w = op.window.kernel_w;
    n.pool.stride_h = op.window.stride_h;
    n.pool.stride_w = op.window.stride_w;
    n.pool.factor = op.average ? part.mean.factor : 0;
    n.pool.shift_avg = op.average ? part.mean.shift : 0;
    // Beside convolutions, in parts: each finds one that takes as long.
    const bool parts = config_.compiler.parallel_branches && config_.compiler.layer_barrier &&
                       op.window.stride_h == 1;
    const int64_t groups = part.in.groups;
    const int64_t step = parts ? (groups + 3) / 4 : groups;
    for (int64_t g = 0; g < groups; g += step) {
      View in = part.in, out = part.out;
      in.group += g;
      out.group += g;
      in.groups = out.groups = std::min(step, groups - g);
      n.in = {in};
      n.out = out;
      result_.nodes.push_back(n);
    }
  }

  Status add(const EltwiseLayer& op) {
    std::vector<View> in;
    const bool same = layer_->inputs.size() == 1 ||
                      located(layer_->inputs[0]).lanes == located(layer_->inputs[1]).lanes;
    for (const ValueId id : layer_->inputs)
      in.push_back(same ? located(id).view : gathered(id).view);
    Node n = node(NodeKind::Elew);
    n.in = std::move(in);
    n.out = output();
    n.elew.num = static_cast<int>(layer_->inputs.size());
    n.elew.act_type = op.act;
    n.elew.fp_out = op.act == kRelu6 ? out_fix_point() : 0;
    n.elew.shift_read_a = op.shift_read[0];
    n.elew.shift_read_b = n.elew.num == 2 ? op.shift_read[1] : 0;
    n.elew.shift_write = op.shift_write;
    result_.nodes.push_back(std::move(n));
    return {};
  }

  Status add(const UpsampleLayer& op) {
    Node n = node(NodeKind::Pool);
    n.pool.type = kUpsample;
    n.pool.stride_h = op.factor_h;
    n.pool.stride_w = op.factor_w;
    n.in = {located(layer_->inputs[0]).view};
    n.out = output();
    result_.nodes.push_back(std::move(n));
    return {};
  }

  /// A part of another map.
  static Status add(const SliceLayer&) { return {}; }

  Status add(const ConcatLayer&) {
    View to = output();
    for (size_t k = 0; k < layer_->inputs.size(); ++k) {
      const Located& part = located(layer_->inputs[k]);
      to.groups = part.groups;
      if (places_.placed.count({index_, k}) == 0) add_copy(part.view, to);
      to.group += part.groups;
    }
    return {};
  }

  void add_outputs() {
    layer_ = nullptr;
    for (const ValueId id : network_.outputs) {
      const Value& v = value(id);
      View view = gathered(id, true).view;
      // Only what a node makes can be stored; rows of a slice are not whole rows of it.
      const bool made = view.root != located(id).view.root;
      if (!made && (is_input(id) || places_.slices.contains(id))) {
        const View to = new_root(v.name + ".copy", v.height, v.width, view.groups);
        add_copy(view, to);
        view = to;
      }
      const DdrTensor tensor{v.name,  Reg::Output, result_.output_region, v.channels, v.height,
                             v.width, v.fix_point};
      result_.stores.push_back({view, static_cast<int64_t>(tensor.addr)});
      result_.outputs.push_back(tensor);
      result_.output_region += ddr_room(config_, bytes_of(config_, tensor));
    }
  }

  const Network& network_;
  const Config& config_;
  Lowered result_;
  const LowerOptions& options_;
  const Locations places_;
  std::map<std::pair<ValueId, std::string>, View> reordered_;
  const Layer* layer_ = nullptr;
  size_t index_ = 0;
};

}  // namespace

uint64_t ddr_room(const Config& config, uint64_t bytes) {
  const uint64_t align = 256 * static_cast<uint64_t>(config.pe);
  return (bytes + align - 1) / align * align;
}

Result<Lowered> lower(const Network& network, const Config& config, const LowerOptions& options) {
  return Lowering(network, config, options).run();
}

}  // namespace tilewright::dpu
