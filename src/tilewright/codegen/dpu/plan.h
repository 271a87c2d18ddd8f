// What lies between a network and instructions: feature maps in memories, operators on rows, and
// where everything is.
//
// Example: the first block of VGG is two convolutions and a pool. `lower` makes three nodes of it;
// `fuse` two groups, conv and conv + pool; `plan_memory` gives the image, the map between the
// groups and the result a place each; `emit` writes tiles of eight rows; `assemble` orders them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/accel/dpu/program.h"
#include "tilewright/codegen/dpu/compile.h"
#include "tilewright/codegen/dpu/way.h"

namespace tilewright::dpu {

/// [begin, end)
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end > begin ? end - begin : 0; }
};

/// A feature map as memories hold it: rows of columns of groups of 16 lanes.
struct Root {
  std::string name;
  int64_t height = 0, width = 0, groups = 0;
  bool input = false;      ///< in Reg::Input at `input_addr` before the launch
  int64_t input_addr = 0;  ///< units: bytes
  /// Its row r is rows r*folded, r*folded + 1, ... of groups [rows_group, ...) of another root in
  /// DDR, side by side as channel groups. LOAD puts them so.
  int rows_of = -1;
  int64_t rows_group = 0, folded = 1;
};

/// Part of a root: every `row_step`-th row from `row` on, ...
struct View {
  int root = -1;
  int64_t height = 0, width = 0, groups = 0;
  int64_t row = 0, row_step = 1, col = 0, col_step = 1, group = 0;
};
/// Whether two views have channel groups of a root in common.
inline bool overlap(const View& a, const View& b) {
  return a.root == b.root && a.group < b.group + b.groups && b.group < a.group + a.groups;
}

/// Output channel groups of a convolution that read the same input groups; both count in the views.
struct Block {
  Range out, in;
  int64_t words_per_group = 0;  ///< PM words of one output group
  std::string words;            ///< [output group][ky][kx][input group] words of 16 x 16 bytes
};

/// Zero: LOADs of zeros. Fetch: LOADs of an input that then stays on the chip.
enum class NodeKind { Conv, Pool, Elew, Zero, Fetch };

/// One operator, over all rows of its output.
struct Node {
  NodeKind kind = NodeKind::Conv;
  std::string layer;
  std::vector<View> in;
  View out;
  Window window;  ///< pads of top and left hold; those of bottom and right follow from the views
  ConvInit conv;  ///< without in_groups and jumps; as the next two
  PoolInit pool;
  ElewInit elew;
  bool formatted = false;  ///< reads rows of the format unit
  std::string note;        ///< what is special about how its layer is made, in words
  std::vector<Block> blocks;
  std::vector<int32_t> bias;  ///< of all lanes of the output
};

/// A result that leaves the device.
struct Store {
  View view;
  int64_t addr = 0;  ///< units: bytes of Reg::Output
};

struct Lowered {
  std::vector<Root> roots;
  std::vector<Node> nodes;  ///< in an order in which everything is written before it is read
  std::vector<Store> stores;
  std::vector<FormatJob> formats;
  std::vector<DdrTensor> inputs, outputs;  ///< as Program::input_tensors, output_tensors
  std::vector<uint64_t> input_bytes;
  uint64_t format_bytes = 0, input_region = 0, output_region = 0;
  std::vector<int> root_of;       ///< by value
  std::vector<size_t> reordered;  ///< layers for which LowerOptions::reorder was possible
};

struct LowerOptions {
  /// Layers (indices) whose rows are put so that they do not meet in a bank.
  std::set<size_t> reorder;
  bool fetch_inputs = false;  ///< inputs that several nodes read come from DDR once
  std::set<ValueId> in_ddr;   ///< values whose rows LOAD can put where they are wanted
};

/// The same with each pool of several branches directly behind what makes its input.
/// requires: `check` accepts it.
Network with_pools_first(const Network& network);

/// So many bytes, or more so that the next map in DDR begins at a word of all images.
uint64_t ddr_room(const Config& config, uint64_t bytes);

/// errors: Unsupported.
Result<Lowered> lower(const Network& network, const Config& config,
                      const LowerOptions& options = {});

/// A convolution of row stride s, kernel 2 or more, on rows that are folded s to one: row stride 1
/// on s times the channels. `lanes` become those of the folded map; `in_groups`: of the map before.
ConvLayer fold_rows(const ConvLayer& layer, int64_t in_groups, std::vector<int>& lanes);
/// Layers where folding, or for 1x1 kernels a copy of every s-th pixel, takes CONV less time.
std::set<size_t> worth_reordering(const Network& network);

/// The window in which all readers see input `id`, an image of few channels, so that the format
/// unit can put a kernel's columns side by side; none if they differ or anything else reads it.
std::optional<Window> common_window(const Network& network, ValueId id);
/// On an image whose kernel's columns the format unit has put side by side as channels.
ConvLayer with_formatted_input(const ConvLayer& layer, int64_t in_channels);
/// One that copies, to bring channels that are spread over lanes side by side.
ConvLayer copying_conv(int64_t channels);
/// A dense one that averages each channel: weights of `factor`, then a shift.
ConvLayer averaging_conv(const PoolLayer& layer, int64_t channels, int factor, int shift);

/// Inputs that several nodes read get a map of their own on the chip.
void fetch_inputs(Lowered& lowered);

