// Reductions over axes, ArgMax and ArgMin, cumulative sums.
#include <numeric>

#include "tilewright/base/check.h"
#include "tilewright/tensor/op.h"
#include "tilewright/tensor/reduce_util.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

/// The axes of a Reduce operator: input 1, or the attribute of older versions; none means all axes
/// unless noop_with_empty_axes is set.
Result<Ints> reduce_axes_of(const OpCall& call) {
  const size_t rank = call.inputs[0].shape.size();
  Ints axes = call.input(1) ? int_values(call, 1) : call.attrs.get_ints("axes");
  if (axes.empty() && call.attrs.get_int("noop_with_empty_axes", 0) == 0) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  auto normal = normalize_axes(axes, rank);
  if (!normal) return invalid(call, normal.error().what, normal.error().why);
  return *normal;
}

bool keeps(const OpCall& call) { return call.attrs.get_int("keepdims", 1) != 0; }

/// A reduction as term, combination and what follows; term and finish work in the sum's type.
struct ReduceRow {
  const char* name;
  Types types;
  Combine combine;
  Expr (*term)(const Expr& x);
  Expr (*finish)(const Expr& sum, int64_t count);
};

Expr same_value(const Expr& x) { return x; }
Expr square(const Expr& x) { return x * x; }
Expr magnitude(const Expr& x) { return is_unsigned_int(x.dtype()) ? x : math(MathFn::Abs, {x}); }

/// Square roots and logarithms of integers go through f64.
Expr real_function(MathFn fn, const Expr& x) {
  const bool real = is_float(x.dtype());
  return cast(x.dtype(), math(fn, {real ? x : cast(DType::F64, x)}));
}

Expr finish_mean(const Expr& sum, int64_t count) {
  const Expr n = is_float(sum.dtype()) ? float_imm(static_cast<double>(count), sum.dtype())
                                       : int_imm(count, sum.dtype());
  return is_float(sum.dtype()) ? sum / n : math(MathFn::TruncDiv, {sum, n});
}
Expr finish_root(const Expr& sum, int64_t) { return real_function(MathFn::Sqrt, sum); }
Expr finish_log(const Expr& sum, int64_t) { return real_function(MathFn::Log, sum); }

const ReduceRow kReduce[] = {
    {"ReduceSum", Types::Number, Combine::Add, same_value, nullptr},
    {"ReduceMean", Types::Number, Combine::Add, same_value, finish_mean},
    {"ReduceMax", Types::Any, Combine::Max, same_value, nullptr},
    {"ReduceMin", Types::Any, Combine::Min, same_value, nullptr},
    {"ReduceProd", Types::Number, Combine::Mul, same_value, nullptr},
    {"ReduceL1", Types::Number, Combine::Add, magnitude, nullptr},
    {"ReduceL2", Types::Number, Combine::Add, square, finish_root},
    {"ReduceLogSum", Types::Number, Combine::Add, same_value, finish_log},
    {"ReduceSumSquare", Types::Number, Combine::Add, square, nullptr},
};

Inferred infer_reduce(const OpCall& call, Types types) {
  TW_TRY_STATUS(require_types(call, 0, types));
  const Axes axes(call.inputs[0].shape, TW_TRY(reduce_axes_of(call)));
  if (call.op == "ReduceMean" && axes.count() == 0 && !is_float(call.inputs[0].dtype))
    return invalid(call, "the mean of no integers is not defined");
  return std::vector<TensorType>{{call.inputs[0].dtype, axes.output(keeps(call))}};
}

