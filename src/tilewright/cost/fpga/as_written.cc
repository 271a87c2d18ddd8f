// Cycles of a design as the code that is generated runs it (docs/fpga-timing.md).
//
// Example: a 3x3 convolution on tiles of 32 channels from 8, 14x14 pixels, 8 tiles of inputs for
// each of the result:
//
//   read image    8 16 16 = 2048 iterations, a pixel each   + 5 cycles, the first 74 after a slot
//   read weights  32 8 3 3 = 2304                                       is free
//   compute       9 14 14 II + depth                        + 5 cycles
//   write         32 14 14 = 6272 for each 8 tiles          + 7 cycles
//
// Tiles follow one another by the rules of blocks: a reader needs a free slot, the computation
// full ones, and so on. All tiles are alike, so a few of them tell how long the others take.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "tilewright/base/integers.h"
#include "tilewright/cost/fpga/model.h"
#include "tilewright/cost/fpga/port.h"

namespace tilewright::cost {
namespace as_written {

/// What a copy of one block takes of each part of the hardware that it goes through.
struct Moved {
  double data = 0;    ///< its process: iterations, and what a tile costs besides
  double port = 0;    ///< the port, to move the beats
  double asked = 0;   ///< the control that asks for bursts
  double window = 0;  ///< all answers, with as many bursts under way as the port allows
  double round = 0;   ///< one burst, from its request to its end
  double ahead = 0;   ///< reads: bursts that may be under way; writes: the fifo. In port cycles

  double cycles() const { return std::max({data, port, asked, window}); }  ///< of many in turn
};

}  // namespace as_written

namespace {

using as_written::Moved;

// Cycles besides those of iterations: taking and handing over blocks, ends of loops, the begin of a
// nest. source: docs/fpga-timing.md, sections 1, 2 and 4.
constexpr double kReadTile = 5, kWriteTile = 7, kComputeTile = 5, kResultTile = 3;
constexpr double kRequest = 4;  ///< from a free slot to the first burst that is asked for
constexpr double kEnd = 12;     ///< from the last beat to its answer, and the ends of loops
constexpr int kMemory = 2;      ///< to read a RAM

/// Beats that wait to be written. source: accel/fpga/design.h, codegen/fpga/design_of.cc.
double write_fifo(const hw::FpgaDevice& device) {
  return device.family == hw::FpgaFamily::Ice40 ? 8 : 64;
}

int log2_up(int64_t n) {
  int steps = 0;
  while ((int64_t{1} << steps) < n) ++steps;
  return steps;
}

/// The requests of a port. A burst is asked for when one before it has ended, as many before as may
/// be under way; so a few at a time cost no more than one.
struct Requests {
  double asked = 0;  ///< when the last burst was asked for
  double paced = 0;  ///< when the window is free again

  void make(double from, const Moved& block) {
    paced = std::max(paced, from) + block.window;
    asked = std::max(from + block.asked, paced - block.round);
  }
  void shift(double cycles) { asked += cycles, paced += cycles; }
};

/// A block of a channel, filled by one process.
struct Filled {
  Moved block;
  int slots = 1;
  int64_t lasts = 1;          ///< tiles that use one block
  double latency = 0;         ///< from a free slot to its first element
  std::vector<double> freed;  ///< when blocks were handed back, the last ones
  double done = 0;            ///< when the last block was full
  Requests requests;

  double slot_free() const {
    return freed.size() < static_cast<size_t>(slots)
               ? 0
               : freed[freed.size() - static_cast<size_t>(slots)];
  }
  void fill() {
    const double ask = std::max(requests.asked, slot_free());
    requests.make(ask, block);
    done = std::max(std::max(done, ask + latency) + std::max(block.data, block.port),
                    requests.asked + latency);
    // A burst is under way until the process took its last element.
    requests.asked = std::max(requests.asked, done - block.ahead);
  }
  void shift(double cycles) {
    done += cycles;
    requests.shift(cycles);
    for (double& one : freed) one += cycles;
  }
};

/// The process that writes blocks of sums. It hands a block back when its last elements are in the
/// port's fifo, from where they go on.
struct Written {
  Moved block;
  double handed = 0;  ///< when the process was through with the last block
  double done = 0;    ///< when its last beat was written
  Requests requests;

