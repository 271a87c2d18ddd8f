#include "tilewright/codesign/vta_layer.h"

#include <fmt/format.h>

#include "tilewright/base/integers.h"
#include "tilewright/tensor/op.h"

namespace tilewright::codesign {
namespace {

using cost::SpatialDim;
using cost::SpatialLayer;
using cost::SpatialTerm;
using rules::TileAxis;
using vta::Mem;

/// Steps of VTA's model that one layer may take (about 50 ns each): a search maps thousands.
constexpr int64_t kMappingEffort = 1'000'000;
constexpr int64_t kShift = 8;  // of sums: any that takes one step

/// One axis of an image and the taps over it.
struct WindowAxis {
  int64_t extent = 1, output = 1, taps = 1, stride = 1, dilation = 1, begin = 0;
  /// Zeros behind the image that the last window reads.
  int64_t end() const {
    return std::max<int64_t>(0, (output - 1) * stride + (taps - 1) * dilation + 1 - extent - begin);
  }
};

/// A layer as a convolution over two axes.
struct Convolution {
  int64_t images = 1, inputs = 1, outputs = 1;
  std::vector<WindowAxis> axes;  ///< two, rows first
};

class ConvolutionReader {
 public:
  explicit ConvolutionReader(const SpatialLayer& layer) : layer_(layer) {}

  Result<Convolution> read() {
    for (const SpatialDim& dim : layer_.tensors[0].dims)
      if (!read_input(dim)) return refused("its input is no image");
    for (const SpatialDim& dim : layer_.tensors[1].dims)
      if (dim.terms.size() != 1) return refused("its weights are no array of taps");
    for (size_t i = 0; i < layer_.loops.size(); ++i) {
      const int loop = static_cast<int>(i);
      const bool first = layer_.moves(0, loop), second = layer_.moves(1, loop);
      if (layer_.loops[i].reduces && !(first && second))
        return refused("one factor alone varies along a sum");
      if (layer_.loops[i].reduces) continue;
      if (first == second) return refused("both factors vary along an axis of the result");
      if (second) read_.outputs *= layer_.loops[i].extent;
    }
    if (read_.axes.size() > 2) return refused("it has more than two axes with taps");
    while (read_.axes.size() < 2) read_.axes.insert(read_.axes.begin(), WindowAxis());
    return read_;
  }

 private:
  const cost::SpatialLoop& loop(const SpatialTerm& term) const {
    return layer_.loops[static_cast<size_t>(term.loop)];
  }
  tl::unexpected<Error> refused(const char* why) const {
    return fail(ErrorKind::Unsupported, fmt::format("`{}` has no form on VTA", layer_.name), why);
  }

  /// An axis of images or channels, or one that a window moves along.
  bool read_input(const SpatialDim& dim) {
    if (dim.terms.size() == 1) {
      (loop(dim.terms[0]).reduces ? read_.inputs : read_.images) *= loop(dim.terms[0]).extent;
      return dim.terms[0].stride == 1 && dim.begin == 0;
    }
    if (dim.terms.size() != 2) return false;
    const bool tap_first = loop(dim.terms[0]).reduces;
    const SpatialTerm &along = dim.terms[tap_first ? 1 : 0], &tap = dim.terms[tap_first ? 0 : 1];
    if (loop(along).reduces || !loop(tap).reduces) return false;
    read_.axes.push_back(
        {dim.extent, loop(along).extent, loop(tap).extent, along.stride, tap.stride, dim.begin});
    return true;
  }

