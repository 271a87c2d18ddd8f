// What a sum of products over windows takes on an FPGA: cycles and cells of a design in which
// reading, computing and writing tiles are processes of their own.
//
// Example: a 3x3 convolution, C = 1024, K = 1024, 14x14, with `uo = 25, ui = 6, us = 7` (products
// of 25 output channels, 6 input channels and 7 pixels of a row side by side):
//
//   C  = ceil(To/uo) ceil(Tc/ui) 9 Th ceil(Tw/us) II + depth       cycles to compute a tile
//   RX, RW, W = port cycles of the tile's input, weights, result
//   time = max(sum over tiles of max(C, RX, RW, W), busiest channel) + first reads + last write
//
// Tiles at the edges are counted as they are, by kind: whole and rest of each loop, windows clipped
// to the tensor. docs/fpga.md has the formulas and what they were compared with.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/base/result.h"
#include "tilewright/cost/spatial/layer.h"
#include "tilewright/hw/fpga_device.h"

namespace tilewright::cost {

/// What stays on the chip from one tile to the next. The tiles it belongs to are then the outer
/// loop; it takes a single tile of input channels.
enum class FpgaStays { Nothing, Image, Weights };
/// `nothing`, `image`, `weights`.
std::string_view name(FpgaStays stays);

/// A design for one layer; sizes of tiles are multiples of what works side by side.
struct FpgaDesign {
  int64_t uo = 1, ui = 1, us = 1;          ///< output channels, input channels, pixels side by side
  int64_t to = 1, tc = 1, th = 1, tw = 1;  ///< tile: those, rows and pixels of a row
  FpgaStays stays = FpgaStays::Nothing;
  int image_slots = 2, weight_slots = 2, result_slots = 2;
  int image_ports = 1, weight_ports = 1;
  int pipelines = 1;  ///< whole designs side by side, each with some of the result's tiles
  int64_t block = 1;  ///< channels of image and result that are neighbours in memory: NCHWc
  /// Banks of the image along a row; 0: as many as the layer's stride needs. Fewer than that are
  /// raised to it.
  int64_t row_banks = 0;
  bool uram = false;    ///< image and weights in UltraRAM
  bool overlap = true;  ///< false: a process starts when the one before has ended
  friend bool operator==(const FpgaDesign&, const FpgaDesign&) = default;
};
/// `25x6x7 tile 100x1024x14x14 weights stay, slots 2 2 2, ...`
std::string to_string(const FpgaDesign& design);

struct FpgaOptions {
  DType dtype = DType::F32;
  hw::FpgaPath path = hw::FpgaPath::Hls;
  double depth = 20;   ///< cycles of a tile's pipeline besides one per iteration
  double start = 120;  ///< of the kernel
  /// Each slot of a buffer is a RAM of its own, as vendors' compilers may make it; else slots are
  /// the upper part of one address.
  bool ram_per_slot = false;
  /// Cycles of the code that is generated (as_written.cc): tensors lie as the program has them, and
  /// a cycle moves the elements of a row that lie in different banks; else weights are packed in
  /// the order of their use, and the closed form of docs/fpga.md counts.
  bool as_written = false;
  /// Of an element of the result in memory: sums of i8 may be written as i32. 0: as operands.
  int64_t result_bytes = 0;
};

/// Cycles of all tiles added up, and what they come to.
struct FpgaTime {
  double cycles = 0;
  double compute = 0, image = 0, weights = 0, result = 0;  ///< busy, each by itself
  double channel = 0;                                      ///< of the busiest memory channel
  int64_t ii = 1;                                          ///< of a whole tile
  std::string_view bound;  ///< `compute`, `read image`, `read weights`, `write`, `channel`
};

/// Memories that are alike: those of one buffer.
struct FpgaRam {
  int64_t banks = 1;
  int64_t words = 1;  ///< of a bank, for one slot
  int64_t bits = 1;   ///< of a word
  friend bool operator==(const FpgaRam&, const FpgaRam&) = default;
};
/// Image, weights and sums, of one pipeline.
using FpgaRams = std::array<FpgaRam, 3>;

/// The dimension of `tensor` that `loop` moves along, and by how much; null: none. Internal.
const SpatialDim* spatial_dim_of(const SpatialTensor& tensor, int loop, int64_t& stride);

/// Loops of a layer by what they mean to a design; -1: it has none. All others are not tiled: those
/// that are summed over run inside of a tile, the others around all tiles.
struct FpgaRoles {
  int outputs = -1;            ///< moves weights and result only
  int inputs = -1;             ///< summed over, moves image and weights
  int rows = -1, pixels = -1;  ///< move image and result only
  int image = 0, weights = 1;  ///< tensors
};

/// Costs of the designs for one layer on one device. Remembers kinds of tiles: one per thread.
class FpgaModel {
 public:
  /// errors: Unsupported: nothing is summed over, or the device has no product of this type.
  static Result<FpgaModel> create(const hw::FpgaDevice& device, const SpatialLayer& layer,
                                  const FpgaOptions& options = {});

