#include "tilewright/codegen/stream/transfer.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/arith/affine.h"

namespace tilewright::codegen::stream {
namespace {

using arith::floor_div;

/// One loop of the copy; its first and last iterations load zeros.
struct Axis {
  int64_t n = 1, sram = 0, dram = 0, before = 0, after = 0;
  bool in_pad(int64_t i) const { return i < before || i >= n - after; }
  bool padded() const { return before + after > 0; }
  bool all_pad() const { return before + after >= n; }
};

class Copier {
 public:
  Copier(const TransferLimits& limits, const SendTransfer& send) : limits_(limits), send_(send) {}

  Status run(const ConcreteNest& nest) {
    std::vector<Axis> axes = read(nest);
    choose(axes);
    return outer(axes, 0, nest.forms[0].c, nest.forms[1].c, nothing_inside_);
  }

 private:
  std::vector<Axis> read(const ConcreteNest& nest) {
    std::vector<Axis> axes;
    for (size_t i = 0; i < nest.size(); ++i)
      axes.push_back({nest.extents[i], nest.forms[0].k[i], nest.forms[1].k[i], 0, 0});
    for (size_t f = nest.addresses; f < nest.forms.size(); ++f) {
      const Form& condition = nest.forms[f];
      size_t i = 0;
      while (i < nest.size() && condition.k[i] == 0) ++i;
      if (i == nest.size()) {
        nothing_inside_ |= condition.c < 0;
        continue;
      }
      Axis& a = axes[i];
      const int64_t k = condition.k[i];
      if (k > 0)
        a.before = std::clamp(-floor_div(condition.c, k), a.before, a.n);
      else
        a.after = std::clamp(a.n - 1 - floor_div(condition.c, -k), a.after, a.n);
    }
    for (Axis& a : axes) a.after = std::min(a.after, a.n - a.before);
    return axes;
  }

  /// Takes the axes of the instruction out of `axes`: x runs along DRAM, rows
  /// of y follow each other on chip.
  void choose(std::vector<Axis>& axes) {
    auto take = [&](auto&& fits, Axis& into) {
      const auto it = std::find_if(axes.begin(), axes.end(), fits);
      if (it == axes.end()) return;
      into = *it;
      axes.erase(it);
    };
    take([&](const Axis& a) { return a.sram == 1 && a.dram == 1 && a.n <= limits_.size; }, x_);
    const int64_t width = x_.n;
    take(
        [&](const Axis& a) {
          return a.sram == width && a.dram >= 0 && a.dram <= limits_.size && a.n <= limits_.size;
        },
        y_);
  }

  Status outer(const std::vector<Axis>& axes, size_t depth, int64_t sram, int64_t dram, bool zero) {
    if (depth == axes.size()) return zero ? zeros(sram, y_.n, x_.n) : rows(sram, dram);
    const Axis& a = axes[depth];
    for (int64_t i = 0; i < a.n; ++i)
      TW_TRY_STATUS(
          outer(axes, depth + 1, sram + i * a.sram, dram + i * a.dram, zero || a.in_pad(i)));
    return {};
  }

  Status rows(int64_t sram, int64_t dram) {
    if (x_.all_pad() || y_.all_pad()) return zeros(sram, y_.n, x_.n);
    if (limits_.no_zeros && (x_.padded() || y_.padded())) return no_zeros();
    if (x_.before > limits_.pad || x_.after > limits_.pad) return row_by_row(sram, dram);
    const int64_t above = std::max<int64_t>(0, y_.before - limits_.pad);
    const int64_t below = std::max<int64_t>(0, y_.after - limits_.pad);
    TW_TRY_STATUS(zeros(sram, above, x_.n));
    Transfer t;
    t.y_pad_top = y_.before - above;
    t.y_pad_bottom = y_.after - below;
    t.x_pad_left = x_.before;
    t.x_pad_right = x_.after;
    t.y_size = y_.n - y_.before - y_.after;
    t.x_size = x_.n - x_.before - x_.after;
    t.x_stride = t.y_size == 1 ? t.x_size : y_.dram;
    TW_TRY_STATUS(send(t, sram + above * x_.n, dram + x_.before * x_.dram + y_.before * y_.dram));
    return zeros(sram + (y_.n - below) * x_.n, below, x_.n);
  }

  /// Rows with more padding than the fields take: each in up to three pieces.
  Status row_by_row(int64_t sram, int64_t dram) {
    for (int64_t i = 0; i < y_.n; ++i, sram += x_.n, dram += y_.dram) {
      if (y_.in_pad(i)) {
        TW_TRY_STATUS(zeros(sram, 1, x_.n));
        continue;
      }
      Transfer t;
      t.y_size = 1;
      t.x_size = t.x_stride = x_.n - x_.before - x_.after;
      TW_TRY_STATUS(zeros(sram, 1, x_.before));
      TW_TRY_STATUS(send(t, sram + x_.before, dram + x_.before * x_.dram));
      TW_TRY_STATUS(zeros(sram + x_.n - x_.after, 1, x_.after));
    }
    return {};
  }

  /// A transfer of padding rows only.
  Status zeros(int64_t sram, int64_t rows, int64_t width) {
    if (rows == 0 || width == 0) return {};
    if (limits_.no_zeros) return no_zeros();
    while (rows > 0) {
      Transfer t;
      t.x_size = t.x_stride = width;
      t.y_pad_top = std::min(rows, limits_.pad);
      t.y_pad_bottom = std::min(rows - t.y_pad_top, limits_.pad);
      TW_TRY_STATUS(send(t, sram, 0));
      const int64_t done = t.y_pad_top + t.y_pad_bottom;
      rows -= done;
      sram += done * width;
    }
    return {};
  }

  Status no_zeros() const { return tl::unexpected<Error>(*limits_.no_zeros); }

  Status send(Transfer t, int64_t sram, int64_t dram) {
    if (sram < 0 || dram < 0 || dram > limits_.last)
      return fail(ErrorKind::Unsupported, "a transfer starts outside of its buffer",
                  fmt::format("on-chip element {}, DRAM element {}", sram, dram));
    t.sram = sram;
    t.dram = dram;
    return send_(t);
  }

  const TransferLimits& limits_;
  const SendTransfer& send_;
  Axis x_, y_;
  bool nothing_inside_ = false;
};

}  // namespace

Status emit_transfers(ConcreteNest nest, const TransferLimits& limits, const SendTransfer& send) {
  merge_loops(nest);
  point_forwards(nest);
  return Copier(limits, send).run(nest);
}

}  // namespace tilewright::codegen::stream