  const SpatialLayer& layer_;
  Convolution read_;
};

/// In tiles.
int64_t images(const Convolution& conv, const vta::Config& config) {
  return ceil_div(conv.images, int64_t{config.batch()});
}
int64_t inputs(const Convolution& conv, const vta::Config& config) {
  return ceil_div(conv.inputs, int64_t{config.block_in()});
}
int64_t outputs(const Convolution& conv, const vta::Config& config) {
  return ceil_div(conv.outputs, int64_t{config.block_out()});
}

/// requires: operands that the operator takes.
Result<tensor::Tensor> apply(const char* op, tensor::Attrs attrs,
                             const std::vector<tensor::Tensor>& inputs) {
  tensor::OpCall call;
  call.domain = "tilewright", call.op = op, call.attrs = std::move(attrs);
  for (const tensor::Tensor& input : inputs)
    call.inputs.push_back({true, input.dtype(), input.shape(), {}});
  TW_TRY(tensor::infer(call));
  return tensor::find_op(call.domain, op)->define(call, inputs)[0];
}

double as_double(int64_t value) { return static_cast<double>(value); }

/// Elements of the result.
int64_t results(const rules::VtaLayer& layer) {
  return layer.extent[TileAxis::N] * layer.extent[TileAxis::O] * layer.extent[TileAxis::H] *
         layer.extent[TileAxis::W];
}

}  // namespace

Result<rules::VtaLayer> vta_layer(const SpatialLayer& layer, const vta::Config& config) {
  const Convolution conv = TW_TRY(ConvolutionReader(layer).read());
  const WindowAxis &y = conv.axes[0], &x = conv.axes[1];
  rules::VtaLayer tiled;
  tiled.name = "layer";
  tiled.extent = {{images(conv, config), outputs(conv, config), y.output, x.output,
                   inputs(conv, config), y.taps, x.taps}};
  tiled.stride_h = y.stride, tiled.stride_w = x.stride;
  tiled.dilation_h = y.dilation, tiled.dilation_w = x.dilation;
  tiled.in_h = y.extent, tiled.in_w = x.extent;
  tiled.pad_top = y.begin, tiled.pad_left = x.begin;
  tiled.padded = y.begin + x.begin + y.end() + x.end() > 0;
  if (y.taps == 1 && y.stride > 1 && !tiled.padded) {
    tiled.row_step = y.stride;  // a copy steps over the rows that no window reads
    tiled.in_h = y.output;
    tiled.stride_h = 1;
    tiled.padded = true;
  }
  tiled.vector_by_block = outputs(conv, config) > 1;
  tiled.vectors = tiled.reg_ops = 1;  // the bias
  tiled.imm_ops = 3;                  // shift, and both ends of the clip
  return tiled;
}

Result<Func> vta_func(const SpatialLayer& layer, const vta::Config& config) {
  const Convolution conv = TW_TRY(ConvolutionReader(layer).read());
  const WindowAxis &y = conv.axes[0], &x = conv.axes[1];
  const int64_t in = inputs(conv, config), out = outputs(conv, config);
  const auto input = tensor::placeholder(
      "x", DType::I8,
      {images(conv, config), in, y.extent, x.extent, config.batch(), config.block_in()});
  const auto weights = tensor::placeholder(
      "w", DType::I8, {out, in, y.taps, x.taps, config.block_out(), config.block_in()},
      ParamMode::Const);
  const auto bias = tensor::placeholder(
      "bias", DType::I32, {1, out, 1, 1, config.batch(), config.block_out()}, ParamMode::Const);
  tensor::Attrs window, end;
  window.values["strides"] = std::vector<int64_t>{y.stride, x.stride};
  window.values["pads"] = std::vector<int64_t>{y.begin, x.begin, y.end(), x.end()};
  window.values["dilations"] = std::vector<int64_t>{y.dilation, x.dilation};
  end.values["shift"] = kShift;
  const auto sum = TW_TRY(apply("TileConv", std::move(window), {input, weights}));
  const auto result = TW_TRY(apply("Requantize", std::move(end), {sum, bias}));
  return tensor::make_func("layer", {input, weights, bias}, {result}, MathMode::Fast, {"y"});
}

Result<VtaRun> vta_run(const SpatialLayer& layer, const vta::Config& config) {
  VtaRun run;
  run.layer = TW_TRY(vta_layer(layer, config));
  rules::MappingOptions options;
  options.budget = kMappingEffort;
  run.mapping = TW_TRY(rules::best_mapping(run.layer, config, options));
  run.cost = rules::predict(run.layer, run.mapping, config);
  return run;
}

VtaBytes vta_bytes(const VtaRun& run, const vta::Config& config) {
  return {as_double(run.cost.read_bytes),
          as_double(results(run.layer) * config.element_bytes(Mem::Out))};
}

EnergyLevels vta_energy(const VtaRun& run, const vta::Config& config, const Energies& e) {
  const rules::VtaLayer& layer = run.layer;
  const double inp = as_double(config.element_bytes(Mem::Inp)),
               wgt = as_double(config.element_bytes(Mem::Wgt)),
               uop = as_double(config.element_bytes(Mem::Uop)),
               acc = as_double(config.element_bytes(Mem::Acc)),
               out = as_double(config.element_bytes(Mem::Out));
  const double units = as_double(int64_t{config.batch()} * config.block_in() * config.block_out());
  const double stored = as_double(results(layer));
  const double sums = stored * as_double(layer.extent[TileAxis::C] * layer.extent[TileAxis::R] *
                                         layer.extent[TileAxis::S]);
  const double alu = stored * as_double(layer.imm_ops + layer.reg_ops);
  const double resets = config.extensions.fused_reset ? 0 : stored;
  const VtaBytes bytes = vta_bytes(run, config);
  const double read = e.spad_bytes[0] * wgt + e.spad_bytes[1] * inp + e.spad_bytes[2] * uop;
  // What is loaded is written to a memory once; nearly all of it to those of weights and inputs.
  const double loaded = bytes.read * (e.spad_bytes[0] + e.spad_bytes[1]) / 2;
  const double moved = bytes.read + bytes.written;
  return {
      sums * units * e.mac,
      sums * read + loaded,
      e.local_byte * ((sums + alu) * (2 * acc + out) + resets * (acc + out) + stored * out),
      e.dma_byte * moved,
      e.command * as_double(run.cost.insns),
      e.dram_byte * moved,
  };
}

}  // namespace tilewright::codesign
