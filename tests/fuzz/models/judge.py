"""What the program makes of a model: compiled and run, and held against ONNX Runtime or the interpreter.

Verdicts:
  ok        all outputs agree
  refused   `check` says that it cannot, and why
  known     differs where the references are known to differ (`verify` names it)
  unsure    differs by no more than rounding errors in a reference make
  differs   ONNX Runtime differs, while the interpreter and onnx's reference side with the program
  nothing   no reference could run the model, or a limit of time was hit
and the faults
  crash     the program was killed by a signal or reported a bug of its own
  failed    what `check` accepts cannot be compiled or run
  wrong     results differ
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from hostile import TRIALS, huge, spoiled

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TILEWRIGHT_PYTHON", sys.executable)  # `verify` runs ONNX Runtime by it
from steps import UNITS, Reference, Steps, stated, widened  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
FAULTS = ("crash", "failed", "wrong")
USAGE, UNSUPPORTED, MISMATCH = 2, 3, 5
TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 2e-4, np.dtype(np.float16): 1e-2}
NOT_FINITE = "not finite on one side"
OTHER_EXTENTS = re.compile(r"(\w+) ?\[[^]]*\] instead of \1 ?\[[^]]*\]")  # as distance() and `verify` say it
ROUNDED = 4  # limits apart that networks in few bits may be
SHAKEN = 20  # times as far as rounding errors of a reference move its own result


class Verdict:
    def __init__(self, kind, text="", rows=(), limits=None):
        self.kind, self.text, self.rows = kind, text, rows  # rows: of `verify`, those that are off
        self.limits = limits or {}  # of `verify`, by output: wider behind few bits

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
        if self.against == "hostile":
            return self.hostile(path, folder, feeds)
        if self.against == "guarded":
            return self.guarded(path, folder, feeds)
        inputs = saved(folder, feeds)
        if self.against == "interp":
            return self.rounded(self.verified(path, inputs), model, feeds)
        results = os.path.join(folder, "results")
        code, _, errors = self.call("run", path, *inputs, "--output-dir", results, *self.options)
        if code != 0:
            return self.failure(path, code, errors)
        try:
            reference = Reference(model)
            expected = reference.run(feeds)
        except Exception as refused:  # ONNX Runtime lacks the operator, or finds fault with the model
            verdict = self.rounded(self.verified(path, inputs), model, feeds)
            verdict.text += f" [ONNX Runtime: {str(refused)[:160]}]"
            return verdict
        texts = compared(results, expected)
        if not texts:
            return Verdict("ok")
        return self.second_opinion(path, inputs, model, feeds, texts, results)

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
        limits = {r["output"]: r["limit"] for r in json.loads(out)["rows"]} if code in (0, MISMATCH) else {}
        if code == MISMATCH:
            rows = [r for r in json.loads(out)["rows"] if not r["ok"]]
            # The interpreter rounds each value to its type, compiled code only those it stores.
            rounded = self.against == "interp" and all(r["state"] == "off" and r["error"] <= ROUNDED * r["limit"] for r in rows)
            return Verdict("unsure" if rounded else "wrong", "interpreter: " + describe_rows(rows), rows, limits)
        return Verdict("ok", limits=limits) if code == 0 else self.failure(path, code, errors)

    def hostile(self, path, folder, feeds):
        """Values that no sound caller gives: refused as wrong usage, or the interpreter agrees."""
        for trial in range(TRIALS):
            verdict = self.verified(path, saved(folder, spoiled(feeds, trial)))
            if verdict.kind == "failed" and verdict.text.startswith(f"exit {USAGE},"):
                continue
            if huge(trial) and verdict.rows and all(r["state"] == "off" or "finite" in r["state"] for r in verdict.rows):
                continue
            if verdict.kind != "ok":
                verdict.text = f"trial {trial}: {verdict.text}"
                return verdict
        return Verdict("ok")

    def guarded(self, path, folder, feeds):
        """A package whose inputs and outputs lie beside forbidden pages (guarded.py)."""
        package, inputs = (os.path.join(folder, name) for name in ("model.twm", "inputs.npz"))
        code, _, errors = self.call("-q", "compile", path, "-o", package, "--samples", "none", *self.options)
        if code != 0:
            return self.failure(path, code, errors)
        np.savez(inputs, **feeds)
        library = os.path.join(os.path.dirname(self.program), "libtilewright_runtime.so")
        command = [sys.executable, os.path.join(HERE, "guarded.py"), library, package, inputs]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=self.seconds)
        except subprocess.TimeoutExpired:
            return Verdict("nothing", f"no end after {self.seconds} s")
        if done.returncode == 0:
            return Verdict("ok")
        text = (done.stdout + done.stderr).strip()[-400:]
        return Verdict("crash" if done.returncode < 0 else "wrong", f"exit {done.returncode}: {text}")

    def rounded(self, verdict, model, feeds):
        """The interpreter's verdict, unless rounding errors in a reference move its results as far."""
        if verdict.kind != "wrong" or any(r["state"] != "off" and not other_extents(r["state"]) for r in verdict.rows):
            return verdict
        wide, amount = widened(model)
        feeds = {n: v.astype(np.float32) if v.dtype == np.float16 or v.dtype.kind == "V" else v for n, v in feeds.items()}
        texts = [(r["output"], r["error"] if r["state"] == "off" else r["state"], r["limit"]) for r in verdict.rows]
        shaky = self.shaky(Steps(wide, [n for n, _, _ in texts]), feeds, {}, texts, amount)
        return Verdict("unsure", verdict.text) if shaky else verdict

    def known(self, path, inputs, not_finite):
        """The row of the known differences that explains what `verify` finds off, or None."""
        code, out, _ = self.call("verify", path, "--against", "ort", "--json", *inputs, *self.options)
        off = [r for r in json.loads(out)["rows"] if not r["ok"]] if code == MISMATCH else []
        certain = [[d["text"] for d in r["known_differences"] if not d["by_values"]] for r in off]
        if off and all(certain):
            return certain[0][0]
        # Values that ONNX Runtime makes NaN where a row of the table says that it may.
        causes = [[d["text"] for d in r["known_differences"]] for r in off]
        return causes[0][0] if off and all(causes) and not_finite else None

    def second_opinion(self, path, inputs, model, feeds, texts, results):
        text = describe(texts)
        inside = self.verified(path, inputs)
        if inside.kind not in ("ok", "wrong"):
            return inside
        if inside.kind == "ok" and not beyond(texts, inside.limits):
            return Verdict("unsure", f"{text}, within the limit of verify")
        known = self.known(path, inputs, all(str(f).endswith(NOT_FINITE) for _, f, _ in texts))
        if inside.kind == "ok" and known:
            return Verdict("known", known)
        try:
            verdict = self.by_nodes(model, feeds, texts, results)
        except Exception as refused:
            verdict = Verdict("wrong", f"{text}; node by node: {str(refused)[:200]}")
        if inside.kind == "wrong":  # whatever ONNX Runtime thinks
            inside = self.rounded(inside, model, feeds)
            return inside if inside.kind == "wrong" else verdict
        return verdict

    def by_nodes(self, model, feeds, texts, results):
        """Each node alone on the reference's operands; then the results again, with what is known to differ taken over."""
        steps = Steps(model, [n for n, _, _ in texts])
        values, given, causes = steps.constants | dict(feeds), {}, []
        for node in steps.nodes:
            expected = steps.reference(node, values)
            actual, verdict = self.alone(steps, node, values, expected)
            if verdict is not None and verdict.kind == "wrong":
                return Verdict("wrong", f"{describe(texts)}; {node.op_type} -> {node.output[0]} alone: {verdict.text}")
            if verdict is not None:
                causes.append(verdict)
            if verdict is not None or expected is None:
                given |= actual
            values |= {n: (actual if node.output[0] in given else expected)[n] for n in node.output if n}
        left = compared(results, {n: values[n] for n, _, _ in texts})
        if left and not self.shaky(steps, feeds, given, left, UNITS):
            return Verdict("wrong", f"{describe(left)}; every node alone agrees")
        if not causes:
            return Verdict("unsure", describe(texts))
        return Verdict(min((c.kind for c in causes), key=("differs", "known", "unsure").index), causes[0].text)

    def alone(self, steps, node, values, expected):
        """What the program makes of one node, and a verdict if that is not what is expected."""
        constants = set(steps.constants)
        first = {node.input[0]} if node.input else set()
        for fixed in (constants - first, constants, set(values)):  # some operands must be constants
            folder = tempfile.mkdtemp(prefix="node_")
            try:
                model, feeds = steps.alone(node, values, fixed)
                path, results = os.path.join(folder, "model.onnx"), os.path.join(folder, "results")
                onnx.save(model, path)
                inputs = saved(folder, feeds)
                if self.call("run", path, *inputs, "--output-dir", results, *self.options)[0] != 0:
                    continue
                actual = {n: np.load(os.path.join(results, file_name(n))) for n in node.output if n}
                texts = compared(results, expected or {})
                return actual, self.verdict_alone(path, inputs, model, feeds, texts, actual) if texts else None
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        if expected is None:
            raise ValueError(f"nobody can run {node.op_type} alone")
        return expected, None

    def verdict_alone(self, path, inputs, model, feeds, texts, actual):
        known = self.known(path, inputs, all(str(f).endswith(NOT_FINITE) for _, f, _ in texts))
        if known:
            return Verdict("known", known)
        inside = self.verified(path, inputs)
        if inside.kind != "ok":
            return Verdict("wrong", inside.text)
        if not beyond(texts, inside.limits):
            return Verdict("unsure", describe(texts))
        try:
            official = stated(model, feeds)
            far = [distance(actual[n], official[n]) for n, _, _ in texts]
            if all(not isinstance(d, str) and d <= 10 * limit for d, (_, _, limit) in zip(far, texts)):
                return Verdict("differs", f"{model.graph.node[0].op_type}: {describe(texts)}")
            text = "onnx's reference does not"
        except Exception as refused:
            text = f"onnx's reference: {str(refused)[:100]}"
        return Verdict("wrong", f"{describe(texts)}; the interpreter agrees, {text}")

    @staticmethod
    def shaky(steps, feeds, given, texts, amount):
        """Whether rounding errors behind every node of the reference move its results as far."""
        try:
            base = steps.run(feeds, given, 0, 0)
            shaken = [steps.run(feeds, given, amount, seed) for seed in range(4)]
        except Exception:
            return False
        for name, found, _ in texts:
            if not any(explains(distance(v[name], base[name]), found) for v in shaken):
                return False
        return True


