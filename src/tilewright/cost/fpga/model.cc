#include "tilewright/cost/fpga/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tilewright/cost/fpga/port.h"

namespace tilewright::cost {
namespace {

constexpr int64_t kLutRamDepth = 64, kLutRamBits = 7, kLutRamLuts = 8;
constexpr int64_t kUramBits = 72, kUramDepth = 4096, kLeastUramDepth = 2048;
constexpr int64_t kSumBits = 32;

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Blocks of 4 Kbit of the iCE40.
int64_t ice40_blocks_of(int64_t depth, int64_t bits) {
  constexpr std::pair<int64_t, int64_t> kBlocks[] = {{16, 256}, {8, 512}, {4, 1024}, {2, 2048}};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& [width, words] : kBlocks)
    least = std::min(least, up(bits, width) * up(depth, words));
  return least;
}

/// Elements that all terms of `dim` but that of `loop` reach.
int64_t other_reach(const SpatialLayer& layer, const SpatialDim& dim, int loop) {
  int64_t reach = 0;
  for (const SpatialTerm& term : dim.terms)
    if (term.loop != loop)
      reach += (layer.loops[static_cast<size_t>(term.loop)].extent - 1) * term.stride;
  return reach;
}

const SpatialDim* dim_of(const SpatialTensor& tensor, int loop, int64_t& stride) {
  for (const SpatialDim& dim : tensor.dims)
    for (const SpatialTerm& term : dim.terms)
      if (term.loop == loop) {
        stride = term.stride;
        return &dim;
      }
  return nullptr;
}

FpgaRoles roles_of_layer(const SpatialLayer& layer) {
  FpgaRoles roles;
  // Packed tensors are weights; without any, the second.
  if (layer.tensors[0].packed && !layer.tensors[1].packed) std::swap(roles.image, roles.weights);
  for (int loop = 0; loop < static_cast<int>(layer.loops.size()); ++loop) {
    const bool image = layer.moves(roles.image, loop), weights = layer.moves(roles.weights, loop);
    if (layer.loops[static_cast<size_t>(loop)].reduces) {
      if (roles.inputs < 0 && image && weights) roles.inputs = loop;
    } else if (weights && !image && roles.outputs < 0) {
      roles.outputs = loop;
    } else if (image && !weights) {
      roles.rows = roles.pixels;  // the last two
      roles.pixels = loop;
    }
  }
  return roles;
}

std::string in_groups(double number) {
  std::string text = fmt::format("{:.0f}", std::ceil(number));
  for (int64_t at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), " ");
  return text;
}

}  // namespace

std::string_view name(FpgaStays stays) {
  constexpr std::string_view kNames[] = {"nothing", "image", "weights"};
  return kNames[static_cast<size_t>(stays)];
}

std::string to_string(const FpgaDesign& d) {
  return fmt::format(
      "{}x{}x{} tile {}x{}x{}x{}, {} stays, slots {} {} {}, ports {} {}, pipelines {}, block "
      "{}{}{}",
      d.uo, d.ui, d.us, d.to, d.tc, d.th, d.tw, name(d.stays), d.image_slots, d.weight_slots,
      d.result_slots, d.image_ports, d.weight_ports, d.pipelines, d.block, d.uram ? ", uram" : "",
      d.overlap ? "" : ", no overlap");
}

int64_t bram18_of(int64_t depth, int64_t bits) {
  constexpr std::pair<int64_t, int64_t> kShapes[] = {{36, 512}, {18, 1024}, {9, 2048},
                                                     {4, 4096}, {2, 8192},  {1, 16384}};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& [width, words] : kShapes)
    least = std::min(least, up(bits, width) * up(depth, words));
  return least;
}

