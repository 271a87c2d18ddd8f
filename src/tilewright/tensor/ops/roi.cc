// RoiAlign: regions of an image pooled to one size. source: ONNX operator definition, RoiAlign 22;
// what the text leaves open is as in ONNX Runtime.
//
// A region is cut into output_height x output_width bins, each sampled at the points of a grid
// between the pixels. Where a sample lies depends, along each axis, only on the region, the bin and
// its number in the grid, so it is computed once per axis and not for every channel.
#include "tilewright/base/check.h"
#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

constexpr int64_t kMostSamples = 4096;  ///< of a bin, along an axis

struct RoiMode {
  bool max = false, half_pixel = true;
  int64_t bins[2] = {1, 1};  ///< along rows' axis, columns' axis
  int64_t ratio = 0;         ///< samples of a bin along an axis; 0: about one for each pixel
  double scale = 1;
};

Result<RoiMode> roi_mode(const OpCall& call) {
  RoiMode m;
  const std::string mode = call.attrs.get_string("mode", "avg");
  const std::string coordinates =
      call.attrs.get_string("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max")
    return invalid(call, fmt::format("mode is '{}'", mode), "expected avg or max");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return invalid(call, fmt::format("coordinate_transformation_mode is '{}'", coordinates),
                   "expected half_pixel or output_half_pixel");
  m.max = mode == "max";
  m.half_pixel = coordinates == "half_pixel";
  const char* sizes[] = {"output_height", "output_width"};
  for (size_t axis = 0; axis < 2; ++axis) {
    m.bins[axis] = call.attrs.get_int(sizes[axis], 1);
    if (m.bins[axis] < 1)
      return invalid(call, fmt::format("{} is {}", sizes[axis], m.bins[axis]), "at least 1");
  }
  m.ratio = call.attrs.get_int("sampling_ratio", 0);
  if (m.ratio < 0) return invalid(call, fmt::format("sampling_ratio is {}", m.ratio), "at least 0");
  if (m.ratio > kMostSamples)
    return unsupported(call, fmt::format("sampling_ratio is {}", m.ratio),
                       fmt::format("at most {}", kMostSamples));
  m.scale = call.attrs.get_float("spatial_scale", 1);
  if (!(m.scale > 0)) return invalid(call, fmt::format("spatial_scale is {}", m.scale), "above 0");
  return m;
}

Inferred infer_roi_align(const OpCall& call) {
  const RoiMode m = TW_TRY(roi_mode(call));
  TW_TRY_STATUS(require_float(call));
  TW_TRY_STATUS(require_rank(call, 0, 4));
  TW_TRY_STATUS(require_rank(call, 1, 2));
  TW_TRY_STATUS(require_int(call, 2));
  const Shape& x = call.inputs[0].shape;
  const int64_t regions = call.inputs[1].shape[0];
  if (call.inputs[1].dtype != call.inputs[0].dtype)
    return invalid(call, fmt::format("the regions are of type {}", name(call.inputs[1].dtype)),
                   fmt::format("the image is of type {}", name(call.inputs[0].dtype)));
  TW_TRY_STATUS(require_shape(call, 1, {regions, 4}));
  TW_TRY_STATUS(require_shape(call, 2, {regions}));
  if (x[0] == 0 || x[2] == 0 || x[3] == 0)
    return invalid(call, "the input is empty", "its shape is " + to_string(x));
  const bool known = call.inputs[2].value.has_value();
  for (const int64_t image : known ? int_values(call, 2) : std::vector<int64_t>())
    if (image < 0 || image >= x[0])
      return invalid(call, fmt::format("a region lies in image {}", image),
                     fmt::format("there are {}, counted from 0", x[0]));
  return one_output(call, call.inputs[0].dtype, {regions, x[1], m.bins[0], m.bins[1]});
}

