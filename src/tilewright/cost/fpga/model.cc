#include "tilewright/cost/fpga/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "tilewright/accel/fpga/block_ram.h"

namespace tilewright::cost {
namespace {

constexpr int64_t kLutRamDepth = 64, kLutRamBits = 7, kLutRamLuts = 8;
constexpr int64_t kUramBits = 72, kUramDepth = 4096, kLeastUramDepth = 2048;
constexpr int64_t kSumBits = 32;
/// LUTs that are one RAM64M (64 words of 3 bits) or RAM32M (32 of 6) of the 7 series, and the most
/// of these that Yosys 0.23 makes of one memory: 12 of them are LUTs, 22 are a block RAM.
constexpr int64_t kSmallRamLuts = 4, kMostSmallRams = 12;

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

const SpatialDim* spatial_dim_of(const SpatialTensor& tensor, int loop, int64_t& stride) {
  for (const SpatialDim& dim : tensor.dims)
    for (const SpatialTerm& term : dim.terms)
      if (term.loop == loop) {
        stride = term.stride;
        return &dim;
      }
  return nullptr;
}

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
  if (options.result_bytes > 0)
    model.layer_.tensors[kSpatialResult].element_bytes = options.result_bytes;
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

FpgaModel::Traffic FpgaModel::least_traffic() const {
  const auto all = [&](int loop) { return static_cast<double>(extent(loop)); };
  const auto lanes = [&](int tensor) {
    return most_lanes(layer_.tensors[static_cast<size_t>(tensor)]);
  };
  const double pixels = all(roles_.rows) * all(roles_.pixels) * static_cast<double>(around_);
  return {
      all(roles_.inputs) * pixels / lanes(roles_.image),
      all(roles_.outputs) * all(roles_.inputs) * static_cast<double>(taps_) / lanes(roles_.weights),
      all(roles_.outputs) * pixels / lanes(kSpatialResult)};
}

const std::vector<FpgaModel::Kind>& FpgaModel::kinds(int loop, int64_t tile) const {
  std::vector<Kind>& found = kinds_[{loop, tile}];
  if (!found.empty()) return found;
  const int64_t all = extent(loop);
  int64_t stride = 1;
  const SpatialDim* dim =
      loop < 0 ? nullptr
               : spatial_dim_of(layer_.tensors[static_cast<size_t>(roles_.image)], loop, stride);
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
  if (loop >= 0) spatial_dim_of(layer_.tensors[static_cast<size_t>(roles_.image)], loop, stride);
  return stride;
}

int64_t FpgaModel::pixel_banks(const FpgaDesign& design) const {
  // Pixels `stride` apart lie in different banks if the number of banks shares no factor with it.
  const int64_t stride = row_stride();
  const int64_t own = std::gcd(stride, design.us) == 1 ? design.us : design.us * stride;
  return std::max(own, design.row_banks);
}

hw::FpgaCells FpgaModel::ram(int64_t banks, int64_t depth, int64_t bits, bool uram) const {
  hw::FpgaCells cells;
  const bool yosys =
      options_.path == hw::FpgaPath::Rtl && device_.family == hw::FpgaFamily::Series7;
  const int64_t small = depth <= 32 ? up(bits, 6) : up(bits, 3) * up(depth, 64);
  if (yosys && small <= kMostSmallRams) {
    const int64_t choice = depth > 64 ? bits : 0;  // among parts of 64 words
    cells.luts = static_cast<double>(banks * (small * kSmallRamLuts + choice));
  } else if (yosys)
    cells.bram18 = banks * fpga::bram18_of(depth, bits);
  else if (uram)
    cells.uram = banks * up(bits, kUramBits) * up(depth, kUramDepth);
  else if (depth <= kLutRamDepth && device_.family != hw::FpgaFamily::Ice40)
    cells.luts =
        static_cast<double>(banks * kLutRamLuts * up(bits, kLutRamBits) * up(depth, kLutRamDepth));
  else
    cells.bram18 = banks * (device_.family == hw::FpgaFamily::Ice40 ? ice40_blocks_of(depth, bits)
                                                                    : fpga::bram18_of(depth, bits));
  return cells;
}

FpgaRams FpgaModel::buffers(const FpgaDesign& d) const {
  const int64_t to = std::min(d.to, up(extent(roles_.outputs), d.uo) * d.uo);
  const auto span = [&](int loop, int64_t tile) {
    int64_t most = 1;
    for (const Kind& kind : kinds(loop, tile)) most = std::max(most, kind.span);
    return most;
  };
  const int64_t bits = 8 * layer_.tensors[0].element_bytes;
  const int64_t steps_o = up(to, d.uo), steps_c = up(std::min(d.tc, extent(roles_.inputs)), d.ui);
  const int64_t banks = pixel_banks(d);
  const int64_t image = steps_c * span(roles_.rows, d.th) * up(span(roles_.pixels, d.tw), banks);
  const int64_t sums = steps_o * std::min(d.th, extent(roles_.rows)) *
                       up(std::min(d.tw, extent(roles_.pixels)), d.us);
  return {FpgaRam{d.ui * banks, image, bits}, FpgaRam{d.uo * d.ui, steps_o * steps_c * taps_, bits},
          FpgaRam{d.uo * d.us, sums, kSumBits}};
}

hw::FpgaCells FpgaModel::memory(const FpgaDesign& d, const FpgaRams& buffers) const {
  const auto of = [&](const FpgaRam& buffer, int slots) {
    int64_t words = buffer.words;
    // Our Verilog has the slot in the upper bits of an address.
    if (options_.path == hw::FpgaPath::Rtl && slots > 1)
      words = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(words)));
    return options_.ram_per_slot ? ram(buffer.banks * slots, words, buffer.bits, d.uram)
                                 : ram(buffer.banks, words * slots, buffer.bits, d.uram);
  };
  hw::FpgaCells cells;
  // Sums are read by their writer too: a RAM for each slot.
  for (const hw::FpgaCells& part :
       {of(buffers[0], d.image_slots), of(buffers[1], d.weight_slots),
        ram(buffers[2].banks * d.result_slots, buffers[2].words, buffers[2].bits, false)}) {
    cells.luts += part.luts;
    cells.bram18 += part.bram18;
    cells.uram += part.uram;
  }
  return cells;
}