Result<FpgaModel> FpgaModel::create(const hw::FpgaDevice& device, const SpatialLayer& layer,
                                    const FpgaOptions& options) {
  FpgaModel model;
  model.device_ = device;
  model.layer_ = layer;
  model.options_ = options;
  model.roles_ = roles_of_layer(layer);
  const hw::FpgaOperator* mac = device.find("mac", name(options.dtype), options.path);
  if (mac == nullptr)
    return fail(ErrorKind::Unsupported,
                fmt::format("{} has no products of {}", device.name, name(options.dtype)),
                fmt::format("there is no [operator.mac.{}.{}] in its file", name(options.dtype),
                            hw::name(options.path)));
  if (model.roles_.inputs < 0)
    return fail(ErrorKind::Unsupported, fmt::format("{} sums over no channels", layer.name));
  model.mac_ = *mac;
  for (int loop = 0; loop < static_cast<int>(layer.loops.size()); ++loop) {
    const FpgaRoles& r = model.roles_;
    if (loop == r.outputs || loop == r.inputs || loop == r.rows || loop == r.pixels) continue;
    const SpatialLoop& one = layer.loops[static_cast<size_t>(loop)];
    (one.reduces ? model.taps_ : model.around_) *= one.extent;
  }
  for (SpatialTensor& tensor : model.layer_.tensors)
    tensor.element_bytes = storage_bytes(options.dtype, 1);
  return model;
}

int64_t FpgaModel::extent(int loop) const {
  return loop < 0 ? 1 : layer_.loops[static_cast<size_t>(loop)].extent;
}

int64_t FpgaModel::most_products() const {
  const hw::FpgaCells there = device_.usable_cells();
  const double by_dsp = mac_.dsps > 0 ? there.dsps / mac_.dsps : 1e9;
  const double by_lut = mac_.luts > 0 ? there.luts / mac_.luts : 1e9;
  return static_cast<int64_t>(std::min(by_dsp, by_lut));
}

double FpgaModel::bound(int64_t uo, int64_t ui, int64_t us) const {
  return static_cast<double>(up(extent(roles_.outputs), uo)) *
         static_cast<double>(up(extent(roles_.inputs), ui) * taps_) *
         static_cast<double>(extent(roles_.rows)) *
         static_cast<double>(up(extent(roles_.pixels), us) * around_);
}

const std::vector<FpgaModel::Kind>& FpgaModel::kinds(int loop, int64_t tile) const {
  std::vector<Kind>& found = kinds_[{loop, tile}];
  if (!found.empty()) return found;
  const int64_t all = extent(loop);
  int64_t stride = 1;
  const SpatialDim* dim =
      loop < 0 ? nullptr : dim_of(layer_.tensors[static_cast<size_t>(roles_.image)], loop, stride);
  const int64_t reach = dim == nullptr ? 0 : other_reach(layer_, *dim, loop);
  for (int64_t first = 0; first < all; first += tile) {
    Kind kind{1, std::min(tile, all - first), 1};
    if (dim != nullptr) {
      const int64_t low = std::max<int64_t>(0, first * stride - dim->begin);
      const int64_t high =
          std::min(dim->extent, (first + kind.size - 1) * stride + reach - dim->begin + 1);
      kind.span = std::max<int64_t>(1, high - low);
    }
    const auto alike = std::find_if(found.begin(), found.end(), [&](const Kind& other) {
      return other.size == kind.size && other.span == kind.span;
    });
    if (alike == found.end())
      found.push_back(kind);
    else
      alike->count += 1;
  }
  return found;
}

int64_t FpgaModel::image_stride(int loop) const {
  int64_t stride = 1;
  if (loop >= 0) dim_of(layer_.tensors[static_cast<size_t>(roles_.image)], loop, stride);
  return stride;
}

int64_t FpgaModel::pixel_banks(const FpgaDesign& design) const {
  // Pixels `stride` apart lie in different banks if the number of banks shares no factor with it.
  const int64_t stride = image_stride(roles_.pixels);
  return std::gcd(stride, design.us) == 1 ? design.us : design.us * stride;
}