/// Regions seen along one axis, as numbers of the type that positions are computed in.
class RoiAxis {
 public:
  /// requires: `axis` is 0 for the rows' axis, 1 for the columns'.
  RoiAxis(const OpCall& call, const RoiMode& m, const Tensor& rois, size_t axis, int64_t pixels,
          DType acc)
      : name_(call.op + (axis == 0 ? ".y" : ".x")),
        bins_(m.bins[axis]),
        pixels_(pixels),
        ratio_(m.ratio),
        acc_(acc) {
    const std::vector<Dim> regions{{"r", rois.dim(0)}};
    auto corner = [&](const Expr& r, size_t end) {
      const Expr at = cast(acc, rois({r, int_imm(static_cast<int64_t>(end * 2 + 1 - axis))}));
      const Expr scaled = m.scale == 1 ? at : at * num(m.scale);
      return m.half_pixel ? scaled - num(0.5) : scaled;
    };
    start_ =
        compute(name_ + ".start", regions, [&](const Indices& at) { return corner(at[0], 0); });
    bin_ = compute(name_ + ".bin", regions, [&](const Indices& at) {
      const Expr extent = corner(at[0], 1) - corner(at[0], 0);
      // Only pixels that are points have regions without extent.
      return (m.half_pixel ? extent : max(extent, num(1))) / num(static_cast<double>(bins_));
    });
  }

  int64_t pixels() const { return pixels_; }
  const std::string& name() const { return name_; }
  std::vector<Dim> space() const { return {{"r", start_.dim(0)}, {"p", bins_}}; }

  /// Samples along this axis of each bin of region `r`: a whole number, none if below 1.
  Expr grid(const Expr& r) const {
    return ratio_ > 0 ? num(static_cast<double>(ratio_)) : math(MathFn::Ceil, {bin_({r})});
  }
  /// Where sample `i` of bin `p` lies. The order of operations is ONNX Runtime's.
  Expr position(const Expr& r, const Expr& p, const Expr& i) const {
    return bin_start(r, p) + (cast(acc_, i) + num(0.5)) * bin_({r}) / grid(r);
  }
  /// The first sample of a bin that lies at `place` or behind it, or one or two before: the
  /// roundings of this formula and of `position` differ. At most the bin's last sample, at least 0.
  Expr sample_before(const Expr& r, const Expr& p, const Expr& place, int64_t margin) const {
    const Expr exact = (place - bin_start(r, p)) * grid(r) / bin_({r}) - num(0.5);
    const Expr first = math(MathFn::Ceil, {exact}) - num(static_cast<double>(margin));
    return cast(DType::I64, max(min(first, grid(r) - num(1)), num(0)));
  }
  /// Samples further than a pixel from the image count as 0.
  Expr counts(const Expr& position) const {
    return logical_and(position >= num(-1), position <= num(static_cast<double>(pixels_)));
  }
  /// The position, moved to the first or last pixel if it lies beyond.
  Expr clamped(const Expr& position) const {
    return min(max(position, num(0)), num(static_cast<double>(pixels_ - 1)));
  }
  Expr num(double value) const { return const_of(acc_, value); }

 private:
  Expr bin_start(const Expr& r, const Expr& p) const {
    return start_({r}) + cast(acc_, p) * bin_({r});
  }

  std::string name_;
  int64_t bins_, pixels_, ratio_;
  DType acc_;
  Tensor start_, bin_;  ///< [region]: its begin, the extent of its bins
};

/// The samples of each bin along an axis: [region, bin, sample].
struct RoiSamples {
  Tensor place;     ///< the pixel before the sample; -1 where the sample counts as 0
  Tensor fraction;  ///< how far the sample lies behind it
  int64_t count = 0;

  Expr pixel(const Indices& at, const Expr& tap, int64_t pixels) const {
    return min(place(at) + tap, int_imm(pixels - 1));
  }
  Expr weight(const Indices& at, const Expr& tap) const {
    const Expr f = fraction(at);
    return select(eq(tap, int_imm(0)), const_of(f.dtype(), 1) - f, f);
  }
};

