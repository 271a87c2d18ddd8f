"""Behind extents that the run decides: reductions over them, products, what is kept, cut, joined or chosen there."""

import numpy as np
from builder import FLOAT, I32, I64, Value, require
from onnx import TensorProto, helper
from ops_elementwise import axes_operand


def settled(x, axis, **changed):
    """`x` with a shape that is unknown along `axis` only: onnx does not always find the others."""
    shape = list(changed.get("shape", x.shape))
    shape[axis] = -1
    x.shape = tuple(shape)
    return x, axis


def as_float(b, x):
    return x if x.dtype == FLOAT else b.add("Cast", [x], to=FLOAT)


def extent(b, x, axis):
    """Its extent along `axis` as a scalar."""
    return b.add("Gather", [b.add("Shape", [x]), b.constant(axis, I64)], axis=0)


def others(x, axis):
    return [a for a in range(x.rank) if a != axis and x.shape[a] > 0]


def reduced(b, x, axis):
    over = axis if b.chance(0.6) or not others(x, axis) else b.choice(others(x, axis))
    x = as_float(b, x)
    operators = "ReduceMax ReduceMin ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceSumSquare ReduceProd".split()
    op = b.choice(operators)
    operand, attributes = axes_operand(b, 13 if op == "ReduceSum" else 18, [over])
    shape = [1 if a == over else d for a, d in enumerate(x.shape)]
    y = b.add(op, [x, operand], keepdims=1, **attributes)
    if over != axis:
        return settled(y, axis, shape=shape)
    y.shape = tuple(shape)
    b.terminal.add(y.name)
    return settled(b.add(b.choice(("Add", "Sub", "Mul")), [x, y]), axis, shape=x.shape)


def picked_place(b, x, axis):
    return b.add(b.choice(("ArgMax", "ArgMin")), [as_float(b, x)], axis=axis, keepdims=b.choice((0, 1))), None


def multiplied(b, x, axis):
    require(x.rank >= 2 and axis != x.rank - 1 and x.shape[-1] > 0)
    n = b.between(1, 9)
    y = b.add("MatMul", [as_float(b, x), b.weights(x.shape[-1], n, dtype=FLOAT)])
    return settled(y, axis, shape=[*x.shape[:-1], n])


def connected(b, x, axis):
    require(x.rank == 2 and axis == 0 and x.shape[1] > 0)
    n = b.between(1, 9)
    weights = b.weights(n, x.shape[1], dtype=FLOAT)
    y = b.add("Gemm", [as_float(b, x), weights, b.weights(n, dtype=FLOAT)], transB=1)
    return settled(b.add("Relu", [y]) if b.chance(0.5) else y, axis, shape=[-1, n])


def convolved(b, x, axis):
    require(x.rank == 2 and axis == 0 and x.shape[1] > 0)
    operand, attributes = axes_operand(b, 13, [1])
    y = b.add("Unsqueeze", [as_float(b, x), operand], **attributes)
    kernel, n = b.between(1, min(3, x.shape[1])), b.between(1, 5)
    y = b.add("Conv", [y, b.weights(n, 1, kernel, dtype=FLOAT)])
    y = b.add("Relu", [y]) if b.chance(0.5) else y
    return settled(y, 0, shape=[-1, n, x.shape[1] - kernel + 1])


def normalised(b, x, axis):
    over = b.between(0, x.rank - 1) if b.opset >= 13 else x.rank - 1
    return settled(b.add(b.choice(("Softmax", "LogSoftmax")), [as_float(b, x)], axis=over), axis, shape=x.shape)


def kept(b, x, axis):
    """At most k along the axis, the largest: how detectors are exported."""
    require(b.opset >= 11)
    count = b.add("Unsqueeze", [extent(b, x, axis), *([b.ints(0)] if b.opset >= 13 else [])],
                  **({} if b.opset >= 13 else {"axes": [0]}))  # fmt: skip
    both = b.add("Concat", [b.ints(b.between(1, 6)), count], axis=0)
    operand, attributes = axes_operand(b, 18, [0])
    least = b.add("ReduceMin", [both, operand], keepdims=b.choice((0, 1)), **attributes)
    least = b.add("Reshape", [least, b.ints(1)])
    values, places = b.add("TopK", [as_float(b, x), least], 2, axis=axis, largest=b.choice((0, 1)))
    b.terminal |= {values.name, places.name}
    if b.chance(0.3):
        return settled(places, axis, shape=x.shape)
    return settled(values, axis, shape=x.shape)


