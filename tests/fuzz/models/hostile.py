"""Inputs that no sound caller gives: indices and lengths out of range, NaN, infinities, numbers of every size."""

import numpy as np

WHOLE = (-(2**63), -(2**62), -(2**31), -1000, -2, -1, 0, 1, 4, 33, 1000, 2**15, 2**31 - 1, 2**32, 2**62, 2**63 - 1)
REAL = (np.nan, np.inf, -np.inf, -0.0, 0.5)
HUGE = REAL + (3e38, -3e38, 1e10, -1e10, 1e-30)  # results are rounding errors: only their shapes say something
TRIALS = 4


def huge(trial):
    return trial % 2 == 1


def spoiled(feeds, trial):
    """Some inputs with some elements replaced; the same for the same trial."""
    rng = np.random.default_rng(trial)
    result = {}
    for name, value in feeds.items():
        bad = np.array(value)
        if bad.size and bad.dtype.kind in "fiu" and rng.random() < (0.7 if bad.dtype.kind != "f" else 0.4):
            flat = bad.reshape(-1)
            places = rng.permutation(bad.size)[: int(rng.integers(1, bad.size + 1)) if rng.random() < 0.5 else 1]
            if bad.dtype.kind == "f":
                with np.errstate(over="ignore"):
                    flat[places] = rng.choice(HUGE if huge(trial) else REAL, len(places)).astype(bad.dtype)
            else:
                info = np.iinfo(bad.dtype)
                fits = [v for v in WHOLE if info.min <= v <= info.max]
                flat[places] = np.array([fits[i] for i in rng.integers(0, len(fits), len(places))], bad.dtype)
        result[name] = bad
    return result
