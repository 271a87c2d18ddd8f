"""Operators element by element, reductions and normalisations, with attributes off their defaults."""

from builder import BOOL, FLOATS, I8, I16, I32, I64, INTS, U8, U16, U32, U64, require


def kept(b, op, x, low, high):
    """x limited to where `op` is smooth: elsewhere the last bit of an operand decides the result."""
    if op in ("Acos", "Asin", "Atanh"):
        x = b.add("Tanh", [x])
        return b.add("Mul", [x, b.constant(0.9, x.dtype)])
    if op in ("Log", "Sqrt", "Reciprocal"):
        return b.add("Add", [b.add("Abs", [x]), b.constant(0.2, x.dtype)])
    if op == "Acosh":
        return b.add("Add", [b.add("Abs", [x]), b.constant(1.1, x.dtype)])
    return b.add("Clip", [x, b.constant(low, x.dtype), b.constant(high, x.dtype)])


LIMITED = {"Acos": 0, "Asin": 0, "Atanh": 0, "Log": 0, "Sqrt": 0, "Reciprocal": 0, "Acosh": 0}
LIMITED |= {"Exp": 4, "Sinh": 4, "Cosh": 4, "Tan": 1.2, "Sin": 30, "Cos": 30}
SMOOTH = (
    "Relu Sigmoid Tanh Abs Neg Erf Softplus Softsign Identity Atan Asinh HardSwish Mish Sign "
    "Ceil Floor Round IsNaN Elu Celu Selu LeakyRelu HardSigmoid ThresholdedRelu Shrink Gelu Swish"
).split()
ATTRIBUTES = {
    "Elu": {"alpha": (0.5, 1.0, 2.0)},
    "Celu": {"alpha": (0.5, 1.0, 2.0)},
    "Selu": {"alpha": (1.5, None), "gamma": (1.1, None)},
    "LeakyRelu": {"alpha": (0.01, 0.3, None)},
    "HardSigmoid": {"alpha": (0.1, 0.25, None), "beta": (0.4, 0.6, None)},
    "ThresholdedRelu": {"alpha": (0.5, 1.0)},
    "Shrink": {"lambd": (0.5, 0.25), "bias": (0.0, 0.5)},
    "Swish": {"alpha": (0.5, 1.7, None)},
    "Gelu": {"approximate": ("none", "tanh", None)},
}


def unary(b):
    op = b.choice(SMOOTH + list(LIMITED))
    x = b.pick()
    if op in LIMITED:
        x = kept(b, op, x, -LIMITED[op], LIMITED[op])
    b.add(op, [x], **{k: b.choice(v) for k, v in ATTRIBUTES.get(op, {}).items()})


def unary_whole(b):
    op = b.choice(("Abs", "Neg", "Sign", "Not", "BitwiseNot", "Relu", "Identity", "IsInf"))
    dtypes = {"Not": (BOOL,), "IsInf": FLOATS}.get(op, INTS)
    b.add(op, [b.pick(dtypes)])


def broadcast_partner(b, x, constant=0.3, **data):
    """An operand whose shape broadcasts with x's: axes of one, fewer axes, or one more."""
    fits = [
        v
        for v in b.values
        if v.dtype == x.dtype and v.name not in b.terminal and v.shape == x.shape and v is not x
    ]
    if fits and not data and b.chance(0.5):
        return b.choice(fits)
    shape = [1 if b.chance(0.3) else d for d in x.shape]
    shape = shape[b.between(0, len(shape)) if b.chance(0.3) else 0 :]
    if len(shape) < 5 and b.chance(0.05):
        shape = [b.choice((2, 3))] + list(x.shape)
    values = b.array(x.dtype, tuple(shape), **data)
    return b.constant(values, x.dtype) if b.chance(constant) else b.input(x.dtype, shape, values)


def both_ways(b, x, y):
    return [x, y] if b.chance(0.6) else [y, x]


