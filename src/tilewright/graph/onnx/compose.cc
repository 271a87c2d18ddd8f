// Attention and RotaryEmbedding, step by step as their definitions have them.
//
// Example: Attention(Q, K, V) of [2, 8, 5, 64] becomes
//   MatMul(Softmax(MatMul(Q * s, Transpose(K) * s)), V) with s = 64 ^ -1/4.
// source: the ONNX operator specification, opset 25.
#include "tilewright/graph/onnx/compose.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tilewright/graph/onnx/composer.h"

namespace tilewright::graph {
namespace composing {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

/// Inputs: Q, K, V, mask, past key, past value, lengths without padding.
class AttentionComposer : Composer {
 public:
  using Composer::Composer;

  Ids compose() {
    TW_TRY_STATUS(read());
    const ValueId scores = TW_TRY(products());
    const double cap = node_.attrs.get_float("softcap", 0);
    ValueId capped = scores;
    if (cap != 0) {
      const ValueId limit = number(scores, cap);
      capped = TW_TRY(add("Tanh", {TW_TRY(add("Div", {scores, limit}))}));
      capped = TW_TRY(add("Mul", {capped, limit}));
    }
    const ValueId bias = TW_TRY(this->bias());
    const ValueId biased = bias < 0 ? capped : TW_TRY(add("Add", {capped, bias}));
    const ValueId weights = TW_TRY(shares(biased, bias));
    const ValueId seen[] = {scores, capped, biased, weights};
    const int64_t mode = attr("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) return wrong(fmt::format("qk_matmul_output_mode is {}", mode));
    const ValueId key = TW_TRY(own(k_)), value = TW_TRY(own(v_));
    return std::vector<ValueId>{TW_TRY(result(weights)), key, value, seen[mode]};
  }

 private:
  /// [batch, steps, heads * size] or [batch, heads, steps, size] as the latter.
  Id by_heads(size_t i, const char* key) {
    const Shape s = shape(input(i));
    if (s.size() == 4) return input(i);
    const int64_t heads = attr(key, 0);
    if (heads < 1 || s[2] % heads != 0)
      return wrong(fmt::format("{} is {}", key, heads),
                   fmt::format("input {} has {} numbers for all heads", i, s[2]));
    const ValueId split = TW_TRY(reshaped(input(i), {s[0], s[1], heads, s[2] / heads}));
    return add("Transpose", {split}, {{"perm", Ints{0, 2, 1, 3}}});
  }

  Status read() {
    for (size_t i = 0; i < 3; ++i)
      if (!has(i)) return wrong("it needs Q, K and V");
    rank_ = shape(input(0)).size();
    for (size_t i = 0; i < 3; ++i)
      if ((rank_ != 3 && rank_ != 4) || shape(input(i)).size() != rank_)
        return wrong("Q, K and V have 3 axes or 4, all of them the same number",
                     fmt::format("input {} is {}", i, to_string(shape(input(i)))));
    if (has(4) != has(5)) return wrong("past_key and past_value are given together or not at all");
    if (has(4) && has(6)) return wrong("past_key and nonpad_kv_seqlen exclude each other");
    q_ = TW_TRY(by_heads(0, "q_num_heads"));
    k_ = TW_TRY(by_heads(1, "kv_num_heads"));
    v_ = TW_TRY(by_heads(2, "kv_num_heads"));
    if (has(4)) {
      past_ = shape(input(4)).size() == 4 ? shape(input(4))[2] : 0;
      k_ = TW_TRY(add("Concat", {input(4), k_}, {{"axis", int64_t{2}}}));
      v_ = TW_TRY(add("Concat", {input(5), v_}, {{"axis", int64_t{2}}}));
    }
    const Shape &q = shape(q_), &k = shape(k_), &v = shape(v_);
    if (k[1] < 1 || q[1] % k[1] != 0 || v[1] != k[1] || q[3] != k[3] || k[2] != v[2] ||
        q[0] != k[0] || q[0] != v[0])
      return wrong(
          "Q, K and V do not fit together",
          fmt::format("by heads they are {}, {}, {}", to_string(q), to_string(k), to_string(v)));
    repeat_ = q[1] / k[1];
    return {};
  }

  /// Between heads that share keys and all heads: [b, h / r, r * s, x] and [b, h, s, x].
  Id shared(ValueId id) {
    const Shape s = shape(id);
    if (repeat_ == 1) return id;
    return reshaped(id, {s[0], s[1] / repeat_, s[2] * repeat_, s[3]});
  }
  Id apart(ValueId id) {
    const Shape s = shape(id);
    if (repeat_ == 1) return id;
    return reshaped(id, {s[0], s[1] * repeat_, s[2] / repeat_, s[3]});
  }

  Id products() {
    const double size = static_cast<double>(shape(q_)[3]);
    const double scale = node_.attrs.get_float("scale", 1 / std::sqrt(size));
    const ValueId root = number(q_, std::sqrt(scale));
    const ValueId q = TW_TRY(add("Mul", {q_, root}));
    const ValueId k = TW_TRY(add("Transpose", {k_}, {{"perm", Ints{0, 1, 3, 2}}}));
    return apart(TW_TRY(add("MatMul", {TW_TRY(shared(q)), TW_TRY(add("Mul", {k, root}))})));
  }

  Id both(ValueId a, ValueId b) { return a < 0 ? Id(b) : add("And", {a, b}); }

  /// Which keys a query may see by its place: j <= i + offset, and the window; -1: all.
  Id by_place() {
    const int64_t steps = shape(q_)[2], keys = shape(k_)[2];
    const int64_t left = attr("left_window_size", -1), right = attr("right_window_size", -1);
    const bool causal = attr("is_causal", 0) != 0;
    if (!causal && left < 0 && right < 0) return ValueId{-1};
    ValueId offset = ints({past_});
    if (has(6)) {
      const ValueId lengths = TW_TRY(reshaped(input(6), {-1, 1, 1, 1}));
      offset = TW_TRY(add("Sub", {lengths, ints({steps})}));
    }
    const ValueId place = TW_TRY(add("Add", {count(steps, false), offset}));
    const ValueId ahead = TW_TRY(add("Sub", {count(keys, true), place}));
    ValueId allowed = -1;
    if (causal) allowed = TW_TRY(add("LessOrEqual", {ahead, ints({0})}));
    if (right >= 0)
      allowed = TW_TRY(both(allowed, TW_TRY(add("LessOrEqual", {ahead, ints({right})}))));
    if (left >= 0)
      allowed = TW_TRY(both(allowed, TW_TRY(add("GreaterOrEqual", {ahead, ints({-left})}))));
    return allowed;
  }

  /// What is added to the products, -1 if nothing.
  Id bias() {
    const int64_t keys = shape(k_)[2];
    ValueId allowed = TW_TRY(by_place()), added = -1;
    if (has(6)) {
      const ValueId lengths = TW_TRY(reshaped(input(6), {-1, 1, 1, 1}));
      allowed = TW_TRY(both(allowed, TW_TRY(add("Less", {count(keys, true), lengths}))));
    }
    if (has(3)) {
      ValueId mask = input(3);
      const Shape s = shape(mask);
      const bool keeps = dtype(mask) == DType::Bool;
      if (!keeps) mask = TW_TRY(add("CastLike", {mask, q_}));
      if (!s.empty() && s.back() < keys && s.back() != 1) {
        Ints amounts(2 * s.size(), 0);
        amounts.back() = keys - s.back();
        mask = TW_TRY(add("Pad", {mask, ints(amounts), number(mask, keeps ? 0 : kMasked)}));
      }
      if (keeps)
        allowed = TW_TRY(both(allowed, mask));
      else
        added = mask;
    }
    if (allowed < 0) return added;
    const ValueId places = TW_TRY(add("Where", {allowed, number(q_, 0), number(q_, kMasked)}));
    return added < 0 ? Id(places) : add("Add", {places, added});
  }

  /// Softmax; queries that may see no key get 0 of each.
  Id shares(ValueId scores, ValueId bias) {
    const bool widened = node_.attrs.has("softmax_precision");
    if (widened) scores = TW_TRY(add("Cast", {scores}, {{"to", attr("softmax_precision", 1)}}));
    ValueId weights = TW_TRY(add("Softmax", {scores}, {{"axis", int64_t{-1}}}));
    if (widened) weights = TW_TRY(add("CastLike", {weights, q_}));
    const bool always = attr("left_window_size", -1) < 0 && attr("right_window_size", -1) < 0;
    if (bias < 0 || (always && !has(3) && !has(6))) return weights;
    const ValueId most = TW_TRY(add("ReduceMax", {bias, ints({-1})}));
    const ValueId none = TW_TRY(add("Equal", {most, number(bias, kMasked)}));
    return add("Where", {none, number(weights, 0), weights});
  }

  Id result(ValueId weights) {
    ValueId y = TW_TRY(add("MatMul", {TW_TRY(shared(weights)), v_}));
    y = TW_TRY(apart(y));
    if (rank_ == 4) return y;
    y = TW_TRY(add("Transpose", {y}, {{"perm", Ints{0, 2, 1, 3}}}));
    const Shape s = shape(y);
    return reshaped(y, {s[0], s[1], s[2] * s[3]});
  }

  size_t rank_ = 0;
  int64_t past_ = 0, repeat_ = 1;
  ValueId q_ = -1, k_ = -1, v_ = -1;
};

/// Inputs: X, cosines, sines, positions.
class RotaryComposer : Composer {
 public:
  using Composer::Composer;

