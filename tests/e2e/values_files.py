"""Models and inputs for values.sh: what is decided by values at run time.

values_files.py FOLDER    writes NAME.onnx, and NAME.INPUT.npy where a model's inputs obey rules
"""

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

folder = sys.argv[1]
rng = np.random.default_rng(5)


def save(name, nodes, inputs, outputs, weights=None, values=None):
    graph = h.make_graph(
        nodes,
        name,
        [h.make_tensor_value_info(n, t, s) for n, t, s in inputs],
        [h.make_tensor_value_info(n, t, s) for n, t, s in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (weights or {}).items()],
    )
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, os.path.join(folder, name + ".onnx"))
    for key, value in (values or {}).items():
        np.save(os.path.join(folder, f"{name}.{key}.npy"), value)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


# Operators of the host behind another shape of an input.
save(
    "views",
    [
        h.make_node("Reshape", ["x", "s"], ["wide"]),
        h.make_node("NonZero", ["wide"], ["where"]),
        h.make_node("TopK", ["wide", "k"], ["best", "at"]),
        h.make_node("Flatten", ["x"], ["flat"], axis=0),
        h.make_node("Unique", ["flat"], ["values"]),
        h.make_node("Compress", ["wide", "keep"], ["kept"], axis=1),
        h.make_node("ScatterND", ["wide", "rows", "u"], ["written"]),
        h.make_node("ScatterElements", ["wide", "places", "v"], ["placed"], axis=1),
        h.make_node("Unsqueeze", ["n", "axes"], ["scores"]),
        h.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou"], ["chosen"]),
    ],
    [("x", T.FLOAT, [4, 6]), ("n", T.FLOAT, [10]), ("boxes", T.FLOAT, [1, 10, 4])],
    [
        ("where", T.INT64, [2, None]),
        ("best", T.FLOAT, [2, 3]),
        ("at", T.INT64, [2, 3]),
        ("values", T.FLOAT, [None]),
        ("kept", T.FLOAT, [2, None]),
        ("written", T.FLOAT, [2, 12]),
        ("placed", T.FLOAT, [2, 12]),
        ("chosen", T.INT64, [None, 3]),
    ],
    {
        "s": np.array([2, 12]),
        "k": np.array([3]),
        "keep": np.array([True, False, True]),
        "rows": np.array([[1]]),
        "u": floats(1, 12),
        "places": np.array([[3], [0]]),
        "v": floats(2, 1),
        "axes": np.array([0, 1]),
        "most": np.array([5]),
        "iou": np.array([0.5], np.float32),
    },
)

# The head of a detector: the boxes that were chosen, their classes and scores.
save(
    "detector",
    [
        h.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["chosen"]),
        h.make_node("Gather", ["chosen", "two"], ["column"], axis=1),
        h.make_node("Squeeze", ["column", "one"], ["box"]),
        h.make_node("Slice", ["chosen", "one", "two", "one"], ["class"]),
        h.make_node("Squeeze", ["boxes", "zero"], ["all"]),
        h.make_node("Gather", ["all", "box"], ["corners"]),
        h.make_node("Slice", ["chosen", "zero", "one", "one"], ["first"]),
        h.make_node("Concat", ["first", "class", "column"], ["chosen3"], axis=1),
        h.make_node("GatherND", ["scores", "chosen3"], ["score"]),
        h.make_node("Cast", ["class"], ["number"], to=T.FLOAT),
        h.make_node("Unsqueeze", ["score", "one"], ["standing"]),
        h.make_node("Mul", ["standing", "number"], ["product"]),
        h.make_node("Sigmoid", ["product"], ["soft"]),
        h.make_node("Concat", ["corners", "number", "soft"], ["found"], axis=1),
    ],
    [("boxes", T.FLOAT, [1, 20, 4]), ("scores", T.FLOAT, [1, 3, 20])],
    [("found", T.FLOAT, [None, 6])],
    {
        "most": np.array([10]),
        "iou": np.array(0.5, np.float32),
        "least": np.array(0.3, np.float32),
        "zero": np.array([0]),
        "one": np.array([1]),
        "two": np.array([2]),
    },
)

