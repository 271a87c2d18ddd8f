"""Options and forms that the other files leave out: rare attributes, operands given at run time, old opsets."""

import numpy as np
from builder import BOOL, DOUBLE, FLOAT, HALF, I8, I16, I32, I64, U8, U16, require
from ops_elementwise import axes_operand, some_axes
from ops_movement import any_value
from ops_networks import fits, image, scale_and_zero, whole_windows, window


# Windows.
def pool_with_places(b):
    x = image(b)
    attributes = window(b, x.shape[2:])
    attributes["ceil_mode"] = b.choice((0, 0, 1))
    if attributes["ceil_mode"]:
        require(not attributes.get("auto_pad", "").startswith("SAME"))
        whole_windows(x.shape[2:], attributes)
    pads = attributes.get("pads")
    require(not pads or all(p < k for p, k in zip(pads, attributes["kernel_shape"] * 2)))
    fits(x.shape[2:], attributes)
    b.add("MaxPool", [x], 2, storage_order=b.choice((0, 1, None)), **attributes)


def global_lp_pool(b):
    b.add("GlobalLpPool", [image(b)], p=b.choice((1, 2, 3, None)))


def weights_at_run_time(b):
    """A convolution whose weights come with the input."""
    x = image(b)
    groups = b.choice([g for g in (1, 1, 2, x.shape[1]) if x.shape[1] % g == 0])
    attributes = window(b, x.shape[2:], 3)
    fits(x.shape[2:], attributes)
    if b.chance(0.3):
        w = b.input(b.real, [x.shape[1], b.choice((1, 2, 8)), *attributes["kernel_shape"]])
        require(x.size <= 6000 and not attributes.get("auto_pad", "").startswith("SAME"))
        return b.add("ConvTranspose", [x, w], group=groups, **attributes)
    filters = groups * b.choice((1, 2, 8))
    w = b.input(b.real, [filters, x.shape[1] // groups, *attributes["kernel_shape"]])
    b.add("Conv", [x, w, b.input(b.real, [filters]) if b.chance(0.5) else None], group=groups, **attributes)


def transposed_to_shape(b):
    """ConvTranspose that is told its output's extents."""
    x = image(b, 4)
    require(x.size <= 4000)
    kernel, strides = [b.choice((2, 3, 4)) for _ in range(2)], [b.choice((1, 2)) for _ in range(2)]
    shape = [(d - 1) * s + k - b.choice((0, 1)) for d, s, k in zip(x.shape[2:], strides, kernel)]
    w = b.weights(x.shape[1], b.choice((1, 3, 8)), *kernel)
    y = b.add("ConvTranspose", [x, w], kernel_shape=kernel, strides=strides, output_shape=shape)
    require(list(y.shape[2:]) == shape)


def norm_at_run_time(b):
    """Scale and bias as inputs; LayerNormalization with all its outputs."""
    if b.chance(0.5):
        x = b.pick(rank=(2, 3, 4))
        c = x.shape[1]
        variance = np.abs(b.array(b.real, (c,)).astype(np.float32)) + 0.3
        mean, spread = b.input(b.real, (c,)), b.input(b.real, (c,), variance.astype(b.array(b.real, ()).dtype))
        return b.add("BatchNormalization", [x, b.input(b.real, (c,)), b.input(b.real, (c,)), mean, spread])
    x = b.pick(rank=(2, 3, 4), where=lambda v: v.shape[-1] > 1 and v.size > 0)
    axis = b.between(-x.rank, x.rank - 1)
    scale = b.input(b.real, x.shape[axis % x.rank :])
    b.add("LayerNormalization", [x, scale], b.choice((1, 3)), axis=axis, epsilon=0.01)


# Recurrences.
def recurrent_options(b):
    op, gates, functions = b.choice((("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 1)))
    d = b.choice((1, 2))
    steps, batch, features, hidden = b.between(1, 5), b.choice((1, 3)), b.choice((2, 8)), b.choice((1, 5, 16))
    layout = 1 if b.opset >= 14 and b.chance(0.25) else None
    x = b.input(b.real, (batch, steps, features) if layout else (steps, batch, features))
    given = b.chance(0.4)  # weights come with the input
    make = (lambda *s: b.input(b.real, s)) if given else (lambda *s: b.weights(*s))
    inputs = [x, make(d, gates * hidden, features), make(d, gates * hidden, hidden)]
    attributes = {"hidden_size": hidden, "direction": "bidirectional" if d == 2 else b.choice(("forward", "reverse"))}
    attributes |= {"layout": layout, "clip": b.choice((None, 0.5, 3.0))}
    if b.chance(0.6):
        kinds = ("Tanh", "Sigmoid", "Relu", "HardSigmoid", "Softsign", "Softplus", "LeakyRelu", "Elu", "ThresholdedRelu")
        attributes["activations"] = [b.choice(kinds) for _ in range(functions * d)]
        if b.chance(0.4):
            attributes["activation_alpha"] = [0.3] * functions * d
            attributes["activation_beta"] = [0.4] * functions * d
    if op == "LSTM":
        attributes["input_forget"] = b.choice((0, 1, None))
    if op == "GRU":
        attributes["linear_before_reset"] = b.choice((0, 1))
    outputs = 3 if op == "LSTM" else 2
    b.add(op, inputs, outputs, absent=b.choice(((), (), (0,), (1,))), **attributes)


# Moves.
def resize_options(b):
    """Regions, some axes only, kept proportions, any rank.

    Scales are such that no sample lies half-way between two elements but for rounding: of 1.3 it is the
    rounding that decides which one `nearest` takes.
    """
    x = b.pick((b.real, U8, I32) if b.chance(0.2) else None, rank=(1, 2, 3, 4, 5), where=lambda v: 0 < v.size < 2000)
    mode = "nearest" if x.rank > 4 or x.dtype != b.real else b.choice(("nearest", "linear"))
    moved = sorted(b.rng.permutation(x.rank)[: b.between(1, min(x.rank, 2))].tolist())
    attributes, empty = {"mode": mode}, None
    if b.opset < 13:
        empty = b.constant(np.zeros(0, np.float32))
    scales = [b.choice((0.3, 0.7, 1.0, 1.7, 2.0, 2.5)) if a in moved else 1.0 for a in range(x.rank)]
    sizes = [b.choice((1, 2, 5, 9)) if a in moved else d for a, d in enumerate(x.shape)]
    if b.opset >= 18 and b.chance(0.5):
        attributes["axes"] = moved
        scales, sizes = ([v[a] for a in moved] for v in (scales, sizes))
        if b.chance(0.4):
            attributes["keep_aspect_ratio_policy"] = b.choice(("stretch", "not_larger", "not_smaller"))
            return b.add("Resize", [x, empty, empty, b.ints(*sizes)], **attributes)
    elif b.chance(0.4) and mode == "linear":
        region = [0.0] * x.rank + [1.0] * x.rank
        for a in moved:
            region[a], region[a + x.rank] = b.choice((0.0, 0.2, -0.1)), b.choice((1.0, 0.8, 1.2))
        attributes |= {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": b.choice((0.0, 2.5))}
        return b.add("Resize", [x, b.constant(np.array(region, np.float32)), empty, b.ints(*sizes)], **attributes)
    if b.chance(0.5):
        return b.add("Resize", [x, empty, empty, b.ints(*sizes)], **attributes)
    extents = [x.shape[a] for a in attributes.get("axes", range(x.rank))]
    require(all(int(d * s) > 0 for d, s in zip(extents, scales)))
    b.add("Resize", [x, empty, b.constant(np.array(scales, np.float32))], **attributes)


def pad_options(b):
    x = b.pick((b.real, I32, I64, U8, BOOL), rank=(1, 2, 3, 4), where=lambda v: v.size > 0)
    modes = ["constant", "edge", "reflect"] + ["wrap"] * 2 * (b.opset >= 19)
    mode = b.choice(modes)
    axes = some_axes(b, x.rank) if b.opset >= 18 and b.chance(0.6) else None
    extents = x.shape if axes is None else [x.shape[a] for a in axes]
    most = lambda d: 3 if mode in ("constant", "edge") else d - (mode == "reflect")
    pads = [b.between(-1 if d > 2 else 0, min(3, most(d))) for d in extents] * 2
    value = None
    if mode == "constant" and b.chance(0.5):
        value = b.constant(b.array(x.dtype, ()), x.dtype)
    b.add("Pad", [x, b.ints(*pads), value, b.ints(*axes) if axes else None], mode=mode)


def slice_options(b):
    """Bounds outside the tensor, axes and steps left out, results without elements."""
    x = any_value(b, rank=(1, 2, 3, 4))
    count = b.between(1, x.rank)
    starts, ends = ([b.choice((-100, -3, -1, 0, 1, 2, 100, 2**62)) for _ in range(count)] for _ in range(2))
    operands = [b.ints(*starts), b.ints(*ends)]
    if b.chance(0.3):
        axes = b.rng.permutation(x.rank)[:count].tolist()
        operands += [b.ints(*axes), b.ints(*[b.choice((1, 2, -1, -7, 50)) for _ in axes])]
    b.add("Slice", [x] + operands)


def reduce_options(b):
    """Whole numbers, an empty list of axes, and none at all."""
    kind = b.choice((I32, I64, b.real))
    x = b.pick((kind,), rank=(1, 2, 3, 4))
    op = b.choice(("Sum", "Max", "Min", "Mean") if kind != b.real else ("Sum", "Mean", "Max", "L2", "SumSquare", "L1"))
    if op == "Mean" and kind != b.real:
        op = "SumSquare"
    new = b.opset >= (13 if op == "Sum" else 18)
    if new and b.chance(0.5):
        axes = b.constant(np.zeros(0, np.int64)) if b.chance(0.7) else None
        return b.add("Reduce" + op, [x, axes], keepdims=b.choice((0, 1)), noop_with_empty_axes=b.choice((0, 1)))
    operand, attributes = axes_operand(b, 13 if op == "Sum" else 18, some_axes(b, x.rank))
    b.add("Reduce" + op, [x, operand], keepdims=b.choice((0, 1)), **attributes)


def scatter_options(b):
    """Indices from behind, and some twice where the order does not matter."""
    x = b.pick((b.real, I32, I64), rank=(1, 2, 3), where=lambda v: v.size > 0)
    reduction = b.choice(("add", "max", "min")) if b.opset >= 18 else None
    if b.chance(0.5):
        depth = b.between(1, x.rank)
        axes = x.shape[:depth]
        n = b.between(1, 5) if reduction else 1
        places = np.stack([b.array(I64, (n,), -d, d - 1) for d in axes], axis=1)
        updates = b.input(x.dtype, (n, *x.shape[depth:]))
        return b.add("ScatterND", [x, b.input(I64, places.shape, places), updates], reduction=reduction)
    axis = b.between(0, x.rank - 1)
    shape = [b.between(1, d) for d in x.shape]
    shape[axis] = b.between(1, 5) if reduction else 1
    dtype = b.choice((I64, I32))
    places = b.array(dtype, shape, -x.shape[axis], x.shape[axis] - 1)
    operands = [x, b.input(dtype, shape, places), b.input(x.dtype, shape)]
    b.add("ScatterElements", operands, axis=axis - b.choice((0, x.rank)), reduction=reduction)


def sorts(b):
    """TopK of whole numbers, where many are equal; Unique in the order of the input."""
    if b.chance(0.6):
        x = b.pick((b.real, I32, I64), rank=(1, 2, 3), where=lambda v: v.size > 0)
        axis = b.between(-x.rank, x.rank - 1)
        return b.add("TopK", [x, b.ints(b.between(1, x.shape[axis]))], 2, axis=axis, largest=b.choice((0, 1)))
    x = b.pick((b.real, I64, I32), rank=(1, 2, 3))
    outputs = b.add("Unique", [x], 4, sorted=b.choice((0, 1)), axis=b.choice((None, b.between(-x.rank, x.rank - 1))))
    b.terminal |= {v.name for v in outputs}


def boxes_options(b):
    """Boxes by their centres, several images, no limits of overlap or score."""
    images, n, classes = b.choice((1, 2, 3)), b.between(1, 9), b.between(1, 3)
    corners = b.rng.random((images, n, 4)).astype(np.float32)
    scores = b.rng.random((images, classes, n)).astype(np.float32)
    limits = [b.constant(b.between(0, n), I64)]
    limits += [b.constant(v, FLOAT) for v in (0.3, 0.4)[: b.between(0, 2)]]
    operands = [b.input(FLOAT, corners.shape, corners), b.input(FLOAT, scores.shape, scores), *limits]
    b.terminal.add(b.add("NonMaxSuppression", operands, center_point_box=b.choice((0, 1, None))).name)


def sample_volumes(b):
    linear, nearest = ("linear", "nearest") if b.opset >= 20 else ("bilinear", "nearest")
    if b.opset < 20 or b.chance(0.4):
        x = b.pick(rank=4, where=lambda v: 0 < v.size < 3000)
        grid = b.input(x.dtype, (x.shape[0], b.between(1, 5), b.between(1, 5), 2))
        mode = nearest
    else:
        x = b.input(b.real, (b.choice((1, 2)), b.choice((1, 3)), 3, 4, 5))
        grid = b.input(x.dtype, (x.shape[0], 2, 3, 2, 3))
        mode = b.choice((linear, nearest))
    b.add("GridSample", [x, grid], mode=mode, padding_mode=b.choice(("zeros", "border", "reflection")), align_corners=b.choice((0, 1)))


def grid_of_volume(b):
    theta = b.input(b.real, (b.choice((1, 2)), 3, 4))
    size = b.ints(theta.shape[0], b.choice((1, 3)), *[b.between(2, 5) for _ in range(3)])
    b.add("AffineGrid", [theta, size], align_corners=b.choice((0, 1)))


def many_axes(b):
    """Tensors of six and seven axes."""
    x = b.input(b.real, [b.choice((1, 2, 3)) for _ in range(b.choice((6, 7)))])
    kind = b.between(0, 4)
    if kind == 0:
        return b.add("Transpose", [x], perm=b.rng.permutation(x.rank).tolist())
    if kind == 1:
        return b.add("Concat", [x, x], axis=b.between(-x.rank, x.rank - 1))
    if kind == 2:
        operand, attributes = axes_operand(b, 18, some_axes(b, x.rank))
        return b.add("ReduceMax", [x, operand], keepdims=b.choice((0, 1)), **attributes)
    if kind == 3:
        return b.add("Softmax", [x], axis=b.between(-x.rank, x.rank - 1))
    b.add("Add", [x, b.input(b.real, [1 if b.chance(0.5) else d for d in x.shape])])


def no_elements(b):
    """Tensors with an axis of zero."""
    shape = list(b.shape(b.between(1, 4), 200))
    shape[b.between(0, len(shape) - 1)] = 0
    x = b.input(b.choice((b.real, b.real, I64)), shape)
    kind = b.between(0, 5)
    if kind == 0:
        y = b.input(x.dtype, [b.between(1, 3) if d == 0 else d for d in shape])
        b.add("Concat", [x, y], axis=shape.index(0))
    elif kind == 1:
        operand, attributes = axes_operand(b, 13, some_axes(b, x.rank))
        b.add("ReduceSum", [x, operand], keepdims=b.choice((0, 1)), **attributes)
    elif kind == 2:
        b.add("Transpose", [x], perm=b.rng.permutation(x.rank).tolist())
    elif kind == 3:
        b.add("Add", [x, b.constant(b.array(x.dtype, ()), x.dtype)])
    elif kind == 4:
        require(x.dtype == b.real and x.rank >= 2)
        b.add("MatMul", [x, b.input(b.real, [*[1] * (x.rank - 2), shape[-1], 3])])
    else:
        b.add("Gather", [x, b.input(I64, (0, 2))], axis=b.between(0, x.rank - 1))


# Numbers.
def other_floats(b):
    """To another type of floats and back, with an operator there."""
    x = b.pick()
    kinds = [k for k in (HALF, DOUBLE) if k != b.real]
    require(b.real == FLOAT)
    y = b.add("Cast", [x], to=b.choice(kinds))
    y = b.add(b.choice(("Relu", "Abs", "Neg", "Identity")), [y])
    b.add("Cast", [y], to=b.real)


def remainders(b):
    x = b.pick()
    y = b.constant(b.choice((0.75, 1.5, -2.25)), x.dtype)
    b.add("Mod", [x, y], fmod=1)


def signs_of_infinity(b):
    x = b.pick((FLOAT,))
    require(x.name in b.feeds)
    y = b.add("Div", [x, b.constant(0.0, FLOAT)])
    b.terminal.add(y.name)
    b.add("IsInf", [y], detect_negative=b.choice((0, 1)), detect_positive=b.choice((0, 1)))


def whole_powers(b):
    base = b.pick((I32, I64))
    base = b.add("Clip", [base, b.constant(-3, base.dtype), b.constant(3, base.dtype)])
    b.add("Pow", [base, b.constant(b.between(0, 4), b.choice((I32, I64)))])


def whole_extremes(b):
    x = b.pick((I32, I64), rank=(1, 2, 3), where=lambda v: v.size > 0)
    if b.chance(0.5):
        return b.add(b.choice(("ArgMax", "ArgMin")), [x], axis=b.between(-x.rank, x.rank - 1), keepdims=b.choice((0, 1)))
    b.add(b.choice(("Max", "Min")), [x, b.constant(b.array(x.dtype, ()), x.dtype)])


def quantised_options(b):
    """Sixteen bits, blocks along an axis, sums in 32 bits."""
    require(b.real == FLOAT)
    kind = b.between(0, 2)
    if kind == 0:
        q = b.pick((I32,), rank=(1, 2, 3))
        return b.add("DequantizeLinear", [q, b.constant(0.01, FLOAT)])
    require(b.opset >= 21)
    x = b.pick(rank=(2, 3))
    if kind == 1:
        scale, zero = b.constant(0.001, FLOAT), b.constant(b.between(0, 3), b.choice((I16, U16)))
        return b.add("DequantizeLinear", [b.add("QuantizeLinear", [x, scale, zero]), scale, zero])
    axis = b.between(0, x.rank - 1)
    block = b.choice([f for f in (1, 2, 3, 4, 8) if x.shape[axis] % f == 0])
    shape = [d // block if a == axis else d for a, d in enumerate(x.shape)]
    scale, zero = scale_and_zero(b, b.choice((U8, I8)), tuple(shape))
    y = b.add("QuantizeLinear", [x, scale, zero], axis=axis, block_size=block)
    b.add("DequantizeLinear", [y, scale, zero], axis=axis, block_size=block)


def product_of_letters(b):
    """Einsum of a random equation."""
    require(b.opset >= 12)
    extents = {c: b.choice((1, 2, 3, 5)) for c in "abcdef"}
    terms = ["".join(b.rng.permutation(list("abcdef"))[: b.between(1, 4)]) for _ in range(b.between(1, 3))]
    letters = sorted(set("".join(terms)))
    kept = [c for c in letters if b.chance(0.5)]
    result = "".join(b.rng.permutation(kept)) if kept else ""
    equation = ",".join(terms) + ("->" + result if b.chance(0.8) else "")
    b.add("Einsum", [b.input(b.real, [extents[c] for c in t]) for t in terms], equation=equation)


def constants(b):
    """Values that the model computes from nothing."""
    kind = b.between(0, 2)
    if kind == 0:
        shape = [b.between(1, 4) for _ in range(b.between(0, 3))]
        y = b.add("ConstantOfShape", [b.constant(np.array(shape, np.int64))])
    elif kind == 1:
        dtype = b.choice((FLOAT, I32, I64))
        start, step = b.choice((0, 2, -3)), b.choice((1, 2, -1))
        y = b.add("Range", [b.constant(v, dtype) for v in (start, start + 5 * step, step)])
    else:
        x = any_value(b, rank=(1, 2, 3))
        attributes = {"start": b.choice((None, 0, 1, -2)), "end": b.choice((None, 1, -1, 5))} if b.opset >= 15 else {}
        y = b.add("Shape", [x], **attributes) if b.chance(0.7) else b.add("Size", [x])
    b.add("Identity", [y])


def with_mask(b):
    b.add("Dropout", [b.pick()], 2)


# Forms of opsets 7 to 10.
def old_forms(b):
    require(b.opset <= 10)
    x = b.pick(rank=(2, 3, 4), where=lambda v: v.size > 0)
    kind = b.between(0, 7)
    if kind == 0:
        b.add("Clip", [x], min=b.choice((None, -0.5)), max=b.choice((None, 0.8)))
    elif kind == 1:
        axes = some_axes(b, x.rank)
        b.add("Slice", [x], axes=axes, starts=[b.choice((0, 1, -1))] * len(axes), ends=[b.choice((2, 100, -1))] * len(axes))
    elif kind == 2:
        pads = [b.choice((0, 1, 2)) for _ in range(2 * x.rank)]
        mode = b.choice(("constant", "edge", "reflect"))
        require(mode != "reflect" or all(max(p, q) < d for d, p, q in zip(x.shape, pads, pads[x.rank :])))
        b.add("Pad", [x], pads=pads, mode=mode, value=b.choice((None, 1.5)) if mode == "constant" else None)
    elif kind == 3:
        require(b.opset < 10)
        b.add("TopK", [x], 2, k=b.between(1, x.shape[-1]), axis=-1)
    elif kind == 4:
        require(x.rank == 4)
        scales = [1.0, 1.0, b.choice((1.0, 2.0, 3.0)), b.choice((1.0, 2.0))]
        if b.opset < 9:
            return b.add("Upsample", [x], scales=scales, mode=b.choice(("nearest", "linear")))
        op = "Upsample" if b.opset == 9 else "Resize"
        b.add(op, [x, b.constant(np.array(scales, np.float32))], mode=b.choice(("nearest", "linear")))
    elif kind == 5:
        b.add("Dropout", [x], ratio=0.3)
    elif kind == 6:
        require(b.opset == 9 or b.opset == 10)
        places = b.array(I64, [1] * x.rank, 0, x.shape[0] - 1)
        b.add("Scatter", [x, b.input(I64, places.shape, places), b.input(x.dtype, places.shape)], axis=0)
    else:
        b.add("Softmax", [x], axis=b.between(0, x.rank - 1))


OPS = [pool_with_places, global_lp_pool, weights_at_run_time, weights_at_run_time, transposed_to_shape, norm_at_run_time]
OPS += [recurrent_options, recurrent_options, resize_options, resize_options, pad_options, slice_options, reduce_options]
OPS += [scatter_options, sorts, boxes_options, sample_volumes, grid_of_volume, many_axes, no_elements, other_floats]
OPS += [remainders, signs_of_infinity, whole_powers, whole_extremes, quantised_options, product_of_letters, constants]
OPS += [with_mask, old_forms, old_forms]