  Ids compose() {
    if (!has(0) || !has(1) || !has(2)) return wrong("it needs X, cosines and sines");
    const Shape given = shape(input(0));
    const int64_t heads = attr("num_heads", 0);
    if (given.size() != 4 && (given.size() != 3 || heads < 1 || given[2] % heads != 0))
      return wrong("X has 4 axes, or 3 and num_heads that fit",
                   fmt::format("X is {}, num_heads {}", to_string(given), heads));
    const bool flat = given.size() == 3;
    const ValueId x =
        flat ? TW_TRY(reshaped(input(0), {given[0], given[1], heads, given[2] / heads})) : input(0);
    const int64_t size = shape(x)[3], asked = attr("rotary_embedding_dim", 0);
    const int64_t turned = asked == 0 ? size : asked;
    if (turned < 0 || turned > size || turned % 2 != 0)
      return wrong(fmt::format("{} numbers of {} cannot be turned in pairs", turned, size));
    const int64_t axis = flat ? 2 : 1;  // of the heads
    const ValueId cosines = TW_TRY(angles(1, axis)), sines = TW_TRY(angles(2, axis));
    if (shape(cosines).back() != turned / 2 || shape(sines).back() != turned / 2)
      return wrong("cosines and sines have half as many numbers as are turned");
    const bool pairs = attr("interleaved", 0) != 0;
    const ValueId a = TW_TRY(pairs ? cut(x, 0, turned, 2) : cut(x, 0, turned / 2));
    const ValueId b = TW_TRY(pairs ? cut(x, 1, turned, 2) : cut(x, turned / 2, turned));
    ValueId real =
        TW_TRY(add("Sub", {TW_TRY(add("Mul", {cosines, a})), TW_TRY(add("Mul", {sines, b}))}));
    ValueId imaginary =
        TW_TRY(add("Add", {TW_TRY(add("Mul", {sines, a})), TW_TRY(add("Mul", {cosines, b}))}));
    if (pairs) {
      real = TW_TRY(add("Unsqueeze", {real, ints({-1})}));
      imaginary = TW_TRY(add("Unsqueeze", {imaginary, ints({-1})}));
    }
    const AttrMap last = {{"axis", int64_t{-1}}};
    ValueId y = TW_TRY(add("Concat", {real, imaginary}, last));
    Ints whole = shape(x);
    whole.back() = turned;
    if (pairs) y = TW_TRY(reshaped(y, whole));
    if (turned < size) y = TW_TRY(add("Concat", {y, TW_TRY(cut(x, turned, size))}, last));
    if (flat) y = TW_TRY(reshaped(y, given));
    return std::vector<ValueId>{y};
  }

