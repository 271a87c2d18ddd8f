"""Files for cli.sh, all in the current folder, and checks of what the program wrote.

cli_files.py write                    models, arrays, expressions and workloads, broken ones too
cli_files.py damage PACKAGE           copies with a flipped byte or a missing end
cli_files.py product A.npy B.npy D.npy    D must be max(A @ B, 0)
cli_files.py json VERB.NAME...        each file must be one document of the verb's schema
"""

import json
import os
import sys
import tarfile

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper


def value(name, shape, dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


def weight(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model(path, nodes, inputs, outputs, weights=(), opset=17, domains=()):
    graph = h.make_graph(nodes, "g", inputs, outputs, list(weights))
    opsets = [h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in domains]
    made = h.make_model(graph, opset_imports=opsets, ir_version=8)
    data = made.SerializeToString()
    with open(path, "wb") as file:
        file.write(data)
    return data


def broken():
    x, y = value("x", [2, 3]), value("y", [2, 3])
    relu = h.make_node("Relu", ["x"], ["y"], name="act")
    data = model("good.onnx", [relu], [x], [y])
    files = {
        "empty.onnx": b"",
        "truncated.onnx": data[: len(data) * 2 // 3],
        "corrupt.onnx": b"\xff" * 64 + data,
        "text.onnx": b"this is a letter, not a model\n" * 9,
    }
    for name, content in files.items():
        with open(name, "wb") as file:
            file.write(content)
    huge = [1 << 40, 1 << 40]
    model("huge.onnx", [relu], [value("x", huge)], [value("y", huge)])
    cycle = [
        h.make_node("Add", ["x", "b"], ["a"], name="first"),
        h.make_node("Relu", ["a"], ["b"], name="second"),
        h.make_node("Neg", ["b"], ["y"], name="last"),
    ]
    model("cycle.onnx", cycle, [x], [y])
    model("operator.onnx", [h.make_node("Frobnicate", ["x"], ["y"], name="odd")], [x], [y])
    model("opset.onnx", [relu], [x], [y], opset=999)
    # No program may know the element type 77.
    typed = onnx.load("good.onnx")
    typed.graph.input[0].type.tensor_type.elem_type = 77
    with open("dtype.onnx", "wb") as file:
        file.write(typed.SerializeToString())
    model(
        "shapes.onnx",
        [h.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        [x],
        [value("y", None)],
        [weight("w", np.ones((5, 4), np.float32))],
    )
    several = [
        h.make_node("Frobnicate", ["x"], ["a"], name="unknown_one"),
        h.make_node("MatMul", ["x", "w"], ["b"], name="misfit"),
        h.make_node("Gronk", ["x"], ["c"], name="unknown_two"),
        h.make_node("Relu", ["nowhere"], ["d"], name="dangling"),
    ]
    outputs = [value(n, None) for n in "abcd"]
    model("several.onnx", several, [x], outputs, [weight("w", np.ones((5, 4), np.float32))])


def loops():
    """What a loop or a sequence must not leave to the run."""
    x, y = value("x", [2]), value("y", None)
    counters = [value("i", [], T.INT64), value("go", [], T.BOOL), value("s", [2])]
    nodes = [h.make_node("Identity", ["go"], ["on"]), h.make_node("Add", ["s", "x"], ["t"])]
    body = h.make_graph(nodes, "body", counters, [value("on", [], T.BOOL), value("t", [2])])
    model(
        "loops.onnx",
        [
            h.make_node("Loop", ["n", "", "x"], ["a"], name="by_input", body=body),
            h.make_node("Loop", ["many", "", "x"], ["b"], name="long", body=body),
            h.make_node("SplitToSequence", ["x"], ["parts"], name="cut"),
            h.make_node("SequenceAt", ["parts", "n"], ["c"], name="pick"),
            h.make_node("Relu", ["parts"], ["d"], name="act"),
        ],
        [x, value("n", [], T.INT64)],
        [value(name, None) for name in ("a", "b", "c", "d", "parts")],
        [weight("many", np.array(100000, np.int64))],
    )


def odd():
    x, y = value("x", [2, 3]), value("y", [2, 3])
    nan = np.ones((2, 3), np.float32)
    nan[1, 1] = np.nan
    add = h.make_node("Add", ["x", "w"], ["y"], name="sum")
    model("nan.onnx", [add], [x], [y], [weight("w", nan)])
    outside = weight("w", np.ones((2, 3), np.float32))
    outside.ClearField("raw_data")
    outside.data_location = T.EXTERNAL
    entry = outside.external_data.add()
    entry.key, entry.value = "location", "nowhere.bin"
    model("external.onnx", [add], [x], [y], [outside])
    two = [value("x", ["batch", 4]), value("n", [2], T.INT64)]
    nodes = [
        h.make_node("Relu", ["x"], ["r"], name="act"),
        h.make_node("Reshape", ["r", "n"], ["y"], name="fold"),
    ]
    model("symbolic.onnx", nodes, two, [value("y", None)])
    views = [
        h.make_node("Reshape", ["x", "flat"], ["v"], name="view"),
        h.make_node("Tanh", ["v"], ["y"], name="act"),
    ]
    flat = weight("flat", np.array([6], np.int64))
    model("view.onnx", views, [x], [value("y", [6])], [flat])
    model("batch.onnx", [nodes[0]], [two[0]], [value("r", ["batch", 4])])


def arrays():
    np.save("target.npy", np.array([2, 6], np.int64))
    np.save("fits.npy", np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32))
    np.save("a.npy", np.sin(np.arange(13 * 7, dtype=np.float32)).reshape(13, 7))
    np.save("b.npy", np.cos(np.arange(7 * 24, dtype=np.float32)).reshape(7, 24))
    np.save("wrong_shape.npy", np.ones((3, 2), np.float32))
    np.save("wrong_dtype.npy", np.ones((2, 3), np.int32))
    with open("cut.npy", "wb") as file:
        file.write(open("fits.npy", "rb").read()[:-5])
    case = {
        "id": "tiny/gemm/n16",
        "suite": "tiny/gemm",
        "operator": "gemm",
        "params": {"batch": 1, "m": 16, "n": 8, "k": 12},
        "dtype": "float32",
        "macs": 16 * 8 * 12,
        "flops": 2 * 16 * 8 * 12,
        "input_shapes": [[16, 12], [12, 8]],
        "output_shape": [16, 8],
        "provenance": "representative",
        "source": "written for this test",
    }
    with open("workload.json", "w") as file:
        json.dump({"schema_version": 1, "cases": [case]}, file)
    with open("workload_bad.json", "w") as file:
        json.dump({"schema_version": 1, "cases": [{"id": "a", "suite": "b"}]}, file)
    with open("gemm.tw", "w") as file:
        file.write(
            "tensor gemm(A: f32[m, k], const B: f32[k, n]) where m = 13, n = 24, k = 7 {\n"
            "  C[i in m, j in n] = sum(l in k) A[i, l] * B[l, j]\n"
            "  D[i in m, j in n] = max(C[i, j], 0)\n"
            "  return D\n"
            "}\n"
        )
    with open("bad.tw", "w") as file:
        file.write("tensor gemm(A: f32[4]) {\n  B[i in 5] = A[i]\n  return B\n}\n")


def flip(content, at, path):
    content = bytearray(content)
    content[at] ^= 0x10
    with open(path, "wb") as file:
        file.write(content)


def damage(package):
    with open(package, "rb") as file:
        content = file.read()
    with tarfile.open(package) as tar:
        members = {m.name: m for m in tar.getmembers()}
    middle = lambda m: m.offset_data + m.size // 2
    code = next(m for name, m in members.items() if name.startswith("code/") and m.size)
    flip(content, middle(code), "flipped.twm")
    flip(content, middle(members["manifest.json"]), "manifest.twm")
    flip(content, middle(members["weights.bin"]), "weights.twm")
    for name, size in (("cut.twm", len(content) // 2), ("head.twm", 300)):
        with open(name, "wb") as file:
            file.write(content[:size])
    with open("model.twm", "wb") as file, open("good.onnx", "rb") as model_file:
        file.write(model_file.read())


def product(a, b, d):
    want = np.maximum(np.load(a).astype(np.float64) @ np.load(b), 0)
    error = np.abs(np.load(d) - want).max() / want.max()
    if not error < 1e-5:
        sys.exit(f"relative error {error}")


def check_json(*paths):
    for path in paths:
        with open(path) as file:
            document = json.load(file)
        verb = os.path.basename(path).split(".")[0]
        if document.get("schema") != "tilewright." + verb or document.get("version") != 1:
            sys.exit(f"{path} has schema {document.get('schema')}")


def write():
    broken()
    loops()
    odd()
    arrays()


verbs = {"write": write, "damage": damage, "product": product, "json": check_json}
verbs[sys.argv[1]](*sys.argv[2:])
