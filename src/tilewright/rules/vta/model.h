// The parts of the closed-form model that predict() and the search share: durations of
// instructions, and the regions that a mapping keeps on chip.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "tilewright/accel/vta/config.h"
#include "tilewright/base/integers.h"
#include "tilewright/rules/vta/mapping.h"

namespace tilewright::rules {

/// Rows of input (of a padded one: with its zeros) that `rows` rows of the result read with `taps`
/// rows of the window.
inline int64_t hull_rows(const VtaLayer& layer, int64_t rows, int64_t taps) {
  return (rows - 1) * layer.stride_h + (taps - 1) * layer.dilation_h + 1;
}
inline int64_t hull_columns(const VtaLayer& layer, int64_t columns, int64_t taps) {
  return (columns - 1) * layer.stride_w + (taps - 1) * layer.dilation_w + 1;
}

/// Durations of instructions; units: cycles. source: docs/vta-timing.md.
class VtaClock {
 public:
  explicit VtaClock(const vta::Config& config);
  const vta::Config& config() const { return config_; }

  /// A read of `rows` rows of `elements` elements each, with `pads` elements of zeros.
  int64_t load(vta::Mem mem, int64_t rows, int64_t elements, int64_t pads) const;
  /// Beats of that on the bus.
  int64_t beats(vta::Mem mem, int64_t rows, int64_t elements) const {
    return rows * ceil_div(elements * bytes(mem), config_.timing.bus_bytes);
  }
  int64_t store(int64_t rows, int64_t elements) const;
  /// Of one element beside what is paid per row.
  int64_t store_element() const { return out_beats_ + config_.timing.store_element_extra; }
  /// `uops`: micro-ops of the kernel, for what each inner iteration costs.
  int64_t gemm(int64_t steps, int64_t uops) const {
    const auto& t = config_.timing;
    return steps * t.gemm_ii + t.gemm_overhead + t.loop_fill * (steps / std::max<int64_t>(1, uops));
  }
  int64_t alu(int64_t steps, bool reg) const {
    const auto& t = config_.timing;
    return steps * (reg ? reg_ii() : t.alu_imm_ii) + t.alu_overhead + t.loop_fill * steps;
  }
  int64_t reg_ii() const {
    return config_.extensions.pipelined_alu ? 1 : config_.timing.alu_reg_ii;
  }
  int64_t bytes(vta::Mem mem) const { return bytes_[static_cast<size_t>(mem)]; }
  /// From launch to the first command, and what fetching one instruction takes of the bus.
  int64_t first_fetch(int64_t insns) const;
  int64_t fetch_beats() const { return ceil_div(16, config_.timing.bus_bytes); }

 private:
  vta::Config config_;
  std::array<int64_t, 6> bytes_;
  int64_t out_beats_ = 1, burst_bytes_ = 1;
};

/// What one tile reads along rows or columns: rows of input in DRAM, and rows of zeros around them.
struct InputSpan {
  int64_t real = 0, zeros = 0;
  int64_t all() const { return real + zeros; }
  friend bool operator==(const InputSpan&, const InputSpan&) = default;
};
/// What tiles of `tile` results with `taps` taps read along `axis` (H or W): for each tile, each
/// group of taps.
std::vector<InputSpan> input_spans(const VtaLayer& layer, TileAxis axis, int64_t tile,
                                   int64_t taps);

/// Copies of the input are for tiles of results, of taps, of both or for all: four forms.
inline constexpr size_t kInputForms = 4;
inline size_t input_form(bool results_cut, bool taps_cut) {
  return (results_cut ? 1 : 0) + (taps_cut ? 2 : 0);
}
/// input_spans() in every form; forms with taps cut are empty if `taps` is all of them.
using InputForms = std::array<std::vector<InputSpan>, kInputForms>;
InputForms input_forms(const VtaLayer& layer, TileAxis axis, const PerAxis<int64_t>& tile);

/// Micro-ops of the GEMM of one tile: its nest runs two loops in hardware and the others as
/// micro-ops. `merged`: rows and columns of the result are one loop.
int64_t kernel_uops(const PerAxis<int64_t>& tile, bool merged);
/// Whether they are, if rows of the input's copy have `pitch` elements.
bool rows_merge(const VtaLayer& layer, const PerAxis<int64_t>& tile, int64_t pitch);

/// What copies of the input hold along rows and columns.
struct VtaTiles {
  VtaTiles(const VtaLayer& layer, const PerAxis<int64_t>& tile);
  InputForms rows, columns;
  /// Micro-ops of the largest GEMM, by the form of the columns.
  std::array<int64_t, kInputForms> uops{};
};

/// What a mapping keeps on chip; units: elements, of one copy.
struct VtaRegions {
  const VtaLayer& layer;
  const VtaMapping& mapping;
  const vta::Config& config;

