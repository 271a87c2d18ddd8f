#include "tilewright/rules/vta/mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/rules/vta/model.h"

namespace tilewright::rules {

using vta::Mem;

namespace {

constexpr const char* kAxisNames = "nohwcrs";

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
  text += fmt::format(", input@{} weights@{}", m.input_depth, m.weight_depth);
  if (!m.tail.empty()) text += fmt::format(", tail {}", fmt::join(m.tail, " "));
  text += fmt::format(", copies {} {}", m.copies, m.result_copies);
  return text;
}

std::vector<int64_t> piece_sizes(int64_t extent, const std::vector<int64_t>& tail) {
  std::vector<int64_t> sizes;
  for (size_t i = tail.size(); i-- > 0 && tail[i] < extent;) {
    sizes.push_back(tail[i]);
    extent -= tail[i];
  }
  sizes.push_back(extent);
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

int64_t tiles(const VtaLayer& layer, const VtaMapping& m, TileAxis axis) {
  return ceil_div(layer.extent[axis], m.tile[axis]);
}

int result_depth(const VtaLayer& layer, const VtaMapping& m) {
  for (size_t i = 0; i < m.order.size(); ++i)
    if (reduces(m.order[i]) && tiles(layer, m, m.order[i]) > 1) return static_cast<int>(i);
  return static_cast<int>(m.order.size());
}

// --- Regions.

int64_t VtaRegions::extent_at(TileAxis axis, int depth) const {
  const int position = axis_position(mapping, axis);
  return position >= 0 && position < depth ? mapping.tile[axis] : layer.extent[axis];
}

int64_t VtaRegions::input_elements() const {
  const int d = layer.conv ? mapping.input_depth : result_depth(layer, mapping);
  const int64_t rows = hull_rows(layer, extent_at(TileAxis::H, d), extent_at(TileAxis::R, d));
  const int64_t columns = hull_columns(layer, extent_at(TileAxis::W, d), extent_at(TileAxis::S, d));
  return extent_at(TileAxis::N, d) * rows * columns *
         input_blocks(layer, extent_at(TileAxis::O, d), extent_at(TileAxis::C, d));
}

int64_t VtaRegions::weight_elements() const {
  const int d = mapping.weight_depth;
  return extent_at(TileAxis::O, d) * extent_at(TileAxis::C, d) * extent_at(TileAxis::R, d) *
         extent_at(TileAxis::S, d);
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
  const std::vector<int64_t> sizes = piece_sizes(along, mapping.tail);
  return result_elements() / along * *std::max_element(sizes.begin(), sizes.end());
}

std::vector<int64_t> VtaRegions::reset_pieces(int64_t extent) const {
  const bool split = mapping.result_copies == 1 && result_depth(layer, mapping) > 0 &&
                     !config.extensions.fused_reset;
  return split ? piece_sizes(extent, mapping.tail) : std::vector<int64_t>{extent};
}

bool VtaRegions::vectors_stay() const {
  const int64_t copies = result_depth(layer, mapping) > 0 ? mapping.result_copies : 1;
  return vector_elements(layer, layer.extent[TileAxis::N], layer.extent[TileAxis::O]) <=
         config.depth(Mem::Acc) - copies * result_elements();
}

int64_t VtaRegions::resident_vectors() const {
  const int depth = vectors_stay() ? 0 : result_depth(layer, mapping);
  return vector_elements(layer, extent_at(TileAxis::N, depth), extent_at(TileAxis::O, depth)) *
         (depth > 0 ? mapping.result_copies : 1);
}

bool VtaNeed::fits(const vta::Config& config) const {
  return inp <= config.depth(Mem::Inp) && wgt <= config.depth(Mem::Wgt) &&
         acc <= config.depth(Mem::Acc) && uop <= config.most_uops();
}

bool rows_merge(const VtaLayer& layer, const PerAxis<int64_t>& tile, int64_t pitch) {
  return pitch * layer.stride_h == tile[TileAxis::W] * layer.stride_w;
}

// Consecutive micro-ops must not hit one accumulator within three steps: as long as several add to
// it, loops over the result stay among them.
int64_t kernel_uops(const PerAxis<int64_t>& t, bool merged) {
  struct Loop {
    int64_t extent;
    bool result;
  };
  const int64_t rows = t[TileAxis::H], columns = t[TileAxis::W];
  const std::array<Loop, 7> loops = {{{t[TileAxis::C], false},
                                      {t[TileAxis::R], false},
                                      {t[TileAxis::S], false},
                                      {t[TileAxis::O], true},
                                      {t[TileAxis::N], true},
                                      {merged ? rows * columns : rows, true},
                                      {merged ? 1 : columns, true}}};
  int64_t all = 1, results = 1;
  for (const Loop& loop : loops) {
    all *= loop.extent;
    if (loop.result) results *= loop.extent;
  }
  int64_t best = all;
  for (const Loop& outer : loops) {
    for (const Loop& inner : loops) {
      if (&outer == &inner) continue;
      const int64_t uops = all / (outer.extent * inner.extent);
      const int64_t spread =
          results / (outer.result ? outer.extent : 1) / (inner.result ? inner.extent : 1);
      // A single micro-op: the inner loop alone keeps the distance.
      const bool apart =
          results == all || spread >= 3 || (uops == 1 && inner.result && inner.extent >= 3);
      if (apart) best = std::min(best, uops);
    }
  }
  return best;
}

VtaNeed need(const VtaLayer& layer, const VtaMapping& m, const vta::Config& config) {
  const VtaRegions r{layer, m, config};
  const auto copies = [&](int depth) { return depth > 0 ? int64_t{m.copies} : int64_t{1}; };
  const int depth = result_depth(layer, m);
  VtaNeed n;
  n.acc = (depth > 0 ? m.result_copies : 1) * r.result_elements() + r.resident_vectors();
  if (layer.conv) {
    n.inp = copies(m.input_depth) * r.input_elements();
    n.wgt = copies(m.weight_depth) * r.weight_elements();
    const int64_t pitch = hull_columns(layer, r.extent_at(TileAxis::W, m.input_depth),
                                       r.extent_at(TileAxis::S, m.input_depth));
    n.uop = kernel_uops(m.tile, rows_merge(layer, m.tile, pitch));
  } else {
    n.inp = copies(depth) * r.input_elements();
    n.acc += r.input_elements();  // the window is read from the accumulators
  }
  if (layer.residuals > 0 || !layer.conv) n.wgt += 1;  // the identity
  n.inp += layer.residuals * m.copies * r.piece_elements();
  return n;
}

VtaTiles::VtaTiles(const VtaLayer& layer, const PerAxis<int64_t>& tile)
    : rows(input_forms(layer, TileAxis::H, tile)), columns(input_forms(layer, TileAxis::W, tile)) {
  for (size_t form = 0; form < kInputForms; ++form)
    if (!columns[form].empty())
      uops[form] = kernel_uops(tile, rows_merge(layer, tile, columns[form][0].all()));
}

int64_t layer_bound(const VtaLayer& layer, const vta::Config& config) {
  const VtaClock clock(config);
  const auto& e = layer.extent;
  const int64_t results = e[TileAxis::N] * e[TileAxis::O] * e[TileAxis::H] * e[TileAxis::W];
  const int64_t products = results * e[TileAxis::C] * e[TileAxis::R] * e[TileAxis::S];
  const auto& t = config.timing;
  const int64_t gemm = (products + results * layer.residual_steps) * t.gemm_ii +
                       (config.extensions.fused_reset ? 0 : results * t.gemm_ii);
  const int64_t alu = results * (layer.imm_ops * t.alu_imm_ii + layer.reg_ops * clock.reg_ii());
  const int64_t compute = config.extensions.pipeline4 ? std::max(gemm, alu) : gemm + alu;
  const int64_t groups =
      layer.out_per_group == 0 ? 1 : ceil_div(e[TileAxis::O], layer.out_per_group);
  const int64_t bytes =
      e[TileAxis::N] * groups * e[TileAxis::C] * layer.in_h * layer.in_w *
          config.element_bytes(Mem::Inp) +
      (layer.conv ? e[TileAxis::O] * e[TileAxis::C] * e[TileAxis::R] * e[TileAxis::S] *
                        config.element_bytes(Mem::Wgt)
                  : 0) +
      vector_elements(layer, e[TileAxis::N], e[TileAxis::O]) * config.element_bytes(Mem::Acc) +
      results * layer.residuals * config.element_bytes(Mem::Inp);
  const int64_t store = results * clock.store_element();
  return std::max({compute, ceil_div(bytes, t.bus_bytes), store});
}

}  // namespace tilewright::rules
