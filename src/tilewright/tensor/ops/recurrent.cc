// LSTM, GRU and RNN: the input projection X*W is one reduction over all steps (a plain matrix
// product to a scheduler); the recurrence is a loop over steps whose state has time as an axis,
// h[s+1] = f(h[s]). source: ONNX operator definitions, opset 22.
#include "tilewright/tensor/recurrent.h"

#include <functional>

#include "tilewright/base/check.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

using Layer = RecurrentLayer;

Result<std::vector<TensorType>> infer_recurrent(const OpCall& call) {
  const DType dtype = call.inputs[0].dtype;
  if (!is_float(dtype)) return unsupported(call, fmt::format("the input is {}", name(dtype)));
  const Layer l = TW_TRY(recurrent_layer(call));
  const RecurrentKind kind = recurrent_kind(call.op);
  TW_TRY(recurrent_activations(call, l.directions, kind.functions));
  if (const InputInfo* lens = call.input(4); lens && !is_int(lens->dtype))
    return invalid(call, fmt::format("sequence_lens is {}", name(lens->dtype)));
  const Shape y = l.batch_first ? Shape{l.batch, l.steps, l.directions, l.hidden}
                                : Shape{l.steps, l.directions, l.batch, l.hidden};
  const Shape state = l.batch_first ? Shape{l.batch, l.directions, l.hidden}
                                    : Shape{l.directions, l.batch, l.hidden};
  std::vector<TensorType> out{{dtype, y}, {dtype, state}};
  if (kind.cell) out.push_back({dtype, state});
  if (call.num_outputs > static_cast<int>(out.size()))
    return invalid(call, fmt::format("has {} outputs, not {}", out.size(), call.num_outputs));
  out.resize(static_cast<size_t>(std::max(call.num_outputs, 1)));
  return out;
}

/// Builds the statements of one direction. States are named `h.<f|b>` and `c.<f|b>`; all other
/// names follow them, so they stay unique when Funcs are put together.
class Direction {
 public:
  Direction(const OpCall& call, const std::vector<Tensor>& inputs, const Layer& layer, int64_t d,
            std::vector<Activation> functions)
      : call_(call),
        in_(inputs),
        layer_(layer),
        d_(d),
        functions_(std::move(functions)),
        acc_(accumulator(inputs[0].dtype())),
        suffix_(layer.reversed(d) ? ".b" : ".f"),
        h_("h" + suffix_, acc_, extents({layer.steps + 1, layer.batch, layer.hidden})),
        c_("c" + suffix_, acc_, extents({layer.steps + 1, layer.batch, layer.hidden})),
        step_(h_.name() + ".step") {
    project_input();
  }

  /// States of shape [steps + 1, batch, hidden]: h, and c for an LSTM.
  std::vector<Tensor> run() {
    const bool cell = call_.op == "LSTM";
    std::vector<Stmt> body;
    body.push_back(start(h_, 5));
    if (cell) body.push_back(start(c_, 6));
    std::vector<Stmt> step = cell ? lstm() : call_.op == "GRU" ? gru() : rnn();
    body.push_back(
        make(For{step_, int_imm(layer_.steps), ForKind::Serial, "", {}, seq(std::move(step))}));
    std::vector<Buffer> outputs{h_};
    if (cell) outputs.push_back(c_);
    return raw(outputs, seq(std::move(body)));
  }

 private:
  using Axes = std::vector<Dim>;
  using Value = std::function<Expr(const Expr& s, const Indices& at, const Indices& over)>;

  static std::vector<Expr> extents(const Shape& shape) {
    std::vector<Expr> out;
    for (int64_t n : shape) out.push_back(int_imm(n));
    return out;
  }
  bool has(size_t i) const { return i < in_.size() && in_[i]; }
  Expr read(size_t i, Indices at) const { return cast(acc_, in_[i](std::move(at))); }
  Expr zero() const { return float_imm(0, acc_); }
  Expr length(const Expr& b) const { return sequence_length(layer_, in_[4], b); }
  bool reversed() const { return layer_.reversed(d_); }
  Expr direction() const { return int_imm(d_); }

  /// xw[t, b, q] = sum over i of X[t, b, i] * W[q, i]: all steps in one product.
  void project_input() {
    const int64_t rows = recurrent_kind(call_.op).gates * layer_.hidden;
    xw_ = reduce("xw" + suffix_, {{"t", layer_.steps}, {"b", layer_.batch}, {"q", rows}},
                 {{"i", layer_.input}}, Combine::Add, [&](const Indices& at, const Indices& r) {
                   const Expr x = layer_.batch_first ? read(0, {at[1], at[0], r[0]})
                                                     : read(0, {at[0], at[1], r[0]});
                   return x * read(1, {direction(), at[2], r[0]});
                 });
  }