hw::FpgaCells FpgaModel::cells(const FpgaDesign& d, const FpgaRams& buffers) const {
  hw::FpgaCells cells = memory(d, buffers);
  const int64_t products = d.uo * d.ui * d.us;
  cells.luts += static_cast<double>(products) * mac_.luts;
  cells.ffs += static_cast<double>(products) * mac_.ffs;
  // Two products that share a DSP have a factor in common: of vendors' compilers an element of the
  // image, so they are of two output channels; of our Verilog any (accel/fpga/pairs.h).
  const bool shared = mac_.dsps < 1 && mac_.dsps > 0;
  const int64_t alike = options_.path == hw::FpgaPath::Rtl ? d.uo * d.us : d.uo;
  const int64_t times = products / alike;  // no rest: `alike` is some of its factors
  cells.dsps = shared
                   ? std::ceil(static_cast<double>(alike) * mac_.dsps) * static_cast<double>(times)
                   : static_cast<double>(products) * mac_.dsps;
  for (double* part : {&cells.luts, &cells.ffs, &cells.dsps}) *part *= d.pipelines;
  cells.bram18 *= d.pipelines;
  cells.uram *= d.pipelines;
  return cells;
}

std::string FpgaModel::problem(const FpgaDesign& d, const FpgaRams& buffers) const {
  const hw::FpgaCells needed = cells(d, buffers), there = device_.usable_cells();
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
  if (d.uram && buffers[0].words * d.image_slots < kLeastUramDepth)
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
