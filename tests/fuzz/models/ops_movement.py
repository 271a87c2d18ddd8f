"""Operators that move, choose and count values: views, slices, indices, borders, resizing."""

import numpy as np
from builder import BOOL, FLOATS, I8, I32, I64, U8, require
from ops_elementwise import axes_operand, some_axes

ANY = (I32, I64, U8, BOOL, I8)


def any_value(b, **options):
    return b.pick(ANY if b.chance(0.2) else None, **options)


def split_extent(b, extent):
    """Two factors of an extent."""
    factor = b.choice([f for f in range(1, extent + 1) if extent % f == 0])
    return [factor, extent // factor]


def reshape(b):
    x = any_value(b)
    shape = list(x.shape)
    for _ in range(b.between(1, 3)):
        if len(shape) > 1 and b.chance(0.5):
            i = b.between(0, len(shape) - 2)
            shape[i : i + 2] = [shape[i] * shape[i + 1]]
        elif shape and len(shape) < 5 and shape[0] > 0:
            i = b.between(0, len(shape) - 1)
            require(shape[i] > 0)
            shape[i : i + 1] = split_extent(b, shape[i])
        else:
            shape = [1] * b.between(0, 2) + shape
    if shape and x.size and b.chance(0.4):
        shape[b.between(0, len(shape) - 1)] = -1
    elif shape and shape[0] == (x.shape or (0,))[0] and b.chance(0.3):
        shape[0] = 0
    b.add("Reshape", [x, b.constant(np.array(shape, np.int64))])


def flatten(b):
    x = any_value(b)
    b.add("Flatten", [x], axis=b.between(-x.rank, x.rank))


def squeeze(b):
    x = any_value(b, rank=(1, 2, 3, 4, 5), where=lambda v: 1 in v.shape)
    axes = [a for a, d in enumerate(x.shape) if d == 1]
    axes = axes[: b.between(1, len(axes))] if b.chance(0.7) else None
    operand, attributes = axes_operand(b, 13, axes)
    b.add("Squeeze", [x, operand], **attributes)


def unsqueeze(b):
    x = any_value(b, rank=(0, 1, 2, 3))
    count = b.between(1, 2)
    axes = sorted(b.rng.permutation(x.rank + count)[:count].tolist())
    operand, attributes = axes_operand(b, 13, axes)
    b.add("Unsqueeze", [x, operand], **attributes)


def transpose(b):
    x = any_value(b)
    b.add("Transpose", [x], perm=b.rng.permutation(x.rank).tolist() if b.chance(0.9) and x.rank else None)


def concat(b):
    x = any_value(b, rank=(1, 2, 3, 4))
    axis = b.between(0, x.rank - 1)
    parts = [x]
    for _ in range(b.between(1, 3)):
        shape = list(x.shape)
        shape[axis] = b.choice((1, 2, 3, 5, 8, 16))
        fits = lambda v: v.rank == x.rank and all(
            p == q for i, (p, q) in enumerate(zip(v.shape, shape)) if i != axis
        )
        same = [v for v in b.values if v.dtype == x.dtype and v.name not in b.terminal and fits(v)]
        parts.append(b.choice(same) if same and b.chance(0.6) else b.input(x.dtype, shape))
    order = b.rng.permutation(len(parts))
    b.add("Concat", [parts[i] for i in order], axis=axis - (x.rank if b.chance(0.3) else 0))


def split(b):
    x = any_value(b, rank=(1, 2, 3, 4))
    axis = b.between(0, x.rank - 1)
    extent = x.shape[axis]
    require(extent >= 2)
    first = b.between(1, extent - 1)
    sizes = [first, extent - first]
    if extent > first + 1 and b.chance(0.4):
        sizes[1:] = [1, extent - first - 1]
    if b.opset < 13:
        return b.add("Split", [x], len(sizes), axis=axis, split=sizes)
    if b.opset >= 18 and b.chance(0.3):
        parts = b.between(2, min(extent, 4))
        return b.add("Split", [x], parts, axis=axis, num_outputs=parts)
    return b.add("Split", [x, b.ints(*sizes)], len(sizes), axis=axis)


def slice_(b):
    x = any_value(b, rank=(1, 2, 3, 4))
    axes = some_axes(b, x.rank)
    starts, ends, steps = [], [], []
    for axis in axes:
        extent = x.shape[axis]
        require(extent > 0)
        start, length, step = b.between(0, extent - 1), b.between(1, extent), b.choice((1, 1, 2, 3))
        end = min(start + length, extent) if b.chance(0.7) else 2**31
        if b.chance(0.25):
            start, end, step = end - 1, start - 1, -step
            end = end if end >= 0 else -(extent + 5)
        elif b.chance(0.3):
            start -= extent
        starts, ends, steps = starts + [start], ends + [end], steps + [step]
    b.add("Slice", [x] + [b.ints(*v) for v in (starts, ends, axes, steps)])


def pad(b):
    x = b.pick(rank=(1, 2, 3, 4))
    mode = b.choice(("constant", "constant", "reflect", "edge"))
    least = 0 if mode != "constant" else -1
    before, after = ([b.choice((least, 0, 0, 1, 2)) for _ in x.shape] for _ in range(2))
    require(all(max(p, q) < d and d + p + q > 0 for d, p, q in zip(x.shape, before, after)))
    value = b.constant(0.7, x.dtype) if mode == "constant" and b.chance(0.6) else None
    b.add("Pad", [x, b.ints(*before, *after), value], mode=mode)


def repeat(b):
    x = any_value(b)
    if b.chance(0.5):
        return b.add("Tile", [x, b.ints(*[b.choice((1, 1, 2, 3)) for _ in x.shape])])
    shape = [b.choice((2, 3, 5)) if d == 1 else b.choice((d, 1)) for d in x.shape]
    return b.add("Expand", [x, b.ints(*[b.choice((1, 2))] * b.between(0, 1), *shape)])


def indices(b, shape, extent, signed=True):
    """Positions below `extent`; as a graph input or known."""
    require(extent > 0)
    dtype = b.choice((I64, I64, I32))
    data = b.array(dtype, shape, -extent if signed and b.chance(0.3) else 0, extent - 1)
    return b.constant(data) if b.chance(0.4) else b.input(dtype, shape, data)


def gather(b):
    x = any_value(b, rank=(1, 2, 3, 4))
    axis = b.between(0, x.rank - 1)
    b.add("Gather", [x, indices(b, b.shape(b.between(0, 2), 40), x.shape[axis])], axis=axis)


def gather_elements(b):
    x = any_value(b, rank=(1, 2, 3))
    axis = b.between(0, x.rank - 1)
    shape = [b.between(1, d) if d else 0 for d in x.shape]
    shape[axis] = b.between(1, 6)
    b.add("GatherElements", [x, indices(b, shape, x.shape[axis])], axis=axis)


def gather_nd(b):
    x = any_value(b, rank=(1, 2, 3, 4))
    batch = b.between(0, 1) if x.rank > 1 and b.opset >= 12 else 0
    depth = b.between(1, x.rank - batch)
    shape = list(x.shape[:batch]) + [b.between(1, 5), depth]
    where = indices(b, shape, min(x.shape[batch : batch + depth]), signed=False)
    if where.dtype == I64:
        b.add("GatherND", [x, where], batch_dims=batch or None)


def scatter(b):
    x = b.pick(rank=(1, 2, 3), where=lambda v: v.size > 0)
    reduction = b.choice(("add", "mul", "max", "min")) if b.opset >= 18 and b.chance(0.5) else None
    axis = b.between(0, x.rank - 1)
    extent = x.shape[axis]
    rows = b.rng.permutation(extent)[: b.between(1, extent)] if extent else []
    require(len(rows) > 0)
    if b.chance(0.5):
        shape = [b.between(1, d) for d in x.shape]
        shape[axis] = len(rows)
        places = np.broadcast_to(rows.reshape([-1 if a == axis else 1 for a in range(x.rank)]), shape)
        places = b.input(I64, shape, np.ascontiguousarray(places).astype(np.int64))
        return b.add("ScatterElements", [x, places, b.input(x.dtype, shape)], axis=axis, reduction=reduction)
    rows = b.rng.permutation(x.shape[0])[: b.between(1, max(x.shape[0], 1))]
    places = b.input(I64, (len(rows), 1), rows.reshape(-1, 1).astype(np.int64))
    updates = b.input(x.dtype, (len(rows),) + x.shape[1:])
    return b.add("ScatterND", [x, places, updates], reduction=reduction)


def depth_space(b):
    x = b.pick(rank=4)
    block = b.choice((2, 3))
    if b.chance(0.5):
        b.add("DepthToSpace", [x], blocksize=block, mode=b.choice(("DCR", "CRD")))
        require(x.shape[1] % (block * block) == 0)
    else:
        require(x.shape[2] % block == 0 and x.shape[3] % block == 0)
        b.add("SpaceToDepth", [x], blocksize=block)


def reverse_sequence(b):
    x = b.pick(rank=(2, 3))
    time = b.between(0, 1)
    lengths = b.array(I64, (x.shape[1 - time],), min(x.shape[time], 1), x.shape[time])
    lengths = b.constant(lengths) if b.chance(0.3) else b.input(I64, lengths.shape, lengths)
    b.add("ReverseSequence", [x, lengths], time_axis=time, batch_axis=1 - time)


def triangle(b):
    x = any_value(b, rank=(2, 3, 4))
    k = b.constant(b.between(-3, 3), I64) if b.chance(0.6) else None
    b.add("Trilu", [x, k], upper=b.choice((0, 1)))


def one_hot(b):
    rows = b.input(I64, b.shape(b.between(0, 2), 30))
    values = b.constant([0, 1] if b.chance(0.5) else [-1.5, 2.5], b.real)
    b.add("OneHot", [rows, b.constant(b.between(2, 12), I64), values], axis=b.between(-1, rows.rank))


def shape_arithmetic(b):
    """Reshape by a shape computed from another tensor's, as exporters write it."""
    x = b.pick(rank=(2, 3, 4))
    first = b.add("Gather", [shape_of(b, x), b.constant(0, I64)], axis=0)
    operand, attributes = axes_operand(b, 13, [0])
    first = b.add("Unsqueeze", [first, operand], **attributes)
    target = b.add("Concat", [first, b.ints(-1)], axis=0)
    target.data = np.array([x.shape[0], -1], np.int64)
    require(x.size > 0)
    b.add("Reshape", [x, target])


def shape_of(b, x):
    result = b.add("Shape", [x])
    result.data = np.array(x.shape, np.int64)
    return result


def center_crop_pad(b):
    x = b.pick(rank=(2, 3, 4))
    axes = some_axes(b, x.rank)
    b.add("CenterCropPad", [x, b.ints(*[b.choice((1, 3, 6, 9)) for _ in axes])], axes=axes)


def col2im(b):
    image, block = [b.choice((3, 4, 7)) for _ in range(2)], [b.choice((1, 2, 3)) for _ in range(2)]
    strides, dilations = [b.choice((1, 2)) for _ in range(2)], [b.choice((1, 1, 2)) for _ in range(2)]
    pads = [b.choice((0, 0, 1)) for _ in range(4)]
    places = [
        (image[i] + pads[i] + pads[i + 2] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1
        for i in range(2)
    ]
    require(min(places) > 0)
    shape = (b.choice((1, 2)), b.choice((1, 2, 8)) * block[0] * block[1], places[0] * places[1])
    x = b.input(b.real, shape)
    b.add("Col2Im", [x, b.ints(*image), b.ints(*block)], strides=strides, dilations=dilations, pads=pads)


def resize(b):
    x = b.pick(rank=(3, 4), where=lambda v: 0 < v.size < 3000)
    mode = b.choice(("nearest", "linear", "cubic"))
    require(mode != "cubic" or x.rank == 4)
    attributes = {"mode": mode}
    modes = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    attributes["coordinate_transformation_mode"] = b.choice(modes + ["half_pixel_symmetric"] * (b.opset >= 19))
    if mode == "nearest":
        attributes["nearest_mode"] = b.choice(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        attributes |= {"cubic_coeff_a": b.choice((-0.75, -0.5)), "exclude_outside": b.choice((0, 1))}
    if b.opset >= 18 and mode != "nearest" and b.chance(0.3):
        attributes["antialias"] = 1
    empty = b.constant(np.zeros(0, np.float32)) if b.opset < 13 else None
    if b.chance(0.5):
        scales = [1.0] * 2 + [b.choice((0.5, 1.0, 1.5, 2.0, 3.0)) for _ in x.shape[2:]]
        require(all(int(d * s) > 0 for d, s in zip(x.shape, scales)))
        return b.add("Resize", [x, empty, b.constant(np.array(scales, np.float32))], **attributes)
    sizes = list(x.shape[:2]) + [b.choice((1, 3, 5, 8, 12)) for _ in x.shape[2:]]
    return b.add("Resize", [x, empty, empty, b.ints(*sizes)], **attributes)


def grid_sample(b):
    x = b.pick(rank=4, where=lambda v: 0 < v.size < 3000)
    grid = b.input(x.dtype, (x.shape[0], b.between(1, 6), b.between(1, 6), 2))
    grid = b.add("Tanh", [grid]) if b.chance(0.7) else grid
    linear, cubic = ("linear", "cubic") if b.opset >= 20 else ("bilinear", "bicubic")
    padding = b.choice(("zeros", "border", "reflection"))
    b.add("GridSample", [x, grid], mode=b.choice((linear, linear, cubic)), padding_mode=padding, align_corners=b.choice((0, 1)))


def affine_grid(b):
    theta = b.input(b.real, (b.choice((1, 2)), 2, 3))
    size = b.ints(theta.shape[0], b.choice((1, 3)), b.between(2, 7), b.between(2, 7))
    b.add("AffineGrid", [theta, size], align_corners=b.choice((0, 1)))


def eye_like(b):
    b.add("EyeLike", [b.pick((b.real, I32), rank=2)], k=b.between(-2, 2), dtype=b.choice((b.real, I32)))


# Extents known only at run time: results that nothing uses, or Gather of what they choose.
def non_zero(b):
    x = any_value(b, rank=(1, 2, 3))
    found = b.add("NonZero", [x])
    b.terminal.add(found.name)


def top_k(b):
    x = b.pick(rank=(1, 2, 3), where=lambda v: v.size > 0)
    axis = b.between(0, x.rank - 1)
    k = b.ints(b.between(1, x.shape[axis]))
    b.add("TopK", [x, k], 2, axis=axis, largest=b.choice((0, 1)))


def unique(b):
    x = b.pick((b.real, I64), rank=(1, 2))
    outputs = b.add("Unique", [x], 4, sorted=1, axis=b.choice((None, 0)))
    b.terminal |= {v.name for v in outputs}


def compress(b):
    x = any_value(b, rank=(1, 2, 3))
    axis = b.between(0, x.rank - 1)
    mask = b.array(BOOL, (x.shape[axis],))
    result = b.add("Compress", [x, b.input(BOOL, mask.shape, mask)], axis=axis)
    b.terminal.add(result.name)


OPS = [reshape] * 3 + [transpose] * 3 + [concat] * 3 + [slice_] * 2 + [pad] * 2 + [resize] * 3
OPS += [flatten, squeeze, squeeze, unsqueeze, unsqueeze, split, split, repeat, gather, gather]
OPS += [gather_elements, gather_nd, scatter, depth_space, reverse_sequence, triangle, one_hot]
OPS += [affine_grid, eye_like, shape_arithmetic, center_crop_pad, col2im, grid_sample, non_zero, top_k, unique, compress]