def other_extents(found):
    """Whether results differ in their extents only, as where one rounding makes two values equal before Unique."""
    return isinstance(found, str) and OTHER_EXTENTS.fullmatch(found) is not None


def explains(moved, found):
    """Whether a result that rounding errors move like this may be off by `found`."""
    if other_extents(moved):
        return other_extents(found) or not isinstance(found, str)
    return not isinstance(moved, str) and not isinstance(found, str) and found <= SHAKEN * moved


def saved(folder, feeds):
    """Options that give the program these inputs. NumPy has no bf16: those are cast from f32."""
    options = ["--cast"] if any(v.dtype.kind == "V" for v in feeds.values()) else []
    for name, value in feeds.items():
        file = os.path.join(folder, file_name("in_" + name))
        np.save(file, value.astype(np.float32) if value.dtype.kind == "V" else value)
        options += ["--input", f"{name}=@{file}"]
    return options


def compared(results, expected):
    """The outputs in the folder `results` that are off: name, how far, and the limit."""
    texts = []
    for name, value in expected.items():
        file = os.path.join(results, file_name(name))
        found = distance(np.load(file), value) if os.path.exists(file) else "the output is missing"
        limit = TOLERANCE.get(value.dtype, 0)
        if isinstance(found, str) or not found <= limit:
            texts.append((name, found, limit))
    return texts


def beyond(texts, limits):
    """Those of `texts` that are off by more than these limits, too."""
    return [(n, found, m) for n, found, m in texts if isinstance(found, str) or not found <= limits.get(n, 0)]


def describe(texts):
    return "; ".join(f"{n}: {f if isinstance(f, str) else f'{f:.2e} > {m:.0e}'}" for n, f, m in texts[:3])


def describe_rows(rows):
    return "; ".join(f"{r['output']}: {r['error']:.2e} > {r['limit']:.0e} ({r['state']})" for r in rows[:3])
