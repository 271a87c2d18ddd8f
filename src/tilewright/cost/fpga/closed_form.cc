// Cycles of a design by the closed form of docs/fpga.md: the times of tiles, by kind, added up.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tilewright/base/integers.h"
#include "tilewright/cost/fpga/model.h"
#include "tilewright/cost/fpga/port.h"

namespace tilewright::cost {

double FpgaModel::image_cycles(const FpgaDesign& design, const Kind& c, const Kind& y,
                               const Kind& x, double& channel) const {
  const SpatialTensor& image = layer_.tensors[static_cast<size_t>(roles_.image)];
  const int64_t element = image.element_bytes;
  const int64_t block = std::min(design.block, extent(roles_.inputs));
  int64_t stride = 1;
  const bool inputs_last =
      !image.dims.empty() && spatial_dim_of(image, roles_.inputs, stride) == &image.dims.back();
  const double run = static_cast<double>((inputs_last ? c.size : x.span * block) * element);
  const double runs =
      static_cast<double>(inputs_last ? y.span * x.span : ceil_div(c.size, block) * y.span);
  const FpgaTransfer moved = read_runs(device_, runs / design.image_ports, run);
  channel += moved.channel * design.image_ports;
  // Of a word of the port as many elements are stored in a cycle as lie in different banks.
  const int64_t word = std::max<int64_t>(1, device_.port.bytes / element);
  const int64_t deep = inputs_last ? word : block;
  const int64_t reached =
      std::min(deep, design.ui) * std::min(pixel_banks(design), std::max<int64_t>(1, word / deep));
  const double stored = runs * run / static_cast<double>(element * std::min(word, reached));
  return std::max(moved.port, stored / design.image_ports);
}

double FpgaModel::weight_cycles(const FpgaDesign& design, int64_t outputs, int64_t inputs,
                                double& channel) const {
  const SpatialTensor& weights = layer_.tensors[static_cast<size_t>(roles_.weights)];
  const double bytes = static_cast<double>(outputs * inputs * taps_ * weights.element_bytes);
  double runs = design.weight_ports, run = std::ceil(bytes / design.weight_ports);
  if (!weights.packed) {  // as it lies in memory: pieces of its last dimension
    int64_t stride = 1;
    const bool inputs_last = spatial_dim_of(weights, roles_.inputs, stride) == &weights.dims.back();
    run = static_cast<double>((inputs_last ? inputs : outputs) * weights.element_bytes);
    runs = std::ceil(bytes / run / design.weight_ports) * design.weight_ports;
  }
  const FpgaTransfer moved = read_runs(device_, runs / design.weight_ports, run);
  channel += moved.channel * design.weight_ports;
  return moved.port;
}

double FpgaModel::result_cycles(const FpgaDesign& design, int64_t outputs, const Kind& y,
                                const Kind& x, double& channel) const {
  const SpatialTensor& result = layer_.tensors[kSpatialResult];
  int64_t stride = 1;
  const bool outputs_last = roles_.outputs >= 0 && !result.dims.empty() &&
                            spatial_dim_of(result, roles_.outputs, stride) == &result.dims.back();
  const int64_t block = std::min(design.block, extent(roles_.outputs));
  const double run =
      static_cast<double>((outputs_last ? outputs : x.size * block) * result.element_bytes);
  const double runs =
      static_cast<double>(outputs_last ? y.size * x.size : ceil_div(outputs, block) * y.size);
  const FpgaTransfer moved = write_runs(device_, runs, run);
  channel += moved.channel;
  return moved.port;
}

double FpgaModel::compute_cycles(const FpgaDesign& d, int64_t o, int64_t c, int64_t h,
                                 int64_t w) const {
  const int64_t apart = ceil_div(o, d.uo) * h * ceil_div(w, d.us),
                summed = ceil_div(c, d.ui) * taps_;
  // Two updates of one element are `apart` iterations from each other.
  const int64_t ii = summed > 1 ? ceil_div(mac_.recurrence, apart) : 1;
  return static_cast<double>(apart * summed * ii) + options_.depth;
}

/// Cycles of the processes for one kind of tile.
struct FpgaModel::Tile {
  double compute = 0, image = 0, weights = 0;