  /// Extent of `axis` inside the first `depth` loops.
  int64_t extent_at(TileAxis axis, int depth) const;
  int64_t input_elements() const;
  int64_t weight_elements() const;
  int64_t result_elements() const;
  /// Along which the result is cut in pieces.
  TileAxis piece_axis() const;
  int64_t piece_elements() const;
  /// The parts in which a tile of `extent` along piece_axis() is set to zero: with one copy, the
  /// pieces, as each waits for the store of the same piece before.
  std::vector<int64_t> reset_pieces(int64_t extent) const;
  /// Bias and the like are all loaded at once if they fit beside the results, else for each tile.
  bool vectors_stay() const;
  int64_t resident_vectors() const;
};

/// Whether parts of a row of taps follow each other in `order`, one row after the other: what other
/// orders could gain is not worth the work of trying them.
bool taps_together(const std::vector<TileAxis>& order);

/// Elements of all i32 operands for `n` images of `o` blocks.
inline int64_t vector_elements(const VtaLayer& layer, int64_t n, int64_t o) {
  return layer.vectors * (layer.vector_by_image ? n : 1) * (layer.vector_by_block ? o : 1);
}

/// Places of the window that the ALU takes for each result: all of a pooling.
inline int64_t epilogue_window(const VtaLayer& layer) {
  return layer.conv ? 1 : layer.extent[TileAxis::R] * layer.extent[TileAxis::S];
}

/// Input blocks that `o` output blocks with `c` blocks of the reduction read, and those between.
inline int64_t input_blocks(const VtaLayer& layer, int64_t o, int64_t c) {
  if (!layer.conv) return o;
  const int64_t per_group = layer.out_per_group, out = layer.extent[TileAxis::O];
  if (per_group == 0) return c;
  const bool aligned = o == out || o % per_group == 0 || per_group % o == 0;
  const int64_t groups =
      std::min(ceil_div(out, per_group), ceil_div(o, per_group) + (aligned ? 0 : 1));
  return (groups - 1) * layer.extent[TileAxis::C] + c;
}

/// Equal transfers one after the other.
struct VtaTransfers {
  int64_t count = 0, cycles = 0;  ///< instructions, and cycles of each
  int64_t beats = 0;              ///< of all
};
VtaTransfers input_transfers(const VtaLayer& layer, const VtaClock& clock, int64_t images,
                             int64_t blocks, const InputSpan& rows, const InputSpan& columns);
/// Of `out` times `in` blocks with `rows` times `columns` taps.
VtaTransfers weight_transfers(const VtaLayer& layer, const VtaClock& clock, int64_t out, int64_t in,
                              int64_t rows, int64_t columns);

/// A box of the result as 2D transfers: rows of one transfer, and elements of a row, that are
/// contiguous in DRAM.
struct VtaBox {
  int64_t transfers = 0, rows = 0, elements = 0;
};
VtaBox store_box(const VtaLayer& layer, int64_t n, int64_t o, int64_t h, int64_t w);

/// What a mapping does, added up, without regard to when.
struct VtaTally {
  int64_t load = 0, compute = 0, store = 0;  ///< busy cycles; compute without ALU in pipeline4
  int64_t alu = 0;                           ///< of the fourth module, pipeline4 only
  int64_t read_beats = 0, insns = 0;
  int64_t first_load = 0;     ///< of what the first GEMM reads
  int64_t first_reset = 0;    ///< may hide under that
  int64_t first_vectors = 0;  ///< compute loads them before anything else
  int64_t epilogue_uops = 0;  ///< cycles of compute that load micro-ops of the ALU, at least
  int64_t serial = 0;         ///< loads that compute waits for if there is one copy of each operand
  int64_t alternating = 0;    ///< GEMMs, and loads that take turns with them in that case
  bool one_copy = false;      ///< whether that is the case
  int64_t last_store = 0;     ///< of the smallest piece
  int64_t last_tail = 0;      ///< at least so much follows the last load
  VtaTally& operator+=(const VtaTally& other);
  /// No schedule of the mapping is faster: predict() is never below. units: cycles.
  int64_t bound(const VtaClock& clock) const;
};

/// Adds up the parts of mappings with one choice of tiles; the search combines parts.
class VtaSums {
 public:
  VtaSums(const VtaLayer& layer, const VtaClock& clock, const PerAxis<int64_t>& tile);
  /// The parts below are of mappings with this order. requires: the looped axes, each once.
  void set_order(const std::vector<TileAxis>& order);