  /// The projected input of step `s`, row `q`, with the bias of the input (and of the state).
  Expr projected(const Expr& s, const Expr& b, const Expr& q, bool with_state_bias) const {
    Expr t = s;
    if (reversed() && has(4)) t = select(s < length(b), length(b) - int_imm(1) - s, s);
    if (reversed() && !has(4)) t = int_imm(layer_.steps - 1) - s;
    Expr value = xw_({t, b, q});
    if (!has(3)) return value;
    value = value + read(3, {direction(), q});
    return with_state_bias ? value + state_bias(q) : value;
  }
  Expr state_bias(const Expr& q) const {
    if (!has(3)) return zero();
    return read(3, {direction(), q + int_imm(recurrent_kind(call_.op).gates * layer_.hidden)});
  }

  /// Loops `space` and `over` around one block inside the time loop.
  Stmt nest(const std::string& block_name, const Buffer& buffer, const Axes& space,
            const Axes& over, Combine combine, bool next_step, const Value& value) {
    Block block{block_name, {}, Expr(), {}, Stmt()};
    std::vector<Var> loops;
    auto axis = [&](const Dim& dim, IterKind kind) {
      loops.emplace_back(block_name + "." + dim.name);
      block.iters.push_back({Var(dim.name), kind, int_imm(dim.extent), ref(loops.back())});
      return ref(block.iters.back().var);
    };
    block.iters.push_back({Var("s"), IterKind::Scan, int_imm(layer_.steps), ref(step_)});
    const Expr s = ref(block.iters[0].var);
    Indices at, r;
    for (const Dim& dim : space) at.push_back(axis(dim, IterKind::Space));
    for (const Dim& dim : over) r.push_back(axis(dim, IterKind::Reduce));
    Indices where = at;
    if (next_step) where.insert(where.begin(), s + int_imm(1));
    block.body = make(Store{buffer, where, value(s, at, r), combine});
    std::vector<Expr> trips;
    for (size_t i = 1; i < block.iters.size(); ++i) trips.push_back(block.iters[i].extent);
    Stmt out = make(std::move(block));
    for (size_t i = loops.size(); i-- > 0;)
      out = make(For{loops[i], trips[i], ForKind::Serial, "", {}, std::move(out)});
    return out;
  }

  /// state[0, b, j] = initial value, or 0.
  Stmt start(const Buffer& state, size_t input) {
    const std::string block_name = state.name() + ".start";
    const Var b("b"), j("j"), lb(block_name + ".b"), lj(block_name + ".j");
    Expr value = zero();
    if (has(input))
      value = layer_.batch_first ? read(input, {ref(b), direction(), ref(j)})
                                 : read(input, {direction(), ref(b), ref(j)});
    Block block{block_name,
                {{b, IterKind::Space, int_imm(layer_.batch), ref(lb)},
                 {j, IterKind::Space, int_imm(layer_.hidden), ref(lj)}},
                Expr(),
                {},
                make(Store{state, {int_imm(0), ref(b), ref(j)}, value, Combine::Set})};
    Stmt out = make(std::move(block));
    out = make(For{lj, int_imm(layer_.hidden), ForKind::Serial, "", {}, std::move(out)});
    return make(For{lb, int_imm(layer_.batch), ForKind::Serial, "", {}, std::move(out)});
  }

  /// A buffer of this step: sum[b, q] = init + sum over k of state(s, b, k) * R[first + q, k].
  Buffer recurrent_product(std::vector<Stmt>& out, const std::string& what, int64_t first,
                           int64_t rows, const Value& init, const Value& state) {
    const Buffer sum(h_.name() + "." + what, acc_, extents({layer_.batch, rows}));
    out.push_back(make(Alloc{sum, {}}));
    const Axes space{{"b", layer_.batch}, {"q", rows}};
    out.push_back(nest(sum.name() + ".init", sum, space, {}, Combine::Set, false, init));
    out.push_back(nest(sum.name(), sum, space, {{"k", layer_.hidden}}, Combine::Add, false,
                       [&](const Expr& s, const Indices& at, const Indices& r) {
                         return state(s, at, r) *
                                read(2, {direction(), at[1] + int_imm(first), r[0]});
                       }));
    return sum;
  }
  Value previous_h() const {
    return [this](const Expr& s, const Indices& at, const Indices& r) {
      return load(h_, {s, at[0], r[0]});
    };
  }
  Value projected_rows(int64_t first, bool with_state_bias) const {
    return [this, first, with_state_bias](const Expr& s, const Indices& at, const Indices&) {
      return projected(s, at[0], at[1] + int_imm(first), with_state_bias);
    };
  }

