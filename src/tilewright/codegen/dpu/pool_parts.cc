// An average that leaves padding out divides by the taps inside of the image: at borders by fewer.
// A POOL has one factor, so the result is made in parts whose windows have equally many taps.
//
// Example: 3x3, pads of 1, on 35x35: nine parts. The corners have 4 taps, the borders 6, the
// middle 9.
#include <algorithm>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {
namespace {

/// Output positions [begin, end) of an axis whose windows have equally many taps inside.
struct Alike {
  int64_t begin = 0, end = 0, taps = 0;
};

std::vector<Alike> alike(int64_t outputs, int64_t size, int kernel, int stride, int pad) {
  std::vector<Alike> runs;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t first = o * stride - pad;
    const int64_t taps = std::min(first + kernel, size) - std::max<int64_t>(first, 0);
    if (runs.empty() || runs.back().taps != taps) runs.push_back({o, o, taps});
    runs.back().end = o + 1;
  }
  return runs;
}

}  // namespace

std::vector<PoolPart> parts_of(const PoolLayer& op, const View& from, const View& to) {
  const Window& w = op.window;
  if (op.means.empty()) return {{w, {op.factor, op.shift}, from, to}};
  std::vector<PoolPart> parts;
  for (const Alike& r : alike(to.height, from.height, w.kernel_h, w.stride_h, w.pad_top))
    for (const Alike& c : alike(to.width, from.width, w.kernel_w, w.stride_w, w.pad_left)) {
      PoolPart part = {w, op.mean(r.taps * c.taps), from, to};
      const int64_t row = r.begin * w.stride_h - w.pad_top, col = c.begin * w.stride_w - w.pad_left;
      const int64_t rows_off = std::max<int64_t>(row, 0), cols_off = std::max<int64_t>(col, 0);
      part.window.pad_top = static_cast<int>(rows_off - row);
      part.window.pad_left = static_cast<int>(cols_off - col);
      part.in.row += rows_off * from.row_step;
      part.in.height -= rows_off;
      part.in.col += cols_off * from.col_step;
      part.in.width -= cols_off;
      part.out.row += r.begin * to.row_step;
      part.out.height = r.end - r.begin;
      part.out.col += c.begin * to.col_step;
      part.out.width = c.end - c.begin;
      parts.push_back(part);
    }
  return parts;
}

}  // namespace tilewright::dpu