double FpgaModel::image_cycles(const FpgaDesign& design, const Kind& c, const Kind& y,
                               const Kind& x, double& channel) const {
  const SpatialTensor& image = layer_.tensors[static_cast<size_t>(roles_.image)];
  const int64_t element = image.element_bytes;
  const int64_t block = std::min(design.block, extent(roles_.inputs));
  int64_t stride = 1;
  const bool inputs_last =
      !image.dims.empty() && dim_of(image, roles_.inputs, stride) == &image.dims.back();
  const double run = static_cast<double>((inputs_last ? c.size : x.span * block) * element);
  const double runs =
      static_cast<double>(inputs_last ? y.span * x.span : up(c.size, block) * y.span);
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
    const bool inputs_last = dim_of(weights, roles_.inputs, stride) == &weights.dims.back();
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
                            dim_of(result, roles_.outputs, stride) == &result.dims.back();
  const int64_t block = std::min(design.block, extent(roles_.outputs));
  const double run =
      static_cast<double>((outputs_last ? outputs : x.size * block) * result.element_bytes);
  const double runs =
      static_cast<double>(outputs_last ? y.size * x.size : up(outputs, block) * y.size);
  const FpgaTransfer moved = write_runs(device_, runs, run);
  channel += moved.channel;
  return moved.port;
}

