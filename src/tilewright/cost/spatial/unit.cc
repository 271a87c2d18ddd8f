#include "tilewright/cost/spatial/unit.h"

#include <bit>

#include "tilewright/accel/spatial/isa.h"

namespace tilewright::cost {
namespace {

using spatial::Dataflow;
using spatial::Links;
using spatial::Unit;

bool weight_stationary(const spatial::Design& design) {
  return design.unit == Unit::Gemm && design.dataflow == Dataflow::WeightStationary;
}

void set_roles(SpatialUnit& u) {
  const spatial::Design& d = u.design;
  const SpatialChoice& c = u.choice;
  auto lanes = [&](int loop, int64_t count) {
    if (loop >= 0) u.lanes[loop] = count;
  };
  if (d.unit == Unit::Dot) {
    lanes(c.k, d.units());
    u.lane_loop = {c.k, c.k};
  } else if (d.unit == Unit::Gemv) {
    lanes(c.i, d.units());
    u.lane_loop = {c.i, c.k};
    u.parts = d.units();
  } else if (d.unit == Unit::Conv2d) {
    lanes(c.j, d.rows);
    lanes(c.k, d.cols);
    u.lane_loop = {c.k, c.k};
    u.parts = d.rows;
  } else if (weight_stationary(d)) {
    lanes(c.j, d.cols);
    lanes(c.k, d.rows);
    u.lane_loop = {c.k, c.j};
    u.parts = d.cols;
  } else {
    lanes(c.i, d.rows);
    lanes(c.j, d.cols);
    u.lane_loop = {c.i, c.j};
    u.parts = d.units();
  }
}

/// Dimensions of one position behind it say nothing: transfers have no axes for them.
bool is_innermost(const SpatialLayer& layer, const SpatialTensor& tensor, int dim) {
  return std::all_of(tensor.dims.begin() + dim + 1, tensor.dims.end(), [&](const SpatialDim& d) {
    return d.extent == 1 && std::all_of(d.terms.begin(), d.terms.end(), [&](SpatialTerm term) {
             return layer.loops[term.loop].extent == 1;
           });
  });
}

void set_layout(SpatialUnit& u, int factor) {
  const SpatialTensor& tensor = u.layer.tensors[factor == 0 ? u.choice.first : u.choice.second()];
  for (const SpatialDim& dim : tensor.dims)
    for (const SpatialTerm& term : dim.terms)
      if (term.loop == u.lane_loop[factor]) {
        u.lane_dim[factor] = static_cast<int>(&dim - tensor.dims.data());
        const bool one = u.lanes[term.loop] == 1;
        u.lane_stride[factor] = one ? 1 : term.stride;
        u.gathers[factor] = !tensor.packed && (!is_innermost(u.layer, tensor, u.lane_dim[factor]) ||
                                               u.lane_stride[factor] != 1);
        // Rows of one element, the vector of a Gemv, lie beside each other too.
        u.skewed[factor] = dim.terms.size() > 1 || one || term.stride != 1;
      }
}

/// Strided dimensions that are neither runs nor lanes.
void find_skips(SpatialUnit& u, int factor) {
  const int tensor = factor ? u.choice.second() : u.choice.first;
  const std::vector<SpatialDim>& dims = u.layer.tensors[tensor].dims;
  for (size_t dim = 0; dim + 1 < dims.size(); ++dim)
    for (const SpatialTerm& term : dims[dim].terms)
      if (term.stride > 1 && static_cast<int>(dim) != u.lane_dim[factor])
        u.may_skip[tensor][dim] = true;
}

/// Places of sums go through the loops of the result, the last one fastest.
void find_joins(SpatialUnit& u) {
  const std::vector<SpatialDim>& dims = u.layer.tensors[kSpatialResult].dims;
  const uint32_t moves = u.moves[kSpatialResult];
  for (size_t dim = 0; dim + 1 < dims.size(); ++dim) {
    if (dims[dim].terms.size() != 1 || dims[dim + 1].terms.size() != 1) continue;
    const int outer = dims[dim].terms[0].loop, inner = dims[dim + 1].terms[0].loop;
    if (outer >= inner || u.lanes[outer] > 1 || u.lanes[inner] > 1) continue;
    const uint32_t between = ((1u << inner) - 1) & ~((2u << outer) - 1);
    u.joins_next[dim] = (moves & between) == 0;
  }
}

}  // namespace

SpatialUnit::SpatialUnit(const spatial::Design& d, const SpatialLayer& l, const SpatialChoice& c)
    : design(d), layer(l), choice(c), loops(static_cast<int>(l.loops.size())) {
  lanes.fill(1);
  for (int tensor = 0; tensor < kSpatialTensors; ++tensor)
    for (int loop = 0; loop < loops; ++loop)
      moves[tensor] |= uint32_t{layer.moves(tensor, loop)} << loop;
  set_roles(*this);
  for (int factor : {0, 1}) {
    set_layout(*this, factor);
    find_skips(*this, factor);
  }
  find_joins(*this);
  bias_loop = layer.bias_loop();
  stationary = weight_stationary(design) || design.unit == Unit::Conv2d;
  if (stationary) block_loops = moves[choice.second()];
  if (design.unit == Unit::Conv2d)
    for (int loop = 0; loop < loops; ++loop)
      if (layer.loops[loop].reduces && loop != choice.k) tap_loops |= 1u << loop;
  block_loops &= ~tap_loops;
  int place = 0;
  for (int rank : {0, 1, 2})  // taps of a block are innermost, what chooses the block outermost
    for (int loop = loops; loop-- > 0;) {
      const bool outer = stationary ? in(block_loops, loop) : !layer.loops[loop].reduces;
      if (rank == (in(tap_loops, loop) ? 0 : 1 + outer)) inner[place++] = loop;
    }
  fill = design.links == Links::Systolic ? design.rows + design.cols - 2
                                         : std::bit_width(uint64_t(design.units() - 1));
}

int64_t SpatialUnit::row_bytes(int factor, const SpatialSizes& size) const {
  const int loop = lane_loop[factor];
  return std::min(lanes[loop], size[loop]);
}

int64_t SpatialUnit::fetches(int factor) const {
  if (design.links != Links::None) return 1;
  if (design.unit == Unit::Gemv) return factor == 0 ? 1 : design.units();
  if (design.unit == Unit::Conv2d) return design.rows;
  return factor == 0 ? design.cols : design.rows;
}

SpatialPlaces SpatialUnit::places(int factor, const SpatialSizes& size) const {
  const int number = factor ? choice.second() : choice.first;
  const SpatialTensor& tensor = layer.tensors[number];
  const size_t in = static_cast<size_t>(lane_dim[factor]);
  const int64_t lane_size = size[lane_loop[factor]], width = lanes[lane_loop[factor]];
  SpatialPlaces places;
  // Packed blocks of which the last one is smaller would leave holes.
  const bool whole = skewed[factor] || (tensor.packed && lane_size > width && lane_size % width);
  int64_t pitch = std::min(width, lane_size);
  if (whole) {
    pitch = elements(number, in, size);
    if (lane_size > 1) places.phases = lane_stride[factor];
    places.phase = ceil_div(pitch, places.phases);
    pitch = places.phase * places.phases;
  }
  places.pitch[in] = 1;
  for (size_t i = tensor.dims.size(); i-- > 0;) {
    if (i == in) continue;
    places.pitch[i] = pitch;
    pitch *= elements(number, i, size);
  }
  places.block = whole ? 0 : pitch;
  places.bytes = whole ? pitch : pitch * ceil_div(lane_size, width);
  return places;
}

SpatialSizes SpatialUnit::strides(int factor, const SpatialSizes& size) const {
  const int number = factor ? choice.second() : choice.first;
  const SpatialTensor& tensor = layer.tensors[number];
  const SpatialPlaces at = places(factor, size);
  const int lane = lane_loop[factor];
  SpatialSizes strides{};
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    const int64_t step =
        static_cast<int>(i) == lane_dim[factor] ? at.phases : skips(number, i, size);
    for (const SpatialTerm& term : tensor.dims[i].terms)
      strides[term.loop] = term.stride * at.pitch[i] / step * lanes[term.loop];
  }
  if (at.block) strides[lane] = at.block;
  return strides;
}

