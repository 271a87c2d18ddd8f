#include "tilewright/cost/spatial/unit.h"

#include <bit>
#include <cmath>
#include <numeric>

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

void set_layout(SpatialUnit& u, int factor) {
  const SpatialTensor& tensor = u.layer.tensors[factor == 0 ? u.choice.first : u.choice.second()];
  for (const SpatialDim& dim : tensor.dims)
    for (const SpatialTerm& term : dim.terms)
      if (term.loop == u.lane_loop[factor]) {
        u.lane_dim[factor] = static_cast<int>(&dim - tensor.dims.data());
        const bool one = u.lanes[term.loop] == 1;
        u.lane_stride[factor] = one ? 1 : term.stride;
        u.gathers[factor] =
            !tensor.packed && (&dim != &tensor.dims.back() || u.lane_stride[factor] != 1);
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
  for (bool outer : {false, true})
    for (int loop = loops; loop-- > 0;)
      if (outer == (stationary ? in(block_loops, loop) : !layer.loops[loop].reduces))
        inner[place++] = loop;
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

SpatialUnit::Accesses SpatialUnit::row_accesses(int factor, const SpatialSizes& size) const {
  const int64_t line = line_bytes(), word = design.bank_bytes;
  const int64_t bytes = row_bytes(factor, size);
  auto blocks = [&](int loop) {
    return lanes[loop] == 1 ? size[loop] : ceil_div(size[loop], lanes[loop]);
  };
  const int own = lane_loop[factor];
  if (fetches(factor) > 1) {
    // The last block of lanes may be smaller.
    const int64_t last = size[own] - (blocks(own) - 1) * lanes[own];
    int64_t rows = (blocks(own) - 1) * ceil_div(bytes * fetches(factor), line) +
                   ceil_div(last * fetches(factor), line);
    for (int loop = 0; loop < loops; ++loop)
      if (loop != own) rows *= blocks(loop);
    return {1, double(rows), double(rows)};
  }
  const SpatialSizes step = strides(factor, size);
  // Where in their word rows begin: loops with many iterations get to every multiple of `aligned`,
  // those with few to the places that they have.
  int64_t aligned = word;
  uint32_t few = 0;
  for (int loop = 0; loop < loops; ++loop) {
    if (blocks(loop) == 1 || step[loop] % word == 0) continue;
    const int64_t common = std::gcd(word, step[loop]);
    if (blocks(loop) * common < word)
      few |= uint32_t{1} << loop;
    else
      aligned = std::gcd(aligned, common);
  }
  uint32_t in_span = 0;  // loops whose rows one access may serve
  // The share of places at which so many bytes need only one access.
  const auto fits = [&](int64_t span) {
    if (span > line) return 0.0;
    std::vector<double> places(size_t(aligned), 0.0);
    places[0] = 1;
    for (int loop = 0; loop < loops; ++loop) {
      if (!in(few & ~in_span, loop)) continue;
      std::vector<double> moved(places.size(), 0.0);
      for (int64_t i = 0; i < blocks(loop); ++i)
        for (size_t at = 0; at < places.size(); ++at)
          moved[(at + size_t(i * step[loop])) % places.size()] += places[at] / double(blocks(loop));
      places = std::move(moved);
    }
    double share = 0;
    for (int64_t at = 0; at < aligned; ++at)
      if (at <= line - span)
        share += places[size_t(at)] * std::min(1.0, double((line - span - at) / aligned + 1) *
                                                        double(aligned) / double(word));
    return share;
  };
  // Where the bytes of a loop's rows fit one access, that one serves all of them; elsewhere each
  // row needs its own.
  const double of_own = double(blocks(own));
  const int64_t last = size[own] - (blocks(own) - 1) * lanes[own];  // it may be smaller
  const auto mean_row = [&](const auto& of) {
    return ((of_own - 1) * of(bytes) + of(std::min(bytes, last))) / of_own;
  };
  double fitting = bytes > line ? 0 : mean_row(fits), together = 1;
  double apart = std::max(2.0, std::ceil(double(bytes) / double(line)));
  if (bytes > line)
    apart = mean_row([&](int64_t row) {
      // One more where the row begins so late in its word that its end needs another line.
      const int64_t lines = ceil_div(row, line);
      return double(lines) + 1 - fits(row - (lines - 1) * line);
    });
  int64_t span = bytes;
  bool run = true;     // rows go on where the last ones ended
  bool mixed = false;  // long times with rows that fit and long ones with rows that do not
  for (int i = 0; i < loops; ++i) {
    const int loop = inner[i];
    const int64_t count = blocks(loop);
    if (count == 1) continue;
    if (step[loop] == 0) {
      if (span > line) together *= double(count);
      apart *= double(count);
      run = run && fitting == 1;
      mixed = mixed || (fitting > 0 && fitting < 1);
    } else if (run && (step[loop] == span || (step[loop] < span && span <= line))) {
      span += (count - 1) * step[loop];
      in_span |= uint32_t{1} << loop;
      // The last block of lanes may be smaller.
      if (loop == own) span -= bytes - (size[own] - (count - 1) * lanes[own]);
      fitting = fits(span);
      apart = std::max(2.0, double(span) / double(line));
    } else {
      auto beside = [&](int64_t offset) {
        return double(std::max<int64_t>(0, line - offset - span) / step[loop] + 1);
      };
      together *= double(count) * 0.5 * (1 / beside(0) + 1 / beside(word - aligned));
      together = std::max(together, 1.0);
      apart *= double(count);
      span += (count - 1) * step[loop];
      run = false;
    }
  }
  if (mixed) return {fitting, together, apart};
  const double mean = fitting * together + (1 - fitting) * apart;
  return {1, mean, mean};
}

bool SpatialUnit::gathers_in(int factor, const SpatialSizes& size) const {
  // Of one lane's elements those of the innermost dimension lie side by side.
  return gathers[factor] && (size[lane_loop[factor]] > 1 || gather_pitch(factor, size) > 1);
}

int64_t SpatialUnit::gather_pitch(int factor, const SpatialSizes& size) const {
  const int number = factor ? choice.second() : choice.first, in = lane_dim[factor];
  const size_t dims = layer.tensors[number].dims.size();
  if (in + 1 == static_cast<int>(dims)) return 1;  // phase by phase
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

SpatialTransfer SpatialUnit::transfer(int tensor, const SpatialSpan* spans) const {
  const SpatialTensor& t = layer.tensors[tensor];
  int64_t rows = 1, run = t.element_bytes, total = t.element_bytes, line = t.element_bytes;
  bool joined = true;  // all inner dimensions are whole: rows touch each other
  bool one_line = true;
  for (size_t i = t.dims.size(); i-- > 0;) {
    total *= spans[i].all;
    joined = joined && (spans[i].dense || spans[i].there == 1);
    (joined ? run : rows) *= spans[i].there;
    if (one_line) line *= spans[i].there;
    joined = joined && (spans[i].there == t.dims[i].extent || t.packed);
    one_line = one_line && joined && i > 0 && joins_next[i - 1];
  }
  if (rows * run == 0) return {0, 0, total};
  return {rows, run, total - rows * run, line};
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

const char* SpatialUnit::refuses(const SpatialSizes& tile) const {
  for (int loop = 0; loop < loops; ++loop) {
    if (tile[loop] > 65535) return "a loop of a COMPUTE counts to 65535";
    for (int factor : {0, 1})
      if (layer.tensors[factor].packed && in(moves[factor] & moves[kSpatialResult], loop) &&
          tile[loop] > spatial::kBiasWords / 2)
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

SpatialUnit::Compute SpatialUnit::compute(const SpatialSizes& size) const {
  int64_t steps = 1, blocks = 1;
  for (int loop = 0; loop < loops; ++loop) {
    const int64_t count = lanes[loop] == 1 ? size[loop] : ceil_div(size[loop], lanes[loop]);
    steps *= count;
    if (in(block_loops, loop)) blocks *= count;
  }
  const double overhead = double(design.timing.compute_overhead + 1 + fill);
  const Accesses rows0 = row_accesses(0, size);
  const double first = rows0.mean();
  if (!stationary) {
    const Accesses rows1 = row_accesses(1, size);
    auto both = [&](double accesses) { return std::max(double(steps), accesses); };
    const double a = rows0.share, b = rows1.share;
    const double cycles = a * b * both(rows0.kept + rows1.kept) +
                          a * (1 - b) * both(rows0.kept + rows1.repeated) +
                          (1 - a) * b * both(rows0.repeated + rows1.kept) +
                          (1 - a) * (1 - b) * both(rows0.repeated + rows1.repeated);
    return {overhead + cycles, first + rows1.mean(), steps};
  }
  // Lanes of ragged blocks that do nothing are not read.
  const int row_loop = design.unit == Unit::Conv2d ? choice.j : choice.k;
  const double valid =
      double(size[row_loop]) / double(ceil_div(size[row_loop], lanes[row_loop]) * lanes[row_loop]);
  const double rows = double(rows_of_block(size)) * valid, count = double(blocks);
  // Rows that do not follow each other have an access each.
  const double bytes = double(row_bytes(1, size)), line = double(line_bytes());
  const double pitch = double(strides(1, size)[row_loop]) / double(lanes[row_loop]);
  const double weights =
      rows * std::max(bytes / line, pitch > bytes ? std::min(1.0, pitch / line) : 0);
  const double load = std::max(rows, weights);
  const double stream = std::max(double(steps), first) / count;
  const double both = std::max({stream, load, first / count + weights});
  // Rows of the first steps are read while the first block is loaded.
  const double per_row = first / double(steps);
  const double early = std::min(
      {std::min(8.0, double(steps)) * per_row, load - weights, stream - double(steps) / count});
  return {overhead - 1 + load + (count - 1) * both + stream - std::max(0.0, early),
          first + count * weights, steps};
}

}  // namespace tilewright::cost