  void write(double full) {
    requests.make(std::max(requests.asked, full), block);
    done = std::max(std::max(done, full) + block.port, requests.asked);
    handed = std::max(std::max(handed, full) + block.data, done - block.ahead);
    done = std::max(done, handed);
  }
  void shift(double cycles) {
    handed += cycles, done += cycles;
    requests.shift(cycles);
  }
};

/// The tiles of a layer, one after the other.
class Tiles {
 public:
  /// `terms`: tiles of inputs that are added to one block of sums.
  Tiles(Filled image, Filled weights, int64_t terms, int sum_slots, double compute, Moved result)
      : x_(std::move(image)),
        w_(std::move(weights)),
        terms_(terms),
        sum_slots_(static_cast<size_t>(sum_slots)),
        compute_(compute),
        y_{result, 0, 0, {}},
        turns_(std::max(2, std::lcm(std::lcm(x_.slots, w_.slots), sum_slots))) {}

  /// Cycles until `count` tiles are written: some tiles of a period are followed, then some
  /// periods; what is left goes on as the last ones did.
  double cycles(int64_t count) {
    const int64_t most = 3 + turns_;
    const int64_t period = std::max({x_.lasts, w_.lasts, terms_}), periods = count / period;
    std::vector<double> ends;
    for (int64_t p = 0; p < std::min(periods, most); ++p) {
      follow(period);
      ends.push_back(y_.done);
    }
    return periods <= most ? ends.back()
                           : ends.back() + static_cast<double>(periods - most) * pace(ends);
  }

 private:
  /// From one of the last to the next. Slots make steps alternate, so all slots had their turn.
  double pace(const std::vector<double>& times) const {
    return (times.back() - times[times.size() - 1 - static_cast<size_t>(turns_)]) / turns_;
  }

  void follow(int64_t period) {
    const int64_t looked = std::min<int64_t>(period, 6 + turns_);
    std::vector<double> steps;
    for (int64_t t = 0; t < looked; ++t) {
      const bool last = t + 1 == looked;
      // The last tile of a period is looked at as such.
      if (last && period > looked) skip(pace(steps) * static_cast<double>(period - looked));
      tile(t == 0, last);
      steps.push_back(computed_);
    }
  }

  /// So many cycles later all goes on as now. Where sums take several tiles, none of those that are
  /// skipped is written, and what was written stays so.
  void skip(double cycles) {
    computed_ += cycles;
    for (Filled* one : {&x_, &w_})
      if (one->lasts == 1) one->shift(cycles);
    if (terms_ > 1) return;
    y_.shift(cycles);
    for (double& written : slots_) written += cycles;
  }

  /// `first`, `last`: of a period.
  void tile(bool first, bool last) {
    if (first || x_.lasts == 1) x_.fill();
    if (first || w_.lasts == 1) w_.fill();
    double start = std::max({computed_, x_.done, w_.done});
    if (terms_ == 1 || first) {
      if (slots_.size() >= sum_slots_) start = std::max(start, slots_[slots_.size() - sum_slots_]);
      start += kResultTile;
    }
    computed_ = start + compute_;
    if (last || x_.lasts == 1) x_.freed.push_back(computed_);
    if (last || w_.lasts == 1) w_.freed.push_back(computed_);
    if (terms_ == 1 || last) {
      y_.write(computed_);
      slots_.push_back(y_.handed);
    }
  }