OpDef reduce_def(const ReduceRow& row) {
  OpDef def{"", row.name, 1, 2, Fusion::Reduction, {1}};
  def.infer = [row](const OpCall& call) { return infer_reduce(call, row.types); };
  def.define = [row](const OpCall& call, const Tensors& in) {
    const Tensor& x = in[0];
    const DType dtype = x.dtype();
    const bool extreme = row.combine == Combine::Max || row.combine == Combine::Min;
    // Truth values are compared as 0 and 1.
    const DType wide = dtype == DType::Bool ? DType::U8 : extreme ? dtype : compute_type(dtype);
    const Axes axes(x.shape(), *reduce_axes_of(call));
    const std::string name = tensor_name(call);
    const bool direct = row.finish == nullptr && wide == dtype;
    const Tensor sum =
        reduce_axes(direct ? name : name + "_sum", x, axes, keeps(call), row.combine,
                    [&](const Expr& e, const Indices&) { return row.term(cast(wide, e)); });
    if (direct) return Tensors{sum};
    return Tensors{compute(name, dims_of(sum.shape()), [&](const Indices& at) {
      const Expr value = row.finish ? row.finish(sum(at), axes.count()) : sum(at);
      return convert(dtype, value);
    })};
  };
  return def;
}

/// log(sum(exp(x))), shifted by the maximum so that no exponential overflows.
Tensors define_log_sum_exp(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const DType dtype = x.dtype();
  const DType wide = is_float(dtype) ? compute_type(dtype) : DType::F64;
  const Axes axes(x.shape(), *reduce_axes_of(call));
  const Tensor largest = reduce_axes("reduce_max", x, axes, true, Combine::Max,
                                     [&](const Expr& e, const Indices&) { return cast(wide, e); });
  // An infinite maximum would give inf - inf.
  auto shift = [&](const Expr& m) {
    return select(math(MathFn::IsInf, {m}), const_of(wide, 0), m);
  };
  const Tensor sum = reduce_axes("reduce_sum_exp", x, axes, true, Combine::Add,
                                 [&](const Expr& e, const Indices& at) {
                                   const Expr m = broadcast_load(largest, at);
                                   return math(MathFn::Exp, {cast(wide, e) - shift(m)});
                                 });
  return {compute("reduce_log_sum_exp", dims_of(axes.output(keeps(call))), [&](const Indices& at) {
    Indices kept;
    size_t next = 0;
    for (size_t i = 0; i < x.rank(); ++i) {
      const bool present = keeps(call) || !axes.reduced[i];
      kept.push_back(axes.reduced[i] ? int_imm(0) : at[next]);
      if (present) ++next;
    }
    const Expr log = math(MathFn::Log, {sum(kept)});
    return cast(dtype, log + shift(largest(kept)));
  })};
}

// --- ArgMax, ArgMin.

OpDef arg_def(bool largest) {
  OpDef def{"", largest ? "ArgMax" : "ArgMin", 1, 1, Fusion::Reduction};
  auto axis_of = [](const OpCall& call) -> Result<int64_t> {
    auto axis = normalize_axis(call.attrs.get_int("axis", 0), call.inputs[0].shape.size());
    if (!axis) return invalid(call, axis.error().what, axis.error().why);
    return *axis;
  };
  def.infer = [axis_of](const OpCall& call) -> Inferred {
    TW_TRY_STATUS(require_types(call, 0, Types::Number));
    const Axes axes(call.inputs[0].shape, {TW_TRY(axis_of(call))});
    if (axes.count() == 0)
      return invalid(call, "the axis has no elements",
                     fmt::format("the input has shape {}", to_string(axes.shape)));
    return std::vector<TensorType>{{DType::I64, axes.output(keeps(call))}};
  };
  def.define = [axis_of, largest](const OpCall& call, const Tensors& in) {
    return Tensors{arg_extreme(tensor_name(call), in[0], *axis_of(call), keeps(call), largest,
                               call.attrs.get_int("select_last_index", 0) != 0)};
  };
  return def;
}

// --- CumSum, CumProd: the running value is an axis one longer than the input's.

Result<size_t> cumulative_axis(const OpCall& call) {
  const Ints values = int_values(call, 1);
  if (values.size() != 1) return invalid(call, "the axis must be one number");
  auto axis = normalize_axis(values[0], call.inputs[0].shape.size());
  if (!axis) return invalid(call, axis.error().what, axis.error().why);
  return static_cast<size_t>(*axis);
}