double FpgaModel::compute_cycles(const FpgaDesign& d, int64_t o, int64_t c, int64_t h,
                                 int64_t w) const {
  const int64_t apart = up(o, d.uo) * h * up(w, d.us), summed = up(c, d.ui) * taps_;
  // Two updates of one element are `apart` iterations from each other.
  const int64_t ii = summed > 1 ? up(mac_.recurrence, apart) : 1;
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

FpgaTime FpgaModel::time(const FpgaDesign& d) const {
  if (options_.as_written && d.overlap) {
    FpgaTime time = time_as_written(d);
    name_bound(time);
    return time;
  }
  const auto& os = kinds(roles_.outputs, d.to);
  const auto& cs = kinds(roles_.inputs, d.tc);
  const auto& ys = kinds(roles_.rows, d.th);
  const auto& xs = kinds(roles_.pixels, d.tw);
  FpgaTime time;
  double sum = 0, image_channel = 0, weight_channel = 0, result_channel = 0;
  double first_read = 0, last_write = 0;
  const bool one_input = cs.size() == 1 && cs[0].count == 1;
  const bool image_stays = d.stays == FpgaStays::Image && one_input;
  const bool weights_stay = d.stays == FpgaStays::Weights && one_input;
  // A part of the time during which something stays: its tiles, beside reading the next of it.
  const auto around_one = [&](double inner, double read, int slots) {
    return d.overlap && slots > 1 ? std::max(inner, read) : inner + read;
  };
  std::vector<double> by_output(os.size(), 0);
  for (const Kind& y : ys)
    for (const Kind& x : xs) {
      const double here = y.count * x.count;
      double inner = 0;  // over the outputs, for one tile of pixels
      double kept = 0;
      for (size_t i = 0; i < os.size(); ++i) {
        const Kind& o = os[i];
        double group = 0;
        for (const Kind& c : cs) {
          double rx = 0, rw = 0, cx = 0, cw = 0;
          rx = image_cycles(d, c, y, x, cx);
          rw = weight_cycles(d, o.size, c.size, cw);
          Tile tile{compute_cycles(d, o.size, c.size, y.size, x.size), image_stays ? 0 : rx,
                    weights_stay ? 0 : rw};
          group += c.count * tile.together(d);
          const double times = here * o.count * c.count;
          const double image_times = image_stays ? (i == 0 ? here : 0) : times;
          const double weight_times =
              weights_stay ? (&y == &ys[0] && &x == &xs[0] ? o.count : 0) : times;
          time.compute += times * tile.compute;
          time.image += image_times * rx;
          image_channel += image_times * cx;
          time.weights += weight_times * rw;
          weight_channel += weight_times * cw;
          kept = rx;
          // What overlaps does not before the first tile and after the last.
          if (d.image_slots > 1) first_read = std::max(first_read, rx);
          if (d.weight_slots > 1) first_read = std::max(first_read, rw);
        }
        double cy = 0;
        const double w = result_cycles(d, o.size, y, x, cy);
        if (d.result_slots > 1) last_write = std::max(last_write, w);
        time.result += here * o.count * w;
        result_channel += here * o.count * cy;
        group = d.overlap && d.result_slots > 1 ? std::max(group, w) : group + w;
        inner += o.count * group;
        by_output[i] += here * group;
      }
      if (image_stays) inner = around_one(inner, kept, d.image_slots);
      if (!weights_stay) sum += here * inner;
    }
  if (weights_stay)
    for (size_t i = 0; i < os.size(); ++i) {
      double ignored = 0;
      const double rw = weight_cycles(d, os[i].size, extent(roles_.inputs), ignored);
      sum += os[i].count * around_one(by_output[i], rw, d.weight_slots);
    }
  const auto around = static_cast<double>(around_);
  double lives = 0;
  for (const Kind& o : os)
    for (const Kind& y : ys)
      for (const Kind& x : xs) lives += o.count * y.count * x.count;
  lives *= around;
  sum *= around * std::ceil(lives / d.pipelines) / lives;
  // Ports lie on channels in turn: image, weights, result.
  const int channels = device_.memory.channels;
  std::vector<double> load(static_cast<size_t>(channels), 0.0);
  int port = 0;
  for (const auto& [cycles, ports] :
       {std::pair{image_channel, d.image_ports}, std::pair{weight_channel, d.weight_ports},
        std::pair{result_channel, 1}})
    for (int i = 0; i < ports * d.pipelines; ++i, ++port)
      load[static_cast<size_t>(port % channels)] += cycles * around / (ports * d.pipelines);
  time.channel = *std::max_element(load.begin(), load.end());
  for (double* busy : {&time.compute, &time.image, &time.weights, &time.result})
    *busy *= around / d.pipelines;
  time.cycles = std::max(sum, time.channel) + options_.start;
  if (d.overlap) time.cycles += first_read + last_write;
  const int64_t apart = up(os[0].size, d.uo) * ys[0].size * up(xs[0].size, d.us);
  time.ii = up(cs[0].size, d.ui) * taps_ > 1 ? up(mac_.recurrence, apart) : 1;
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

hw::FpgaCells FpgaModel::ram(int64_t banks, int64_t depth, int64_t bits, bool uram) const {
  hw::FpgaCells cells;
  if (uram)
    cells.uram = banks * up(bits, kUramBits) * up(depth, kUramDepth);
  else if (depth <= kLutRamDepth && device_.family != hw::FpgaFamily::Ice40)
    cells.luts =
        static_cast<double>(banks * kLutRamLuts * up(bits, kLutRamBits) * up(depth, kLutRamDepth));
  else
    cells.bram18 = banks * (device_.family == hw::FpgaFamily::Ice40 ? ice40_blocks_of(depth, bits)
                                                                    : bram18_of(depth, bits));
  return cells;
}

std::array<hw::FpgaCells, 3> FpgaModel::buffers(const FpgaDesign& d) const {
  const int64_t to = std::min(d.to, up(extent(roles_.outputs), d.uo) * d.uo);
  const auto span = [&](int loop, int64_t tile) {
    int64_t most = 1;
    for (const Kind& kind : kinds(loop, tile)) most = std::max(most, kind.span);
    return most;
  };
  const int64_t bits = 8 * layer_.tensors[0].element_bytes;
  const int64_t steps_o = up(to, d.uo), steps_c = up(std::min(d.tc, extent(roles_.inputs)), d.ui);
  const int64_t image =
      steps_c * span(roles_.rows, d.th) * up(span(roles_.pixels, d.tw), pixel_banks(d));
  const int64_t weights = steps_o * steps_c * taps_;
  const int64_t sums = steps_o * std::min(d.th, extent(roles_.rows)) *
                       up(std::min(d.tw, extent(roles_.pixels)), d.us);
  const auto buffer = [&](int64_t banks, int64_t depth, int slots) {
    return options_.ram_per_slot ? ram(banks * slots, depth, bits, d.uram)
                                 : ram(banks, depth * slots, bits, d.uram);
  };
  // Sums are read by their writer too: a RAM for each slot.
  return {buffer(d.ui * pixel_banks(d), image, d.image_slots),
          buffer(d.uo * d.ui, weights, d.weight_slots),
          ram(d.uo * d.us * d.result_slots, sums, kSumBits, false)};
}

hw::FpgaCells FpgaModel::cells(const FpgaDesign& d) const {
  hw::FpgaCells cells;
  for (const hw::FpgaCells& buffer : buffers(d)) {
    cells.luts += buffer.luts;
    cells.bram18 += buffer.bram18;
    cells.uram += buffer.uram;
  }
  const int64_t products = d.uo * d.ui * d.us;
  cells.luts += static_cast<double>(products) * mac_.luts;
  cells.ffs += static_cast<double>(products) * mac_.ffs;
  // Two products that share a DSP are of two output channels.
  const bool shared = mac_.dsps < 1 && mac_.dsps > 0;
  cells.dsps =
      shared ? std::ceil(static_cast<double>(d.uo) * mac_.dsps) * static_cast<double>(d.ui * d.us)
             : static_cast<double>(products) * mac_.dsps;
  for (double* part : {&cells.luts, &cells.ffs, &cells.dsps}) *part *= d.pipelines;
  cells.bram18 *= d.pipelines;
  cells.uram *= d.pipelines;
  return cells;
}

std::string FpgaModel::problem(const FpgaDesign& d) const {
  const hw::FpgaCells needed = cells(d), there = device_.usable_cells();
  const int ports = (d.image_ports + d.weight_ports + 1) * d.pipelines;
  const std::tuple<const char*, double, double> rows[] = {
      {"DSP", needed.dsps, there.dsps},
      {"BRAM18", static_cast<double>(needed.bram18), static_cast<double>(there.bram18)},
      {"URAM", static_cast<double>(needed.uram), static_cast<double>(there.uram)},
      {"LUT", needed.luts, there.luts},
      {"FF", needed.ffs, there.ffs},
      {"ports", ports, std::max(device_.port.count, 3)}};
  for (const auto& [what, want, have] : rows)
    if (want > have)
      return fmt::format("{} {} of {}", what, in_groups(want), in_groups(std::floor(have + 1e-6)));
  if (d.uram && up(d.tc, d.ui) * d.th * up(d.tw, d.us) * d.image_slots < kLeastUramDepth)
    return fmt::format("UltraRAM is for {} words and more", in_groups(kLeastUramDepth));
  return "";
}

double run_tiles(const std::vector<FpgaTileTimes>& tiles, int image_slots, int weight_slots,
                 int result_slots) {
  std::vector<double> read_x, read_w, computed, written, ended;
  const auto before = [](const std::vector<double>& times, int64_t back) {
    const int64_t at = static_cast<int64_t>(times.size()) - back;
    return at >= 0 ? times[static_cast<size_t>(at)] : 0.0;
  };
  bool starts = true;
  for (const FpgaTileTimes& tile : tiles) {
    const double free_x = before(computed, image_slots), free_w = before(computed, weight_slots);
    read_x.push_back(std::max(before(read_x, 1), free_x) + tile.image);
    read_w.push_back(std::max(before(read_w, 1), free_w) + tile.weights);
    const double slot = starts ? before(written, result_slots) : 0;
    computed.push_back(std::max({before(computed, 1), read_x.back(), read_w.back(), slot}) +
                       tile.compute);
    starts = tile.last_of_result;
    if (tile.last_of_result)
      written.push_back(std::max(before(written, 1), computed.back()) + tile.write);
  }
  return std::max(before(written, 1), before(computed, 1));
}

}  // namespace tilewright::cost