  Filled x_, w_;
  int64_t terms_;
  size_t sum_slots_;
  double compute_;  ///< of a tile
  Written y_;
  int turns_;  ///< tiles after which each channel is at the same slot again
  double computed_ = 0;
  std::vector<double> slots_;  ///< when blocks of sums were handed back
};

}  // namespace

/// What computing one tile takes.
struct FpgaModel::Pipeline {
  int64_t ii = 1;
  double cycles = 0;
};

/// What a copy between memory and the chip takes for one tile.
struct FpgaModel::Copy {
  Moved block;
  double channel = 0;  ///< cycles of the memory channel
  double bursts = 1;

  /// Cycles from one burst to the next.
  double pace() const { return std::max(block.data, block.port) / bursts; }
};

/// By how much bursts of `other` make a copy wait that has the same memory channel, for each of
/// them. The channel serves one burst at a time, and a port keeps none in store. So one that comes
/// while the other has the channel waits for the rest of it. One that is hardly faster than the
/// other falls into its step.
double FpgaModel::wait_for(const Copy& copy, const Copy& other) {
  const double held = std::max(1.0, other.channel / other.bursts);
  const double own = copy.pace(), others = other.pace();
  if (own <= others && others <= own + held) return others - own;
  return held <= own ? held * held / (2 * own) : held - own / 2;
}

/// What a copy moves in one go: elements that lie side by side in memory.
struct FpgaModel::Row {
  int64_t length = 1;  ///< with padding
  int64_t inside = 1;  ///< of these so many are in the tensor, at most
  int64_t lanes = 1;   ///< that move in a cycle
  int64_t step = 1;    ///< rows begin at multiples of so many elements
};

int64_t FpgaModel::tile_of(const FpgaDesign& d, int loop) const {
  if (loop == roles_.outputs) return d.to;
  if (loop == roles_.inputs) return d.tc;
  if (loop == roles_.rows) return d.th;
  if (loop == roles_.pixels) return d.tw;
  const SpatialLoop& other = layer_.loops[static_cast<size_t>(loop)];
  return other.reduces ? other.extent : 1;
}

/// Banks along a dimension.
int64_t FpgaModel::banks_of(const FpgaDesign& d, const SpatialDim& dim) const {
  int64_t most = 1;
  for (const SpatialTerm& term : dim.terms)
    most = std::max(most, term.loop == roles_.outputs  ? d.uo
                          : term.loop == roles_.inputs ? d.ui
                          : term.loop == roles_.pixels ? d.us
                                                       : 1);
  return most;
}

/// Elements of a tile along a dimension, with padding.
int64_t FpgaModel::hull_of(const FpgaDesign& d, const SpatialDim& dim) const {
  int64_t size = 1;
  for (const SpatialTerm& term : dim.terms) size += (tile_of(d, term.loop) - 1) * term.stride;
  return size;
}

FpgaModel::Row FpgaModel::row_of(const FpgaDesign& d, const SpatialTensor& tensor) const {
  Row row;
  // Rows run along the last dimension in which the tile has more than one element.
  size_t behind = tensor.dims.size();
  while (behind > 0 && hull_of(d, tensor.dims[behind - 1]) == 1) --behind;
  if (behind == 0) return row;
  for (size_t i = behind; i < tensor.dims.size(); ++i)
    if (tensor.dims[i].extent != 1) return row;
  const SpatialDim& dim = tensor.dims[behind - 1];
  const int64_t banks = banks_of(d, dim);
  const int64_t word = std::max<int64_t>(1, device_.port.bytes / tensor.element_bytes);
  row.length = hull_of(d, dim);
  // Groups lie side by side at multiples of their size, in different banks.
  int64_t whole = dim.begin != 0 ? 1 : std::gcd(row.length, banks);
  for (const SpatialTerm& term : dim.terms)
    whole = std::gcd(whole, tile_of(d, term.loop) * term.stride);
  if (tensor.dims.size() > 1) whole = std::gcd(whole, dim.extent);
  row.lanes = std::min(whole & -whole, word);
  // A counter that runs over more banks than are filled in a cycle is cut there, and so are rows.
  if (banks > row.lanes) row.length = std::min(row.length, banks);
  row.inside = std::min(row.length, dim.extent);
  row.step = std::gcd(std::gcd(dim.begin, row.length), word);
  for (const SpatialTerm& term : dim.terms) {  // those of taps do not move a tile
    const bool tap = layer_.loops[static_cast<size_t>(term.loop)].reduces;
    if (!tap || term.loop == roles_.inputs)
      row.step = std::gcd(row.step, tile_of(d, term.loop) * term.stride);
  }
  if (tensor.dims.size() > 1) row.step = std::gcd(row.step, dim.extent);
  return row;
}

double FpgaModel::most_lanes(const SpatialTensor& tensor) const {
  const auto word = [&](const SpatialTensor& t) {
    return static_cast<double>(device_.port.bytes) / static_cast<double>(t.element_bytes);
  };
  if (!options_.as_written) return word(layer_.tensors[0]);
  // Rows of the last dimension begin at multiples of its extent. If a tile has one element of it,
  // one moves in a cycle.
  const int64_t last = tensor.dims.size() < 2 ? 1 : tensor.dims.back().extent;
  return last == 1 ? word(tensor) : std::min(word(tensor), static_cast<double>(last & -last));
}

FpgaModel::Copy FpgaModel::copy_of(const FpgaDesign& d, const SpatialTensor& tensor,
                                   bool writes) const {
  double all = 1, inside = 1;  // elements with and without padding
  for (const SpatialDim& dim : tensor.dims) {
    // What is written of a single tile that goes over the end is not more than there is.
    const int64_t size = writes ? std::min(hull_of(d, dim), dim.extent) : hull_of(d, dim);
    all *= static_cast<double>(size);
    inside *= static_cast<double>(std::min(size, dim.extent));
  }
  const hw::FpgaPort& port = device_.port;
  const Row row = row_of(d, tensor);
  const double iterations = all / static_cast<double>(row.lanes);
  const double moved_rows = inside / static_cast<double>(row.inside);
  // On average over where a row may begin in a beat.
  const auto apart =
      static_cast<double>(std::max<int64_t>(0, row.inside - row.step) * tensor.element_bytes);
  const double beats = apart / port.bytes + 1;
  const double bursts = std::ceil(beats / port.burst_beats);
  const double channel = channel_bytes_per_cycle(device_);
  const double burst = beats / bursts;
  const double moved = moved_rows * bursts, window = port.outstanding;
  const double share = writes ? port.write_share : port.read_share;
  Copy copy;
  copy.channel = moved_rows * beats * port.bytes / (share * channel);
  copy.bursts = moved;
  Moved& block = copy.block;
  block.data = iterations + (writes ? kWriteTile : kReadTile);
  block.port = std::max(moved * (burst + (writes ? port.write_gap : 0)), copy.channel);
  block.asked = all / static_cast<double>(row.length) + moved;
  block.round =
      writes ? port.write_latency + device_.write_beat() * burst : port.read_latency + burst;
  block.window = moved * block.round / window;
  block.ahead = writes ? write_fifo(device_) * block.port / (moved_rows * beats)
                       : window * std::max(block.data, block.port) / moved;
  return copy;
}

FpgaModel::Pipeline FpgaModel::pipeline_of(const FpgaDesign& d) const {
  // Read, multiply, a tree of additions, one to the sum, store.
  const hw::FpgaOperator* rtl = device_.find("mac", name(options_.dtype), hw::FpgaPath::Rtl);
  const hw::FpgaOperator& mac = rtl == nullptr ? mac_ : *rtl;
  const bool real = is_float(options_.dtype);
  const int add = real ? mac.sum_cycles() : 1;
  const int multiply = real ? mac.product_cycles() : 2;
  const double depth = kMemory + multiply + add * (log2_up(d.ui) + 1) + 2;
  const int64_t apart = ceil_div(d.to, d.uo) * d.th * ceil_div(d.tw, d.us),
                summed = ceil_div(d.tc, d.ui) * taps_;
  Pipeline made;
  made.ii = summed > 1 ? ceil_div(mac.recurrence, apart) : 1;
  made.cycles = static_cast<double>(apart * summed * made.ii) + depth + kComputeTile;
  return made;
}

void FpgaModel::share_channels(const std::array<std::pair<Copy*, double>, 3>& copies) const {
  const auto channels = static_cast<size_t>(device_.memory.channels);
  std::array<double, 3> waits = {};  // of a block
  for (size_t i = 0; i < copies.size(); ++i)
    for (size_t j = 0; j < copies.size(); ++j) {
      if (i == j || i % channels != j % channels) continue;
      const auto& [copy, blocks] = copies[i];
      const auto& [other, others] = copies[j];
      waits[i] += other->bursts * others / blocks * wait_for(*copy, *other);
    }
  for (size_t i = 0; i < copies.size(); ++i) {
    Moved& block = copies[i].first->block;
    block.port += waits[i];
    if (i + 1 < copies.size()) block.data += waits[i];  // what is written waits in the fifo
  }
}

FpgaTime FpgaModel::time_as_written(const FpgaDesign& d) const {
  const int64_t os = ceil_div(extent(roles_.outputs), d.to),
                cs = ceil_div(extent(roles_.inputs), d.tc);
  const int64_t pixels =
      ceil_div(extent(roles_.rows), d.th) * ceil_div(extent(roles_.pixels), d.tw);
  const bool image_stays = d.stays == FpgaStays::Image && cs == 1;
  const bool weights_stay = d.stays == FpgaStays::Weights && cs == 1;
  Copy image = copy_of(d, layer_.tensors[static_cast<size_t>(roles_.image)], false);
  Copy weights = copy_of(d, layer_.tensors[static_cast<size_t>(roles_.weights)], false);
  Copy result = copy_of(d, layer_.tensors[kSpatialResult], true);
  const int64_t tiles = os * pixels * cs * around_;
  const int64_t image_lasts = image_stays ? os : 1, weights_last = weights_stay ? pixels : 1;
  const double all = static_cast<double>(tiles);
  const double images = all / static_cast<double>(image_lasts),
               kernels = all / static_cast<double>(weights_last),
               results = all / static_cast<double>(cs);
  share_channels({{{&image, images}, {&weights, kernels}, {&result, results}}});
  const Pipeline pipeline = pipeline_of(d);
  const double latency = device_.port.read_latency + kRequest;
  const Filled x{image.block, d.image_slots, image_lasts, latency, {}, 0, {}};
  const Filled w{weights.block, d.weight_slots, weights_last, latency, {}, 0, {}};
  FpgaTime time;
  time.ii = pipeline.ii;
  time.compute = all * pipeline.cycles;
  time.image = images * x.block.cycles();
  time.weights = kernels * w.block.cycles();
  time.result = results * result.block.cycles();
  const double sum = Tiles(x, w, cs, d.result_slots, pipeline.cycles, result.block).cycles(tiles);

  // Arguments lie on channels in turn.
  const int channels = device_.memory.channels;
  std::vector<double> load(static_cast<size_t>(channels), 0.0);
  const double channel[] = {image.channel * images, weights.channel * kernels,
                            result.channel * results};
  for (int i = 0; i < 3; ++i) load[static_cast<size_t>(i % channels)] += channel[i];
  time.channel = *std::max_element(load.begin(), load.end());
  // A process works at one tile at a time.
  time.cycles =
      std::max({sum, time.compute, time.image, time.weights, time.result, time.channel + latency}) +
      kEnd;
  return time;
}

}  // namespace tilewright::cost
