#include "tilewright/rules/vta/model.h"

#include "tilewright/base/check.h"

namespace tilewright::rules {

using vta::Mem;

VtaClock::VtaClock(const vta::Config& config) : config_(config) {
  for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = config.element_bytes(static_cast<Mem>(i));
  out_beats_ = std::max<int64_t>(1, bytes(Mem::Out) / config.timing.bus_bytes);
  burst_bytes_ = int64_t{config.timing.max_burst_beats} * config.timing.bus_bytes;
}

int64_t VtaClock::load(Mem mem, int64_t rows, int64_t elements, int64_t pads) const {
  const auto& t = config_.timing;
  const int64_t row = ceil_div(elements * bytes(mem), t.bus_bytes);
  const int64_t n = rows * row;
  // Rows begin anywhere: the boundaries of bursts cut them in proportion to their length.
  const int64_t cuts = rows * (row - 1) / t.max_burst_beats;
  const int64_t idle = std::max<int64_t>(t.burst_gap, t.read_latency - row);
  const int64_t data = rows == 0 ? 0 : t.read_latency + n + (rows - 1) * idle + cuts * t.burst_gap;
  return t.load_overhead + std::max(data, pads + n);
}

int64_t VtaClock::store(int64_t rows, int64_t elements) const {
  const int64_t row = elements * bytes(Mem::Out);
  const int64_t bursts = rows + rows * (row - 1) / burst_bytes_;
  return 2 + bursts * config_.timing.store_row_overhead + rows * elements * store_element();
}

int64_t VtaClock::first_fetch(int64_t insns) const {
  const auto& t = config_.timing;
  return 1 + t.read_latency + std::min<int64_t>(insns, t.fetch_batch) * fetch_beats() + 2;
}

bool taps_together(const std::vector<TileAxis>& order) {
  const auto row = std::find(order.begin(), order.end(), TileAxis::R);
  const auto column = std::find(order.begin(), order.end(), TileAxis::S);
  return row == order.end() || column == order.end() || column == row + 1;
}

// --- Geometry.

std::vector<InputSpan> input_spans(const VtaLayer& layer, TileAxis axis, int64_t tile,
                                   int64_t taps) {
  const bool h = axis == TileAxis::H;
  const int64_t extent = layer.extent[axis], stride = h ? layer.stride_h : layer.stride_w;
  const int64_t window = layer.extent[h ? TileAxis::R : TileAxis::S];
  const int64_t dilation = h ? layer.dilation_h : layer.dilation_w;
  const int64_t pad = h ? layer.pad_top : layer.pad_left, in = h ? layer.in_h : layer.in_w;
  std::vector<InputSpan> spans;
  for (int64_t begin = 0; begin < extent; begin += tile) {
    for (int64_t tap = 0; tap < window; tap += taps) {
      const int64_t size = std::min(tile, extent - begin), count = std::min(taps, window - tap);
      const int64_t hull = h ? hull_rows(layer, size, count) : hull_columns(layer, size, count);
      const int64_t first = begin * stride + tap * dilation - pad;
      const int64_t real = std::min(in, first + hull) - std::max<int64_t>(0, first);
      InputSpan s;
      s.real = std::max<int64_t>(0, real);
      s.zeros = hull - s.real;
      spans.push_back(s);
    }
  }
  return spans;
}

InputForms input_forms(const VtaLayer& layer, TileAxis axis, const PerAxis<int64_t>& tile) {
  const TileAxis window = axis == TileAxis::H ? TileAxis::R : TileAxis::S;
  InputForms forms;
  for (const bool taps_cut : {false, true}) {
    const int64_t taps = (taps_cut ? tile : layer.extent)[window];
    if (taps_cut && taps == layer.extent[window]) continue;
    forms[input_form(false, taps_cut)] = input_spans(layer, axis, layer.extent[axis], taps);
    forms[input_form(true, taps_cut)] = input_spans(layer, axis, tile[axis], taps);
  }
  return forms;
}

VtaTransfers input_transfers(const VtaLayer& layer, const VtaClock& clock, int64_t images,
                             int64_t blocks, const InputSpan& rows, const InputSpan& columns) {
  const int64_t width = columns.all();
  int64_t instructions = images, row_count = blocks, row = rows.real * columns.real;
  int64_t pads = 0;
  const bool whole_rows = layer.row_step == 1 && columns.real == layer.in_w && columns.zeros == 0;
  if (rows.real == 0 || columns.real == 0)  // a tile of taps beside the image: zeros, in one row
    return {1, clock.load(Mem::Inp, 0, 0, images * blocks * rows.all() * width), 0};
  if (rows.all() == 1 && columns.zeros > 0) {  // one row of each block, one under the other
    row = columns.real, pads = blocks * columns.zeros;
  } else if (rows.zeros + columns.zeros > 0 || (!whole_rows && rows.real > 1)) {
    instructions = images * blocks, row_count = rows.real, row = columns.real;
    pads = rows.zeros * width + rows.real * columns.zeros;
  } else {
    if (whole_rows && rows.real == layer.in_h) row *= blocks, row_count = 1;
    // Images follow each other like rows, or in one row if all of them is read.
    const int64_t all = input_blocks(layer, layer.extent[TileAxis::O], layer.extent[TileAxis::C]);
    if (row_count == 1) {
      if (whole_rows && rows.real == layer.in_h && blocks == all)
        row *= images;
      else
        row_count = images;
      instructions = 1;
    }
  }
  return {instructions, clock.load(Mem::Inp, row_count, row, pads),
          instructions * clock.beats(Mem::Inp, row_count, row)};
}

VtaTransfers weight_transfers(const VtaLayer& layer, const VtaClock& clock, int64_t out, int64_t in,
                              int64_t rows, int64_t columns) {
  // Weights lie in DRAM as [O, C, R, S]: from the inside, what is contiguous is a row of a
  // transfer, the next axis has its rows, and those outside repeat it.
  const std::array<std::pair<int64_t, int64_t>, 4> axes = {{{columns, layer.extent[TileAxis::S]},
                                                            {rows, layer.extent[TileAxis::R]},
                                                            {in, layer.extent[TileAxis::C]},
                                                            {out, layer.extent[TileAxis::O]}}};
  std::array<int64_t, 3> counts = {1, 1, 1};  // elements, rows, transfers
  size_t level = 0;
  int64_t pitch = 1, next = 1;
  for (const auto& [count, extent] : axes) {
    if (count > 1) {
      // Joins the level whose end it begins at.
      if (pitch != next) level = std::min<size_t>(level + 1, 2);
      counts[level] *= count;
      next = pitch * count;
    }
    pitch *= extent;
  }
  return {counts[2], clock.load(Mem::Wgt, counts[1], counts[0], 0),
          counts[2] * clock.beats(Mem::Wgt, counts[1], counts[0])};
}

VtaBox store_box(const VtaLayer& layer, int64_t n, int64_t o, int64_t h, int64_t w) {
  const auto& e = layer.extent;
  if (w < e[TileAxis::W] && h > 1) return {n * o, h, w};
  if (h < e[TileAxis::H]) return o == 1 ? VtaBox{1, n, h * w} : VtaBox{n, o, h * w};
  if (o < e[TileAxis::O]) return {1, n, o * h * w};
  return {1, 1, n * o * h * w};
}

}  // namespace tilewright::rules
