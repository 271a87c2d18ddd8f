// Transposed convolutions with known weights as ordinary ones.
//
//   stride 1:                       a convolution with the kernel turned round
//   stride 2, 4 taps along an axis: results at even and at odd places are two phases, each a sum of
//                                   2 taps; both are filters of one convolution, and PhasesToSpace
//                                   puts them side by side
//
// Where phases fill vectors by themselves and have different numbers of taps, each is one
// convolution. A target whose rules make nothing of the transposed form gets the filters of one
// convolution in all other cases too, taps that a phase lacks as zeros.
#include "tilewright/graph/passes/transposed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tilewright/base/integers.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

/// The digits of `flat` in a number system with these bases, first digit slowest.
Ints digits(int64_t flat, const Ints& bases) {
  Ints out(bases.size());
  for (size_t i = bases.size(); i-- > 0; flat /= bases[i]) out[i] = flat % bases[i];
  return out;
}

int64_t flatten(const Ints& at, const Ints& extents) {
  int64_t flat = 0;
  for (size_t i = 0; i < at.size(); ++i) flat = flat * extents[i] + at[i];
  return flat;
}

/// result[g * filters + k, c, taps backwards] = w[g * channels + c, k, taps]
Array turned_weights(const Array& w, int64_t groups) {
  const Shape& s = w.shape();
  const int64_t channels = s[0] / groups, filters = s[1], taps = product({s.begin() + 2, s.end()});
  Shape shape = s;
  shape[0] = filters * groups, shape[1] = channels;
  Array result(w.dtype(), shape);
  const auto size = static_cast<size_t>(bit_width(w.dtype()) / 8);
  const char* from = static_cast<const char*>(w.data());
  char* to = static_cast<char*>(result.data());
  for (int64_t k = 0; k < filters * groups; ++k)
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t row = ((k / filters * channels + c) * filters + k % filters) * taps;
      for (int64_t t = taps; t-- > 0; to += size)
        std::memcpy(to, from + static_cast<size_t>(row + t) * size, size);
    }
  return result;
}

/// result[k, c, j] = w[c, k, first + strides * (taps - 1 - j)]
Array one_phase(const Array& w, const Ints& strides, const Ints& first, const Ints& taps) {
  const Shape& s = w.shape();
  const Ints kernel(s.begin() + 2, s.end());
  Shape shape = {s[1], s[0]};
  shape.insert(shape.end(), taps.begin(), taps.end());
  Array result(w.dtype(), shape);
  const auto size = static_cast<size_t>(bit_width(w.dtype()) / 8);
  const char* from = static_cast<const char*>(w.data());
  const int64_t count = product(taps), all = product(kernel);
  std::vector<int64_t> source;
  for (int64_t j = 0; j < count; ++j) {
    Ints tap = digits(j, taps);
    for (size_t i = 0; i < tap.size(); ++i) tap[i] = first[i] + strides[i] * (taps[i] - 1 - tap[i]);
    source.push_back(flatten(tap, kernel));
  }
  char* to = static_cast<char*>(result.data());
  for (int64_t k = 0; k < s[1]; ++k)
    for (int64_t c = 0; c < s[0]; ++c)
      for (int64_t j = 0; j < count; ++j, to += size)
        std::memcpy(
            to,
            from +
                static_cast<size_t>((c * s[1] + k) * all + source[static_cast<size_t>(j)]) * size,
            size);
  return result;
}

class Lowering : private Editor {
 public:
  Lowering(const Graph& graph, PassContext& context)
      : Editor(graph), context_(context), block_(context.vector_bytes / 4) {}

  Result<Graph> run() {
    for (const Node& node : take_nodes())
      if (!TW_TRY(lower(node))) put(node);
    if (lowered_ > 0)
      context_.notes.push_back(fmt::format("{} transposed convolutions made ordinary", lowered_));
    return std::move(graph());
  }

 private:
  bool known_or_absent(const Node& node, size_t i) const {
    return i >= node.inputs.size() || node.inputs[i] < 0 || known(node.inputs[i]);
  }