def binary(b):
    x = b.pick((b.real, b.real, I32, I64) if b.chance(0.2) else None)
    op = b.choice(("Add", "Add", "Sub", "Mul", "Mul", "Max", "Min", "Mean", "Sum"))
    operands = both_ways(b, x, broadcast_partner(b, x))
    if op in ("Max", "Min", "Mean", "Sum"):
        operands = (operands + [broadcast_partner(b, x)])[: b.between(1, 3)]
    b.add(op, operands)


def divide(b):
    x = b.pick()
    y = kept(b, "Log", broadcast_partner(b, x), 0, 0)
    b.add("Div", [x, y])


def divide_whole(b):
    x = b.pick((I8, U8, I32, I64, U32, I16))
    y = broadcast_partner(b, x, low=1, high=7)
    b.add(b.choice(("Div", "Mod")), [x, y])


def power(b):
    x = kept(b, "Log", b.pick(), 0, 0)
    exponent = b.choice((2.0, 0.5, 3.0, -1.0, 1.5, 0.0, -2.0))
    b.add("Pow", [x, b.constant(exponent, x.dtype)])


def compare(b):
    x = b.pick((b.real, I32, I64, BOOL))
    op = b.choice(("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"))
    b.add(op, [x, broadcast_partner(b, x)])


def logic(b):
    x = b.pick((BOOL,))
    b.add(b.choice(("And", "Or", "Xor")), both_ways(b, x, broadcast_partner(b, x)))


def bits(b):
    x = b.pick((U8, U16, U32, U64, I32, I64))
    if b.chance(0.4):
        y = broadcast_partner(b, x, low=0, high=7)
        b.add("BitShift", [x, y], direction=b.choice(("LEFT", "RIGHT")))
    else:
        b.add(b.choice(("BitwiseAnd", "BitwiseOr", "BitwiseXor")), [x, broadcast_partner(b, x)])


def where(b):
    x = b.pick((b.real, I32, I64, BOOL, U8))
    condition = b.pick((BOOL,), where=lambda v: v.shape == x.shape or v.size == 1)
    b.add("Where", [condition] + both_ways(b, x, broadcast_partner(b, x)))


def clip(b):
    x = b.pick((b.real, b.real, I32, I64, U8))
    low, high = (b.constant(v, x.dtype) if b.chance(0.7) else None for v in (0 if x.dtype == U8 else -1, 3))
    b.add("Clip", [x, low, high])


def prelu(b):
    x = b.pick(rank=(2, 3, 4))
    slope = b.weights(*[x.shape[1]] + [1] * (x.rank - 2), scale=0.3)
    b.add("PRelu", [x, slope])


def cast(b):
    x = b.pick((b.real, I32, I64, U8, I8, BOOL))
    target = b.choice((b.real, b.real, I32, I64, BOOL, U8, I8))
    if x.dtype in FLOATS and target in (U8, I8):  # outside their range references differ
        x = b.add("Clip", [x, b.constant(0.0, x.dtype), b.constant(100.0, x.dtype)])
    if b.opset >= 15 and b.chance(0.3):
        return b.add("CastLike", [x, b.pick((target,))])
    b.add("Cast", [x], to=target)


def dropout(b):
    b.add("Dropout", [b.pick(), b.constant(0.3, b.real)] if b.opset > 11 else [b.pick()])


def axes_operand(b, op_opset, axes):
    """The list of axes as this opset has it: an attribute or an operand."""
    if axes is None:
        return None, {}
    if b.opset < op_opset:
        return None, {"axes": axes}
    return b.ints(*axes), {}


def some_axes(b, rank, least=1):
    axes = [a for a in range(rank) if b.chance(0.5)]
    require(len(axes) >= least)
    return [a - rank if b.chance(0.3) else a for a in axes]


def reduce(b):
    op = b.choice(("Sum", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "LogSumExp", "Prod", "LogSum"))
    x = b.pick((I32, I64) if op in ("Sum", "Max", "Min") and b.chance(0.2) else None)
    if op == "LogSum":
        x = kept(b, "Log", x, 0, 0)
    if op == "Prod":  # near 1: else the result is no normal number
        x = b.add("Mul", [b.add("Tanh", [x]), b.constant(0.05, x.dtype)])
        x = b.add("Add", [x, b.constant(1.0, x.dtype)])
    axes = some_axes(b, x.rank) if b.chance(0.8) and x.rank else None
    operand, attributes = axes_operand(b, 13 if op == "Sum" else 18, axes)
    b.add("Reduce" + op, [x, operand], keepdims=b.choice((0, 1, None)), **attributes)


