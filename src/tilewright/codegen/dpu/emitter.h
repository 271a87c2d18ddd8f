// Writes the instructions of one group of a plan, tile by tile; emit.cc has the example.
#pragma once

#include <algorithm>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {

inline int narrow(int64_t value) { return static_cast<int>(value); }
inline constexpr int64_t kMaxGroups = 511, kMaxSteps = 1023;

/// A row of an operand as instructions name it.
struct RowAt {
  int bank_id = 0, bank_addr = 0;
};

/// Rows of a map in FM as one tile sees them.
struct Operand {
  const Place* place = nullptr;
  int64_t first_row = 0, first_column = 0, first_group = 0;  ///< what is at `addr`
  int64_t addr = 0;
  int64_t jump() const { return place->groups.size(); }
  int64_t endl() const { return place->groups.size() * place->columns.size(); }
  RowAt at(const Config& config, int64_t row, int64_t column, int64_t group) const {
    const int64_t q = row - first_row;
    const int64_t depth = config.fm_depth[static_cast<size_t>(place->memory)];
    const int64_t a =
        addr + q / kBanks * endl() + (column - first_column) * jump() + group - first_group;
    return {narrow(place->memory * kBanks + q % kBanks), narrow(a % depth)};
  }
};

class GroupEmitter {
 public:
  GroupEmitter(const Lowered& lowered, const Config& config, const Plan& plan, size_t index,
               EmittedCode& code)
      : lowered_(lowered),
        config_(config),
        plan_(plan),
        group_(plan.groups[index]),
        index_(index),
        code_(code),
        tiles_(sweep(lowered, group_)) {}

  void run();

 private:
  const Node& node(size_t j) const { return lowered_.nodes[static_cast<size_t>(group_.nodes[j])]; }
  const Root& root(int r) const { return lowered_.roots[static_cast<size_t>(r)]; }
  bool in_ddr(int r) const { return plan_.in_ddr[static_cast<size_t>(r)]; }
  const Place* staged(int r, bool written) const {
    const auto found = group_.staged.find({r, written});
    return found == group_.staged.end() ? nullptr : &found->second;
  }
  Range channels(size_t j) const {
    if (j == 0 || group_.channels.size() > 1) return pass_;
    return {0, node(j).out.groups};
  }
  /// Output columns of a node in this strip.
  Range columns(size_t j) const { return j == 0 ? strip_ : Range{0, node(j).out.width}; }

  // Weights: blocks one after the other, then the biases of each convolution.
  int add_weights();

  void add_biases(const Node& n, Range range);

  std::vector<std::vector<Step>> one_tile();

  void add(int depth, const Op& op, const Op& init = Nop{}) {
    stages_[static_cast<size_t>(depth)].push_back({op, init});
  }

  /// What this tile's nodes read of a root: rows and columns of it.
  std::pair<Range, Range> needed(int r) const;

  void load(int r, const Place& place);

  /// Groups of a row of `r` from a row of a root in DDR, whose groups are `shift` further on.
  void load_row(int depth, int r, int64_t row, Range cols, Range groups, int source,
                int64_t source_row, int64_t shift);

  /// Where this tile finds a root: at home, in its window, or in the tile's slot.
  Operand read_operand(int r) const;

  /// Where a node writes. `local`: rows, columns and groups count from the tile's first.
  struct Output {
    Operand operand;
    bool local = false;
  };
  Output write_operand(size_t j) const;
  RowAt write_at(const Output& out, const View& view, int64_t row, int64_t col,
                 int64_t group) const {
    if (out.local) return out.operand.at(config_, row, col, group);
    return out.operand.at(config_, row * view.row_step + view.row, col * view.col_step + view.col,
                          group + view.group);
  }
  static int64_t column_step(const Output& out, const View& view) {
    return out.local ? 1 : view.col_step;
  }

  struct Pads {
    int before = 0, after = 0;
  };
  static Pads pads(Range out, int kernel, int stride, int dilation, int pad, int64_t size) {
    const int64_t begin = out.begin * stride - pad;
    const int64_t end = (out.end - 1) * stride + int64_t{kernel - 1} * dilation - pad + 1;
    return {narrow(std::max<int64_t>(0, -begin)), narrow(std::max<int64_t>(0, end - size))};
  }

  RowAt read_at(const Operand& operand, const View& view, int64_t row, int64_t col,
                int64_t group) const {
    return operand.at(config_, row * view.row_step + view.row, col * view.col_step + view.col,
                      group + view.group);
  }

  void conv(size_t j, Range rows);

  /// Rows of one POOL from `row` on: two, unless an upsampling would need a third input row.
  static int64_t pool_rows(const Node& n, int64_t row, int64_t end) {
    const int64_t stride = n.pool.stride_h;
    if (n.out.row_step > 1) return 1;
    const bool crosses = n.pool.type == kUpsample && stride > 1 && row % stride == stride - 1;
    return crosses ? 1 : std::min<int64_t>(2, end - row);
  }

  void pool(size_t j, Range rows);

  void elew(size_t j, Range rows);

  /// Rows of zeros; Reg::Params has a block of them for the widest.
  void zero(size_t j, Range rows);

  /// Rows of an input, to where they stay.
  void fetch(size_t j, Range rows);

  /// What leaves the tile: to DDR, to a result, or from a slot to every s-th row of its home.
  void drain(size_t j, Range rows);

  /// `part`: groups of the root; in DDR a pixel begins with group `first` and has `pitch`.
  void save(size_t j, Range rows, const Output& from, Range part, Reg reg, int64_t base,
            int64_t first, int64_t pitch);

  void copy_home(size_t j, Range rows, const Output& from);

  const Lowered& lowered_;
  const Config& config_;
  const Plan& plan_;
  const GroupPlan& group_;
  const size_t index_;
  EmittedCode& code_;
  const std::vector<RowTile> tiles_;
  Range pass_, strip_;
  size_t tile_ = 0;
  bool reload_ = true;
  std::map<int, int64_t> loaded_;
  std::vector<std::vector<int64_t>> block_at_;
  std::vector<int64_t> bias_at_;
  std::vector<std::vector<Step>> stages_;
};

}  // namespace tilewright::dpu