/// state[.., 0, ..] = start; state[.., t + 1, ..] = state[.., t, ..] op x[.., t (or last - t), ..].
Tensor running(const OpCall& call, const Tensor& x, size_t axis, DType wide) {
  const bool sum = call.op == "CumSum", reverse = call.attrs.get_int("reverse", 0) != 0;
  std::vector<Expr> extents;
  for (size_t i = 0; i < x.rank(); ++i) extents.push_back(int_imm(x.dim(i) + (i == axis ? 1 : 0)));
  const Buffer state("running", wide, extents);
  auto nest = [&](const std::string& name, bool scan, auto store) {
    Block block{name, {}, Expr(), {}, Stmt()};
    Indices at;
    std::vector<Var> loops;
    for (size_t i = 0; i < x.rank(); ++i) {
      if (i == axis && !scan) {
        at.push_back(int_imm(0));
        continue;
      }
      const Var var("i" + std::to_string(i));
      loops.emplace_back(name + "." + var.name());
      block.iters.push_back({var, i == axis ? IterKind::Scan : IterKind::Space, int_imm(x.dim(i)),
                             ref(loops.back())});
      at.push_back(ref(var));
    }
    block.body = store(at);
    const std::vector<Iter> iters = block.iters;
    Stmt s = make(std::move(block));
    for (size_t i = loops.size(); i-- > 0;)
      s = make(For{loops[i], iters[i].extent, ForKind::Serial, "", {}, s});
    return s;
  };
  const Stmt start = nest("running.init", false, [&](const Indices& at) {
    return make(Store{state, at, const_of(wide, sum ? 0 : 1), Combine::Set});
  });
  const Stmt step = nest("running", true, [&](const Indices& at) {
    Indices source = at, next = at;
    if (reverse) source[axis] = int_imm(x.dim(axis) - 1) - at[axis];
    next[axis] = at[axis] + 1;
    const Expr before = load(state, at), term = cast(wide, x(source));
    return make(Store{state, next, sum ? before + term : before * term, Combine::Set});
  });
  return raw({state}, seq({start, step}))[0];
}

OpDef cumulative_def(const char* name) {
  OpDef def{"", name, 2, 2, Fusion::Opaque, {1}};
  def.infer = [](const OpCall& call) -> Inferred {
    TW_TRY_STATUS(require_types(call, 0, Types::Number));
    TW_TRY(cumulative_axis(call));
    return std::vector<TensorType>{{call.inputs[0].dtype, call.inputs[0].shape}};
  };
  def.define = [](const OpCall& call, const Tensors& in) {
    const Tensor& x = in[0];
    const size_t axis = *cumulative_axis(call);
    const Tensor state = running(call, x, axis, compute_type(x.dtype()));
    const bool reverse = call.attrs.get_int("reverse", 0) != 0;
    const bool exclusive = call.attrs.get_int("exclusive", 0) != 0;
    return Tensors{compute(tensor_name(call), dims_of(x.shape()), [&](const Indices& at) {
      Indices source = at;
      if (reverse) source[axis] = int_imm(x.dim(axis) - 1) - at[axis];
      if (!exclusive) source[axis] = source[axis] + 1;
      return cast(x.dtype(), state(source));
    })};
  };
  return def;
}

}  // namespace

void add_reduce_ops(std::vector<OpDef>& table) {
  for (const ReduceRow& row : kReduce) table.push_back(reduce_def(row));
  OpDef log_sum_exp{"", "ReduceLogSumExp", 1, 2, Fusion::Reduction, {1}};
  log_sum_exp.infer = [](const OpCall& call) { return infer_reduce(call, Types::Number); };
  log_sum_exp.define = define_log_sum_exp;
  table.push_back(std::move(log_sum_exp));
  table.push_back(arg_def(true));
  table.push_back(arg_def(false));
  table.push_back(cumulative_def("CumSum"));
  table.push_back(cumulative_def("CumProd"));
}

}  // namespace tilewright::tensor
