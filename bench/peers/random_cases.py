"""Shapes that are on no list: single layers drawn at random, family by family, sizes log-uniform.

`random/FAMILY/SEED` is always the same layer; `SEEDS` of each family are among the cases.
"""

import math
import random

SEEDS = range(8)
# A draw with more work than this is drawn again: a round should not take seconds.
MOST_FLOPS = 40e9


class Draw:
    def __init__(self, family, seed):
        self.random, self.seed = random.Random(f"{family} {seed}"), seed

    def size(self, least, most, step=1):
        """Log-uniform between both ends, a multiple of `step`."""
        value = math.exp(self.random.uniform(math.log(least), math.log(most)))
        return max(step, round(value / step) * step)

    def of(self, *values):
        return self.random.choice(values)

    def in_turn(self, *values):
        """Each as often over the seeds as the others."""
        return values[self.seed % len(values)]


def conv(channels, out, size, kernel, stride=1, dilation=1, groups=1):
    """A layer whose result has size / stride; `size` and `kernel` per axis."""
    pad = [dilation * (k - 1) // 2 for k in kernel]
    layer = {"kind": "conv", "in": channels, "out": out, "kernel": list(kernel),
             "stride": [stride] * len(kernel), "pad": pad, "dilation": [dilation] * len(kernel),
             "groups": groups}
    return [1, channels, *size], [layer]


def dilated(draw):
    return conv(draw.size(256, 2048, 32), draw.size(256, 2048, 32), [draw.size(20, 65)] * 2, (3, 3),
                dilation=draw.size(2, 18))


def depthwise(draw):
    channels = draw.size(32, 1024, 8)
    return conv(channels, channels, [draw.size(7, 112)] * 2, (draw.in_turn(3, 5, 7, 9),) * 2,
                draw.of(1, 2), groups=channels)


def grouped(draw):
    groups, each = draw.size(4, 64), draw.size(8, 32, 8)
    return conv(groups * each, groups * each, [draw.size(7, 64)] * 2, (3, 3), draw.of(1, 1, 2),
                groups=groups)


def line(draw):
    return conv(draw.size(32, 512, 8), draw.size(32, 512, 8), [draw.size(200, 8000)],
                (draw.in_turn(3, 5, 7),), dilation=draw.size(2, 64))


def pointwise(draw):
    return conv(draw.size(64, 1024, 8), draw.size(256, 4096, 8), [draw.size(7, 14)] * 2, (1, 1))


def plain(draw):
    return conv(draw.size(16, 512), draw.size(16, 512), [draw.size(7, 112)] * 2,
                (draw.in_turn(1, 3, 5),) * 2, draw.of(1, 2))


def product(rows, depth, columns):
    return [rows, depth], [{"kind": "gemm", "n": columns}]


def attention(draw):
    return product(draw.size(33, 512), draw.size(256, 3072, 64), draw.size(256, 3072, 64))


def gemm(draw):
    return product(draw.size(17, 2048), draw.size(17, 2048), draw.size(17, 2048))


FAMILIES = {"dilated": dilated, "depthwise": depthwise, "grouped": grouped, "line": line,
            "pointwise": pointwise, "plain": plain, "attention": attention, "gemm": gemm}


def random_layers(flops):
    """(id, group, shape, layers) of all cases; `flops` counts the work of a shape and layers."""
    for family, make in FAMILIES.items():
        for seed in SEEDS:
            draw = Draw(family, seed)
            shape, layers = make(draw)
            while flops(shape, layers) > MOST_FLOPS:
                shape, layers = make(draw)
            yield f"random/{family}/{seed}", "random/" + family, shape, layers


def describe(shape, layer):
    """`512x33x33 -> 256, 3x3, dilation 6`."""
    def times(values):
        return "x".join(map(str, values))

    if layer["kind"] == "gemm":
        return times([*shape, layer["n"]])
    text = f"{times(shape[1:])} -> {layer['out']}, {times(layer['kernel'])}"
    for word, value in (("stride", layer["stride"][0]), ("dilation", layer["dilation"][0]),
                        ("groups", layer["groups"])):
        text += f", {word} {value}" if value > 1 else ""
    return text
