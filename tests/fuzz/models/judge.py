"""What the program makes of a model: compiled and run, and held against ONNX Runtime or the interpreter.

Verdicts:
  ok        all outputs agree
  refused   `check` says that it cannot, and why
  known     differs where the references are known to differ (`verify` names it)
  unsure    differs by no more than a change of the inputs by a few units in the last place makes
  differs   ONNX Runtime differs, while the interpreter and onnx's reference side with the program
  nothing   no reference could run the model, or a limit of time was hit
and the faults
  crash     the program was killed by a signal or reported a bug of its own
  failed    what `check` accepts cannot be compiled or run
  wrong     results differ
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.reference

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TILEWRIGHT_PYTHON", sys.executable)  # `verify` runs ONNX Runtime by it
import onnxruntime  # noqa: E402

FAULTS = ("crash", "failed", "wrong")
UNSUPPORTED, MISMATCH = 3, 5
TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 2e-4, np.dtype(np.float16): 1e-2}
NOT_FINITE = "not finite on one side"
ROUNDED = 4  # limits apart that networks in few bits may be


class Verdict:
    def __init__(self, kind, text=""):
        self.kind, self.text = kind, text

    @property
    def fault(self):
        return self.kind in FAULTS


def file_name(name):
    return "".join(c if c.isalnum() or c in "_-." else "_" for c in name) + ".npy"


def distance(actual, expected):
    """Largest difference of one output relative to its largest value; a text if they cannot be compared."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if actual.size == 0:
        return 0.0
    a, e = (v.astype(np.float64) if v.dtype != np.int64 else v for v in (actual, expected))
    if a.dtype != np.float64:
        return float(np.max(np.abs((a - e).astype(np.float64))))
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(a) & np.isfinite(e)
        same = (a == e) | (np.isnan(a) & np.isnan(e))
    if np.any(~finite & ~same):
        return f"{int(np.sum(~finite & ~same))} elements {NOT_FINITE}"
    if not np.any(finite):
        return 0.0
    scale, far = (float(np.max(np.abs(v))) for v in (e[finite], a[finite] - e[finite]))
    if far < np.finfo(np.float32).tiny:  # may be flushed to zero
        return 0.0
    return far / (scale if scale > 0 else 1.0)


class Reference:
    """ONNX Runtime in this process, without its own rewriting of the graph."""

    def __init__(self, model):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.names = [o.name for o in self.session.get_outputs()]

    def run(self, feeds):
        return dict(zip(self.names, (np.asarray(v) for v in self.session.run(None, feeds))))


def shaken(feeds, seed):
    """The inputs changed by a few units in the last place."""
    rng = np.random.default_rng(seed)
    return {
        name: np.asarray(v * (1 + 4e-7 * rng.choice([-1, 1], v.shape)), v.dtype) if v.dtype == np.float32 else v
        for name, v in feeds.items()
    }