bool SpatialUnit::gathers_in(int factor, const SpatialSizes& size) const {
  // Of one lane's elements those of the innermost dimension lie side by side.
  return gathers[factor] && (size[lane_loop[factor]] > 1 || gather_pitch(factor, size) > 1);
}

int64_t SpatialUnit::gather_pitch(int factor, const SpatialSizes& size) const {
  const int number = factor ? choice.second() : choice.first, in = lane_dim[factor];
  if (is_innermost(layer, layer.tensors[number], in)) return 1;  // phase by phase
  return skewed[factor] ? elements(number, static_cast<size_t>(in), size) : row_bytes(factor, size);
}

int64_t SpatialUnit::rows_of_block(const SpatialSizes& size) const {
  int64_t rows = design.rows;
  for (int loop = 0; loop < loops; ++loop)
    if (in(tap_loops, loop)) rows *= size[loop];
  return rows;
}

int64_t SpatialUnit::skips(int tensor, size_t dim, const SpatialSizes& size) const {
  if (!may_skip[tensor][dim]) return 1;
  int64_t stride = 1, loops_that_move = 0;
  for (const SpatialTerm& term : layer.tensors[tensor].dims[dim].terms)
    if (size[term.loop] > 1) {
      stride = term.stride;
      ++loops_that_move;
    }
  return loops_that_move == 1 ? stride : 1;
}

