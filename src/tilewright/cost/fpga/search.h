// The best design of a layer by the model, found by looking at all of them: bounds say which need
// no look.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "tilewright/cost/fpga/model.h"

namespace tilewright::cost {

struct FpgaSearch {
  /// Only these sizes side by side: output channels, input channels, pixels.
  std::optional<std::array<int64_t, 3>> sizes;
  int64_t most_pixels = 0;  ///< side by side; 0: any number
  int64_t most_inputs = 0;  ///< likewise, input channels: whose products are added up
  bool overlap = true;
  int slots = 2;               ///< of all buffers
  bool fewer_slots = false;    ///< also of single buffers, down to 1
  int weight_ports = 2;        ///< 1 or 2; fewer are tried too
  int64_t most_products = 0;   ///< 0: as many as there are cells for
  bool divisors_only = false;  ///< sizes divide their loops, as in FlexTensor's spaces
  /// Of sizes that do not divide their loop only some, each so many times as large as the one
  /// before; 1: all.
  double apart = 1;
  int64_t most_looked = 0;    ///< then the best so far is taken; 0: no limit
  int64_t most_sizes = 0;     ///< likewise, of sizes side by side for several layers
  bool whole_pixels = false;  ///< a tile has no more pixels of a row than there are
  std::vector<int64_t> blocks = {1, 4, 16};
  int pipelines = 1;    ///< up to so many side by side
  int image_ports = 1;  ///< up to so many
  bool uram = false;    ///< also with image and weights in UltraRAM
  double gap = 0;       ///< a share of cycles by which the best may be missed
  /// Only designs that take fewer cycles.
  double limit = std::numeric_limits<double>::infinity();
  int64_t row_banks = 0;  ///< of all designs
  std::vector<FpgaStays> stays = {FpgaStays::Nothing, FpgaStays::Image, FpgaStays::Weights};
};

struct FpgaBest {
  FpgaDesign design;
  FpgaTime time;
  int64_t looked_at = 0;  ///< designs whose time was computed
};

/// Sizes of parts that are the least for their number: ceil(extent / n) for every n. Divisors only:
/// those that divide it.
std::vector<int64_t> part_sizes(int64_t extent, bool divisors_only = false);
/// Leaves out sizes, which ascend: all that `keep` names stay, and of the others those that are
/// `apart` times as large as the one before them.
void thin_out(std::vector<int64_t>& sizes, double apart, const std::function<bool(int64_t)>& keep);
/// Those that `search` wants.
std::vector<int64_t> part_sizes(int64_t extent, const FpgaSearch& search);

/// Absent where no design fits the device.
std::optional<FpgaBest> best_fpga_design(const FpgaModel& model, const FpgaSearch& search = {});

/// Calls `take` with every design below `search.limit`, in no order.
void each_fpga_design(const FpgaModel& model, const FpgaSearch& search,
                      const std::function<void(FpgaBest)>& take);

/// The `most` best designs, best first: no other is better than the last of them.
std::vector<FpgaBest> best_fpga_designs(const FpgaModel& model, const FpgaSearch& search,
                                        size_t most);

}  // namespace tilewright::cost
