"""Parts of networks as exporters write them: what a single node cannot show."""

import numpy as np
from builder import I64, Value, require
from onnx import helper
from ops_elementwise import axes_operand
from ops_networks import boxes, conv, image, quantised_conv

ACTIVATIONS = ("Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Softplus", "HardSwish", "Clip")


def activate(b, x, kinds=ACTIVATIONS):
    op = b.choice(kinds)
    if op == "HardSwish" and b.opset < 14:
        op = "Relu"
    if op == "Clip":
        return b.add(op, [x, b.constant(0, x.dtype), b.constant(6, x.dtype)])
    return b.add(op, [x])


def norm(b, x):
    c = x.shape[1]
    variance = b.constant(b.rng.random(c) + 0.5, b.real)
    return b.add("BatchNormalization", [x, b.weights(c), b.weights(c), b.weights(c), variance])


def block(b, x, filters, kernel=3, stride=1, group=1, dilation=1):
    pad = dilation * (kernel // 2)
    n = x.rank - 2
    x = conv(
        b,
        x,
        filters,
        group=group,
        kernel_shape=[kernel] * n,
        strides=[stride] * n,
        pads=[pad] * 2 * n,
        dilations=[dilation] * n,
    )
    if b.chance(0.5):
        x = norm(b, x)
    return activate(b, x) if b.chance(0.8) else x


def chain(b):
    x = image(b, b.choice((3, 4, 4, 4)))
    for _ in range(b.between(2, 4)):
        x = block(b, x, b.choice((1, 8, 16, 24, 32)), b.choice((1, 3, 3, 5)), b.choice((1, 1, 2)), 1, b.choice((1, 1, 2)))


def residual(b):
    x = block(b, image(b, 4), b.choice((1, 8, 16, 17, 32)))
    y = block(b, x, x.shape[1])
    y = block(b, y, x.shape[1], b.choice((1, 3)))
    activate(b, b.add("Add", [x, y] if b.chance(0.5) else [y, x]))


def squeeze_excite(b):
    x = block(b, image(b, 4), b.choice((8, 16, 32)))
    c = x.shape[1]
    y = b.add("GlobalAveragePool", [x])
    y = block(b, y, max(c // 4, 1), 1)
    y = b.add(b.choice(("Sigmoid", "HardSigmoid")), [conv(b, y, c, group=1, kernel_shape=[1, 1])])
    b.add("Mul", [x, y])


def u_net(b):
    """Down, up by Resize or ConvTranspose, a skip, and a head of few channels."""
    x = block(b, image(b, 4), b.choice((8, 16)))
    require(x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0)
    y = b.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    y = block(b, y, b.choice((16, 32)))
    if b.chance(0.5):
        y = b.add("ConvTranspose", [y, b.weights(y.shape[1], x.shape[1], 2, 2)], strides=[2, 2])
    else:
        empty = b.constant(np.zeros(0, np.float32)) if b.opset < 13 else None
        scales = b.constant(np.array([1, 1, 2, 2], np.float32))
        y = b.add("Resize", [y, empty, scales], mode=b.choice(("nearest", "linear")))
    y = block(b, b.add("Concat", [x, y], axis=1), b.choice((8, 16)))
    head(b, y)


def head(b, x=None):
    """A map of one or few channels behind a convolution: masks, depth, scores."""
    x = x or block(b, image(b, 4), b.choice((8, 16, 32)))
    y = conv(b, x, b.choice((1, 1, 1, 2, 3)), group=1, kernel_shape=[1, 1])
    y = activate(b, y)
    kind = b.between(0, 4)
    if kind == 0:
        y = b.add("Mul", [x, y])
    elif kind == 1:
        y = b.add("Reshape", [y, b.ints(y.shape[0], -1)])
    elif kind == 2:
        operand, attributes = axes_operand(b, 18, [1])
        y = b.add("ReduceMax", [y, operand], keepdims=b.between(0, 1), **attributes)
    elif kind == 3:
        y = b.add("Add", [y, b.constant(0.5, b.real)])
        activate(b, y)


def inception(b):
    x = block(b, image(b, 4), b.choice((8, 16, 24)))
    parts = [block(b, x, b.choice((1, 4, 8, 16, 17)), k) for k in (1, 3, 5)[: b.between(2, 3)]]
    if b.chance(0.5):
        parts.append(b.add("AveragePool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    y = b.add("Concat", parts, axis=1)
    if b.chance(0.4) and y.shape[1] > 2:
        first = b.between(1, y.shape[1] - 1)
        sizes = [first, y.shape[1] - first]
        operand = b.ints(*sizes) if b.opset >= 13 else None
        halves = b.add("Split", [y, operand], 2, axis=1, split=None if operand else sizes)
        return block(b, halves[b.between(0, 1)], 8)
    block(b, y, b.choice((1, 16)), 1)


def depthwise(b):
    x = block(b, image(b, 4), b.choice((8, 16, 24, 32)))
    x = block(b, x, x.shape[1], b.choice((3, 5, 7)), b.choice((1, 2)), x.shape[1])
    block(b, x, b.choice((1, 8, 16)), 1)


def shuffle(b):
    """Grouped convolution, and channels dealt out between groups."""
    g = b.choice((2, 4))
    x = block(b, image(b, 4), 8 * g)
    x = block(b, x, 8 * g, b.choice((1, 3)), 1, g)
    n, c, h, w = x.shape
    y = b.add("Reshape", [x, b.ints(n, g, c // g, h, w)])
    y = b.add("Transpose", [y], perm=[0, 2, 1, 3, 4])
    block(b, b.add("Reshape", [y, b.ints(n, c, h, w)]), 8)


def layer_norm(b, x):
    if b.opset >= 17 and b.chance(0.6):
        return b.add("LayerNormalization", [x, b.weights(x.shape[-1]), b.weights(x.shape[-1])], axis=-1)
    operand, attributes = axes_operand(b, 18, [-1])
    centred = b.add("Sub", [x, b.add("ReduceMean", [x, operand], **attributes)])
    square = b.add("Pow", [centred, b.constant(2.0, b.real)])
    spread = b.add("ReduceMean", [square, operand], **attributes)
    spread = b.add("Sqrt", [b.add("Add", [spread, b.constant(1e-3, b.real)])])
    return b.add("Mul", [b.add("Div", [centred, spread]), b.weights(x.shape[-1])])


def attention(b):
    n, steps, heads, d = b.choice((1, 2)), b.choice((3, 5, 8, 17)), b.choice((1, 2, 4)), b.choice((4, 8, 16))
    x = b.input(b.real, (n, steps, heads * d))
    parts = []
    for _ in range(3):
        y = b.add("MatMul", [x, b.weights(heads * d, heads * d)])
        y = b.add("Add", [y, b.weights(heads * d)]) if b.chance(0.6) else y
        y = b.add("Reshape", [y, b.ints(0, 0, heads, d)])
        parts.append(b.add("Transpose", [y], perm=[0, 2, 1, 3]))
    q, k, v = parts
    scores = b.add("MatMul", [q, b.add("Transpose", [k], perm=[0, 1, 3, 2])])
    scores = b.add("Div", [scores, b.constant(np.sqrt(d), b.real)])
    if b.chance(0.5):
        mask = np.triu(np.full((steps, steps), -1e4), 1)
        scores = b.add("Add", [scores, b.constant(mask, b.real)])
    y = b.add("MatMul", [b.add("Softmax", [scores], axis=-1), v])
    y = b.add("Reshape", [b.add("Transpose", [y], perm=[0, 2, 1, 3]), b.ints(n, steps, heads * d)])
    y = layer_norm(b, b.add("Add", [b.add("MatMul", [y, b.weights(heads * d, heads * d)]), x]))
    hidden = b.add("MatMul", [y, b.weights(heads * d, 2 * heads * d)])
    hidden = b.add("Mul", [hidden, b.add("Sigmoid", [hidden])]) if b.chance(0.5) else gelu(b, hidden)
    b.add("Add", [b.add("MatMul", [hidden, b.weights(2 * heads * d, heads * d)]), y])


def gelu(b, x):
    y = b.add("Erf", [b.add("Div", [x, b.constant(np.sqrt(2), b.real)])])
    y = b.add("Add", [y, b.constant(1.0, b.real)])
    return b.add("Mul", [b.add("Mul", [x, y]), b.constant(0.5, b.real)])


def classifier(b):
    x = block(b, image(b, 4), b.choice((8, 16)))
    x = b.add("Flatten", [b.add("GlobalAveragePool", [x])], axis=1)
    w = b.weights(b.choice((1, 5, 10)), x.shape[1])
    y = b.add("Gemm", [x, w, b.weights(w.shape[0])], transB=1)
    if b.chance(0.5):
        return b.add("Softmax", [y], axis=1)
    b.add("TopK", [y, b.ints(b.between(1, y.shape[1]))], 2, axis=1)


def embedding(b):
    rows, d = b.between(5, 40), b.choice((8, 16, 17))
    places = b.array(I64, (b.choice((1, 2)), b.between(1, 9)), 0, rows - 1)
    x = b.add("Gather", [b.weights(rows, d), b.input(I64, places.shape, places)], axis=0)
    layer_norm(b, b.add("Add", [x, b.weights(x.shape[1], d)]))


def sequence(b):
    """A recurrence behind an embedding-like product, its directions joined, and a head."""
    steps, batch, features, hidden = b.between(2, 6), b.choice((1, 2, 3)), b.choice((3, 8)), b.choice((4, 16))
    x = b.add("Relu", [b.input(b.real, (steps, batch, features))])
    d = b.between(1, 2)
    op, gates = b.choice((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    operands = [x, b.weights(d, gates * hidden, features), b.weights(d, gates * hidden, hidden)]
    attributes = {"hidden_size": hidden, "direction": "bidirectional" if d == 2 else "forward"}
    y, last = b.add(op, operands, 3 if op == "LSTM" else 2, **attributes)[:2]
    y = b.add("Transpose", [y], perm=[0, 2, 1, 3])
    y = b.add("Reshape", [y, b.ints(steps, batch, d * hidden)])
    b.add("MatMul", [y, b.weights(d * hidden, b.choice((1, 5)))])
    b.add("Tanh", [last])


def constant_if(b):
    """An If whose condition the model knows: what exporters of scripted models leave behind."""
    x = b.pick(rank=(1, 2, 3, 4))
    branches = []
    for op in ("Relu", "Neg"):
        name = b.fresh("branch")
        node = helper.make_node(op, [x.name], [name])
        info = helper.make_tensor_value_info(name, x.dtype, x.shape)
        branches.append(helper.make_graph([node], b.fresh("graph"), [], [info]))
    condition = b.constant(np.array(b.chance(0.5)))
    result = Value(b.fresh(), x.dtype, x.shape)
    b.nodes.append(
        helper.make_node("If", [condition.name], [result.name], then_branch=branches[0], else_branch=branches[1])
    )
    b.held.add(x.name)
    b.values.append(result)


def function(b):
    """A function of the model's own, called once or twice."""
    require(b.opset >= 15)
    name = b.fresh("Function")
    nodes = [
        helper.make_node("Sigmoid", ["a"], ["s"]),
        helper.make_node("Mul", ["a", "s"], ["m"]),
        helper.make_node(b.choice(("Add", "Mul", "Sub")), ["m", "a"], ["r"]),
    ]
    b.functions.append(
        helper.make_function("local", name, ["a"], ["r"], nodes, [helper.make_opsetid("", b.opset)])
    )
    x = b.pick(rank=(1, 2, 3, 4))
    for _ in range(b.between(1, 2)):
        result = Value(b.fresh(), x.dtype, x.shape)
        b.nodes.append(helper.make_node(name, [x.name], [result.name], domain="local"))
        b.values.append(result)
        x = result


def one_channel_images(b):
    """Networks between images of one channel."""
    x = b.input(b.real, (1, 1, b.choice((8, 12)), b.choice((8, 9))))
    y = block(b, x, b.choice((8, 16)), b.choice((3, 5)))
    y = block(b, y, 1, 3)
    b.add(b.choice(("Add", "Sub", "Mul")), [x, y])


PATTERNS = [chain, residual, squeeze_excite, u_net, head, head, inception, depthwise, shuffle]
PATTERNS += [attention, classifier, embedding, sequence, constant_if, function, boxes, quantised_conv, one_channel_images]