def arg(b):
    x = b.pick(rank=(1, 2, 3, 4))
    attributes = {"axis": b.between(-x.rank, x.rank - 1), "keepdims": b.choice((0, 1))}
    if b.opset >= 12:
        attributes["select_last_index"] = b.choice((0, 1, None))
    b.add(b.choice(("ArgMax", "ArgMin")), [x], **attributes)


def cumulative(b):
    x = b.pick((b.real, I32, I64), rank=(1, 2, 3, 4))
    axis = b.constant(b.between(-x.rank, x.rank - 1), b.choice((I32, I64)))
    op = "CumProd" if b.opset >= 26 and x.dtype == b.real else "CumSum"
    b.add(op, [x, axis], exclusive=b.choice((0, 1)), reverse=b.choice((0, 1)))


def softmax(b):
    x = b.pick(rank=(1, 2, 3, 4))
    op = b.choice(("Softmax", "Softmax", "LogSoftmax", "Hardmax"))
    b.add(op, [x], axis=b.choice((None, b.between(-x.rank, x.rank - 1))))


def batch_norm(b):
    x = b.pick(rank=(2, 3, 4, 5))
    c = x.shape[1]
    scale, bias, mean = (b.weights(c) for _ in range(3))
    variance = b.constant(b.rng.random(c) + 0.3, b.real)
    b.add("BatchNormalization", [x, scale, bias, mean, variance], epsilon=b.choice((1e-5, 1e-2)))


def normalise(b):
    op = b.choice(("LayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization", "LRN"))
    if op == "RMSNormalization":
        x = b.pick(rank=(1, 2, 3, 4), where=lambda v: v.size > 0)
        axis = b.between(-x.rank, x.rank - 1)
        return b.add(op, [x, b.weights(*x.shape[axis % x.rank :])], axis=axis, epsilon=b.choice((None, 1e-2)))
    if op == "LayerNormalization":
        x = b.pick(rank=(1, 2, 3, 4), where=lambda v: v.shape[-1] > 1)
        axis = b.between(-x.rank, x.rank - 1)
        scale = b.weights(*x.shape[axis % x.rank :])
        bias = b.weights(*x.shape[axis % x.rank :]) if b.chance(0.7) else None
        return b.add(op, [x, scale, bias], axis=axis, epsilon=b.choice((1e-5, 1e-2)))
    x = b.pick(rank=(3, 4), where=lambda v: v.size > 0 and v.size // v.shape[0] // v.shape[1] > 2)
    c = x.shape[1]
    if op == "LRN":
        return b.add(op, [x], size=b.choice((1, 3, 5)), alpha=b.choice((1e-4, 0.1)), bias=b.choice((1.0, 2.0)))
    if op == "GroupNormalization":
        groups = b.choice([g for g in (1, 2, 3, 4, 8) if c % g == 0])
        n = c if b.opset >= 21 else groups
        return b.add(op, [x, b.weights(n), b.weights(n)], num_groups=groups)
    return b.add(op, [x, b.weights(c), b.weights(c)], epsilon=b.choice((1e-5, 1e-2)))


def lp_and_mean_variance(b):
    x = b.pick(rank=(2, 3, 4), where=lambda v: v.size > 8)
    if b.chance(0.5):
        return b.add("LpNormalization", [x], axis=b.between(-x.rank, x.rank - 1), p=b.choice((1, 2)))
    return b.add("MeanVarianceNormalization", [x], axes=b.choice(([0, 2, 3], [1], [2, 3]))) if x.rank == 4 else None


OPS = [unary] * 10 + [binary] * 5 + [softmax] * 2 + [reduce] * 3
OPS += [unary_whole] * 2 + [compare, bits, bits, logic, divide, divide_whole, power, compare, logic, bits, where, clip, prelu, cast, dropout]
OPS += [arg, cumulative, batch_norm, normalise, normalise, lp_and_mean_variance]
