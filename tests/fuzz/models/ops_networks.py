"""Convolutions, pools, products, recurrences, quantised operators and choice of boxes."""

import numpy as np
from builder import FLOAT, I8, I32, I64, U8, require
from onnx import helper


def window(b, spatial, most=5):
    """Kernel, strides, dilations and padding that fit an image of these extents."""
    kernel = [b.choice([k for k in (1, 1, 2, 3, 3, 5, 7) if k <= max(d, 1) + 1 and k <= most + 2]) for d in spatial]
    attributes = {"kernel_shape": kernel}
    if b.chance(0.5):
        attributes["strides"] = [b.choice((1, 2, 3)) for _ in kernel]
    if b.chance(0.25):
        attributes["dilations"] = [b.choice((1, 2, 3)) for _ in kernel]
    kind = b.choice(("pads", "pads", "none", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if kind == "pads":
        same = [k // 2 for k in kernel]
        attributes["pads"] = same + same if b.chance(0.6) else [b.between(0, k - 1) for k in kernel + kernel]
    elif kind != "none":
        attributes["auto_pad"] = kind
    return attributes


def fits(spatial, attributes):
    pads = attributes.get("pads", [0] * 2 * len(spatial))
    same = attributes.get("auto_pad", "").startswith("SAME")
    for i, d in enumerate(spatial):
        reach = (attributes["kernel_shape"][i] - 1) * attributes.get("dilations", [1] * len(spatial))[i]
        require(same or d + pads[i] + pads[i + len(spatial)] > reach)


def whole_windows(spatial, attributes):
    """No window of ceil_mode begins behind the input: onnx's rule of shapes counts it in some versions."""
    for i, d in enumerate(spatial):
        stride = attributes.get("strides", [1] * len(spatial))[i]
        reach = (attributes["kernel_shape"][i] - 1) * attributes.get("dilations", [1] * len(spatial))[i]
        pads = attributes.get("pads", [0] * 2 * len(spatial))
        last = -(-(d + pads[i] + pads[i + len(spatial)] - reach - 1) // stride) * stride
        require(last < d + pads[i])


def image(b, rank=None):
    rank = rank or b.choice((3, 4, 4, 4, 4, 5))
    found = [v for v in b.values if v.dtype == b.real and v.rank == rank and v.name not in b.terminal]
    found = [v for v in found if min(v.shape) > 0 and v.shape[1] <= 130]
    if found and b.chance(0.75):
        return found[-1] if b.chance(0.7) else b.choice(found)
    spatial = [b.choice((4, 5, 7, 8, 9, 12, 14, 16, 28)) for _ in range(rank - 2)]
    if rank == 5:
        spatial = [min(d, 6) for d in spatial]
    channels = b.choice((1, 2, 3, 4, 8, 8, 16, 16, 17, 24, 32, 64))
    return b.input(b.real, [b.choice((1, 1, 2)), channels] + spatial)


def conv(b, x=None, filters=None, **fixed):
    x = x or image(b)
    c = x.shape[1]
    groups = fixed.pop("group", None) or (b.choice([g for g in (1, 2, 4, 8, c) if c % g == 0]) if b.chance(0.3) else 1)
    filters = filters or groups * b.choice((1, 1, 2, 4, 8, 16, 17)) if groups > 1 else filters or b.choice((1, 2, 3, 8, 16, 16, 20, 32))
    attributes = fixed or window(b, x.shape[2:])
    fits(x.shape[2:], attributes)
    w = b.weights(filters, c // groups, *attributes["kernel_shape"], dtype=x.dtype)
    bias = b.weights(filters, dtype=x.dtype) if b.chance(0.6) else None
    return b.add("Conv", [x, w, bias], group=groups, **attributes)


def conv_transpose(b):
    x = image(b)
    c = x.shape[1]
    require(x.size <= 6000)
    groups = b.choice([g for g in (1, 1, 2, c) if c % g == 0])
    attributes = window(b, x.shape[2:], 3)
    attributes["dilations"] = attributes.get("dilations") if b.chance(0.5) else None
    strides = attributes.get("strides", [1] * (x.rank - 2))
    if max(strides) > 1 and b.chance(0.3) and "auto_pad" not in attributes:
        attributes["output_padding"] = [b.between(0, s - 1) for s in strides]
    w = b.weights(c, b.choice((1, 2, 8, 16)), *attributes["kernel_shape"])
    y = b.add("ConvTranspose", [x, w, b.weights(w.shape[1] * groups) if b.chance(0.5) else None], group=groups, **attributes)
    reaches = [(k - 1) * d + 1 for k, d in zip(attributes["kernel_shape"], attributes["dilations"] or [1] * x.rank)]
    if "auto_pad" in attributes and any(r < s for r, s in zip(reaches, strides)):
        b.terminal.add(y.name)  # onnx's rule of shapes is not the operator's definition there


def pool(b):
    x = image(b)
    op = b.choice(("MaxPool", "MaxPool", "AveragePool", "LpPool"))
    attributes = window(b, x.shape[2:])
    if op != "MaxPool" and b.opset < 19:
        attributes.pop("dilations", None)
    attributes["ceil_mode"] = b.choice((0, 0, 1)) if op != "LpPool" or b.opset >= 18 else None
    if op == "LpPool":
        attributes["p"] = b.choice((1, 2, 3))
        attributes["ceil_mode"] = None
        if b.opset < 18:
            attributes.pop("dilations", None)
    if op == "AveragePool":
        attributes["count_include_pad"] = b.choice((0, 1))
    if attributes["ceil_mode"] and not attributes.get("auto_pad", "").startswith("SAME"):
        whole_windows(x.shape[2:], attributes)
    pads = attributes.get("pads")
    require(not pads or all(p < k for p, k in zip(pads, attributes["kernel_shape"] * 2)))
    fits(x.shape[2:], attributes)
    b.add(op, [x], **attributes)


def global_pool(b):
    b.add(b.choice(("GlobalAveragePool", "GlobalMaxPool")), [image(b)])


def max_unpool(b):
    x = b.input(FLOAT, (1, b.choice((1, 3)), 8, 6))
    y, places = b.add("MaxPool", [x], 2, kernel_shape=[2, 2], strides=[2, 2])
    b.add("MaxUnpool", [y, places], kernel_shape=[2, 2], strides=[2, 2])


def matmul(b):
    x = b.pick(rank=(1, 2, 2, 3, 3, 4), where=lambda v: 0 < v.size <= 4096)
    n = b.choice((1, 2, 8, 16, 17, 32, 40))
    inner = x.shape[-1]
    kind = b.between(0, 3)
    if kind == 0 or x.rank == 1:
        y = b.weights(inner, n)
    elif kind == 1:
        y = b.weights(inner)
    else:
        batch = [d if b.chance(0.7) else 1 for d in x.shape[:-2]]
        y = b.input(b.real, batch + [inner, n])
    b.add("MatMul", [x, y])


def gemm(b):
    x = b.pick(rank=2, where=lambda v: 0 < v.size <= 4096)
    flip_a, flip_b = b.between(0, 1), b.between(0, 1)
    m, k = x.shape[::-1] if flip_a else x.shape
    n = b.choice((1, 3, 8, 16, 33))
    w = b.weights(n, k) if flip_b else b.weights(k, n)
    bias = b.choice((None, (n,), (1, n), (m, 1), (m, n), ()))
    attributes = {"alpha": b.choice((None, 0.5)), "beta": b.choice((None, 2.0, 0.0))}
    b.add("Gemm", [x, w, None if bias is None else b.weights(*bias)], transA=flip_a, transB=flip_b, **attributes)


def einsum(b):
    equation, left, right = b.choice(
        (
            ("ij,jk->ik", (5, 7), (7, 4)),
            ("bij,bkj->bik", (2, 5, 8), (2, 3, 8)),
            ("bhid,bhjd->bhij", (2, 3, 5, 8), (2, 3, 6, 8)),
            ("ij->ji", (4, 9), None),
            ("ij,ij->i", (6, 5), (6, 5)),
            ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
            ("ii->i", (5, 5), None),
        )
    )
    require(b.opset >= 12)
    shapes = [left] + ([right] if right else [])
    b.add("Einsum", [b.input(b.real, s) for s in shapes], equation=equation)


def recurrent(b):
    op = b.choice(("LSTM", "GRU", "RNN"))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    x = b.pick(rank=3, where=lambda v: 0 < v.size <= 1000 and v.shape[0] <= 9)
    steps, batch, features = x.shape
    hidden, direction = b.choice((1, 4, 8, 16, 17)), b.choice(("forward", "reverse", "bidirectional"))
    d = 2 if direction == "bidirectional" else 1
    w, r = b.weights(d, gates * hidden, features), b.weights(d, gates * hidden, hidden)
    bias = b.weights(d, 2 * gates * hidden) if b.chance(0.7) else None
    lengths = None
    if b.chance(0.4):
        data = b.array(I32, (batch,), 1, steps)
        lengths = b.constant(data) if b.chance(0.3) else b.input(I32, (batch,), data)
    first = b.input(b.real, (d, batch, hidden)) if b.chance(0.4) else None
    inputs = [x, w, r, bias, lengths, first]
    attributes = {"hidden_size": hidden, "direction": direction}
    if op == "LSTM":
        inputs.append(b.input(b.real, (d, batch, hidden)) if first and b.chance(0.7) else None)
        inputs.append(b.weights(d, 3 * hidden) if b.chance(0.3) else None)
    if op == "GRU":
        attributes["linear_before_reset"] = b.between(0, 1)
    if op == "RNN" and b.chance(0.3):
        attributes["activations"] = ["Relu"] * d
    b.add(op, inputs, 3 if op == "LSTM" else 2, **attributes)


def scale_and_zero(b, dtype, shape=()):
    zero = b.array(dtype, shape, -3 if dtype == I8 else 0, 3)
    return b.constant(b.rng.random(shape) * 0.05 + 0.01, FLOAT), b.constant(zero, dtype)


def quantised_values(b):
    """Quantised and back, per tensor or per channel."""
    x = b.pick((FLOAT,), rank=(2, 3, 4))
    dtype = b.choice((U8, I8))
    axis = b.between(0, x.rank - 1) if b.opset >= 13 and b.chance(0.3) else None
    shape = () if axis is None else (x.shape[axis],)
    scale, zero = scale_and_zero(b, dtype, shape)
    q = b.add("QuantizeLinear", [x, scale, zero], axis=axis)
    if b.chance(0.8):
        b.add("DequantizeLinear", [q, scale, zero], axis=axis)


def quantised_conv(b):
    """A convolution between QDQ nodes, as exporters of int8 models write it."""
    require(b.opset >= 13)
    x = image(b, 4)
    require(x.dtype == FLOAT)
    scale, zero = scale_and_zero(b, b.choice((U8, I8)))
    x = b.add("DequantizeLinear", [b.add("QuantizeLinear", [x, scale, zero]), scale, zero])
    filters = b.choice((1, 8, 16, 20))
    attributes = window(b, x.shape[2:])
    fits(x.shape[2:], attributes)
    shape = (filters, x.shape[1], *attributes["kernel_shape"])
    w = b.constant(b.array(I8, shape, -100, 100), I8)
    w_scale = b.constant(b.rng.random(filters) * 0.01 + 0.001, FLOAT)
    w = b.add("DequantizeLinear", [w, w_scale, b.constant(np.zeros(filters, np.int8))], axis=0)
    y = b.add("Conv", [x, w], **attributes)
    y = b.add("Relu", [y]) if b.chance(0.5) else y
    scale, zero = scale_and_zero(b, U8)
    b.add("DequantizeLinear", [b.add("QuantizeLinear", [y, scale, zero]), scale, zero])


def integer_product(b):
    if b.chance(0.3):
        x = b.pick((FLOAT,), rank=(2, 3))
        q, scale, zero = b.add("DynamicQuantizeLinear", [x], 3)
        w = b.constant(b.array(U8, (x.shape[-1], b.choice((4, 16))), 0, 200), U8)
        y = b.add("Cast", [b.add("MatMulInteger", [q, w, zero])], to=FLOAT)
        return b.add("Mul", [y, scale])
    if b.chance(0.4):
        dtype = b.choice((U8, I8))
        x = b.input(dtype, (b.between(1, 9), b.choice((4, 16, 33))))
        w = b.constant(b.array(I8, (x.shape[1], b.choice((3, 16))), -100, 100), I8)
        zero = b.constant(3, dtype) if b.chance(0.5) else None
        if b.chance(0.4):
            left, right = scale_and_zero(b, dtype), (b.constant(0.01, FLOAT), b.constant(0, I8))
            return b.add("QLinearMatMul", [x, *left, w, *right, *scale_and_zero(b, dtype)])
        return b.add("MatMulInteger", [x, w, zero])
    x = b.input(U8, (1, b.choice((3, 8, 16)), 7, 9))
    attributes = window(b, x.shape[2:])
    fits(x.shape[2:], attributes)
    w = b.constant(b.array(I8, (b.choice((1, 8, 16)), x.shape[1], *attributes["kernel_shape"]), -100, 100), I8)
    if b.chance(0.5):
        return b.add("ConvInteger", [x, w, b.constant(2, U8) if b.chance(0.5) else None], **attributes)
    operands = []
    for v, dtype in ((x, U8), (w, I8)):
        operands += [v, *scale_and_zero(b, dtype)]
    operands[5] = b.constant(np.int8(0))
    b.add("QLinearConv", operands + list(scale_and_zero(b, U8)), **attributes)


def boxes(b):
    """Choice of boxes, and what it chose of a table."""
    n, classes = b.between(3, 12), b.between(1, 3)
    corners = np.sort(b.rng.random((1, n, 2, 2)), axis=2).reshape(1, n, 4).astype(np.float32)
    scores = b.rng.random((1, classes, n)).astype(np.float32)
    if b.chance(0.4) and classes == 1:  # scores given flat, as detectors compute them
        scores = b.input(FLOAT, (n,), scores.reshape(n))
        scores = b.add("Reshape", [scores, b.ints(1, 1, n)])
    else:
        scores = b.input(FLOAT, scores.shape, scores)
    limits = [b.constant(b.between(1, n), I64), b.constant(0.5, FLOAT), b.constant(0.2, FLOAT)]
    chosen = b.add("NonMaxSuppression", [b.input(FLOAT, corners.shape, corners), scores] + limits)
    b.terminal.add(chosen.name)
    if b.chance(0.4):
        column = b.add("Gather", [chosen, b.constant(2, I64)], axis=1)
        b.terminal.add(column.name)
        table = b.input(FLOAT, (n, 4))
        b.terminal.add(b.add("Gather", [table, column], axis=0).name)


def regions(b):
    """Regions of images: inside, over the edges, larger than the image, turned around."""
    x = b.pick(rank=4, where=lambda v: 0 < v.size < 3000)
    n, half_pixel = b.between(1, 5), b.opset >= 16 and b.chance(0.6)
    ratio, scale = b.between(0, 3), b.choice((None, 1.0, 0.5, 0.25, 0.3))
    corners = b.rng.uniform(-4, 1.5 * max(x.shape[2:]) + 2, (n, 4)) * b.choice((1, 1, 4))
    if half_pixel and ratio == 0:  # ONNX Runtime takes none whose extent is negative
        corners = np.sort(corners.reshape(n, 2, 2), axis=1).reshape(n, 4)
    of = b.rng.integers(0, x.shape[0], n)
    of = b.constant(of, I64) if b.chance(0.3) else b.input(I64, of.shape, of)
    kind = helper.tensor_dtype_to_np_dtype(x.dtype)
    attributes = {"mode": b.choice((None, "avg", "max")), "sampling_ratio": ratio, "spatial_scale": scale}
    if b.opset >= 16 and not (half_pixel and b.chance(0.4)):
        attributes["coordinate_transformation_mode"] = "half_pixel" if half_pixel else "output_half_pixel"
    attributes |= {"output_height": b.between(1, 4), "output_width": b.choice((None, 1, 2, 5))}
    b.add("RoiAlign", [x, b.input(x.dtype, (n, 4), corners.astype(kind)), of], **attributes)


def losses(b):
    """How unlikely scores make the classes of some labels."""
    require(b.opset >= 12)
    x = b.pick(rank=(2, 3, 4), where=lambda v: v.size > 0)
    classes, shape = x.shape[1], (x.shape[0], *x.shape[2:])
    ignored = b.choice((None, None, 0, -1, 255))
    labels = b.rng.integers(0, classes, shape)
    if ignored is not None:
        labels[b.rng.random(shape) < 0.3] = ignored
        labels.flat[0] = 1 if ignored == 0 and classes > 1 else 0  # the mean of nothing is none
        require(labels.flat[0] != ignored)
    kind = b.choice((I32, I64))
    labels = labels.astype(helper.tensor_dtype_to_np_dtype(kind))
    labels = b.constant(labels, kind) if b.chance(0.3) else b.input(kind, shape, labels)
    weights = b.constant(np.abs(b.array(x.dtype, (classes,))) + 0.1, x.dtype) if b.chance(0.5) else None
    attributes = {"reduction": b.choice((None, "none", "sum", "mean")), "ignore_index": ignored}
    if b.chance(0.5):
        b.add("NegativeLogLikelihoodLoss", [b.add("LogSoftmax", [x], axis=1), labels, weights], **attributes)
    else:
        b.add("SoftmaxCrossEntropyLoss", [x, labels, weights], b.choice((1, 2)), **attributes)


def fourier(b):
    """Transforms of signals, whole or by frames."""
    require(b.opset >= 17)
    parts, onesided, n = b.choice((1, 1, 2)), b.choice((0, 1)), b.between(2, 40)
    if b.chance(0.4):
        x, length = b.input(b.real, (b.choice((1, 2)), n, parts)), b.between(1, n)
        window = b.weights(length, scale=1.0) if b.chance(0.6) else None
        step, frame = b.constant(b.between(1, 5), I64), b.constant(length, I64)
        return b.add("STFT", [x, step, window, frame], onesided=onesided if parts == 1 else 0)
    x = b.pick(rank=(2, 3, 4), where=lambda v: v.size > 0 and v.shape[-1] in (1, 2) and v.rank > 1)
    parts, axis = x.shape[-1], b.between(0, x.rank - 2)
    inverse = b.choice((0, 0, 1))
    onesided = 0 if inverse or parts == 2 else onesided
    length = b.constant(b.between(1, 2 * x.shape[axis]), I64) if b.chance(0.5) else None
    if b.opset < 20:
        return b.add("DFT", [x, length], axis=axis, inverse=inverse, onesided=onesided)
    b.add("DFT", [x, length, b.constant(axis, I64)], inverse=inverse, onesided=onesided)


OPS = [conv] * 8 + [conv_transpose] * 3 + [pool] * 4 + [matmul] * 4 + [gemm] * 2 + [recurrent] * 3
OPS += [global_pool, max_unpool, einsum, quantised_values, quantised_conv, integer_product, boxes, regions, losses, fourier]
