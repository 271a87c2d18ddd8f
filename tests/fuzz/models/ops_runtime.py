"""Extents known only at run time, and what a network does behind them: what the run found is gathered, moved, joined."""

import numpy as np
from builder import BOOL, FLOAT, I32, I64, Unfit, require
from ops_dynamic import STEPS
from ops_elementwise import axes_operand


def found(b):
    """A value with an extent that the run decides, and the axis of it."""
    kind = b.between(0, 3)
    if kind == 0:
        shape = (1,) if b.chance(0.2) else b.shape(b.between(1, 3), 60)
        data = b.array(I32, shape, 0, b.choice((0, 1, 3)))
        return b.add("NonZero", [b.input(I32, shape, data)]), 1
    if kind == 1:
        x = b.pick((b.real, I64), rank=(1, 2, 3), where=lambda v: 0 < v.size < 500)
        axis = b.between(0, x.rank - 1)
        mask = b.array(BOOL, (x.shape[axis],))
        return b.add("Compress", [x, b.input(BOOL, mask.shape, mask)], axis=axis), axis
    if kind == 2:
        shape = (b.between(1, 12),)
        return b.add("Unique", [b.input(I64, shape, b.array(I64, shape, 0, 4))], 1, sorted=1), 0
    n = b.between(1, 8)
    corners = np.sort(b.rng.random((1, n, 2, 2)), axis=2).reshape(1, n, 4).astype(np.float32)
    scores = b.rng.random((1, 2, n)).astype(np.float32)
    limits = [b.constant(b.between(1, n), I64), b.constant(0.5, FLOAT), b.constant(b.choice((0.2, 2.0)), FLOAT)]
    operands = [b.input(FLOAT, corners.shape, corners), b.input(FLOAT, scores.shape, scores)]
    return b.add("NonMaxSuppression", operands + limits), 0


def element_by_element(b, x, axis):
    if x.dtype in (I32, I64) and b.chance(0.4):
        return b.add("Cast", [x], to=FLOAT), axis
    kind = b.between(0, 3)
    if kind == 0:
        return b.add(b.choice(("Abs", "Neg", "Identity")), [x]), axis
    if kind == 1:
        return b.add(b.choice(("Add", "Mul", "Sub")), [x, x]), axis
    shape = [1 if a == axis or b.chance(0.3) else d for a, d in enumerate(x.shape)]
    shape = shape[b.between(0, len(shape)) if b.chance(0.3) else 0 :]
    if b.chance(0.1):
        return b.add("Add", [x, b.input(x.dtype, [2, *shape])]), None
    other = b.array(x.dtype, shape)
    other = b.constant(other) if b.chance(0.5) else b.input(x.dtype, shape, other)
    return b.add(b.choice(("Add", "Mul", "Max")), [x, other] if b.chance(0.7) else [other, x]), axis


def view(b, x, axis):
    kind = b.between(0, 4)
    if kind == 0:
        perm = b.rng.permutation(x.rank).tolist()
        return b.add("Transpose", [x], perm=perm), perm.index(axis)
    if kind == 1:
        at = b.between(0, x.rank)
        operand, attributes = axes_operand(b, 13, [at])
        return b.add("Unsqueeze", [x, operand], **attributes), axis + (at <= axis)
    if kind == 2:
        ones = [a for a, d in enumerate(x.shape) if d == 1 and a != axis]
        require(ones)
        operand, attributes = axes_operand(b, 13, ones[:1])
        return b.add("Squeeze", [x, operand], **attributes), axis - (ones[0] < axis)
    if kind == 3:
        first = [a for a, d in enumerate(x.shape[: axis + 1]) if d != 1 or a == axis] == [axis]
        at = axis + 1 if first else axis
        return b.add("Flatten", [x], axis=at), 0 if first else 1
    shape = [-1 if a == axis else d for a, d in enumerate(x.shape)]
    return b.add("Reshape", [x, b.ints(*shape, 1)]), axis


def cut_or_joined(b, x, axis):
    others = [a for a in range(x.rank) if a != axis and x.shape[a] > 0]
    require(others)
    a = b.choice(others)
    kind = b.between(0, 3)
    if kind == 0:
        return b.add("Slice", [x, b.ints(0), b.ints(b.between(1, x.shape[a])), b.ints(a)]), axis
    if kind == 1:
        return b.add("Concat", [x, x], axis=a), axis
    if kind == 2:
        places = b.constant(b.array(I64, (2,), -x.shape[a], x.shape[a] - 1))
        return b.add("Gather", [x, places], axis=a), axis
    return b.add("Gather", [x, b.constant(b.between(0, x.shape[a] - 1), I64)], axis=a), axis - (a < axis)


def looked_up(b, x, axis):
    """Rows of a table by what was found: whole numbers not below 0."""
    require(x.dtype in (I32, I64))
    x = b.add("Clip", [x, b.constant(0, x.dtype), b.constant(3, x.dtype)]) if b.opset >= 12 else b.add("Abs", [x])
    table = b.input(FLOAT, (70, b.between(1, 5)))
    return b.add("Gather", [table, x], axis=0), axis


def behind_run_time(b):
    x, axis = found(b)
    b.terminal.add(x.name)
    for _ in range(b.between(1, 5)):
        plain = (element_by_element, element_by_element, view, view, cut_or_joined, looked_up)
        step = b.choice(plain if b.chance(0.5) else STEPS)
        mark = b.mark()
        try:
            x, axis = step(b, x, axis)
        except Unfit:
            b.undo(mark)
            continue
        b.terminal.add(x.name)
        if axis is None:
            break


OPS = [behind_run_time] * 3