  /// The gate at column j of gate number `gate`, through its activation.
  Expr activate(size_t function, Expr x) const {
    if (call_.attrs.has("clip")) {
      const double limit = call_.attrs.get_float("clip", 0);
      x = min(max(x, float_imm(-limit, acc_)), float_imm(limit, acc_));
    }
    return activate_by(functions_[function], x);
  }
  Expr gate_at(const Buffer& sums, const Expr& b, const Expr& j, int64_t gate) const {
    return load(sums, {b, j + int_imm(gate * layer_.hidden)});
  }
  /// Past the end of its sequence a batch element keeps its state.
  Expr masked(const Expr& s, const Expr& b, Expr next, Expr kept) const {
    return has(4) ? select(s < length(b), std::move(next), std::move(kept)) : next;
  }
  Axes state_axes() const { return {{"b", layer_.batch}, {"j", layer_.hidden}}; }

  std::vector<Stmt> lstm() {
    std::vector<Stmt> out;
    const Buffer g = recurrent_product(out, "gates", 0, 4 * layer_.hidden, projected_rows(0, true),
                                       previous_h());
    // Peepholes are stored in the order i, o, f; gates in the order i, o, f, c.
    auto peep = [&](int64_t part, const Expr& j, const Expr& c) {
      return read(7, {direction(), j + int_imm(part * layer_.hidden)}) * c;
    };
    auto gate = [&](const Indices& at, int64_t which, const Expr& c) {
      Expr x = gate_at(g, at[0], at[1], which);
      return activate(0, has(7) ? x + peep(which, at[1], c) : x);
    };
    const bool coupled = call_.attrs.get_int("input_forget", 0) != 0;
    out.push_back(nest(c_.name(), c_, state_axes(), {}, Combine::Set, true,
                       [&](const Expr& s, const Indices& at, const Indices&) {
                         const Expr before = load(c_, {s, at[0], at[1]});
                         const Expr i = gate(at, 0, before);
                         const Expr f = coupled ? float_imm(1, acc_) - i : gate(at, 2, before);
                         const Expr next =
                             f * before + i * activate(1, gate_at(g, at[0], at[1], 3));
                         return masked(s, at[0], next, before);
                       }));
    out.push_back(nest(h_.name(), h_, state_axes(), {}, Combine::Set, true,
                       [&](const Expr& s, const Indices& at, const Indices&) {
                         const Expr c = load(c_, {s + int_imm(1), at[0], at[1]});
                         return masked(s, at[0], gate(at, 1, c) * activate_by(functions_[2], c),
                                       load(h_, {s, at[0], at[1]}));
                       }));
    return out;
  }

  std::vector<Stmt> gru() {
    const int64_t n = layer_.hidden;
    const bool linear_first = call_.attrs.get_int("linear_before_reset", 0) != 0;
    std::vector<Stmt> out;
    const Buffer zr = recurrent_product(out, "zr", 0, 2 * n, projected_rows(0, true), previous_h());
    auto gate = [&](const Indices& at, int64_t which) {
      return activate(0, gate_at(zr, at[0], at[1], which));
    };
    Buffer candidate;
    if (linear_first) {
      candidate = recurrent_product(
          out, "n", 2 * n, n,
          [&](const Expr&, const Indices& at, const Indices&) {
            return state_bias(at[1] + int_imm(2 * n));
          },
          previous_h());
    } else {
      const Buffer reset(h_.name() + ".reset", acc_, extents({layer_.batch, n}));
      out.push_back(make(Alloc{reset, {}}));
      out.push_back(nest(reset.name(), reset, state_axes(), {}, Combine::Set, false,
                         [&](const Expr& s, const Indices& at, const Indices&) {
                           return gate(at, 1) * load(h_, {s, at[0], at[1]});
                         }));
      candidate = recurrent_product(out, "n", 2 * n, n, projected_rows(2 * n, true),
                                    [&](const Expr&, const Indices& at, const Indices& r) {
                                      return load(reset, {at[0], r[0]});
                                    });
    }
    out.push_back(nest(h_.name(), h_, state_axes(), {}, Combine::Set, true,
                       [&](const Expr& s, const Indices& at, const Indices&) {
                         const Expr before = load(h_, {s, at[0], at[1]});
                         Expr x = load(candidate, {at[0], at[1]});
                         if (linear_first)
                           x = projected(s, at[0], at[1] + int_imm(2 * n), false) + gate(at, 1) * x;
                         const Expr z = gate(at, 0);
                         const Expr next = (float_imm(1, acc_) - z) * activate(1, x) + z * before;
                         return masked(s, at[0], next, before);
                       }));
    return out;
  }

