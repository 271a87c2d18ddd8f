"""Loops, scans and sequences whose counts the model knows, with random bodies that use outer values."""

import numpy as np
from builder import BOOL, I64, Value, require
from onnx import helper

UNARY = ("Neg", "Abs", "Tanh", "Sigmoid", "Relu", "Identity")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")


def info(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, list(shape))


def result(b, dtype, shape):
    b.values.append(Value(b.fresh(), dtype, shape))
    return b.values[-1]


def outer(b, dtype, shape):
    """A value that a body may use without having it as an input."""
    fits = [v for v in b.values if v.dtype == dtype and v.shape == shape and v.name not in b.terminal]
    value = b.choice(fits) if fits and b.chance(0.6) else b.constant(b.array(dtype, shape), dtype)
    b.held.add(value.name)
    return value.name


class Body:
    """Nodes of a body in the making. All its values have one type and shape; names of bodies that lie in each
    other differ, those of bodies beside each other do not."""

    def __init__(self, b, dtype, shape, level, names):
        self.b, self.dtype, self.shape, self.level = b, dtype, shape, level
        self.nodes, self.names, self.count = [], list(names), 0

    def add(self, op, inputs, **attributes):
        self.count += 1
        name = f"t{self.level}_{self.count}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def grow(self):
        b = self.b
        for _ in range(b.between(1, 3)):
            if b.chance(0.3):
                self.names.append(outer(b, self.dtype, self.shape))
            if self.level < 2 and b.chance(0.15):
                self.names.append(self.nested())
            elif b.chance(0.4):
                self.names.append(self.add(b.choice(UNARY), [b.choice(self.names[-3:])]))
            else:
                op = b.choice(BINARY)
                self.names.append(self.add(op, [self.names[-1], b.choice(self.names)]))
        return self.add("Tanh" if b.chance(0.5) else "Identity", [self.names[-1]])

    def nested(self):
        b = self.b
        if b.chance(0.4):
            condition = b.constant(np.array(b.chance(0.5)))
            b.held.add(condition.name)
            branches = {}
            for key in ("then_branch", "else_branch"):
                inner = Body(b, self.dtype, self.shape, self.level + 1, self.names)
                last = inner.grow()
                branches[key] = helper.make_graph(inner.nodes, key, [], [info(last, self.dtype, self.shape)])
            return self.add("If", [condition.name], **branches)
        trips = b.constant(b.between(0, 3), I64)
        b.held.add(trips.name)
        graph, _ = loop_body(b, self.dtype, self.shape, self.level + 1, 1, 0, self.names[1:])
        return self.add("Loop", [trips.name, "", self.names[-1]], body=graph)


def loop_body(b, dtype, shape, level, carried, scanned, seen, last_trip=None):
    """The graph of a Loop, and whether it ends by its condition (after iteration `last_trip`)."""
    states = [f"s{level}_{i}" for i in range(carried)]
    body = Body(b, dtype, shape, level, [*states, *seen])
    if last_trip is None:
        goes_on = body.add("Identity", [f"go{level}"])
    else:
        bound = b.constant(last_trip, I64)
        b.held.add(bound.name)
        goes_on = body.add("Less", [f"i{level}", bound.name])
    made = []
    for _ in range(carried + scanned):
        if body.level == 1 and len(made) >= carried and b.chance(0.2):
            real = body.add("Cast", [f"i{level}"], to=dtype)  # the number of the iteration
            made.append(body.add("Add", [real, body.names[-1]]))
        else:
            made.append(body.grow())
    inputs = [info(f"i{level}", I64, ()), info(f"go{level}", BOOL, ())]
    inputs += [info(s, dtype, shape) for s in states]
    outputs = [info(goes_on, BOOL, ())] + [info(m, dtype, shape) for m in made]
    return helper.make_graph(body.nodes, b.fresh("body"), inputs, outputs), made


def small(b, rank=(1, 2, 3)):
    return b.pick(rank=rank, where=lambda v: 0 < v.size <= 600)


def loop(b):
    x = small(b)
    carried, scanned, trips = b.between(1, 2), b.between(0, 2), b.choice((0, 1, 2, 2, 3, 4))
    require(b.opset >= 9)
    last = b.choice((None, None, 0, 1, 2))
    graph, _ = loop_body(b, x.dtype, x.shape, 1, carried, scanned, [], last)
    runs = trips if last is None else min(trips, last + 1)
    count = b.constant(trips, I64)
    if b.chance(0.3):  # a count that follows from a shape
        rows = b.constant(np.zeros((trips, 2), np.float32))
        count = b.add("Gather", [b.add("Shape", [rows]), b.constant(0, I64)])
        require(b.opset >= 11)
    go = b.constant(np.array(True)) if b.chance(0.5) else None
    starts = [x] + [Value(outer(b, x.dtype, x.shape), x.dtype, x.shape) for _ in range(carried - 1)]
    inputs = [count.name, go.name if go else "", *[s.name for s in starts]]
    results = [result(b, x.dtype, x.shape) for _ in range(carried)]
    results += [result(b, x.dtype, (runs, *x.shape)) for _ in range(scanned)]
    b.nodes.append(helper.make_node("Loop", inputs, [r.name for r in results], body=graph))