SpatialSpan SpatialUnit::span(int tensor, size_t dim, const SpatialBox& box) const {
  const SpatialDim& d = layer.tensors[tensor].dims[dim];
  int64_t low = -d.begin, high = 1 - d.begin;
  for (const SpatialTerm& term : d.terms) {
    low += term.stride * box.start[term.loop];
    high += term.stride * (box.start[term.loop] + box.size[term.loop] - 1);
  }
  const int64_t step = skips(tensor, dim, box.size);
  const int64_t before = std::min(high, low < 0 ? low + ceil_div(-low, step) * step : low);
  const int64_t end = std::min(high, d.extent);
  return {end > before ? ceil_div(end - before, step) : 0, ceil_div(high - low, step), step == 1};
}

/// Such a dimension stays one of a STORE, even where it has one position.
bool SpatialUnit::has_biases(int tensor, size_t dim) const {
  if (tensor != kSpatialResult || !layer.biased) return false;
  const std::vector<SpatialTerm>& terms = layer.tensors[tensor].dims[dim].terms;
  return std::any_of(terms.begin(), terms.end(),
                     [&](SpatialTerm term) { return term.loop == bias_loop; });
}

SpatialTransfer SpatialUnit::transfer(int tensor, const SpatialSpan* spans) const {
  const SpatialTensor& t = layer.tensors[tensor];
  int64_t rows = 1, run = t.element_bytes, total = t.element_bytes, line = t.element_bytes;
  bool joined = true;  // all inner dimensions are whole: rows touch each other
  bool one_line = true;
  SpatialTransfer moved;
  for (size_t i = t.dims.size(); i-- > 0;) {
    total *= spans[i].all;
    joined = joined && (spans[i].dense || spans[i].there == 1);
    (joined ? run : rows) *= spans[i].there;
    if (const int64_t zeros = spans[i].all - spans[i].there; joined && zeros && !moved.stretch) {
      moved.stretch = run;
      moved.stretch_zeros = zeros * (run / std::max<int64_t>(1, spans[i].there));
    }
    if (one_line) line *= spans[i].there;
    joined = joined && (spans[i].there == t.dims[i].extent || t.packed);
    // Dimensions of one position behind a row say nothing; that of the biases stays one.
    one_line = one_line && joined && i > 0 && !has_biases(tensor, i) &&
               (line == t.element_bytes || (joins_next[i - 1] && !has_biases(tensor, i - 1)));
  }
  if (rows * run == 0) return {0, 0, total};
  if (moved.stretch == run) moved.stretch = moved.stretch_zeros = 0;
  moved.rows = rows;
  moved.run = run;
  moved.padding = total - rows * run;
  moved.line = line;
  return moved;
}

