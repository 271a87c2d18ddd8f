#!/usr/bin/env python3
"""Does the judge see defects, and let differences pass that are none? judge_test.py --program tilewright.

A defect is a program between the judge and tilewright that spoils what `run` writes.
"""

import ctypes
import os
import stat
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from guarded import Guarded  # noqa: E402
from judge import Judge  # noqa: E402
from run import environment  # noqa: E402

PROGRAM = ""
SPOILER = """#!{python}
import glob, subprocess, sys
import numpy as np, onnx
done = subprocess.run([{program!r}, *sys.argv[1:]])
if sys.argv[1] == "run":
    model = onnx.load(sys.argv[2])
    ops = {{n.op_type for n in model.graph.node}}
    folder = sys.argv[sys.argv.index("--output-dir") + 1]
    for file in glob.glob(folder + "/*.npy"):
        if {spoilt!r} <= ops:
            value = np.load(file)
            np.save(file, {change})
sys.exit(done.returncode)
"""


def spoilt(ops, folder, change):
    """A program that is wrong by `change` in models that have all these operators."""
    path = os.path.join(folder, "spoilt.py")
    with open(path, "w") as file:
        file.write(SPOILER.format(python=sys.executable, program=PROGRAM, spoilt=set(ops), change=change))
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def network(nodes, feeds, outputs, constants=None, opset=18):
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(v, n) for n, v in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def values(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def chain():
    feeds = {"x": values(1, 4, 9, 9)}
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Tanh", ["a"], ["y"])]
    return network(nodes, feeds, {"y": (1, 4, 9, 9)}), feeds


def dilated(dies):
    """A pool on which ONNX Runtime differs; with `dies`, and a node that onnx's reference cannot run."""
    feeds = {"x": values(1, 4, 12, 12)}
    window = {"kernel_shape": [2, 2], "dilations": [3, 3], "auto_pad": "SAME_UPPER"}
    nodes = [helper.make_node("MaxPool", ["x"], ["a"], **window), helper.make_node("Tanh", ["a"], ["y"])]
    outputs = {"y": (1, 4, 12, 12)}
    if dies:
        feeds["g"] = np.tanh(values(1, 5, 5, 2))
        nodes.append(helper.make_node("GridSample", ["x", "g"], ["z"], mode="bilinear"))  # `linear` since opset 20
        outputs["z"] = (1, 4, 5, 5)
    return network(nodes, feeds, outputs, opset=16), feeds


def cancelling():
    """A sum of which almost nothing is left, so that its last bits are all there is."""
    x, w = values(16, 256), values(256, 1)
    bias = -(x.astype(np.float64) @ w.astype(np.float64))
    feeds = {"x": x, "w": w, "b": (bias * (1 + 1e-6)).astype(np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    return network(nodes, feeds, {"y": (16, 1)}), feeds


def in_two_types(dtype):
    """Mean and deviation in f32, as ONNX says, though operands and result are f64."""
    x, scale = (v.astype(np.float64) for v in (values(3, 7), values(7)))
    node = helper.make_node("LayerNormalization", ["x", "s"], ["y"], stash_type=dtype)
    model = network([node], {"x": x}, {"y": (3, 7)}, {"s": scale})
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    return model, {"x": x}


def nearly_equal():
    """Values of which the last bit says how many are different."""
    feeds = {"x": np.linspace(14, 17, 300, dtype=np.float32)}
    nodes = [helper.make_node("Sigmoid", ["x"], ["a"]), helper.make_node("Unique", ["a"], ["y"])]
    return network(nodes, feeds, {"y": (None,)}), feeds


def noise_of_a_transform():
    """Imaginary parts that are exactly 0, or what rounding leaves of them: how many are not, the last bit says."""
    x = values(1, 16, 1)
    x[:, 9:] = x[:, 7:0:-1]  # an even signal
    nodes = [
        helper.make_node("DFT", ["x", "", "axis"], ["d"]),
        helper.make_node("Gather", ["d", "part"], ["i"], axis=2),
        helper.make_node("NonZero", ["i"], ["y"]),
    ]
    constants = {"axis": np.array(1, np.int64), "part": np.array(1, np.int64)}
    model = network(nodes, {"x": x}, {"y": (2, None)}, constants, opset=20)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    return model, {"x": x}


def equal_or_not():
    """Values of which no rounding changes how many are different."""
    feeds = {"x": np.array([1, 2, 2, 3, 0, 0], np.float32)}
    return network([helper.make_node("Unique", ["x"], ["y"])], feeds, {"y": (None,)}), feeds


def chosen_rows():
    """Rows of a table by indices that come at run time."""
    feeds = {"x": values(5, 7), "i": np.array([1, 4, -5], np.int64)}
    return network([helper.make_node("Gather", ["x", "i"], ["y"])], feeds, {"y": (3, 7)}), feeds


class TestJudge(unittest.TestCase):
    def verdict(self, case, spoil=None, against="ort", change="value * np.float32(1.01)"):
        with tempfile.TemporaryDirectory() as folder:
            program = spoilt(spoil, folder, change) if spoil else PROGRAM
            return Judge(program, ["--threads", "1"], against).judge(*case)

    def test_right_results_are_ok(self):
        self.assertEqual(self.verdict(chain()).kind, "ok")

    def test_a_wrong_operator_is_named(self):
        found = self.verdict(chain(), spoil=["Relu"])
        self.assertEqual(found.kind, "wrong", found.text)
        self.assertIn("Relu -> a alone", found.text)

    def test_what_is_wrong_only_together_is_wrong(self):
        found = self.verdict(chain(), spoil=["Relu", "Tanh"])
        self.assertEqual(found.kind, "wrong", found.text)
        self.assertIn("every node alone agrees", found.text)

    def test_a_known_difference_is_named_wherever_a_reference_stops(self):
        for dies in (False, True):
            found = self.verdict(dilated(dies))
            self.assertEqual(found.kind, "known", found.text)
            self.assertIn("ignores the dilation", found.text)

    def test_rounding_is_no_defect(self):
        for against in ("ort", "interp"):
            self.assertEqual(self.verdict(cancelling(), against=against).kind, "unsure")

    def test_a_narrower_type_on_the_way_is_no_defect(self):
        case = in_two_types(TensorProto.FLOAT)
        self.assertEqual(self.verdict(case).kind, "unsure")
        self.assertEqual(self.verdict(case, spoil=["LayerNormalization"]).kind, "wrong")

    def test_how_many_values_are_equal_may_be_a_matter_of_rounding(self):
        for against in ("ort", "interp"):
            found = self.verdict(nearly_equal(), against=against)
            self.assertIn(found.kind, ("ok", "unsure"), found.text)
        found = self.verdict(nearly_equal(), spoil=["Sigmoid", "Unique"], change="value[1:]")
        self.assertEqual(found.kind, "unsure", found.text)

    def test_what_a_transform_leaves_of_zero_is_no_defect(self):
        found = self.verdict(noise_of_a_transform())
        self.assertIn(found.kind, ("ok", "unsure"), found.text)
        found = self.verdict(noise_of_a_transform(), spoil=["NonZero", "DFT"], change="value[:, 1:]")
        self.assertEqual(found.kind, "unsure", found.text)

    def test_a_value_too_few_is_seen(self):
        found = self.verdict(equal_or_not(), spoil=["Unique"], change="value[1:]")
        self.assertEqual(found.kind, "wrong", found.text)
        self.assertIn("instead of", found.text)
        self.assertEqual(self.verdict(nearly_equal(), spoil=["Unique"], change="value[1:]").kind, "wrong")

    def test_values_out_of_range_are_refused(self):
        for against in ("hostile", "guarded"):
            found = self.verdict(chosen_rows(), against=against)
            self.assertEqual(found.kind, "ok", found.text)

    def test_a_program_that_dies_of_them_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dies")
            with open(path, "w") as file:
                file.write("#!/bin/sh\nkill -SEGV $$\n")
            os.chmod(path, 0o700)
            self.assertEqual(Judge(path, [], "hostile").judge(*chosen_rows()).kind, "crash")

    def test_an_access_outside_a_tensor_is_seen(self):
        for at_end, place in ((True, 64), (False, -1)):
            script = f"import ctypes, guarded; m = guarded.Guarded(64, {at_end}); "
            script += f"ctypes.c_uint8.from_address(m.address + {place}).value"
            done = subprocess.run([sys.executable, "-c", script], cwd=HERE)
            self.assertLess(done.returncode, 0)
        room = Guarded(60, True)
        self.assertTrue(room.untouched())
        ctypes.c_uint8.from_address(room.address + 60).value = 1
        self.assertFalse(room.untouched())


if __name__ == "__main__":
    at = sys.argv.index("--program")
    PROGRAM = os.path.abspath(sys.argv[at + 1])
    os.environ.update(environment())
    del sys.argv[at : at + 2]
    unittest.main()
