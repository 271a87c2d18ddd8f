#include "tilewright/tune/vta_mapping.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/tune/vta_model.h"

namespace tilewright::tune {

using vta::Mem;

namespace {

constexpr const char* kAxisNames = "nohwc";

int axis_position(const VtaMapping& m, TileAxis axis) {
  const auto it = std::find(m.order.begin(), m.order.end(), axis);
  return it == m.order.end() ? -1 : static_cast<int>(it - m.order.begin());
}

}  // namespace

std::string to_string(const VtaMapping& m) {
  std::string text;
  for (size_t i = 0; i < kTileAxes; ++i)
    text += fmt::format("{}{}{}", i == 0 ? "" : " ", kAxisNames[i], m.tile[i]);
  text += ", order";
  for (TileAxis axis : m.order) text += fmt::format(" {}", kAxisNames[static_cast<size_t>(axis)]);
  text += fmt::format(", input@{} weights@{}, piece {}, {} {}", m.input_depth, m.weight_depth,
                      m.piece, m.copies, m.copies == 1 ? "copy" : "copies");
  if (m.threads > 1) text += fmt::format(", {} threads", m.threads);
  return text;
}

int64_t tiles(const VtaLayer& layer, const VtaMapping& m, TileAxis axis) {
  return ceil_div(layer.extent[axis], m.tile[axis]);
}

int result_depth(const VtaLayer& layer, const VtaMapping& m) {
  for (size_t i = 0; i < m.order.size(); ++i)
    if (m.order[i] == TileAxis::C && tiles(layer, m, TileAxis::C) > 1) return static_cast<int>(i);
  return static_cast<int>(m.order.size());
}

// --- Regions.

int64_t VtaRegions::extent_at(TileAxis axis, int depth) const {
  const int position = axis_position(mapping, axis);
  return position >= 0 && position < depth ? mapping.tile[axis] : layer.extent[axis];
}

int64_t VtaRegions::input_elements() const {
  const int d = layer.conv ? mapping.input_depth : result_depth(layer, mapping);
  const int64_t rows = hull_rows(layer, extent_at(TileAxis::H, d));
  const int64_t columns = hull_columns(layer, extent_at(TileAxis::W, d));
  return extent_at(TileAxis::N, d) * rows * columns *
         input_blocks(layer, extent_at(TileAxis::O, d), extent_at(TileAxis::C, d));
}

int64_t VtaRegions::weight_elements() const {
  const int d = mapping.weight_depth;
  return extent_at(TileAxis::O, d) * extent_at(TileAxis::C, d) * layer.kernel_h * layer.kernel_w;
}

int64_t VtaRegions::result_elements() const {
  const int d = result_depth(layer, mapping);
  int64_t count = 1;
  for (TileAxis axis : {TileAxis::N, TileAxis::O, TileAxis::H, TileAxis::W})
    count *= extent_at(axis, d);
  return count;
}

TileAxis VtaRegions::piece_axis() const {
  const int64_t blocks = extent_at(TileAxis::O, result_depth(layer, mapping));
  return blocks > 1 ? TileAxis::O : TileAxis::H;
}

int64_t VtaRegions::piece_elements() const {
  const int64_t along = extent_at(piece_axis(), result_depth(layer, mapping));
  return result_elements() / along * std::min(mapping.piece, along);
}

int64_t VtaRegions::vector_elements() const {
  if (layer.vectors == 0) return 0;
  const int64_t copies = result_depth(layer, mapping) > 0 ? mapping.copies : 1;
  const int64_t whole = layer.extent[TileAxis::O] * layer.vectors;
  const int64_t room = config.depth(Mem::Acc) - copies * result_elements();
  if (whole <= room) return whole;
  const int64_t blocks = extent_at(TileAxis::O, result_depth(layer, mapping));
  return blocks * layer.vectors * copies;
}

bool VtaRegions::vectors_stay() const {
  return vector_elements() == layer.extent[TileAxis::O] * layer.vectors;
}

bool VtaNeed::fits(const vta::Config& config) const {
  return inp <= config.depth(Mem::Inp) && wgt <= config.depth(Mem::Wgt) &&
         acc <= config.depth(Mem::Acc) && uop <= config.depth(Mem::Uop);
}

VtaNeed need(const VtaLayer& layer, const VtaMapping& m, const vta::Config& config) {
  const VtaRegions r{layer, m, config};
  const auto copies = [&](int depth) { return depth > 0 ? int64_t{m.copies} : int64_t{1}; };
  const int depth = result_depth(layer, m);
  VtaNeed n;
  n.acc = copies(depth) * r.result_elements() + r.vector_elements();
  if (layer.conv) {
    n.inp = copies(m.input_depth) * r.input_elements();
    n.wgt = copies(m.weight_depth) * r.weight_elements();
    n.uop = r.kernel_uops();
  } else {
    n.inp = copies(depth) * r.input_elements();
    // A window is read from the accumulators.
    if (layer.kernel_h * layer.kernel_w > 1) n.acc += copies(depth) * r.input_elements();
  }
  if (layer.residuals > 0 || !layer.conv) n.wgt += 1;  // the identity
  n.inp += layer.residuals * m.copies * r.piece_elements();
  return n;
}

/// The GEMM nest runs two loops in hardware and the others as micro-ops. Consecutive micro-ops must
/// not hit one accumulator within three steps, so loops over the result stay among them.
int64_t VtaRegions::kernel_uops() const {
  const auto& t = mapping.tile;
  std::vector<std::pair<int64_t, bool>> loops;  // extent, over the result
  loops.emplace_back(t[TileAxis::C], false);
  loops.emplace_back(layer.kernel_h, false);
  loops.emplace_back(layer.kernel_w, false);
  loops.emplace_back(t[TileAxis::O], true);
  loops.emplace_back(t[TileAxis::N], true);
  const int64_t pitch = hull_columns(layer, extent_at(TileAxis::W, mapping.input_depth));
  if (pitch * layer.stride_h == t[TileAxis::W] * layer.stride_w) {
    loops.emplace_back(t[TileAxis::H] * t[TileAxis::W], true);
  } else {
    loops.emplace_back(t[TileAxis::H], true);
    loops.emplace_back(t[TileAxis::W], true);
  }
  int64_t all = 1;
  for (const auto& loop : loops) all *= loop.first;
  int64_t best = all;
  for (size_t a = 0; a < loops.size(); ++a) {
    for (size_t b = 0; b < loops.size(); ++b) {
      if (a == b) continue;
      int64_t uops = 1, spread = 1;
      for (size_t i = 0; i < loops.size(); ++i) {
        if (i == a || i == b) continue;
        uops *= loops[i].first;
        if (loops[i].second) spread *= loops[i].first;
      }
      // A single micro-op: the inner loop alone keeps the distance.
      const bool apart = spread >= 3 || (uops == 1 && loops[b].second && loops[b].first >= 3);
      if (apart) best = std::min(best, uops);
    }
  }
  return best;
}

int64_t layer_bound(const VtaLayer& layer, const vta::Config& config) {
  const VtaClock clock(config);
  const auto& e = layer.extent;
  const int64_t results = e[TileAxis::N] * e[TileAxis::O] * e[TileAxis::H] * e[TileAxis::W];
  const int64_t products = results * e[TileAxis::C] * layer.kernel_h * layer.kernel_w;
  const auto& t = config.timing;
  const int64_t gemm = (products + results * layer.residual_steps) * t.gemm_ii +
                       (config.extensions.fused_reset ? 0 : results * t.gemm_ii);
  const int64_t alu = results * (layer.imm_ops * t.alu_imm_ii + layer.reg_ops * clock.reg_ii());
  const int64_t compute = config.extensions.pipeline4 ? std::max(gemm, alu) : gemm + alu;
  const int64_t groups =
      layer.out_per_group == 0 ? 1 : ceil_div(e[TileAxis::O], layer.out_per_group);
  const int64_t bytes = e[TileAxis::N] * groups * e[TileAxis::C] * layer.in_h * layer.in_w *
                            config.element_bytes(Mem::Inp) +
                        (layer.conv ? e[TileAxis::O] * e[TileAxis::C] * layer.kernel_h *
                                          layer.kernel_w * config.element_bytes(Mem::Wgt)
                                    : 0) +
                        e[TileAxis::O] * layer.vectors * config.element_bytes(Mem::Acc) +
                        results * layer.residuals * config.element_bytes(Mem::Inp);
  const int64_t store = results * clock.store_element();
  return std::max({compute, ceil_div(bytes, t.bus_bytes), store});
}

}  // namespace tilewright::tune