# What the run would have to find out too late.
save(
    "unique",
    [
        h.make_node("NonZero", ["x"], ["where"]),
        h.make_node("Unique", ["where"], ["y"], axis=0),
    ],
    [("x", T.BOOL, [2, 6, 3])],
    [("y", T.INT64, [None, None])],
)
save(
    "sum",
    [
        h.make_node("Compress", ["x", "a"], ["left"], axis=0),
        h.make_node("Compress", ["x", "b"], ["right"], axis=0),
        h.make_node("Add", ["left", "right"], ["y"]),
    ],
    [("x", T.FLOAT, [4]), ("a", T.BOOL, [4]), ("b", T.BOOL, [4])],
    [("y", T.FLOAT, [None])],
)
save(
    "scatter",
    [
        h.make_node("Compress", ["x", "c"], ["some"], axis=0),
        h.make_node("ScatterND", ["some", "i", "u"], ["y"]),
    ],
    [("x", T.FLOAT, [4]), ("c", T.BOOL, [4]), ("i", T.INT64, [1, 1]), ("u", T.FLOAT, [1])],
    [("y", T.FLOAT, [None])],
    values={
        "c": np.array([True, False, True, True]),
        "i": np.array([[-1]]),
        "bad": np.array([[3]]),
    },
)

# An extent of the run inside a kernel.
save(
    "inside",
    [
        h.make_node("NonZero", ["x"], ["where"]),
        h.make_node("Gather", ["where", "rows"], ["some"]),
        h.make_node("Reshape", ["some", "shape"], ["y"]),
    ],
    [("x", T.INT32, [6, 1])],
    [("y", T.INT64, [2, None, 1])],
    {"rows": np.array([-1, 0]), "shape": np.array([2, -1, 1])},
)

# Recurrences with lengths.
for op, gates in ("LSTM", 4), ("GRU", 3), ("RNN", 1):
    save(
        op,
        [h.make_node(op, ["x", "w", "r", "", "n"], ["y", "h"], hidden_size=5, direction="bidirectional")],
        [("x", T.FLOAT, [6, 4, 3]), ("n", T.INT32, [4])],
        [("y", T.FLOAT, [6, 2, 4, 5]), ("h", T.FLOAT, [2, 4, 5])],
        {"w": floats(2, gates * 5, 3), "r": floats(2, gates * 5, 5)},
        {
            "n": np.array([6, 1, 3, 2], np.int32),
            "huge": np.array([6, 1, 1000, 2], np.int32),
            "negative": np.array([-5, 1, 3, 2], np.int32),
        },
    )

# Indices that are an input.
save(
    "taken",
    [h.make_node("GatherND", ["x", "i"], ["g"], batch_dims=1), h.make_node("Div", ["n", "d"], ["q"])],
    [("x", T.FLOAT, [2, 3, 4]), ("i", T.INT64, [2, 5, 1]), ("n", T.INT32, [9]), ("d", T.INT32, [9])],
    [("g", T.FLOAT, None), ("q", T.INT32, None)],
)

# A detector in two stages, as exporters write them: at most 12 of the best boxes that score at all, those of them that
# do not overlap, what the image shows there, and of that the classes that are likely.
def branch(name, nodes, output, kind=T.INT64):
    return h.make_graph(nodes, name, [], [h.make_tensor_value_info(output, kind, [None])])


none = branch("none", [h.make_node("Constant", [], ["no_rows"], value=numpy_helper.from_array(np.zeros(0, np.int64)))],
              "no_rows")  # fmt: skip
