// The recurrence of LSTM, GRU and RNN with known weights, in blocks of hidden elements: a block's
// gates are summed, and its state is updated, in one go; blocks of one step do not depend on each
// other. Rows of the weights are in the order [block group, block, gate, element in block], so that
// what a group reads is contiguous. Elements that fill up the last group have weights of zero.
#include <functional>

#include "tilewright/base/check.h"
#include "tilewright/tensor/recurrent.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

/// Sizes of one layer: `group` blocks of `block` elements are updated together.
struct Sizes {
  RecurrentKind kind;
  int64_t steps = 0, batch = 0, hidden = 0, groups = 0, group = 1, block = 1;
  bool batch_first = false, reversed = false;
  int64_t padded() const { return groups * group * block; }
  int64_t row_width() const { return group * kind.gates * block; }
};

std::string kind_name(const OpCall& call) { return call.attrs.get_string("kind", "LSTM"); }

Result<Sizes> sizes_of(const OpCall& call) {
  Sizes s;
  s.kind = recurrent_kind(kind_name(call));
  TW_TRY_STATUS(require_rank(call, 0, 3));
  TW_TRY_STATUS(require_rank(call, 1, 3));
  const Shape &xw = call.inputs[0].shape, &r = call.inputs[1].shape;
  s.batch_first = call.attrs.get_int("layout", 0) != 0;
  s.reversed = call.attrs.get_string("direction", "forward") == "reverse";
  s.steps = xw[s.batch_first ? 1 : 0], s.batch = xw[s.batch_first ? 0 : 1];
  s.hidden = r[1], s.groups = r[0];
  s.group = call.attrs.get_int("group", 1), s.block = call.attrs.get_int("block", 0);
  const bool fits = s.block > 0 && s.group > 0 && r[2] == s.row_width() &&
                    xw[2] == s.groups * s.row_width() && s.padded() >= s.hidden;
  if (!fits)
    return invalid(call, fmt::format("projected input {} and packed weight {} do not fit",
                                     to_string(xw), to_string(r)));
  TW_TRY_STATUS(require_shape(call, 2, {xw[2]}));
  const Shape state = s.batch_first ? Shape{s.batch, 1, s.hidden} : Shape{1, s.batch, s.hidden};
  TW_TRY_STATUS(require_shape(call, 3, state));
  TW_TRY_STATUS(require_shape(call, 4, state));
  return s;
}

Inferred infer_recurrent_blocked(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  const Sizes s = TW_TRY(sizes_of(call));
  TW_TRY(recurrent_activations(call, 1, s.kind.functions));
  const DType dtype = call.inputs[0].dtype;
  const Shape state = s.batch_first ? Shape{s.batch, 1, s.hidden} : Shape{1, s.batch, s.hidden};
  const Shape y =
      s.batch_first ? Shape{s.batch, s.steps, 1, s.hidden} : Shape{s.steps, 1, s.batch, s.hidden};
  std::vector<TensorType> out{{dtype, y}, {dtype, state}};
  if (s.kind.cell) out.push_back({dtype, state});
  if (call.num_outputs > static_cast<int>(out.size()))
    return invalid(call, fmt::format("has {} outputs, not {}", out.size(), call.num_outputs));
  out.resize(static_cast<size_t>(std::max(call.num_outputs, 1)));
  return out;
}

/// Rows of the batch that share one read of the weights.
int64_t rows_together(int64_t batch) {
  int64_t best = 1;
  for (int64_t rows = 2; rows <= 6; ++rows)
    if (batch % rows == 0) best = rows;
  return best;
}

class Recurrence {
 public:
  Recurrence(const OpCall& call, const std::vector<Tensor>& inputs, Sizes sizes)
      : call_(call),
        in_(inputs),
        s_(std::move(sizes)),
        functions_(*recurrent_activations(call, 1, s_.kind.functions)),
        acc_(accumulator(inputs[0].dtype())),
        rows_(rows_together(s_.batch)),
        h_(state_buffer("h")),
        c_(state_buffer("c")),
        gates_("h.gates", acc_, extents({rows_, s_.group, s_.kind.gates, s_.block})),
        step_("h.step"),
        part_("h.group"),
        some_("h.rows") {}