def cut(b, x, axis):
    start, end = b.choice((0, 0, 1, -2)), b.choice((1, 3, 5, -1, np.iinfo(np.int64).max))
    step = b.choice((1, 1, 1, 2))
    require(b.opset >= 10)
    operands = [b.ints(start), b.ints(end), b.ints(axis)] + ([b.ints(step)] if step > 1 else [])
    return settled(b.add("Slice", [x, *operands]), axis, shape=x.shape)


def cut_at_count(b, x, axis):
    """The rows of a table up to the extent."""
    require(b.opset >= 13 and x.rank == 1)
    table = b.input(FLOAT, (70, b.between(1, 4)))
    count = b.add("Unsqueeze", [extent(b, x, axis), b.ints(0)])
    return settled(b.add("Slice", [table, b.ints(0), count, b.ints(0)]), 0, shape=table.shape)


def joined(b, x, axis):
    shape = [b.between(1, 3) if a == axis else d for a, d in enumerate(x.shape)]
    require(all(d > 0 for d in shape))
    more = x if b.chance(0.5) else b.constant(b.array(x.dtype, shape), x.dtype)
    return settled(b.add("Concat", [x, more], axis=axis), axis, shape=x.shape)


def found_again(b, x, axis):
    """Those rows whose sum is positive."""
    y, rest = as_float(b, x), others(x, axis)
    if rest or x.rank > 1:
        require(len(rest) == x.rank - 1)
        operand, attributes = axes_operand(b, 13, rest)
        y = b.add("ReduceSum", [y, operand], keepdims=0, **attributes)
    y = b.add("Greater", [y, b.constant(np.float32(0.5))])
    places = b.add("NonZero", [y])
    operand, attributes = axes_operand(b, 13, [0])
    places = b.add("Squeeze", [places, operand], **attributes)
    places.shape = (-1,)
    return settled(b.add("Gather", [x, places], axis=axis), axis, shape=x.shape)


def merged(b, x, axis):
    if b.chance(0.5) or x.rank == 1:
        y = b.add("Reshape", [x, b.ints(-1)])
        return settled(y, 0, shape=[-1])
    require(axis < x.rank - 1 and x.shape[-1] > 0)
    y = b.add("Reshape", [x, b.ints(-1, x.shape[-1])])
    return settled(y, 0, shape=[-1, x.shape[-1]])


def spread(b, x, axis):
    y = b.add("Expand", [b.constant(b.array(x.dtype, (1,)), x.dtype), b.add("Shape", [x])])
    if x.dtype == I32 and b.chance(0.5):
        y = b.add("ConstantOfShape", [b.add("Shape", [x])], value=helper.make_tensor("v", TensorProto.INT32, [1], [3]))
    return settled(b.add("Add", [x, y]), axis, shape=x.shape)


def counted(b, x, axis):
    require(b.opset >= 11)
    places = b.add("Range", [b.constant(0, I64), extent(b, x, axis), b.constant(1, I64)])
    return settled(places, 0, shape=[-1])


def chosen(b, x, axis):
    """Twice the value if there is much of it, else what is left without the first."""
    require(b.opset >= 13)
    condition = b.add("Greater", [extent(b, x, axis), b.constant(b.between(0, 5), I64)])
    many, few = b.fresh(), b.fresh()
    value = lambda name: helper.make_tensor_value_info(name, x.dtype, None)
    constant = lambda name, number: helper.make_node("Constant", [], [name], value_ints=[number])
    yes = helper.make_graph([helper.make_node("Add", [x.name, x.name], [many])], "many", [], [value(many)])
    parts = [f"{few}_{i}" for i in range(3)]
    nodes = [constant(parts[0], 1), constant(parts[1], 1000), constant(parts[2], axis)]
    nodes.append(helper.make_node("Slice", [x.name, *parts], [few]))
    no = helper.make_graph(nodes, "few", [], [value(few)])
    result = Value(b.fresh(), x.dtype, x.shape)
    b.nodes.append(helper.make_node("If", [condition.name], [result.name], then_branch=yes, else_branch=no))
    b.held.add(x.name)
    b.values.append(result)
    return settled(result, axis, shape=x.shape)


STEPS = (reduced, picked_place, multiplied, connected, convolved, normalised, kept, cut, cut_at_count, joined)
STEPS += (found_again, merged, spread, counted, chosen, reduced, kept, merged)