/// All samples, or, if the region says how many there are, enough for a maximum: those over the
/// image, and one outside on each side where there is one.
RoiSamples roi_samples(const RoiAxis& axis, int64_t ratio) {
  RoiSamples out;
  // Samples are about a pixel apart: n > pixels + 2 of them are more than (n-1)/n apart, so that at
  // most pixels + 2 lie in [-1, pixels]. The rest is room for `sample_before` and one behind.
  out.count = ratio > 0 ? ratio : axis.pixels() + 8;
  std::vector<Dim> space = axis.space();
  space.push_back({"s", out.count});
  const Tensor position = compute(axis.name() + ".at", space, [&](const Indices& at) {
    if (ratio > 0) return axis.position(at[0], at[1], at[2]);
    const Expr first = axis.sample_before(at[0], at[1], axis.num(-1), 2);
    const Expr last = cast(DType::I64, axis.grid(at[0]) - axis.num(1));
    return axis.position(at[0], at[1], min(first + at[2], last));  // a sample twice does no harm
  });
  out.place = compute(axis.name() + ".place", space, [&](const Indices& at) {
    const Expr before = cast(DType::I64, axis.clamped(position(at)));
    return select(axis.counts(position(at)), before, int_imm(-1));
  });
  out.fraction = compute(axis.name() + ".fraction", space, [&](const Indices& at) {
    const Expr from = axis.clamped(position(at));
    return select(axis.counts(position(at)), from - math(MathFn::Floor, {from}), axis.num(0));
  });
  return out;
}

/// The sum, or the maximum, over all samples and the four pixels around each. The maximum is that
/// of the weighted pixels, not of their sums: so ONNX Runtime computes it, and ONNX's examples.
Tensor combine_samples(const OpCall& call, const RoiMode& m, const RoiAxis (&axes)[2],
                       const Tensor& x, const Tensor& image, const std::vector<Dim>& space) {
  const RoiSamples rows = roi_samples(axes[0], m.ratio), columns = roi_samples(axes[1], m.ratio);
  const std::vector<Dim> over{{"sy", rows.count}, {"sx", columns.count}, {"ky", 2}, {"kx", 2}};
  // Channels lie side by side, so that a vector of them is read at once.
  const std::vector<Dim> last{{"n", x.dim(0)}, {"y", x.dim(2)}, {"x", x.dim(3)}, {"c", x.dim(1)}};
  const Tensor pixels = compute(call.op + ".pixels", last,
                                [&](const Indices& at) { return x({at[0], at[3], at[1], at[2]}); });
  auto value = [&](const Indices& at, const Indices& tap) {
    const Indices row{at[0], at[1], tap[0]}, column{at[0], at[2], tap[1]};
    const Expr weight = rows.weight(row, tap[2]) * columns.weight(column, tap[3]);
    const Expr pixel = pixels({image({at[0]}), rows.pixel(row, tap[2], axes[0].pixels()),
                               columns.pixel(column, tap[3], axes[1].pixels()), at[3]});
    const Expr counts = logical_and(rows.place(row) >= 0, columns.place(column) >= 0);
    return select(counts, weight * cast(weight.dtype(), pixel), const_of(weight.dtype(), 0));
  };
  const std::vector<Dim> channels_last{space[0], space[2], space[3], space[1]};
  const Tensor samples =
      reduce(call.op + ".samples", channels_last, over, m.max ? Combine::Max : Combine::Add, value);
  return compute(call.op + ".bins", space,
                 [&](const Indices& at) { return samples({at[0], at[2], at[3], at[1]}); });
}