 private:
  /// Input `i` by position, with an axis for the heads.
  Id angles(size_t i, int64_t axis) {
    const ValueId table = input(i);
    const ValueId taken = has(3) ? TW_TRY(add("Gather", {table, input(3)})) : table;
    if (shape(taken).size() != 3)
      return wrong("cosines and sines have an axis for the batch, one for the steps and one more",
                   fmt::format("input {} is {}", i, to_string(shape(table))));
    return add("Unsqueeze", {taken, ints({axis})});
  }
};

}  // namespace

Ids compose_attention(const Node& node, UpgradeContext& context) {
  return AttentionComposer(node, context).compose();
}

Ids compose_rotary(const Node& node, UpgradeContext& context) {
  return RotaryComposer(node, context).compose();
}

}  // namespace composing

namespace {

struct Composition {
  const char* op;
  composing::Ids (*compose)(const Node&, UpgradeContext&);
};
constexpr Composition kCompositions[] = {
    {"Attention", composing::compose_attention},
    {"DFT", composing::compose_dft},
    {"NegativeLogLikelihoodLoss", composing::compose_loss},
    {"RotaryEmbedding", composing::compose_rotary},
    {"STFT", composing::compose_stft},
    {"SoftmaxCrossEntropyLoss", composing::compose_loss},
};

const Composition* composition(const Node& node) {
  for (const Composition& row : kCompositions)
    if (node.domain.empty() && node.op == row.op) return &row;
  return nullptr;
}

}  // namespace

bool is_composed(const Node& node) { return composition(node) != nullptr; }

Result<std::vector<ValueId>> compose(const Node& node, UpgradeContext& context) {
  return composition(node)->compose(node, context);
}

}  // namespace tilewright::graph