  /// first_load is that of all of the first copy.
  VtaTally input(int depth) const;
  VtaTally weights(int depth) const;
  /// What input(depth).first_load counts too much if the weights come first.
  int64_t first_input_rest(int depth) const;
  VtaTally products() const;
  /// `split_reset`: each piece is set to zero by itself.
  VtaTally results(const std::vector<int64_t>& tail, bool split_reset) const;
  VtaTally vectors(bool stay) const;
  VtaTally all(const VtaMapping& mapping) const;

 private:
  /// Tiles of one size along an axis: at most two, the full ones and the rest.
  struct SizeClass {
    int64_t size = 0, count = 0;
  };
  struct SizeClasses {
    std::array<SizeClass, 2> items;
    size_t used = 0;
    const SizeClass* begin() const { return items.data(); }
    const SizeClass* end() const { return items.data() + used; }
  };
  struct SpanClass {
    InputSpan span;
    int64_t count = 0;
  };
  using SpanClasses = std::vector<SpanClass>;

  bool looped(TileAxis axis, int depth) const {
    return position_[axis] >= 0 && position_[axis] < depth;
  }
  int64_t trips(TileAxis axis) const { return ceil_div(layer_.extent[axis], tile_[axis]); }
  int64_t extent_at(TileAxis axis, int depth) const {
    return looped(axis, depth) ? tile_[axis] : layer_.extent[axis];
  }
  int64_t serial(int64_t load, int64_t longest, int depth) const;
  SizeClasses classes(TileAxis axis, int depth) const;
  static SpanClasses span_classes(const std::vector<InputSpan>& spans);
  const SpanClasses& spans(TileAxis axis, int depth) const;
  void add_store(VtaTally& sums, const PerAxis<int64_t>& size, int64_t count) const;

  const VtaLayer& layer_;
  const VtaClock& clock_;
  PerAxis<int64_t> tile_;
  PerAxis<int> position_;
  int depth_ = 0;
  std::array<SpanClasses, kInputForms> rows_, columns_;
};

/// `sums`: of the same mapping. Stops once more than `limit` cycles are certain: `cycles` is then
/// some number between.
VtaCost predict(const VtaLayer& layer, const VtaMapping& mapping, const VtaClock& clock,
                const VtaTally& sums, const VtaTiles& shapes, int64_t limit);

}  // namespace tilewright::rules