some = branch(
    "some",
    [
        h.make_node("ReduceMax", ["near"], ["furthest"], keepdims=0),
        h.make_node("Mul", ["near", "furthest"], ["moved"]),
        h.make_node("Unsqueeze", ["moved", "zero"], ["batch"]),
        h.make_node("Unsqueeze", ["best", "zero_one"], ["standing"]),
        h.make_node("NonMaxSuppression", ["batch", "standing", "many", "overlap"], ["chosen"]),
        h.make_node("Gather", ["chosen", "two"], ["column"], axis=1),
        h.make_node("Squeeze", ["column", "one"], ["alone"]),
    ],
    "alone",
)
boxes = np.sort(rng.random((60, 2, 2)).astype(np.float32) * 24, axis=1)
boxes[:, 1] += 2
save(
    "stages",
    [
        h.make_node("Greater", ["scores", "least"], ["good"]),
        h.make_node("NonZero", ["good"], ["places"]),
        h.make_node("Squeeze", ["places", "zero"], ["rows"]),
        h.make_node("Gather", ["scores", "rows"], ["kept"]),
        h.make_node("Gather", ["boxes", "rows"], ["corners"]),
        h.make_node("Shape", ["kept"], ["found"]),
        h.make_node("Concat", ["twelve", "found"], ["both"], axis=0),
        h.make_node("ReduceMin", ["both"], ["count"], keepdims=1),
        h.make_node("TopK", ["kept", "count"], ["best", "order"], axis=0),
        h.make_node("Gather", ["corners", "order"], ["near"]),
        h.make_node("Size", ["near"], ["size"]),
        h.make_node("Equal", ["size", "nothing"], ["empty"]),
        h.make_node("If", ["empty"], ["keep"], then_branch=none, else_branch=some),
        h.make_node("Slice", ["keep", "zero", "eight"], ["first"]),
        h.make_node("Gather", ["near", "first"], ["regions"]),
        h.make_node("Shape", ["first"], ["number"]),
        h.make_node("ConstantOfShape", ["number"], ["images"], value=h.make_tensor("v", T.INT64, [1], [0])),
        h.make_node(
            "RoiAlign", ["x", "regions", "images"], ["shown"], output_height=3, output_width=3, sampling_ratio=2,
            spatial_scale=0.5,
        ),  # fmt: skip
        h.make_node("Flatten", ["shown"], ["flat"]),
        h.make_node("Gemm", ["flat", "w", "bias"], ["hidden"]),
        h.make_node("Relu", ["hidden"], ["active"]),
        h.make_node("Gemm", ["active", "v", "u"], ["logits"]),
        h.make_node("Softmax", ["logits"], ["classes"], axis=1),
        h.make_node("Reshape", ["classes", "minus"], ["each"]),
        h.make_node("Greater", ["each", "likely"], ["sure"]),
        h.make_node("NonZero", ["sure"], ["at"]),
        h.make_node("Squeeze", ["at", "zero"], ["which"]),
        h.make_node("Gather", ["each", "which"], ["probability"]),
        h.make_node("Mod", ["which", "classes_of_box"], ["class"]),
        h.make_node("Div", ["which", "classes_of_box"], ["box"]),
        h.make_node("Gather", ["regions", "box"], ["result"]),
    ],
    [("scores", T.FLOAT, [60]), ("boxes", T.FLOAT, [60, 4]), ("x", T.FLOAT, [1, 6, 14, 14])],
    [("result", T.FLOAT, [None, 4]), ("class", T.INT64, [None]), ("probability", T.FLOAT, [None])],
    {
        "least": np.float32(0.4),
        "likely": np.float32(0.25),
        "overlap": np.array([0.5], np.float32),
        "zero": np.array([0]),
        "one": np.array([1]),
        "two": np.array([2]),
        "zero_one": np.array([0, 1]),
        "eight": np.array([8]),
        "twelve": np.array([12]),
        "many": np.array([1000]),
        "minus": np.array([-1]),
        "nothing": np.array(0),
        "classes_of_box": np.array(4),
        "w": floats(54, 16),
        "bias": floats(16),
        "v": floats(16, 4),
        "u": floats(4),
    },
    {
        "scores": rng.random(60).astype(np.float32),
        "none": np.zeros(60, np.float32),
        "boxes": boxes.reshape(60, 4),
        "x": floats(1, 6, 14, 14),
    },
)

# The first of what was found: nothing is, so that only one branch may be taken.
first = h.make_graph(
    [h.make_node("Gather", ["some", "front"], ["a"])], "first", [], [h.make_tensor_value_info("a", T.FLOAT, [1])]
)
zero = h.make_graph(
    [h.make_node("Constant", [], ["b"], value=numpy_helper.from_array(np.zeros(1, np.float32)))],
    "zero",
    [],
    [h.make_tensor_value_info("b", T.FLOAT, [1])],
)
save(
    "branch",
    [
        h.make_node("Compress", ["x", "c"], ["some"], axis=0),
        h.make_node("If", ["taken"], ["y"], then_branch=first, else_branch=zero),
    ],
    [("x", T.FLOAT, [4]), ("c", T.BOOL, [4]), ("taken", T.BOOL, [])],
    [("y", T.FLOAT, [1])],
    {"front": np.array([0])},
    {"c": np.zeros(4, bool), "no": np.array(False), "yes": np.array(True)},
)
body = h.make_graph(
    [h.make_node("Identity", ["go"], ["on"]), h.make_node("Add", ["s", "s"], ["t"])],
    "body",
    [
        h.make_tensor_value_info("i", T.INT64, []),
        h.make_tensor_value_info("go", T.BOOL, []),
        h.make_tensor_value_info("s", T.FLOAT, [2]),
    ],
    [h.make_tensor_value_info("on", T.BOOL, []), h.make_tensor_value_info("t", T.FLOAT, [2])],
)
save(
    "loop",
    [h.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
    [("n", T.INT64, []), ("x", T.FLOAT, [2])],
    [("y", T.FLOAT, [2])],
)