  /// States of shape [steps + 1, batch, padded hidden]: h, and c for an LSTM.
  std::vector<Tensor> run() {
    std::vector<Stmt> body = {start(h_, 3)};
    if (s_.kind.cell) body.push_back(start(c_, 4));
    std::vector<Stmt> inner = {make(Alloc{gates_, {}})};
    const std::vector<Dim> space = {
        {"b", rows_}, {"t", s_.group}, {"g", s_.kind.gates}, {"j", s_.block}};
    inner.push_back(nest("h.gates.init", gates_, space, {}, Combine::Set, [&](const At& at) {
      return Cell{{at.b, at.t, at.g, at.j}, first_value(at)};
    }));
    inner.push_back(
        nest("h.gates", gates_, space, {{"k", s_.hidden}}, Combine::Add, [&](const At& at) {
          const Expr row = affine(affine(at.t, s_.kind.gates) + at.g, s_.block) + at.j;
          return Cell{{at.b, at.t, at.g, at.j},
                      load(h_, {at.s, at.row, at.k}) * read(1, {at.part, at.k, row})};
        }));
    const std::vector<Dim> state = {{"b", rows_}, {"t", s_.group}, {"j", s_.block}};
    if (s_.kind.cell)
      inner.push_back(nest("c", c_, state, {}, Combine::Set,
                           [&](const At& at) { return Cell{next(at), cell_value(at)}; }));
    inner.push_back(nest("h", h_, state, {}, Combine::Set,
                         [&](const At& at) { return Cell{next(at), hidden_value(at)}; }));
    Stmt loops = loop(some_, s_.batch / rows_, seq(std::move(inner)));
    loops = loop(part_, s_.groups, std::move(loops));
    body.push_back(loop(step_, s_.steps, std::move(loops)));
    std::vector<Buffer> outputs{h_};
    if (s_.kind.cell) outputs.push_back(c_);
    return raw(outputs, seq(std::move(body)));
  }

 private:
  /// Where a block is: step, group, row of the batch, and its own iterations.
  struct At {
    Expr s, part, row, b, t, g, j, k;
  };
  struct Cell {
    Indices where;
    Expr value;
  };

  static std::vector<Expr> extents(const Shape& shape) {
    std::vector<Expr> out;
    for (int64_t n : shape) out.push_back(int_imm(n));
    return out;
  }
  Buffer state_buffer(const std::string& name) const {
    return Buffer(name, acc_, extents({s_.steps + 1, s_.batch, s_.padded()}));
  }
  bool has(size_t i) const { return i < in_.size() && in_[i]; }
  Expr read(size_t i, Indices at) const { return cast(acc_, in_[i](std::move(at))); }
  static Stmt loop(const Var& var, int64_t extent, Stmt body) {
    return make(For{var, int_imm(extent), ForKind::Serial, "", {}, std::move(body)});
  }

  Stmt nest(const std::string& name, const Buffer& buffer, const std::vector<Dim>& space,
            const std::vector<Dim>& over, Combine combine,
            const std::function<Cell(const At&)>& value) {
    Block block{name, {}, Expr(), {}, Stmt()};
    auto iter = [&](const std::string& of, IterKind kind, int64_t extent, const Var& bound) {
      block.iters.push_back({Var(of), kind, int_imm(extent), ref(bound)});
      return ref(block.iters.back().var);
    };
    At at;
    at.s = iter("s", IterKind::Scan, s_.steps, step_);
    at.part = iter("p", IterKind::Space, s_.groups, part_);
    const Expr some = iter("r", IterKind::Space, s_.batch / rows_, some_);
    std::vector<std::pair<Var, int64_t>> loops;
    auto own = [&](const Dim& dim, IterKind kind) {
      loops.emplace_back(Var(name + "." + dim.name), dim.extent);
      const Expr e = iter(dim.name, kind, dim.extent, loops.back().first);
      (dim.name == "b"   ? at.b
       : dim.name == "t" ? at.t
       : dim.name == "g" ? at.g
       : dim.name == "j" ? at.j
                         : at.k) = e;
    };
    for (const Dim& dim : over) own(dim, IterKind::Reduce);
    for (const Dim& dim : space) own(dim, IterKind::Space);
    at.row = affine(some, rows_) + at.b;
    const Cell cell = value(at);
    block.body = make(Store{buffer, cell.where, cell.value, combine});
    Stmt out = make(std::move(block));
    for (size_t i = loops.size(); i-- > 0;)
      out = loop(loops[i].first, loops[i].second, std::move(out));
    return out;
  }

  /// state[0, b, j] = initial value, or 0.
  Stmt start(const Buffer& state, size_t input) {
    const std::string name = state.name() + ".start";
    const Var b("b"), j("j"), lb(name + ".b"), lj(name + ".j");
    Expr value = float_imm(0, acc_);
    if (has(input)) {
      const Expr given = s_.batch_first ? read(input, {ref(b), int_imm(0), ref(j)})
                                        : read(input, {int_imm(0), ref(b), ref(j)});
      const bool full = s_.padded() == s_.hidden;
      value = full ? given : select(ref(j) < int_imm(s_.hidden), given, value);
    }
    Block block{name,
                {{b, IterKind::Space, int_imm(s_.batch), ref(lb)},
                 {j, IterKind::Space, int_imm(s_.padded()), ref(lj)}},
                Expr(),
                {},
                make(Store{state, {int_imm(0), ref(b), ref(j)}, value, Combine::Set})};
    return loop(lb, s_.batch, loop(lj, s_.padded(), make(std::move(block))));
  }