class Judge:
    def __init__(self, program, options=(), against="ort", seconds=60):
        self.program, self.options, self.against, self.seconds = program, list(options), against, seconds

    def call(self, *arguments):
        """Exit code and text of the program; code None if it ran too long."""
        try:
            done = subprocess.run(
                [self.program, *arguments], capture_output=True, text=True, errors="replace", timeout=self.seconds
            )
        except subprocess.TimeoutExpired:
            return None, "", f"no end after {self.seconds} s"
        return done.returncode, done.stdout, done.stderr

    def judge(self, model, feeds):
        folder = tempfile.mkdtemp(prefix="model_")
        try:
            return self.judge_in(folder, model, feeds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def judge_in(self, folder, model, feeds):
        path = os.path.join(folder, "model.onnx")
        onnx.save(model, path)
        inputs = []
        for name, value in feeds.items():
            if value.dtype.kind in "fiub":
                np.save(os.path.join(folder, file_name("in_" + name)), value)
                inputs += ["--input", f"{name}=@{os.path.join(folder, file_name('in_' + name))}"]
        if self.against == "interp":
            return self.verified(path, inputs)
        results = os.path.join(folder, "results")
        code, _, errors = self.call("run", path, *inputs, "--output-dir", results, *self.options)
        if code != 0:
            return self.failure(path, code, errors)
        try:
            reference = Reference(model)
            expected = reference.run(feeds)
        except Exception as refused:  # ONNX Runtime lacks the operator, or finds fault with the model
            verdict = self.verified(path, inputs)
            verdict.text += f" [ONNX Runtime: {str(refused)[:160]}]"
            return verdict
        texts = []
        for name, value in expected.items():
            file = os.path.join(results, file_name(name))
            found = distance(np.load(file), value) if os.path.exists(file) else "the output is missing"
            limit = TOLERANCE.get(value.dtype, 0)
            if isinstance(found, str) or not found <= limit:
                texts.append((name, found, limit))
        if not texts:
            return Verdict("ok")
        return self.second_opinion(path, inputs, model, feeds, reference, expected, texts, results)

    def failure(self, path, code, errors):
        """What stands behind an exit code other than 0 of `run` or `verify`."""
        text = " / ".join(line.strip() for line in errors.strip().splitlines()[:3])[:400]
        if code is None:
            return Verdict("nothing", text)
        if code < 0 or code >= 128 or code == 1:
            return Verdict("crash", f"exit {code}: {text}")
        targets = [o for pair in zip(self.options, self.options[1:]) if pair[0] == "--target" for o in pair]
        checked, out, _ = self.call("check", path, "--json", *targets)
        if checked == UNSUPPORTED:
            problems = [p["what"] for p in json.loads(out).get("problems", [])]
            return Verdict("refused", (problems or [text])[0][:200])
        return Verdict("failed", f"exit {code}, though check gives {checked}: {text}")

    def verified(self, path, inputs):
        """The interpreter's word."""
        code, out, errors = self.call("verify", path, "--against", "interp", "--json", *inputs, *self.options)
        if code == MISMATCH:
            rows = [r for r in json.loads(out)["rows"] if not r["ok"]]
            # The interpreter rounds each value to its type, compiled code only those it stores.
            rounded = self.against == "interp" and all(r["state"] == "off" and r["error"] <= ROUNDED * r["limit"] for r in rows)
            return Verdict("unsure" if rounded else "wrong", "interpreter: " + describe_rows(rows))
        return Verdict("ok") if code == 0 else self.failure(path, code, errors)

    def second_opinion(self, path, inputs, model, feeds, reference, expected, texts, results):
        text = "; ".join(f"{n}: {f if isinstance(f, str) else f'{f:.2e} > {m:.0e}'}" for n, f, m in texts[:3])
        inside = self.verified(path, inputs)
        if inside.kind != "ok":
            shaky = self.shaky(feeds, reference, expected, texts)
            return Verdict("unsure", text) if shaky else Verdict("wrong", f"{text}; {inside.text}")
        code, out, _ = self.call("verify", path, "--against", "ort", "--json", *inputs, *self.options)
        if code == 0 and all(isinstance(found, float) for _, found, _ in texts):
            return Verdict("unsure", text)
        if code == MISMATCH:
            off = [r for r in json.loads(out)["rows"] if not r["ok"]]
            known = [[d["text"] for d in r["known_differences"] if not d["by_values"]] for r in off]
            if off and all(known):
                return Verdict("known", known[0][0])
            # Values that ONNX Runtime makes NaN where a row of the table says that it may.
            causes = [[d["text"] for d in r["known_differences"]] for r in off]
            if off and all(causes) and all(str(found).endswith(NOT_FINITE) for _, found, _ in texts):
                return Verdict("known", causes[0][0])
        if self.shaky(feeds, reference, expected, texts):
            return Verdict("unsure", text)
        try:
            stated = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
            stated = {o.name: np.asarray(v) for o, v in zip(model.graph.output, stated)}
        except Exception as refused:
            return Verdict("wrong", f"{text}; the interpreter agrees; onnx's reference: {str(refused)[:100]}")
        for name, _, limit in texts:
            file = os.path.join(results, file_name(name))
            found = distance(np.load(file), stated[name]) if os.path.exists(file) else "missing"
            if isinstance(found, str) or not found <= 10 * limit:
                return Verdict("wrong", f"{text}; the interpreter agrees, onnx's reference does not")
        return Verdict("differs", text)

    @staticmethod
    def shaky(feeds, reference, expected, texts):
        """Whether the reference itself moves as far when its inputs move by rounding errors."""
        moved = [reference.run(shaken(feeds, seed)) for seed in range(3)]
        for name, found, _ in texts:
            if isinstance(found, str):
                return False
            far = [distance(m[name], expected[name]) for m in moved]
            if not any(not isinstance(d, str) and found <= 20 * d for d in far):
                return False
        return True


def describe_rows(rows):
    return "; ".join(f"{r['output']}: {r['error']:.2e} > {r['limit']:.0e} ({r['state']})" for r in rows[:3])
