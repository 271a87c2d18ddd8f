#include "tilewright/compile/testing/toy/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/accel/common/tokens.h"
#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/fold.h"

namespace tilewright::toy {
namespace {

/// y[row, j] = requantised sum over k of x[row, k] * w[j, k].
struct Layer {
  int product = -1;  ///< the ConvInteger
  graph::ValueId x = -1, w = -1, bias = -1, y = -1;
  int64_t rows = 0, depth = 0, count = 0, shift = 0, lo = 0, hi = 0;
  int64_t chunk = 0;  ///< of `count`: columns whose weights are in `buf` at once
};

const tensor::TensorType& type_of(const graph::Graph& graph, graph::ValueId id) {
  return graph.values[static_cast<size_t>(id)].type;
}

tl::unexpected<Error> refuse(const std::string& why) {
  return fail(ErrorKind::Unsupported, "toy has no instruction for it", why);
}

/// The ConvInteger that makes `sum`; -1: something else does, or has other readers too.
int product_of(const graph::Graph& graph, graph::ValueId sum) {
  const auto maker = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const graph::Node& node) { return node.outputs[0] == sum; });
  if (maker == graph.nodes.end() || maker->op != "ConvInteger") return -1;
  const int index = static_cast<int>(maker - graph.nodes.begin());
  return graph::consumers(graph)[static_cast<size_t>(sum)].size() == 1 ? index : -1;
}

/// Two rows, and of each column of the weights its bias and two results, must fit.
Result<int64_t> chunk_of(const Layer& layer) {
  const int64_t room = (kBufBytes - 2 * layer.depth) / (layer.depth + 4);
  const int64_t chunk = std::min({layer.count, room, kOutBytes / 2});
  if (chunk > 0) return chunk;
  return fail(ErrorKind::Capacity, "it does not fit",
              fmt::format("three rows of {} bytes and a bias take more than the {} of buf",
                          layer.depth, kBufBytes));
}

/// The layer that `node`, a Requantize, ends. errors: Unsupported, Capacity.
Result<Layer> layer_at(const graph::Graph& graph, const graph::Node& node) {
  if (node.op != "Requantize") return refuse(node.op + " is no product");
  Layer layer;
  layer.product = product_of(graph, node.inputs[0]);
  if (layer.product < 0) return refuse("its sums come from no product of its own");
  const graph::Node& conv = graph.nodes[static_cast<size_t>(layer.product)];
  if (conv.inputs.size() != 2) return refuse("its operands have zero points");
  layer.x = conv.inputs[0], layer.w = conv.inputs[1], layer.y = node.outputs[0];
  const Shape &x = type_of(graph, layer.x).shape, &w = type_of(graph, layer.w).shape;
  if (x.size() != 4 || x[2] * x[3] != 1 || w[2] * w[3] != 1 || w[1] != x[1])
    return refuse(fmt::format("x {} and weight {} are no matrices", tilewright::to_string(x),
                              tilewright::to_string(w)));
  if (node.inputs.size() != 2 || node.inputs[1] < 0)
    return refuse("it adds more than a bias to its sums, or multiplies them");
  layer.bias = node.inputs[1];
  layer.rows = x[0], layer.depth = x[1], layer.count = w[0];
  if (element_count(type_of(graph, layer.bias).shape) != layer.count)
    return refuse("its bias is not one per column");
  // Floors nest: two shifts are one.
  layer.shift = node.attrs.get_int("pre_shift", 0) + node.attrs.get_int("shift", 0);
  if (layer.shift > 31) return refuse(fmt::format("it shifts by {}", layer.shift));
  layer.lo = node.attrs.get_int("lo", -128), layer.hi = node.attrs.get_int("hi", 127);
  layer.chunk = TW_TRY(chunk_of(layer));
  return layer;
}

class Compiler {
 public:
  explicit Compiler(const graph::Graph& graph)
      : graph_(graph), image_(accel::kPage, uint64_t{1} << 32) {}

  Result<Program> run(const graph::Group& launch) {
    for (const graph::Group& part : launch.parts) {
      if (part.kind == graph::GroupKind::Alias) {
        places_[part.outputs[0]] = TW_TRY(address(part.inputs[0]));
        continue;
      }
      for (const int n : part.nodes) {
        const graph::Node& node = graph_.nodes[static_cast<size_t>(n)];
        if (node.op == "ConvInteger") continue;  // with its Requantize
        Result<Layer> layer = layer_at(graph_, node);
        if (!layer) return tl::unexpected<Error>(std::move(layer.error()).at(node.name));
        TW_TRY_STATUS(emit(*layer, node.name));
      }
    }
    for (const graph::ValueId id : launch.inputs)
      if (!value(id).constant) image_.add_input(TW_TRY(region(id)));
    for (const graph::ValueId id : launch.outputs) image_.add_output(TW_TRY(region(id)));
    return finish();
  }

 private:
  const graph::Value& value(graph::ValueId id) const {
    return graph_.values[static_cast<size_t>(id)];
  }