  Expr projected(const At& at, const Expr& gate) const {
    const Expr time = s_.reversed ? int_imm(s_.steps - 1) - at.s : at.s;
    const Expr column = row_of(at, gate);
    return s_.batch_first ? read(0, {at.row, time, column}) : read(0, {time, at.row, column});
  }
  /// Number of the weights' row that belongs to an element's gate.
  Expr row_of(const At& at, const Expr& gate) const {
    const Expr block = affine(at.part, s_.group) + at.t;
    return affine(affine(block, s_.kind.gates) + gate, s_.block) + at.j;
  }
  bool linear_first() const {
    return kind_name(call_) == "GRU" && call_.attrs.get_int("linear_before_reset", 0) != 0;
  }
  /// What the sum of a gate starts with. The candidate of a GRU adds its input after the reset.
  Expr first_value(const At& at) const {
    if (!linear_first()) return projected(at, at.g);
    const Expr bias = has(2) ? read(2, {row_of(at, at.g)}) : float_imm(0, acc_);
    return select(at.g < int_imm(2), projected(at, at.g), bias);
  }

  Expr clipped(Expr x) const {
    if (!call_.attrs.has("clip")) return x;
    const double limit = call_.attrs.get_float("clip", 0);
    return min(max(x, float_imm(-limit, acc_)), float_imm(limit, acc_));
  }
  Expr sum_of(const At& at, int64_t gate) const {
    return load(gates_, {at.b, at.t, int_imm(gate), at.j});
  }
  Expr gate(const At& at, size_t function, int64_t which) const {
    return activate_by(functions_[function], clipped(sum_of(at, which)));
  }
  Expr element(const At& at) const {
    return affine(affine(at.part, s_.group) + at.t, s_.block) + at.j;
  }
  Indices next(const At& at) const { return {at.s + int_imm(1), at.row, element(at)}; }
  Expr before(const Buffer& state, const At& at) const {
    return load(state, {at.s, at.row, element(at)});
  }

  /// Gates are in the order i, o, f, c.
  Expr cell_value(const At& at) const {
    const bool coupled = call_.attrs.get_int("input_forget", 0) != 0;
    const Expr i = gate(at, 0, 0);
    const Expr f = coupled ? float_imm(1, acc_) - i : gate(at, 0, 2);
    return f * before(c_, at) + i * gate(at, 1, 3);
  }
  Expr hidden_value(const At& at) const {
    const std::string kind = kind_name(call_);
    if (kind == "RNN") return gate(at, 0, 0);
    if (kind == "LSTM") return gate(at, 0, 1) * activate_by(functions_[2], load(c_, next(at)));
    const Expr z = gate(at, 0, 0), sum = projected(at, int_imm(2)) + gate(at, 0, 1) * sum_of(at, 2);
    return (float_imm(1, acc_) - z) * activate_by(functions_[1], clipped(sum)) + z * before(h_, at);
  }

  const OpCall& call_;
  const std::vector<Tensor>& in_;
  Sizes s_;
  std::vector<Activation> functions_;
  DType acc_;
  int64_t rows_;
  Buffer h_, c_, gates_;
  Var step_, part_, some_;
};

std::vector<Tensor> define_recurrent_blocked(const OpCall& call, const std::vector<Tensor>& in) {
  const Sizes s = *sizes_of(call);
  const DType dtype = in[0].dtype();
  const std::vector<Tensor> states = Recurrence(call, in, s).run();
  const std::vector<TensorType> types = *infer_recurrent_blocked(call);
  const size_t b = s.batch_first ? 0 : 1;
  std::vector<Tensor> out = {
      compute("Y",
              dims_of(types[0].shape, s.batch_first ? std::vector<std::string>{"b", "t", "d", "j"}
                                                    : std::vector<std::string>{"t", "d", "b", "j"}),
              [&](const Indices& at) {
                const Expr &t = at[s.batch_first ? 1 : 0], &row = at[s.batch_first ? 0 : 2];
                const Expr step = s.reversed ? int_imm(s.steps) - t : t + int_imm(1);
                return cast(dtype, states[0]({step, row, at[3]}));
              })};
  for (size_t i = 1; i < types.size(); ++i)
    out.push_back(compute(i == 1 ? "Y_h" : "Y_c", dims_of(types[i].shape), [&](const Indices& at) {
      return cast(dtype, states[i - 1]({int_imm(s.steps), at[b], at[2]}));
    }));
  return out;
}

}  // namespace

void add_blocked_recurrent_ops(std::vector<OpDef>& table) {
  OpDef def;
  def.domain = "tilewright";
  def.name = "RecurrentBlocked";
  def.min_inputs = 2;
  def.max_inputs = 5;
  def.fusion = Fusion::Opaque;
  def.infer = infer_recurrent_blocked;
  def.define = define_recurrent_blocked;
  table.push_back(std::move(def));
}

}  // namespace tilewright::tensor