  Result<bool> lower(const Node& node) {
    if (!node.domain.empty() || node.op != "ConvTranspose") return false;
    if (!known_or_absent(node, 1) || !known_or_absent(node, 2)) return false;
    const auto t = tensor::transposed_window(op_call(graph(), node));
    if (!t) return tl::unexpected<Error>(Error(t.error()).at(node.name));
    const Array w = array_of(value(node.inputs[1]));
    if (product(t->strides) == 1) return turn(node, *t, w);
    if (!has_phases(*t)) return false;
    // Where phases share a vector, they are filters of one convolution; else each is one itself.
    const int64_t filters = w.shape()[1], phases = product(t->strides);
    if (ceil_div(filters * phases, block_) * 2 <= ceil_div(filters, block_) * phases)
      return merge_phases(node, *t, w);
    if (TW_TRY(split_phases(node, *t, w))) return true;
    return context_.phases_together ? merge_phases(node, *t, w) : false;
  }

  /// Stride 1: a convolution with the kernel turned round.
  Result<bool> turn(const Node& node, const tensor::TransposedWindow& t, const Array& w) {
    const Shape& x = shape(node.inputs[0]);
    Ints begin, end;
    for (size_t i = 0; i < t.kernel.size(); ++i) {
      const int64_t reach = (t.kernel[i] - 1) * t.dilations[i];
      begin.push_back(reach - t.begin[i]);
      end.push_back(t.output[i] - 1 + t.begin[i] - (x[i + 2] - 1));
    }
    Ints pads = begin;
    pads.insert(pads.end(), end.begin(), end.end());
    if (*std::min_element(pads.begin(), pads.end()) < 0) return false;
    Node conv{node.name, "", "Conv", {}, node.inputs, node.outputs};
    conv.attrs.values["pads"] = pads;
    conv.attrs.values["dilations"] = t.dilations;
    conv.attrs.values["group"] = t.groups;
    conv.inputs[1] = constant(node.name + ".turned", turned_weights(w, t.groups));
    put(std::move(conv));
    ++lowered_;
    return true;
  }

  /// All phases as filters of one convolution over positions of the full output.
  Result<bool> merge_phases(const Node& node, const tensor::TransposedWindow& t, const Array& w) {
    const Shape& x = shape(node.inputs[0]);
    const int64_t filters = w.shape()[1], phases = product(t.strides);
    const Ints taps = phase_taps(t);
    Ints begin, end, crop;
    for (size_t i = 0; i < taps.size(); ++i) {
      const int64_t first = std::min(t.begin[i] / t.strides[i], taps[i] - 1);
      const int64_t last = (t.begin[i] + t.output[i] - 1) / t.strides[i];
      begin.push_back(taps[i] - 1 - first);
      int64_t behind = std::max<int64_t>(0, last - (x[i + 2] - 1));
      // A few more positions cost less than tiles and strips that do not come out even.
      constexpr int64_t kMany = 32, kEven = 4;
      const int64_t positions = x[i + 2] + begin.back() + behind - taps[i] + 1;
      if (positions > kMany) behind += (kEven - positions % kEven) % kEven;
      end.push_back(behind);
      crop.push_back(t.begin[i] - first * t.strides[i]);
    }
    Ints pads = begin;
    pads.insert(pads.end(), end.begin(), end.end());
    Node conv{node.name + "/Conv", "", "Conv", {}, node.inputs, {}};
    conv.attrs.values["pads"] = pads;
    conv.inputs[1] =
        constant(node.name + ".phases", phase_weights(w, t, Ints(taps.size(), 0), filters));
    if (conv.inputs.size() > 2 && conv.inputs[2] >= 0) {
      const Array& bias = array_of(value(conv.inputs[2]));
      Array all(bias.dtype(), {phases * filters});
      for (int64_t i = 0; i < all.size(); ++i) copy_element(all, i, bias, i % filters);
      conv.inputs[2] = constant(node.name + ".bias", std::move(all));
    }
    const ValueId merged = TW_TRY(append_like(std::move(conv)));
    Node order{node.name, "tilewright", "PhasesToSpace", {}, {merged}, node.outputs};
    order.attrs.values["strides"] = t.strides;
    order.attrs.values["begin"] = crop;
    order.attrs.values["output"] = t.output;
    put(std::move(order));
    ++lowered_;
    return true;
  }

