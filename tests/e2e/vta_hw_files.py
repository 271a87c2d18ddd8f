"""Files for vta_hw.sh, in the current folder, and checks of what the program wrote.

vta_hw_files.py write               models and samples
vta_hw_files.py flip FILE POSITION  changes one byte
vta_hw_files.py loss VERIFY.json    what quantisation costs, next to sums that are known
vta_hw_files.py top1 VERIFY.json    the count of equal first classes, from outputs of single runs
vta_hw_files.py ratios RUN.json     no layer takes less time than the bound of its cycles
vta_hw_files.py overlap TRACE.json  a load and a GEMM at the same time, each on its own track
"""

import json
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLOSE = 12  # samples of close.onnx


def save(path, nodes, weights, size):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, size, size])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs, [output], name=output, **attributes)


def write():
    rng = np.random.default_rng(1)

    def weight(*shape):
        return (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)

    same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    save("residual.onnx",
         [node("Conv", ["x", "w"], "c1", **same), node("Relu", ["c1"], "r1"),
          node("Conv", ["r1", "v"], "c2", **same), node("Add", ["c2", "x"], "sum"),
          node("Relu", ["sum"], "y")],
         {"w": weight(8, 8, 3, 3), "v": weight(8, 8, 3, 3)}, 14)  # fmt: skip
    save("depthwise.onnx",
         [node("Conv", ["x", "w"], "c1", group=8, **same), node("Relu", ["c1"], "r1"),
          node("Conv", ["r1", "v"], "y", kernel_shape=[1, 1])],
         {"w": weight(8, 1, 3, 3), "v": weight(16, 8, 1, 1)}, 10)  # fmt: skip
    save("average.onnx",
         [node("Conv", ["x", "w"], "c1", **same), node("Relu", ["c1"], "r1"),
          node("GlobalAveragePool", ["r1"], "mean"), node("Flatten", ["mean"], "flat"),
          node("Gemm", ["flat", "v"], "y", transB=1)],
         {"w": weight(8, 8, 3, 3), "v": weight(10, 8)}, 8)  # fmt: skip
    for name, size in (("residual", 14), ("depthwise", 10), ("average", 8)):
        np.savez(f"{name}.npz", x=rng.standard_normal((6, 8, size, size)).astype(np.float32))
    np.savez("zeros.npz", x=np.zeros((2, 8, 14, 14), np.float32))
    # Classes so close that 8 bits often change which is first.
    classes = weight(1, 8) + 0.001 * weight(10, 8)
    save("close.onnx",
         [node("Conv", ["x", "w"], "c1", **same), node("Relu", ["c1"], "r1"),
          node("GlobalAveragePool", ["r1"], "mean"), node("Flatten", ["mean"], "flat"),
          node("Gemm", ["flat", "v"], "y", transB=1)],
         {"w": weight(8, 8, 3, 3), "v": classes.astype(np.float32)}, 8)  # fmt: skip
    close = rng.standard_normal((CLOSE, 8, 8, 8)).astype(np.float32)
    np.savez("close.npz", x=close)
    for i in range(CLOSE):
        np.save(f"close{i}.npy", close[i : i + 1])


def flip(path, position):
    with open(path, "r+b") as file:
        file.seek(int(position))
        byte = file.read(1)[0]
        file.seek(int(position))
        file.write(bytes([byte ^ 1]))


def loss(path):
    document = json.load(open(path))["loss"][0]
    assert document["samples"] == 6, document
    (output,) = document["outputs"]
    assert output["name"] == "y" and 15 < output["sqnr_db"] < 80, output
    assert output["least_db"] <= output["sqnr_db"], output
    top = output["top1"]
    assert top["rows"] == 6 and top["agree"] >= 4 and top["clear"] == top["clear_agree"], top
    names = [layer["name"] for layer in document["layers"]]
    assert "x" in names and "r1" in names, names
    assert all(15 < layer["sqnr_db"] <= 200 for layer in document["layers"]), document["layers"]


def top1(path):
    def first(name, i):
        return int(np.argmax(np.load(f"{name}{i}.npy").ravel()))

    agree = sum(first("f32_", i) == first("i8_", i) for i in range(CLOSE))
    assert 0 < agree < CLOSE, f"{agree} of {CLOSE}: a test of nothing"
    (output,) = json.load(open(path))["loss"][0]["outputs"]
    top = output["top1"]
    assert (top["rows"], top["agree"]) == (CLOSE, agree), (top, agree)


def ratios(path):
    for launch in json.load(open(path))["launches"]:
        done = 0
        for layer in launch["layers"]:
            assert layer["bound_within"] <= layer["end"] - layer["from"], layer
            assert layer["from"] == min(done, layer["end"]), layer
            done = max(done, layer["end"])
        assert done <= launch["cycles"]


def overlap(path):
    events = json.load(open(path))["traceEvents"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert set(tracks.values()) == {"load", "compute", "store", "layers"}, tracks
    spans = {}
    for event in events:
        if event["ph"] == "X" and event["cat"] == "insn":
            key = tracks[event["tid"]], event["name"].split()[0]
            spans.setdefault(key, []).append((event["ts"], event["ts"] + event["dur"]))
    loads, products = spans["load", "LOAD"], spans["compute", "GEMM"]
    assert any(a < d and c < b for a, b in loads for c, d in products), (loads, products)
    for track in spans.values():  # one track shows one thing at a time
        track.sort()
        assert all(first[1] <= second[0] for first, second in zip(track, track[1:])), track


if __name__ == "__main__":
    {"write": write, "flip": flip, "loss": loss, "top1": top1, "ratios": ratios, "overlap": overlap}[
        sys.argv[1]](*sys.argv[2:])
