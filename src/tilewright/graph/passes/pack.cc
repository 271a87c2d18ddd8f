#include "tilewright/graph/passes/pack.h"

#include <algorithm>
#include <array>
#include <functional>

#include "tilewright/graph/passes/dot_form.h"
#include "tilewright/tensor/winograd.h"

namespace tilewright::graph {
namespace {

/// One axis of the source: its index is outer * block + inner, where outer and inner are positions
/// on two axes of the result. A single axis has block 1 and no inner axis (-1).
struct Axis {
  int outer = 0, inner = -1;
  int64_t block = 1;
};

/// result[at] = source[axes(at)], or zero where an index lies beyond the source.
template <class T>
void gather(const Array& source, Array& result, const std::vector<Axis>& axes) {
  const Shape& shape = result.shape();
  const std::vector<int64_t> strides = dense_strides(source.shape());
  const size_t rank = shape.size();
  const T* from = static_cast<const T*>(source.data());
  T* to = static_cast<T*>(result.data());
  std::vector<int64_t> index(axes.size(), 0);
  /// Which source index a result axis moves, and by how much per step.
  const auto moved_by = [&](size_t axis) {
    std::pair<size_t, int64_t> moved{axes.size(), 0};
    for (size_t a = 0; a < axes.size(); ++a) {
      if (axes[a].outer == static_cast<int>(axis)) moved = {a, axes[a].block};
      if (axes[a].inner == static_cast<int>(axis)) moved = {a, 1};
    }
    return moved;
  };
  const auto [last_index, last_step] = moved_by(rank - 1);
  const size_t last = last_index;
  const int64_t step_in_row = last_step;
  const auto copy_row = [&] {
    int64_t offset = 0;
    bool inside = true;
    for (size_t a = 0; a < axes.size(); ++a) {
      offset += index[a] * strides[a];
      inside = inside && (a == last || index[a] < source.shape()[a]);
    }
    const int64_t room = (source.shape()[last] - index[last] + step_in_row - 1) / step_in_row;
    const int64_t count = inside ? std::clamp<int64_t>(room, 0, shape.back()) : 0;
    const int64_t stride = strides[last] * step_in_row;
    for (int64_t i = 0; i < count; ++i) to[i] = from[offset + i * stride];
    std::fill(to + count, to + shape.back(), T{});
    to += shape.back();
  };
  const std::function<void(size_t)> walk = [&](size_t axis) {
    if (axis + 1 == rank) return copy_row();
    const auto [a, step] = moved_by(axis);
    for (int64_t i = 0; i < shape[axis]; ++i) {
      walk(axis + 1);
      index[a] += step;
    }
    index[a] -= step * shape[axis];
  };
  walk(0);
}

/// Two axes of channels, then those of the taps, which begin at `first` in the result.
std::vector<Axis> axes_around_taps(const Axis& k, const Axis& c, int first, int rank) {
  std::vector<Axis> axes = {k, c};
  for (int a = 2; a < rank; ++a) axes.push_back({first + a - 2, -1, 1});
  return axes;
}

std::optional<std::vector<Axis>> axes_of(const tensor::OpCall& call, const Shape& result) {
  const auto rank = static_cast<int>(call.inputs[0].shape.size());
  const auto last = static_cast<int>(result.size()) - 1;
  if (call.op == "ToBlocked") {
    std::vector<Axis> axes;
    for (int a = 0; a < rank; ++a) axes.push_back({a, -1, 1});
    axes[1] = {1, last, result.back()};
    return axes;
  }
  if (call.op == "PackConvWeight")
    return axes_around_taps({0, last, result.back()}, {1, last - 1, result[result.size() - 2]}, 2,
                            rank);
  if (call.op == "PackDepthwiseWeight")
    return axes_around_taps({0, last, result.back()}, {-1, -1, 1}, 1, rank);
  if (call.op == "PackGemmWeight") {
    const Axis k{1, -1, 1}, n{0, 2, result[2]};
    return call.attrs.get_int("transB", 0) != 0 ? std::vector<Axis>{n, k} : std::vector<Axis>{k, n};
  }
  return std::nullopt;
}

/// The transform of one window of a weight, for some filters at a time: their values lie side by
/// side, in the source of the sums as in the result, whose planes are far apart.
class WinogradFilter {
 public:
  static constexpr int64_t kLanes = 8;
  using Lanes = std::array<double, kLanes>;