  /// With so many slots: reading into the only slot waits for the computation.
  double together(const FpgaDesign& d) const {
    double before = 0, beside = 0;
    (d.image_slots == 1 ? before : beside) = image;
    double& other = d.weight_slots == 1 ? before : beside;
    other = std::max(other, weights);
    return d.overlap ? std::max(compute + before, beside) : compute + image + weights;
  }
};

/// Cycles of all tiles added up, and what of them the end of a run needs.
struct FpgaModel::Closed {
  const FpgaDesign& design;
  bool image_stays = false, weights_stay = false;
  FpgaTime time;  ///< what is busy by itself
  double image_channel = 0, weight_channel = 0, result_channel = 0;
  double first_read = 0, last_write = 0;  ///< nothing overlaps with these
};

/// A block of sums: the tiles of inputs that are added to it, beside writing it. `first_outputs`,
/// `first_pixels`: of these kinds; what stays is read with them.
double FpgaModel::block_cycles(Closed& all, const Kind& o, const Kind& y, const Kind& x,
                               bool first_outputs, bool first_pixels) const {
  const FpgaDesign& d = all.design;
  const double here = y.count * x.count;
  double group = 0;
  for (const Kind& c : kinds(roles_.inputs, d.tc)) {
    double cx = 0, cw = 0;
    const double rx = image_cycles(d, c, y, x, cx), rw = weight_cycles(d, o.size, c.size, cw);
    const Tile tile{compute_cycles(d, o.size, c.size, y.size, x.size), all.image_stays ? 0 : rx,
                    all.weights_stay ? 0 : rw};
    group += c.count * tile.together(d);
    const double times = here * o.count * c.count;
    const double image_times = all.image_stays ? (first_outputs ? here : 0) : times;
    const double weight_times = all.weights_stay ? (first_pixels ? o.count : 0) : times;
    all.time.compute += times * tile.compute;
    all.time.image += image_times * rx;
    all.image_channel += image_times * cx;
    all.time.weights += weight_times * rw;
    all.weight_channel += weight_times * cw;
    if (d.image_slots > 1) all.first_read = std::max(all.first_read, rx);
    if (d.weight_slots > 1) all.first_read = std::max(all.first_read, rw);
  }
  double cy = 0;
  const double w = result_cycles(d, o.size, y, x, cy);
  if (d.result_slots > 1) all.last_write = std::max(all.last_write, w);
  all.time.result += here * o.count * w;
  all.result_channel += here * o.count * cy;
  return d.overlap && d.result_slots > 1 ? std::max(group, w) : group + w;
}

/// All tiles one after the other, for one iteration of the loops around.
double FpgaModel::tiles_cycles(Closed& all) const {
  const FpgaDesign& d = all.design;
  const auto& os = kinds(roles_.outputs, d.to);
  const auto& ys = kinds(roles_.rows, d.th);
  const auto& xs = kinds(roles_.pixels, d.tw);
  // A part of the time during which something stays: its tiles, beside reading the next of it.
  const auto around_one = [&](double inner, double read, int slots) {
    return d.overlap && slots > 1 ? std::max(inner, read) : inner + read;
  };
  double sum = 0, ignored = 0;
  std::vector<double> by_output(os.size(), 0);
  for (const Kind& y : ys)
    for (const Kind& x : xs) {
      const double here = y.count * x.count;
      double inner = 0;  // over the outputs, for one tile of pixels
      for (size_t i = 0; i < os.size(); ++i) {
        const double block = block_cycles(all, os[i], y, x, i == 0, &y == &ys[0] && &x == &xs[0]);
        inner += os[i].count * block;
        by_output[i] += here * block;
      }
      if (all.image_stays)
        inner = around_one(inner, image_cycles(d, kinds(roles_.inputs, d.tc)[0], y, x, ignored),
                           d.image_slots);
      sum += here * inner;
    }
  if (!all.weights_stay) return sum;
  sum = 0;
  for (size_t i = 0; i < os.size(); ++i)
    sum += os[i].count * around_one(by_output[i],
                                    weight_cycles(d, os[i].size, extent(roles_.inputs), ignored),
                                    d.weight_slots);
  return sum;
}

/// Ports lie on memory channels in turn: image, weights, result.
double FpgaModel::busiest_channel(const Closed& all) const {
  const FpgaDesign& d = all.design;
  const int channels = device_.memory.channels;
  std::vector<double> load(static_cast<size_t>(channels), 0.0);
  int port = 0;
  for (const auto& [cycles, ports] :
       {std::pair{all.image_channel, d.image_ports}, std::pair{all.weight_channel, d.weight_ports},
        std::pair{all.result_channel, 1}})
    for (int i = 0; i < ports * d.pipelines; ++i, ++port)
      load[static_cast<size_t>(port % channels)] += cycles / (ports * d.pipelines);
  return *std::max_element(load.begin(), load.end());
}

FpgaTime FpgaModel::time_closed(const FpgaDesign& d) const {
  const auto& os = kinds(roles_.outputs, d.to);
  const auto& cs = kinds(roles_.inputs, d.tc);
  const auto& ys = kinds(roles_.rows, d.th);
  const auto& xs = kinds(roles_.pixels, d.tw);
  const bool one_input = cs.size() == 1 && cs[0].count == 1;
  Closed all{
      d, d.stays == FpgaStays::Image && one_input, d.stays == FpgaStays::Weights && one_input, {}};
  const auto around = static_cast<double>(around_);
  double lives = 0;
  for (const Kind& o : os)
    for (const Kind& y : ys)
      for (const Kind& x : xs) lives += o.count * y.count * x.count * around;
  const double sum = tiles_cycles(all) * around * std::ceil(lives / d.pipelines) / lives;
  FpgaTime time = all.time;
  time.channel = busiest_channel(all) * around;
  for (double* busy : {&time.compute, &time.image, &time.weights, &time.result})
    *busy *= around / d.pipelines;
  time.cycles = std::max(sum, time.channel) + options_.start;
  if (d.overlap) time.cycles += all.first_read + all.last_write;
  const int64_t apart = ceil_div(os[0].size, d.uo) * ys[0].size * ceil_div(xs[0].size, d.us);
  time.ii = ceil_div(cs[0].size, d.ui) * taps_ > 1 ? ceil_div(mac_.recurrence, apart) : 1;
  return time;
}

FpgaTime FpgaModel::time(const FpgaDesign& d) const {
  FpgaTime time = options_.as_written && d.overlap ? time_as_written(d) : time_closed(d);
  name_bound(time);
  return time;
}

void FpgaModel::name_bound(FpgaTime& time) {
  const std::pair<double, std::string_view> parts[] = {{time.compute, "compute"},
                                                       {time.image, "read image"},
                                                       {time.weights, "read weights"},
                                                       {time.result, "write"},
                                                       {time.channel, "channel"}};
  time.bound = std::max_element(std::begin(parts), std::end(parts), [](auto& a, auto& b) {
                 return a.first < b.first;
               })->second;
}

}  // namespace tilewright::cost