  std::vector<Stmt> rnn() {
    std::vector<Stmt> out;
    const Buffer g =
        recurrent_product(out, "gates", 0, layer_.hidden, projected_rows(0, true), previous_h());
    out.push_back(nest(h_.name(), h_, state_axes(), {}, Combine::Set, true,
                       [&](const Expr& s, const Indices& at, const Indices&) {
                         return masked(s, at[0], activate(0, load(g, {at[0], at[1]})),
                                       load(h_, {s, at[0], at[1]}));
                       }));
    return out;
  }

  const OpCall& call_;
  const std::vector<Tensor>& in_;
  const Layer& layer_;
  int64_t d_;
  std::vector<Activation> functions_;
  DType acc_;
  std::string suffix_;
  Buffer h_, c_;
  Var step_;
  Tensor xw_;
};

/// Y: the hidden state after every step, in time order; 0 past the end of a sequence.
Tensor outputs_over_time(const Layer& l, const std::vector<Tensor>& h, const Tensor& lens,
                         DType dtype) {
  const std::vector<Dim> space =
      l.batch_first
          ? std::vector<Dim>{{"b", l.batch}, {"t", l.steps}, {"d", l.directions}, {"j", l.hidden}}
          : std::vector<Dim>{{"t", l.steps}, {"d", l.directions}, {"b", l.batch}, {"j", l.hidden}};
  return compute("Y", space, [&](const Indices& at) {
    const Expr t = at[l.batch_first ? 1 : 0], d = at[l.batch_first ? 2 : 1];
    const Expr b = at[l.batch_first ? 0 : 2], j = at[3];
    const Expr length = lens ? sequence_length(l, lens, b) : int_imm(l.steps);
    auto value = [&](size_t i) {
      const Expr step = l.reversed(static_cast<int64_t>(i)) ? length - t : t + int_imm(1);
      return cast(dtype, h[i]({step, b, j}));
    };
    Expr y = h.size() == 1 ? value(0) : select(eq(d, int_imm(0)), value(0), value(1));
    return lens ? select(t < length, y, const_of(dtype, 0)) : y;
  });
}

/// Y_h or Y_c: the state after the last step.
Tensor last_state(const std::string& name_of, const Layer& l, const std::vector<Tensor>& state,
                  DType dtype) {
  const std::vector<Dim> space =
      l.batch_first ? std::vector<Dim>{{"b", l.batch}, {"d", l.directions}, {"j", l.hidden}}
                    : std::vector<Dim>{{"d", l.directions}, {"b", l.batch}, {"j", l.hidden}};
  return compute(name_of, space, [&](const Indices& at) {
    const Expr d = at[l.batch_first ? 1 : 0], b = at[l.batch_first ? 0 : 1];
    auto value = [&](size_t i) { return cast(dtype, state[i]({int_imm(l.steps), b, at[2]})); };
    return state.size() == 1 ? value(0) : select(eq(d, int_imm(0)), value(0), value(1));
  });
}

std::vector<Tensor> define_recurrent(const OpCall& call, const std::vector<Tensor>& in) {
  const Layer l = *recurrent_layer(call);
  const RecurrentKind kind = recurrent_kind(call.op);
  const std::vector<Activation> functions =
      *recurrent_activations(call, l.directions, kind.functions);
  const auto per_direction = static_cast<std::ptrdiff_t>(kind.functions.size());
  std::vector<Tensor> h, c;
  for (int64_t d = 0; d < l.directions; ++d) {
    const auto first = functions.begin() + d * per_direction;
    Direction direction(call, in, l, d, {first, first + per_direction});
    const std::vector<Tensor> states = direction.run();
    h.push_back(states[0]);
    if (kind.cell) c.push_back(states[1]);
  }
  const DType dtype = in[0].dtype();
  const Tensor lens = in.size() > 4 ? in[4] : Tensor();
  std::vector<Tensor> out{outputs_over_time(l, h, lens, dtype)};
  if (call.num_outputs > 1) out.push_back(last_state("Y_h", l, h, dtype));
  if (call.num_outputs > 2) out.push_back(last_state("Y_c", l, c, dtype));
  return out;
}

}  // namespace

void add_recurrent_ops(std::vector<OpDef>& table) {
  auto add = [&](const char* op, int max_inputs) {
    OpDef def;
    def.name = op;
    def.min_inputs = 3;
    def.max_inputs = max_inputs;
    def.fusion = Fusion::Opaque;
    def.infer = infer_recurrent;
    def.define = define_recurrent;
    table.push_back(std::move(def));
  };
  add("LSTM", 8);
  add("GRU", 6);
  add("RNN", 6);
  add_blocked_recurrent_ops(table);
}

}  // namespace tilewright::tensor
