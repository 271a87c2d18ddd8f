// Which rows a tile needs and makes.
//
// A 3x3 convolution with a pad of 1 makes rows 0-7 from rows 0-8; a 2x2 pool of stride 2 behind it
// makes rows 0-3 of them. With a 3x3 pool only three rows are possible yet: the rest comes with the
// next tile. So every node runs as far as its rows are there, and no rule about sizes is needed.
#include <algorithm>
#include <limits>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {
namespace {

Range clipped(int64_t begin, int64_t end, int64_t size) {
  return {std::clamp<int64_t>(begin, 0, size), std::clamp<int64_t>(end, 0, size)};
}

Range window_range(Range out, int kernel, int stride, int dilation, int pad, int64_t size) {
  if (out.size() == 0) return {};
  return clipped(out.begin * stride - pad,
                 (out.end - 1) * stride + int64_t{kernel - 1} * dilation - pad + 1, size);
}

Range copied(Range out, const Node& node, int stride, int64_t size) {
  if (out.size() == 0) return {};
  if (node.pool.type == kUpsample)
    return clipped(out.begin / stride, (out.end - 1) / stride + 1, size);
  return clipped(out.begin * stride, (out.end - 1) * stride + 1, size);
}

bool moves_only(const Node& node) {
  return node.kind == NodeKind::Pool && (node.pool.type == kCopy || node.pool.type == kUpsample);
}

/// Rows of a root that are there once `view` has its first `done` rows.
int64_t rows_there(const View& view, int64_t done) {
  return done == view.height ? std::numeric_limits<int64_t>::max()
                             : view.row + done * view.row_step;
}

/// How far rows of a root must be there for row `last` of `view`.
int64_t rows_needed(const View& view, int64_t last) { return view.row + last * view.row_step + 1; }

/// The rows of a node whose inputs from inside of the group are there, and what it writes over. One
/// that has none of these keeps step with the first node.
int64_t possible(const Lowered& lowered, const GroupPlan& group, const std::vector<int64_t>& done,
                 size_t index) {
  const Node& node = lowered.nodes[static_cast<size_t>(group.nodes[index])];
  int64_t end = node.out.height;
  if (beside(lowered, group, index)) {
    const int64_t all = lowered.nodes[static_cast<size_t>(group.nodes[0])].out.height;
    const int64_t share = (node.out.height * done[0] + all - 1) / all;
    return std::max(done[index], done[0] == all ? end : share / 2 * 2);
  }
  for (size_t j = 0; j < index; ++j) {
    const View& from = lowered.nodes[static_cast<size_t>(group.nodes[j])].out;
    const int64_t there = rows_there(from, done[j]);
    while (end > done[index] && overlap(from, node.out) && rows_needed(node.out, end - 1) > there)
      --end;
    for (size_t k = 0; k < node.in.size(); ++k) {
      const View& in = node.in[k];
      while (end > done[index] && from.root == in.root &&
             rows_needed(in, input_rows(node, k, {end - 1, end}).end - 1) > there)
        --end;
    }
  }
  return end;
}

}  // namespace

Range input_rows(const Node& node, size_t k, Range out) {
  const View& in = node.in[k];
  if (node.kind == NodeKind::Elew) return out;
  if (moves_only(node)) return copied(out, node, node.pool.stride_h, in.height);
  const Window& w = node.window;
  return window_range(out, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, in.height);
}

Range input_columns(const Node& node, size_t k, Range out) {
  const View& in = node.in[k];
  if (node.kind == NodeKind::Elew) return out;
  if (moves_only(node)) return copied(out, node, node.pool.stride_w, in.width);
  const Window& w = node.window;
  return window_range(out, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, in.width);
}

bool beside(const Lowered& lowered, const GroupPlan& group, size_t index) {
  if (index == 0) return false;
  const Node& node = lowered.nodes[static_cast<size_t>(group.nodes[index])];
  for (size_t j = 0; j < index; ++j) {
    const View& from = lowered.nodes[static_cast<size_t>(group.nodes[j])].out;
    if (overlap(from, node.out)) return false;
    for (const View& view : node.in)
      if (from.root == view.root) return false;
  }
  return true;
}

std::vector<RowTile> sweep(const Lowered& lowered, const GroupPlan& group) {
  std::vector<int64_t> done(group.nodes.size());
  std::vector<RowTile> tiles;
  const int64_t height = lowered.nodes[static_cast<size_t>(group.nodes[0])].out.height;
  while (done[0] < height) {
    RowTile tile;
    for (size_t j = 0; j < group.nodes.size(); ++j) {
      const Node& node = lowered.nodes[static_cast<size_t>(group.nodes[j])];
      int64_t end = j == 0 ? std::min<int64_t>(height, done[0] + group.rows)
                           : possible(lowered, group, done, j);
      // A convolution behind something else waits until all its rows of a tile are there.
      if (j > 0 && node.kind == NodeKind::Conv && end < node.out.height)
        end = std::max(done[j], end / kBanks * kBanks);
      tile.rows.push_back({done[j], end});
      done[j] = end;
    }
    tiles.push_back(std::move(tile));
  }
  return tiles;
}

}  // namespace tilewright::dpu