  /// Each phase as a convolution with the taps it has, where many would be zeros if all had as many
  /// as the first.
  Result<bool> split_phases(const Node& node, const tensor::TransposedWindow& t, const Array& w) {
    const Shape x = shape(node.inputs[0]);
    const size_t rank = t.kernel.size();
    const int64_t filters = w.shape()[1], phases = product(t.strides);
    const int64_t filled = product(phase_taps(t)) * phases;
    if (rank != 2 || filters % block_ != 0 || 4 * filled < 5 * product(t.kernel)) return false;
    std::vector<Node> convs;
    for (int64_t p = 0; p < phases; ++p) {
      const Ints phase = digits(p, t.strides);
      Ints taps, first, begin, end;
      for (size_t i = 0; i < rank; ++i) {
        const int64_t at = phase[i] + t.begin[i], behind = at / t.strides[i];
        first.push_back(at % t.strides[i]);
        taps.push_back(ceil_div(t.kernel[i] - first[i], t.strides[i]));
        begin.push_back(taps[i] - 1 - behind);
        end.push_back(ceil_div(t.output[i], t.strides[i]) - x[i + 2] + behind);
        if (taps[i] < 1 || begin[i] < 0 || end[i] < 0) return false;
      }
      const std::string name = fmt::format("{}/phase{}", node.name, p);
      Node conv{name, "", "Conv", {}, node.inputs, {}};
      begin.insert(begin.end(), end.begin(), end.end());
      conv.attrs.values["pads"] = begin;
      conv.inputs[1] = constant(name + ".w", one_phase(w, t.strides, first, taps));
      convs.push_back(std::move(conv));
    }
    Node concat{node.name + "/Concat", "", "Concat", {}, {}, {}};
    concat.attrs.values["axis"] = int64_t{1};
    for (Node& conv : convs) concat.inputs.push_back(TW_TRY(append_like(std::move(conv))));
    Node order{node.name, "tilewright", "PhasesToSpace", {}, {}, node.outputs};
    order.inputs = {TW_TRY(append_like(std::move(concat)))};
    order.attrs.values["strides"] = t.strides;
    order.attrs.values["begin"] = Ints(rank, 0);
    order.attrs.values["output"] = t.output;
    put(std::move(order));
    ++lowered_;
    return true;
  }

  PassContext& context_;
  int64_t block_;
  int lowered_ = 0;
};

}  // namespace

Ints phase_taps(const tensor::TransposedWindow& t) {
  Ints taps;
  for (size_t i = 0; i < t.kernel.size(); ++i) taps.push_back(ceil_div(t.kernel[i], t.strides[i]));
  return taps;
}

bool has_phases(const tensor::TransposedWindow& t) {
  return t.groups == 1 && product(t.dilations) == 1;
}

Array phase_weights(const Array& w, const tensor::TransposedWindow& t, const Ints& begin,
                    int64_t filters) {
  const int64_t channels = w.shape()[0], given = w.shape()[1], phases = product(t.strides);
  const Ints taps = phase_taps(t);
  const int64_t count = product(taps), kernel = product(t.kernel);
  Shape shape = {phases * filters, channels};
  shape.insert(shape.end(), taps.begin(), taps.end());
  Array result(w.dtype(), shape);
  const auto size = static_cast<size_t>(bit_width(w.dtype()) / 8);
  const char* from = static_cast<const char*>(w.data());
  char* to = static_cast<char*>(result.data());
  for (int64_t p = 0; p < phases; ++p)
    for (int64_t j = 0; j < count; ++j) {
      const Ints phase = digits(p, t.strides), at = digits(j, taps);
      Ints tap(taps.size());
      bool inside = true;
      for (size_t i = 0; i < taps.size(); ++i) {
        const int64_t stride = t.strides[i];
        tap[i] = (phase[i] + begin[i]) % stride + stride * (taps[i] - 1 - at[i]);
        inside &= tap[i] < t.kernel[i];
      }
      if (!inside) continue;
      const int64_t source = flatten(tap, t.kernel);
      for (int64_t k = 0; k < given; ++k)
        for (int64_t c = 0; c < channels; ++c)
          std::memcpy(
              to + static_cast<size_t>(((p * filters + k) * channels + c) * count + j) * size,
              from + static_cast<size_t>((c * given + k) * kernel + source) * size, size);
    }
  return result;
}

Result<Graph> lower_transposed(const Graph& graph, PassContext& context) {
  return Lowering(graph, context).run();
}

}  // namespace tilewright::graph
