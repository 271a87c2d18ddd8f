"""Models for verify.sh: verify_files.py FOLDER."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, I32, I64, U8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8


def save(folder, name, nodes, inputs, outputs, constants=()):
    info = lambda v: helper.make_tensor_value_info(*v)
    graph = helper.make_graph(
        nodes,
        name,
        [info(v) for v in inputs],
        [info(v) for v in outputs],
        [numpy_helper.from_array(v, k) for k, v in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, f"{folder}/{name}.onnx")


def main(folder):
    node, rng = helper.make_node, np.random.default_rng(1)
    save(
        folder,
        "scalar",
        [node("ReduceSum", ["x"], ["y"], keepdims=0), node("Mul", ["s", "s"], ["z"])],
        [("x", FLOAT, [3, 4]), ("s", FLOAT, [])],
        [("y", FLOAT, []), ("z", FLOAT, [])],
    )
    weights = lambda *shape: rng.normal(size=shape).astype(np.float32)
    save(
        folder,
        "lengths",
        [
            node("Cast", ["n"], ["n32"], to=I32),
            node("LSTM", ["x", "w", "r", "", "n32"], ["y"], hidden_size=4, direction="bidirectional"),
            node("Gather", ["table", "rows"], ["z"]),
        ],
        [("x", FLOAT, [3, 2, 5]), ("n", I64, [2]), ("table", FLOAT, [2, 4]), ("rows", I64, [6])],
        [("y", FLOAT, [3, 2, 2, 4]), ("z", FLOAT, [6, 4])],
        [("w", weights(2, 16, 5)), ("r", weights(2, 16, 4))],
    )
    save(
        folder,
        "dynamic",
        [node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"])],
        [("x", FLOAT, [40])],
        [("q", U8, [40]), ("scale", FLOAT, []), ("zero", U8, [])],
    )
    save(
        folder,
        "whole",
        [node("Resize", ["x", "", "s"], ["r"], mode="linear"), node("Cast", ["r"], ["y"], to=FLOAT)],
        [("x", U8, [1, 1, 5, 5])],
        [("y", FLOAT, [1, 1, 15, 15])],
        [("s", np.array([1, 1, 3, 3], np.float32))],
    )
    aligned = {"coordinate_transformation_mode": "align_corners", "mode": "linear"}
    save(  # computed when the model is read
        folder,
        "constant",
        [node("Resize", ["c", "", "s"], ["r"], **aligned), node("Add", ["r", "x"], ["y"])],
        [("x", FLOAT, [1, 1, 7, 7])],
        [("y", FLOAT, [1, 1, 7, 7])],
        [
            ("c", np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5) ** 2),
            ("s", np.array([1, 1, 1.5, 1.5], np.float32)),
        ],
    )
    window = {"kernel_shape": [5, 5], "dilations": [3, 2], "strides": [1, 2]}
    save(  # ONNX Runtime makes no row of it, and in its own layout divides by zero
        folder,
        "nothing",
        [node("MaxPool", ["x"], ["y"], auto_pad="SAME_LOWER", **window)],
        [("x", FLOAT, [1, 64, 8, 28])],
        [("y", FLOAT, [1, 64, 8, 14])],
    )
    save(
        folder,
        "padded",
        [
            node("Abs", ["x"], ["a"]),
            node("Neg", ["a"], ["below"]),
            node("Pad", ["below", "pads"], ["p"]),
            node("MaxPool", ["p"], ["y"], kernel_shape=[3, 3]),
        ],
        [("x", FLOAT, [1, 2, 7, 7])],
        [("y", FLOAT, [1, 2, 7, 7])],
        [("pads", np.array([0, 0, 1, 1, 0, 0, 1, 1]))],
    )


main(sys.argv[1])