/// How much each pixel of an axis counts in the sum over a bin's samples: [region, bin, pixel].
Tensor pixel_weights(const RoiAxis& axis) {
  std::vector<Dim> space = axis.space();
  space.push_back({"i", axis.pixels()});
  // Samples less than a pixel away from one lie in an interval of length 2. Two or more samples of
  // a bin, n of them, are more than (n-1)/n apart: at most three are that near. One more before and
  // two more behind, for roundings.
  const std::vector<Dim> near{{"s", 6}};
  auto share = [&](const Indices& at, const Indices& s) {
    const Expr pixel = cast(axis.num(0).dtype(), at[2]);
    const Expr i = axis.sample_before(at[0], at[1], pixel - axis.num(1), 1) + s[0];
    const Expr position = axis.position(at[0], at[1], i);
    const Expr distance = math(MathFn::Abs, {axis.clamped(position) - pixel});
    const Expr exists = cast(distance.dtype(), i) < axis.grid(at[0]);
    return select(logical_and(exists, axis.counts(position)),
                  max(axis.num(1) - distance, axis.num(0)), axis.num(0));
  };
  return reduce(axis.name() + ".weights", space, near, Combine::Add, share);
}

/// The sum over a grid that the region decides: a region of any size has few pixels that count, but
/// any number of samples.
Tensor sum_of_pixels(const OpCall& call, const RoiAxis (&axes)[2], const Tensor& x,
                     const Tensor& image, const std::vector<Dim>& space) {
  const Tensor rows = pixel_weights(axes[0]), columns = pixel_weights(axes[1]);
  // What does not count is not multiplied: it may be infinite.
  auto term = [](const Expr& weight, const Expr& value) {
    const Expr zero = const_of(weight.dtype(), 0);
    return select(ne(weight, zero), weight * cast(weight.dtype(), value), zero);
  };
  const std::vector<Dim> in_rows{space[0], space[1], {"y", axes[0].pixels()}, space[3]};
  const Tensor row_sums =
      reduce(call.op + ".rows", in_rows, {{"x", axes[1].pixels()}}, Combine::Add,
             [&](const Indices& at, const Indices& i) {
               return term(columns({at[0], at[3], i[0]}), x({image({at[0]}), at[1], at[2], i[0]}));
             });
  return reduce(call.op + ".sum", space, {{"y", axes[0].pixels()}}, Combine::Add,
                [&](const Indices& at, const Indices& i) {
                  return term(rows({at[0], at[2], i[0]}), row_sums({at[0], at[1], i[0], at[3]}));
                });
}

std::vector<Tensor> define_roi_align(const OpCall& call, const std::vector<Tensor>& in) {
  const RoiMode m = *roi_mode(call);
  const Tensor &x = in[0], &rois = in[1], &of = in[2];
  const DType dtype = x.dtype(), acc = compute_type(dtype);
  const RoiAxis axes[2] = {{call, m, rois, 0, x.dim(2), acc}, {call, m, rois, 1, x.dim(3), acc}};
  // What value_limits refuses is not read either.
  const Tensor image = compute(call.op + ".image", {{"r", of.dim(0)}}, [&](const Indices& at) {
    return min(max(cast(DType::I64, of(at)), int_imm(0)), int_imm(x.dim(0) - 1));
  });
  const std::vector<Dim> space = dims_of((*infer(call))[0].shape, {"r", "c", "py", "px"});
  const Tensor combined = m.max || m.ratio > 0 ? combine_samples(call, m, axes, x, image, space)
                                               : sum_of_pixels(call, axes, x, image, space);
  return {compute(call.op, space, [&](const Indices& at) {
    const Expr value = combined(at), gy = axes[0].grid(at[0]), gx = axes[1].grid(at[0]);
    if (!m.max) return cast(dtype, value / max(gy * gx, const_of(acc, 1)));
    if (m.ratio > 0) return cast(dtype, value);
    const Expr any = logical_and(gy >= const_of(acc, 1), gx >= const_of(acc, 1));
    return cast(dtype, select(any, value, const_of(acc, 0)));
  })};
}

}  // namespace

void add_roi_ops(std::vector<OpDef>& table) {
  OpDef align = movement_row("RoiAlign", 3, 3, infer_roi_align, define_roi_align);
  align.fusion = Fusion::Opaque;
  table.push_back(std::move(align));
}

}  // namespace tilewright::tensor
