"""From a seed to a model with inputs."""

import numpy as np
import ops_control
import ops_elementwise
import ops_movement
import ops_networks
import ops_options
import ops_runtime
from builder import BF16, DOUBLE, FLOAT, HALF, Builder, Unfit
from patterns import PATTERNS

SINGLE = ops_elementwise.OPS + ops_movement.OPS + ops_networks.OPS + ops_options.OPS + ops_runtime.OPS
SINGLE += ops_control.OPS
REALS = {"f32": FLOAT, "f64": DOUBLE, "f16": HALF, "bf16": BF16}


def generate(seed, real="f32"):
    """The model of this seed, its inputs by name, and a short text that says what is in it."""
    for trial in range(100):
        rng = np.random.default_rng([seed, trial])
        b = Builder(rng, opset=None if real != "bf16" else int(rng.integers(16, 23)), real=REALS[real])
        if real == "f32" and b.chance(0.02):
            b.real = DOUBLE
        joined, wanted = b.chance(0.45), b.between(1, 9)
        if joined:
            b.attempt(b.choice(PATTERNS))
            wanted = b.between(0, 6)
        for _ in range(6 * wanted):
            if len(b.nodes) > 60 or wanted <= 0:
                break
            generator = b.choice(PATTERNS) if b.chance(0.08) else b.choice(SINGLE)
            wanted -= b.attempt(generator)
        try:
            model, feeds = b.model()
        except Unfit:
            continue
        return model, feeds
    raise RuntimeError(f"seed {seed}: no model in 100 trials")


def describe(model):
    ops = [n.op_type for n in model.graph.node]
    return f"opset {model.opset_import[0].version}: {' '.join(ops[:12])}{' ...' if len(ops) > 12 else ''}"