SpatialTransfer SpatialUnit::transfer(int tensor, const SpatialBox& box) const {
  const std::vector<SpatialDim>& dims = layer.tensors[tensor].dims;
  std::array<SpatialSpan, kSpatialDims> spans;
  for (size_t i = 0; i < dims.size(); ++i) spans[i] = span(tensor, i, box);
  SpatialTransfer moved = transfer(tensor, spans.data());
  if (!layer.biased || !layer.tensors[tensor].packed) return moved;
  for (int loop = 0; loop < loops; ++loop)
    if (layer.loops[loop].reduces && box.start[loop] > 0) return moved;
  moved.biases = bias_loop < 0 ? 1 : box.size[bias_loop];
  moved.run += kBiasBytes * moved.biases;
  return moved;
}

int64_t SpatialUnit::elements(int tensor, size_t dim, const SpatialSizes& size) const {
  int64_t sum = 1;
  for (const SpatialTerm& term : layer.tensors[tensor].dims[dim].terms)
    sum += term.stride * (size[term.loop] - 1);
  return ceil_div(sum, skips(tensor, dim, size));
}

int64_t SpatialUnit::buffer_bytes(int tensor, const SpatialSizes& tile) const {
  const int64_t bytes = places(tensor == choice.first ? 0 : 1, tile).bytes;
  return ceil_div(bytes, design.bank_bytes) * design.bank_bytes;
}

int64_t SpatialUnit::longest_tile(int loop) const {
  for (int factor : {0, 1})
    if (layer.tensors[factor].packed && in(moves[factor] & moves[kSpatialResult], loop))
      return spatial::kBiasWords / 2;
  return kLongestLoop;
}

const char* SpatialUnit::refuses(const SpatialSizes& tile) const {
  for (int loop = 0; loop < loops; ++loop) {
    if (tile[loop] > kLongestLoop) return "a loop of a COMPUTE counts to 65535";
    if (tile[loop] > longest_tile(loop))
      return "the bias memory holds 512 results of a tile, and as many of the next one";
  }
  // Strided lanes are loaded phase by phase: what else moves them must stay in its phase.
  for (int factor : {0, 1}) {
    const int lane = lane_loop[factor];
    const int64_t stride = lane_stride[factor];
    if (stride == 1 || tile[lane] == 1) continue;
    const SpatialTensor& tensor = layer.tensors[factor ? choice.second() : choice.first];
    for (const SpatialTerm& term : tensor.dims[static_cast<size_t>(lane_dim[factor])].terms)
      if (term.loop != lane && term.stride % stride && tile[term.loop] > 1)
        return "strided lanes and a tap that moves them by less want a tile of one tap";
  }
  return nullptr;
}

int64_t SpatialUnit::sums_per_part(const SpatialSizes& tile) const {
  int64_t sums = 1;
  for (int loop = 0; loop < loops; ++loop)
    if (in(moves[kSpatialResult], loop)) sums *= ceil_div(tile[loop], lanes[loop]);
  return sums;
}

int64_t SpatialUnit::stationary_per_part(const SpatialSizes& tile) const {
  return stationary ? rows_of_block(tile) * design.cols / parts : 0;
}

}  // namespace tilewright::cost