  WinogradFilter(int64_t m, int64_t r, int64_t s)
      : r_(r),
        s_(s),
        gx_(tensor::winograd_tables(r == 1 ? 1 : m, r)->filter),
        gy_(tensor::winograd_tables(s == 1 ? 1 : m, s)->filter),
        nx_(static_cast<int64_t>(gx_.size()) / r),
        ny_(static_cast<int64_t>(gy_.size()) / s),
        taps_(static_cast<size_t>(r * s)),
        half_(static_cast<size_t>(nx_ * s)) {}

  /// Lanes from `count` on are left as they are. `from`: the window of the first filter, those of
  /// the others `filter` elements apart. `to`: the first element, the others of the window `plane`
  /// apart.
  void run(const float* from, int64_t filter, int64_t count, float* to, int64_t plane) {
    for (int64_t t = 0; t < r_ * s_; ++t)
      for (int64_t k = 0; k < count; ++k) taps_[t][k] = from[k * filter + t];
    for (int64_t x = 0; x < nx_; ++x)
      for (int64_t j = 0; j < s_; ++j)
        half_[x * s_ + j] = sum(r_, gx_.data() + x * r_, taps_.data() + j, s_);
    for (int64_t x = 0; x < nx_; ++x)
      for (int64_t y = 0; y < ny_; ++y, to += plane) {
        const Lanes all = sum(s_, gy_.data() + y * s_, half_.data() + x * s_, 1);
        for (int64_t k = 0; k < count; ++k) to[k] = static_cast<float>(all[k]);
      }
  }

 private:
  static Lanes sum(int64_t terms, const double* factors, const Lanes* values, int64_t step) {
    Lanes all{};
    for (int64_t i = 0; i < terms; ++i)
      for (int64_t k = 0; k < kLanes; ++k) all[k] += factors[i] * values[i * step][k];
    return all;
  }

  int64_t r_, s_;
  const std::vector<double>&gx_, &gy_;
  int64_t nx_, ny_;
  std::vector<Lanes> taps_, half_;
};

/// u[ko, x, y, c, ki] = (G g G^T)[x, y] of g = w[ko*b + ki, c]; channels that fill up are zero.
Array winograd_weight(const Array& w, const Shape& shape, int64_t m) {
  Array result(DType::F32, shape);
  std::span<float> u = result.as<float>();
  std::fill(u.begin(), u.end(), 0.0f);
  const float* source = w.as<float>().data();
  const int64_t filters = w.shape()[0], channels = w.shape()[1], block = shape[4];
  const int64_t window = w.shape()[2] * w.shape()[3];
  const int64_t plane = shape[3] * block, all_planes = shape[1] * shape[2] * plane;
  WinogradFilter transform(m, w.shape()[2], w.shape()[3]);
  for (int64_t outer = 0; outer * block < filters; ++outer)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t inner = 0; inner < block; inner += WinogradFilter::kLanes) {
        const int64_t k = outer * block + inner;
        const int64_t count = std::min({WinogradFilter::kLanes, block - inner, filters - k});
        if (count > 0)
          transform.run(source + (k * channels + c) * window, channels * window, count,
                        u.data() + outer * all_planes + c * block + inner, plane);
      }
  return result;
}

}  // namespace

std::optional<Array> pack_known(const tensor::OpCall& call, const tensor::TensorType& type) {
  if (call.domain != "tilewright" || call.inputs.empty() || !call.inputs[0].value)
    return std::nullopt;
  if (call.op == "PackWinogradWeight" && call.inputs[0].dtype == DType::F32)
    return winograd_weight(*call.inputs[0].value, type.shape, call.attrs.get_int("m", 4));
  if (std::optional<Array> groups = pack_dot_known(call, type)) return groups;
  const auto axes = axes_of(call, type.shape);
  if (!axes) return std::nullopt;
  const Array& source = *call.inputs[0].value;
  Array result(type.dtype, type.shape);
  switch (bit_width(type.dtype)) {
    case 8:
      gather<uint8_t>(source, result, *axes);
      break;
    case 16:
      gather<uint16_t>(source, result, *axes);
      break;
    case 32:
      gather<uint32_t>(source, result, *axes);
      break;
    default:
      gather<uint64_t>(source, result, *axes);
  }
  return result;
}

}  // namespace tilewright::graph