  const hw::FpgaDevice& device() const { return device_; }
  const SpatialLayer& layer() const { return layer_; }
  const FpgaOptions& options() const { return options_; }
  const FpgaRoles& roles() const { return roles_; }
  int64_t extent(int role_loop) const;  ///< 1 for a loop that is not there
  int64_t taps() const { return taps_; }
  int64_t around() const { return around_; }  ///< iterations of loops that are not tiled
  double macs() const { return static_cast<double>(layer_.macs()); }
  /// Cycles between two additions to one sum, at least.
  int recurrence() const { return mac_.recurrence; }
  /// Products side by side that the usable DSPs are enough for.
  int64_t most_products() const;

  FpgaTime time(const FpgaDesign& design) const;
  /// Cycles of a tile besides its iterations, at least.
  double least_depth() const { return options_.as_written ? 10 : options_.depth; }
  /// No tiles and no ports make a design with these sizes side by side faster.
  double bound(int64_t uo, int64_t ui, int64_t us) const;
  /// Elements of a tensor that a port moves in a cycle, at most.
  double most_lanes(const SpatialTensor& tensor) const;
  /// Cycles of one port to move each tensor once, at least.
  struct Traffic {
    double image = 0, weights = 0, result = 0;
  };
  Traffic least_traffic() const;
  /// What the layer's tiles need; a design for several layers has larger ones.
  FpgaRams buffers(const FpgaDesign& design) const;
  hw::FpgaCells cells(const FpgaDesign& design, const FpgaRams& buffers) const;
  hw::FpgaCells cells(const FpgaDesign& design) const { return cells(design, buffers(design)); }
  /// Why the device cannot hold the design: `BRAM18 3 012 of 2 723`; empty where it can.
  std::string problem(const FpgaDesign& design, const FpgaRams& buffers) const;
  std::string problem(const FpgaDesign& design) const { return problem(design, buffers(design)); }
  /// Pixels of the image between two neighbours of a row of the result.
  int64_t row_stride() const { return image_stride(roles_.pixels); }
  /// Banks along a row of the image from which `design` reads its pixels in one cycle.
  int64_t pixel_banks(const FpgaDesign& design) const;

 private:
  /// Tiles of a loop that are alike: how many, iterations, elements of the image that they span.
  struct Kind {
    double count = 0;
    int64_t size = 1, span = 1;
  };
  struct Tile;
  FpgaModel() = default;
  const std::vector<Kind>& kinds(int loop, int64_t tile) const;
  int64_t image_stride(int loop) const;
  struct Copy;
  struct Pipeline;
  struct Row;
  int64_t tile_of(const FpgaDesign& design, int loop) const;
  int64_t banks_of(const FpgaDesign& design, const SpatialDim& dim) const;
  int64_t hull_of(const FpgaDesign& design, const SpatialDim& dim) const;
  Row row_of(const FpgaDesign& design, const SpatialTensor& tensor) const;
  Copy copy_of(const FpgaDesign& design, const SpatialTensor& tensor, bool writes) const;
  Pipeline pipeline_of(const FpgaDesign& design) const;
  static double wait_for(const Copy& copy, const Copy& other);
  /// Waits of copies for one another: each with the number of its blocks, on channels in turn.
  void share_channels(const std::array<std::pair<Copy*, double>, 3>& copies) const;
  FpgaTime time_as_written(const FpgaDesign& design) const;
  struct Closed;
  FpgaTime time_closed(const FpgaDesign& design) const;
  double tiles_cycles(Closed& all) const;
  double block_cycles(Closed& all, const Kind& o, const Kind& y, const Kind& x, bool first_outputs,
                      bool first_pixels) const;
  double busiest_channel(const Closed& all) const;
  static void name_bound(FpgaTime& time);
  double image_cycles(const FpgaDesign& design, const Kind& c, const Kind& y, const Kind& x,
                      double& channel) const;
  double weight_cycles(const FpgaDesign& design, int64_t outputs, int64_t inputs,
                       double& channel) const;
  double result_cycles(const FpgaDesign& design, int64_t outputs, const Kind& y, const Kind& x,
                       double& channel) const;
  double compute_cycles(const FpgaDesign& design, int64_t o, int64_t c, int64_t h, int64_t w) const;
  hw::FpgaCells ram(int64_t banks, int64_t depth, int64_t bits, bool uram) const;
  hw::FpgaCells memory(const FpgaDesign& design, const FpgaRams& buffers) const;

  hw::FpgaDevice device_;
  SpatialLayer layer_;
  FpgaOptions options_;
  FpgaRoles roles_;
  hw::FpgaOperator mac_;
  int64_t taps_ = 1, around_ = 1;
  mutable std::map<std::pair<int, int64_t>, std::vector<Kind>> kinds_;
};

/// `ready` times of tiles by the rules of bounded channels: the processes of `reads` (image,
/// weights), compute and write, tile by tile, with so many slots each. The last write's end.
struct FpgaTileTimes {
  double image = 0, weights = 0, compute = 0, write = 0;
  bool last_of_result = true;  ///< the result's block is complete with this tile
};
double run_tiles(const std::vector<FpgaTileTimes>& tiles, int image_slots, int weight_slots,
                 int result_slots);

}  // namespace tilewright::cost