  Result<accel::Region> region(graph::ValueId id) {
    const tensor::TensorType& type = value(id).type;
    return accel::Region{
        value(id).name, TW_TRY(address(id)),
        static_cast<uint64_t>(storage_bytes(type.dtype, element_count(type.shape)))};
  }

  /// Where a value is in DRAM: allocated, and filled if it is constant, when first asked for.
  Result<uint64_t> address(graph::ValueId id) {
    if (const auto it = places_.find(id); it != places_.end()) return it->second;
    const tensor::TensorType& type = value(id).type;
    const auto bytes = static_cast<uint64_t>(storage_bytes(type.dtype, element_count(type.shape)));
    const uint64_t at = TW_TRY(image_.allocate(value(id).name, bytes));
    if (const auto& known = value(id).constant)
      image_.write(at, {static_cast<const char*>(known->data()), static_cast<size_t>(bytes)});
    return places_[id] = at;
  }

  void move(Op op, int64_t dram, int64_t at, int64_t bytes) {
    insns_.push_back({.op = op, .dram = dram, .at = at, .bytes = bytes});
  }

  /// Chunks of columns, whose weights stay in `buf`; rows take turns in two places, so that one is
  /// loaded while the other is multiplied.
  Status emit(const Layer& layer, const std::string& name) {
    const auto x = static_cast<int64_t>(TW_TRY(address(layer.x)));
    const auto w = static_cast<int64_t>(TW_TRY(address(layer.w)));
    const auto bias = static_cast<int64_t>(TW_TRY(address(layer.bias)));
    const auto y = static_cast<int64_t>(TW_TRY(address(layer.y)));
    const int64_t biases_at = 2 * layer.depth, weights_at = biases_at + 4 * layer.chunk;
    const size_t begin = insns_.size();
    for (int64_t j = 0; j < layer.count; j += layer.chunk) {
      const int64_t count = std::min(layer.chunk, layer.count - j);
      move(Op::Load, bias + 4 * j, biases_at, 4 * count);
      move(Op::Load, w + j * layer.depth, weights_at, count * layer.depth);
      for (int64_t row = 0; row < layer.rows; ++row) {
        const int64_t turn = row % 2;
        move(Op::Load, x + row * layer.depth, turn * layer.depth, layer.depth);
        insns_.push_back({.op = Op::Dot,
                          .x = turn * layer.depth,
                          .w = weights_at,
                          .bias = biases_at,
                          .y = turn * layer.chunk,
                          .depth = layer.depth,
                          .count = count,
                          .shift = layer.shift,
                          .lo = layer.lo,
                          .hi = layer.hi});
        move(Op::Store, y + row * layer.count + j, turn * layer.chunk, count);
      }
    }
    spans_.push_back({name, begin, insns_.size()});
    return {};
  }

  /// The tokens that the addresses ask for.
  Result<Program> finish() {
    std::vector<int> queue;
    std::vector<accel::Footprint> footprints;
    for (const Insn& insn : insns_) {
      queue.push_back(queue_of(insn));
      footprints.push_back(footprint(insn));
    }
    accel::Run<Insn> run;
    run.spans = spans_;
    // Any two queues are linked, so there is an instruction for each slot.
    for (const accel::Slot& slot : TW_TRY(accel::insert_tokens(queues(), queue, footprints))) {
      run.insns.push_back(insns_[slot.given]);
      run.insns.back().takes = slot.takes;
      run.insns.back().gives = slot.gives;
    }
    Program program;
    static_cast<accel::Image&>(program) = image_.take();
    program.runs.push_back(std::move(run));
    return program;
  }

  const graph::Graph& graph_;
  accel::ImageBuilder image_;
  std::map<graph::ValueId, uint64_t> places_;
  std::vector<Insn> insns_;
  std::vector<accel::Span> spans_;
};

}  // namespace

std::vector<graph::Placement> place(const graph::Graph& graph) {
  std::vector<graph::Placement> places;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph::Node& node = graph.nodes[n];
    places.push_back({static_cast<int>(n), node.name, node.op, graph::Where::Cpu, {}});
    graph::Placement& place = places.back();
    if (graph::is_view(node)) {
      place.where = graph::Where::Nothing;
      continue;
    }
    const Result<Layer> layer = layer_at(graph, node);
    if (!layer) place.why = layer.error().why, place.kind = layer.error().kind;
    if (layer) place.where = graph::Where::Accelerator;
    // The product goes where its Requantize goes.
    const int product = node.op == "Requantize" ? product_of(graph, node.inputs[0]) : -1;
    if (product < 0) continue;
    graph::Placement& with = places[static_cast<size_t>(product)];
    with.where = place.where, with.why = place.why, with.kind = place.kind;
  }
  return places;
}

Result<Program> compile(const graph::Graph& graph, const graph::Group& launch) {
  return Compiler(graph).run(launch);
}

}  // namespace tilewright::toy