/// Part of a pool's result, and what it is made of.
struct PoolPart {
  Window window;
  PoolLayer::Mean mean;
  View in, out;
};
/// One part, or as many as there are factors for `op`.
std::vector<PoolPart> parts_of(const PoolLayer& op, const View& from, const View& to);

/// Weights of a convolution as PM wants them. `lanes`: of the input's channels.
void pack_weights(const ConvLayer& layer, const std::vector<int>& lanes, int64_t in_groups,
                  int64_t out_channels, Node& node);
/// The s*s convolutions of a transposed one, each for every s-th row and column.
struct Phase {
  ConvLayer conv;
  int64_t row = 0, col = 0, height = 0, width = 0;  ///< of the output: first, and how many
  int64_t crop_top = 0, crop_left = 0;              ///< rows and columns of the input left out
};
Result<std::vector<Phase>> phases(const DeconvLayer& layer, const Value& in, const Value& out);

/// Or as one convolution of stride 1 on the input with zeros between rows and columns, of so many.
struct Upsampled {
  ConvLayer conv;
  int64_t height = 0, width = 0, crop_top = 0, crop_left = 0;
};
Upsampled upsampled(const DeconvLayer& layer, const Value& in);
/// The parts of that map, `all`, where no pixel of the input comes.
std::vector<View> zeros_between(const DeconvLayer& layer, const Value& in, const View& all);

/// Rows of input `k` that output rows need, inside of the view; columns likewise.
Range input_rows(const Node& node, size_t k, Range out);
Range input_columns(const Node& node, size_t k, Range out);

/// Where rows lie in FM. Without slots row r of the root is at octet r div 8 from `addr`. With
/// slots the rows of tile i, from its first on, are in slot i mod slots.
struct Place {
  int memory = -1;
  int64_t addr = 0;
  Range columns, groups;  ///< that are there
  int slots = 0;
  int64_t slot_words = 0;
  bool whole_memory = false;  ///< rows walk through it and wrap
};

/// Nodes that run in one pass over rows, each as soon as its rows are there.
struct GroupPlan {
  std::vector<int> nodes;
  int rows = 8;                                  ///< of a tile of the first node
  int64_t columns = 0;                           ///< output columns of a strip; 0: all
  std::vector<Range> channels;                   ///< output groups of the first node, pass by pass
  std::vector<int> depth;                        ///< by node: stage of the pipeline; loads are at 0
  std::map<std::pair<int, bool>, Place> staged;  ///< by root, and whether it is written
  bool skewed = false;                           ///< windows have room for stages side by side
};

/// What one step of a group makes: rows of each node's output.
struct RowTile {
  std::vector<Range> rows;
};
/// Whether a node of the group reads nothing that the group makes: it runs beside the first.
bool beside(const Lowered& lowered, const GroupPlan& group, size_t index);
std::vector<RowTile> sweep(const Lowered& lowered, const GroupPlan& group);

struct Plan {
  std::vector<GroupPlan> groups;
  std::vector<Place> home;   ///< by root; memory -1: none
  std::vector<bool> in_ddr;  ///< by root: it is in DDR between groups
  std::vector<Reg> ddr_reg;  ///< by root
  std::vector<int64_t> ddr_addr;
  uint64_t swap_bytes = 0;
};

/// A way, with its order of nodes.
struct PlanOptions : Way {
  std::vector<int> order;  ///< of nodes; empty: as given
};

/// Nodes that must come before each node: what it reads, and what it must not overwrite too early.
std::vector<std::vector<int>> needed_before(const Lowered& lowered);
/// The nodes in an order in which each comes behind what it needs.
std::vector<int> order_nodes(const Lowered& lowered, const Way& way);
/// Whether no group of [first, last) makes what group `last` reads, or touches what it makes: it
/// might as well run beside them.
bool independent(const Lowered& lowered, const Plan& plan, size_t first, size_t last);

std::vector<GroupPlan> make_groups(const Lowered& lowered, const Config& config,
                                   const PlanOptions& options);
/// errors: Capacity.
Result<Plan> plan_memory(const Lowered& lowered, const Config& config, const PlanOptions& options);

/// An instruction, and the INIT it needs.
struct Step {
  Op op;
  Op init = Nop{};  ///< Nop: none
};
/// Instructions of one pass over rows: [tile][stage].
struct PassCode {
  size_t group = 0;
  int weights = -1;  ///< index into EmittedCode::weights
  std::vector<std::vector<std::vector<Step>>> tiles;
};
/// What one LOAD of weights brings: CONVs count from its first word.
struct WeightPass {
  int64_t words = 0;
  int64_t addr = 0;     ///< units: bytes of Reg::Params
  bool single = false;  ///< its layer makes one pixel
  size_t group = 0;
};
struct EmittedCode {
  std::vector<PassCode> passes;
  std::vector<WeightPass> weights;
  std::string params;
  int64_t zeros = -1;  ///< where zeros are in it, and how many
  size_t zero_bytes = 0;
};
Result<EmittedCode> emit(const Lowered& lowered, const Config& config, const Plan& plan);

/// Orders the steps, loads weights, adds tokens.
Result<Run> assemble(const Lowered& lowered, const Config& config, const Plan& plan,
                     const EmittedCode& code);

}  // namespace tilewright::dpu
