#include "tilewright/tensor/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tilewright::tensor {
namespace {

using Params = std::map<std::string, int64_t>;

/// Reads parameters and keeps the first problem.
class Reader {
 public:
  Reader(std::string op, const Params& params) : op_(std::move(op)), params_(params) {}

  int64_t get(const std::string& key, std::optional<int64_t> fallback = std::nullopt,
              int64_t least = 1) {
    const auto it = params_.find(key);
    if (it == params_.end()) {
      if (fallback) return *fallback;
      note(fmt::format("{}: the parameter {} is missing", op_, key));
      return 1;
    }
    if (it->second < least) note(fmt::format("{}: {} is {}", op_, key, it->second));
    return std::max(it->second, least);
  }
  void note(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }
  Status status() const {
    if (problem_.empty()) return {};
    return fail(ErrorKind::Invalid, problem_);
  }

 private:
  std::string op_, problem_;
  const Params& params_;
};

InputInfo input(DType dtype, Shape shape) { return {true, dtype, std::move(shape), std::nullopt}; }

OpCall call_of(const std::string& domain, const std::string& op, std::vector<InputInfo> inputs) {
  OpCall call;
  call.domain = domain;
  call.op = op;
  call.inputs = std::move(inputs);
  return call;
}

Shape stacked(int64_t batch, Shape shape) {
  if (batch > 1) shape.insert(shape.begin(), batch);
  return shape;
}

OpCall gemv(Reader& in, DType dtype) {
  const int64_t batch = in.get("batch", 1), m = in.get("m"), k = in.get("k");
  return call_of("tilewright", "Gemv",
                 {input(dtype, stacked(batch, {m, k})), input(dtype, stacked(batch, {k}))});
}

OpCall gemm(Reader& in, DType dtype) {
  const int64_t batch = in.get("batch", 1), m = in.get("m"), n = in.get("n"), k = in.get("k");
  return call_of("", is_float(dtype) ? "MatMul" : "MatMulInteger",
                 {input(dtype, stacked(batch, {m, k})), input(dtype, stacked(batch, {k, n}))});
}

OpCall bilinear(Reader& in, DType dtype) {
  const int64_t b = in.get("batch"), o = in.get("out_features");
  const int64_t i = in.get("in1_features"), j = in.get("in2_features");
  return call_of("tilewright", "Bilinear",
                 {input(dtype, {b, i}), input(dtype, {o, i, j}), input(dtype, {b, j})});
}

struct SpatialAxis {
  const char *size, *suffix;
};
std::vector<SpatialAxis> spatial_axes(int rank) {
  if (rank == 1) return {{"length", "_l"}};
  std::vector<SpatialAxis> axes = {{"height", "_h"}, {"width", "_w"}};
  if (rank == 3) axes.insert(axes.begin(), {"depth", "_d"});
  return axes;
}

/// Reads what all convolutions have: attributes into `call`, input and kernel extents appended.
void read_window(Reader& in, int rank, OpCall& call, Shape& x, Shape& w) {
  std::vector<int64_t> kernel, strides, pads, dilations, extra;
  for (const SpatialAxis& axis : spatial_axes(rank)) {
    const std::string suffix = axis.suffix;
    x.push_back(in.get(axis.size));
    kernel.push_back(in.get("kernel" + suffix));
    strides.push_back(in.get("stride" + suffix, 1));
    pads.push_back(in.get("pad" + suffix, 0, 0));
    dilations.push_back(in.get("dilation" + suffix, 1));
    extra.push_back(in.get("output_pad" + suffix, 0, 0));
  }
  w.insert(w.end(), kernel.begin(), kernel.end());
  const std::vector<int64_t> begin = pads;
  pads.insert(pads.end(), begin.begin(), begin.end());
  auto& attrs = call.attrs.values;
  attrs["kernel_shape"] = kernel;
  attrs["strides"] = strides;
  attrs["pads"] = pads;
  attrs["dilations"] = dilations;
  if (call.op == "ConvTranspose") attrs["output_padding"] = extra;
}

OpCall conv(Reader& in, DType dtype, int rank, bool transposed) {
  OpCall call;
  call.op = transposed ? "ConvTranspose" : is_float(dtype) ? "Conv" : "ConvInteger";
  const int64_t channels = in.get("in_channels"), outputs = in.get("out_channels");
  const int64_t groups = in.get("groups", 1);
  if (channels % groups != 0 || outputs % groups != 0)
    in.note(fmt::format("{} and {} channels do not form {} groups", channels, outputs, groups));
  Shape x = {in.get("batch"), channels};
  Shape w = transposed ? Shape{channels, outputs / groups} : Shape{outputs, channels / groups};
  read_window(in, rank, call, x, w);
  call.attrs.values["group"] = groups;
  call.inputs = {input(dtype, x), input(dtype, w)};
  return call;
}

OpCall circulant(Reader& in, DType dtype) {
  OpCall call =
      call_of("tilewright", "BlockCirculant", {input(dtype, {in.get("rows"), in.get("cols")})});
  call.attrs.values["block"] = in.get("block");
  return call;
}

OpCall shift(Reader& in, DType dtype) {
  OpCall call = call_of("tilewright", "ShiftConv2D", {});
  Shape x = {in.get("batch")}, kernel;
  read_window(in, 2, call, x, kernel);
  x.push_back(in.get("channels"));
  call.inputs = {input(dtype, x), input(DType::I32, {x.back()})};
  return call;
}

OpCall mttkrp(Reader& in, DType dtype) {
  const int64_t i = in.get("i"), j = in.get("j"), k = in.get("k"), l = in.get("l");
  return call_of("tilewright", "MTTKRP",
                 {input(dtype, {i, k, l}), input(dtype, {l, j}), input(dtype, {k, j})});
}

OpCall ttm(Reader& in, DType dtype) {
  const int64_t i = in.get("i"), j = in.get("j"), k = in.get("k"), l = in.get("l");
  return call_of("tilewright", "TTM", {input(dtype, {i, j, l}), input(dtype, {l, k})});
}

template <int kRank, bool kTransposed>
OpCall conv_of(Reader& in, DType dtype) {
  return conv(in, dtype, kRank, kTransposed);
}

struct WorkloadKind {
  const char* name;
  OpCall (*make)(Reader&, DType);
};
const WorkloadKind kWorkloadKinds[] = {
    {"gemv", gemv},
    {"gemm", gemm},
    {"bilinear", bilinear},
    {"conv1d", conv_of<1, false>},
    {"conv2d", conv_of<2, false>},
    {"conv3d", conv_of<3, false>},
    {"conv_transpose1d", conv_of<1, true>},
    {"conv_transpose2d", conv_of<2, true>},
    {"conv_transpose3d", conv_of<3, true>},
    {"group_conv2d", conv_of<2, false>},
    {"depthwise_conv2d", conv_of<2, false>},
    {"dilated_conv2d", conv_of<2, false>},
    {"block_circulant_matrix", circulant},
    {"shift_conv2d", shift},
    {"mttkrp", mttkrp},
    {"ttm", ttm},
};

}  // namespace

std::vector<std::string> workload_operators() {
  std::vector<std::string> names;
  for (const WorkloadKind& row : kWorkloadKinds) names.emplace_back(row.name);
  return names;
}

Result<OpCall> workload_call(const std::string& name, const std::map<std::string, int64_t>& params,
                             DType dtype) {
  for (const WorkloadKind& row : kWorkloadKinds) {
    if (row.name != name) continue;
    Reader reader(name, params);
    OpCall call = row.make(reader, dtype);
    TW_TRY_STATUS(reader.status());
    TW_TRY(infer(call));
    return call;
  }
  std::string known;
  for (const WorkloadKind& row : kWorkloadKinds)
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  return fail(ErrorKind::Invalid, fmt::format("the workload operator {} is not known", name),
              "known are " + known);
}

}  // namespace tilewright::tensor