def scan(b):
    require(b.opset >= 9)
    x = small(b)
    axis, reverse = b.between(0, x.rank - 1), b.between(0, 1)
    require(x.shape[axis] <= 8)
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    body = Body(b, x.dtype, shape, 1, ["s", "e"])
    states, scanned = 1, b.between(0, 2)
    made = [body.grow() for _ in range(states + scanned)]
    signed = b.opset >= 11 and b.chance(0.3)  # negative axes
    out_axes = [b.between(0, len(shape)) for _ in range(scanned)]
    attributes = {"num_scan_inputs": 1, "scan_input_axes": [axis - x.rank if signed else axis]}
    attributes["scan_input_directions"] = [reverse]
    if scanned:
        attributes["scan_output_axes"] = [a - len(shape) - 1 if signed else a for a in out_axes]
        attributes["scan_output_directions"] = [b.between(0, 1) for _ in out_axes]
    inputs = [info("s", x.dtype, shape), info("e", x.dtype, shape)]
    outputs = [info(m, x.dtype, shape) for m in made]
    graph = helper.make_graph(body.nodes, b.fresh("body"), inputs, outputs)
    start = b.input(x.dtype, shape)
    results = [result(b, x.dtype, shape)]
    results += [result(b, x.dtype, (*shape[:a], x.shape[axis], *shape[a:])) for a in out_axes]
    names = [r.name for r in results]
    b.nodes.append(helper.make_node("Scan", [start.name, x.name], names, body=graph, **attributes))


def sequence(b):
    """A sequence from a tensor or from several, changed, and made a tensor again."""
    require(b.opset >= 11)
    x = small(b)
    axis = b.between(0, x.rank - 1)
    require(x.shape[axis] <= 8)
    at = lambda place: b.constant(place, I64).name
    node = lambda op, inputs, **attributes: b.nodes.append(
        helper.make_node(op, inputs, [b.fresh("q")], **attributes)
    ) or b.nodes[-1].output[0]
    keep = b.chance(0.6)
    shape = x.shape[:axis] + ((1,) if keep else ()) + x.shape[axis + 1 :]
    length = x.shape[axis]
    if b.chance(0.6):
        s = node("SplitToSequence", [x.name], axis=axis, keepdims=int(keep))
    else:
        shape, length = x.shape, b.between(1, 4)
        s = node("SequenceConstruct", [x.name] + [outer(b, x.dtype, shape) for _ in range(length - 1)])
    for _ in range(b.between(0, 4)):
        kind = b.between(0, 3)
        if kind == 0 and length > 1:
            length -= 1
            s = node("SequenceErase", [s] + ([at(b.between(-length - 1, length))] if b.chance(0.7) else []))
        elif kind == 1:
            picked = node("SequenceAt", [s, at(b.between(-length, length - 1))])
            b.values.append(Value(picked, x.dtype, shape))
            s = node("SequenceInsert", [s, picked] + ([at(b.between(-length, length))] if b.chance(0.7) else []))
            length += 1
        elif kind == 2 and b.opset >= 17:
            body = Body(b, x.dtype, shape, 1, ["a", "m"])
            last = body.grow()
            inputs, outputs = [info("a", x.dtype, shape), info("m", x.dtype, shape)], [info(last, x.dtype, shape)]
            graph = helper.make_graph(body.nodes, b.fresh("body"), inputs, outputs)
            s = node("SequenceMap", [s, s if b.chance(0.5) else outer(b, x.dtype, shape)], body=graph)
        elif kind == 3 and b.opset >= 14:
            s = node("Identity", [s])
    if b.chance(0.2):
        b.values.append(Value(node("SequenceLength", [s]), I64, ()))
    new = not shape or b.chance(0.4)
    axis = b.between(0, len(shape) - (not new))
    joined = (*shape[:axis], length, *shape[axis:]) if new else list(shape)
    if not new:
        joined[axis] *= length
    y = node("ConcatFromSequence", [s], axis=axis, new_axis=int(new))
    b.values.append(Value(y, x.dtype, joined))


OPS = [loop, loop, scan, sequence]
