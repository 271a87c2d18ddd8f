"""Files for vta.sh, all in the current folder, and checks of what the program wrote.

vta_files.py write                      models and calibration files, broken ones too
vta_files.py qdq NAME.onnx [PER_CHANNEL]  a network quantised by onnxruntime.quantization
vta_files.py reference MODEL.onnx X.npy Y.npy   ONNX Runtime's output, graph optimisation off
vta_files.py exact VERIFY.json          every row of `verify --json` must have no difference at all
vta_files.py cut MODEL.onnx VALUE OUT.onnx      the part of a model that makes a value
vta_files.py near MODEL.onnx GOT.npy WANT.npy   at most 1 unit of the output's scale, on at most 1 %
vta_files.py differs A.npy B.npy
"""

import json
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper


def value(name, shape, dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


def save(path, nodes, inputs, outputs, weights=()):
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in weights]
    graph = h.make_graph(nodes, "g", inputs, outputs, constants)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def normal(rng, shape, deviation=None):
    fan = int(np.prod(shape[1:])) or 1
    return (rng.standard_normal(shape) * (deviation or np.sqrt(2 / fan))).astype(np.float32)


def node(op, inputs, output, **attributes):
    return h.make_node(op, inputs, [output], name=output, **attributes)


def same(kernel=3, stride=1):
    pad = kernel // 2
    return {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}


def write():
    rng = np.random.default_rng(1)
    x, y = value("x", [1, 8, 10, 10]), value("y", None)
    weights = [("w", normal(rng, (8, 8, 3, 3))), ("v", normal(rng, (8, 8, 3, 3)))]
    first = node("Conv", ["x", "w"], "first", **same())
    save("good.onnx", [first, node("Relu", ["first"], "y")], [x], [value("y", [1, 8, 10, 10])],
         weights[:1])
    # Two operators with no integer form, each between convolutions.
    odd = [first, node("Sin", ["first"], "wave"), node("Conv", ["wave", "v"], "second", **same()),
           node("Erf", ["second"], "bell"), node("Conv", ["bell", "w"], "y", **same())]
    save("odd.onnx", odd, [x], [value("y", [1, 8, 10, 10])], weights)
    two = [node("Add", ["a", "b"], "sum"), node("Conv", ["sum", "w"], "y", **same())]
    save("two.onnx", two, [value("a", [1, 8, 6, 6]), value("b", [1, 8, 6, 6])],
         [value("y", [1, 8, 6, 6])], weights[:1])
    sample = normal(rng, (4, 8, 10, 10), 1)
    np.savez("calib.npz", x=sample)
    np.savez_compressed("packed.npz", x=sample[:, None])
    np.savez("name.npz", xx=sample)
    np.savez("shape.npz", x=sample[:, :, :9])
    np.savez("dtype.npz", x=sample.astype(np.float64))
    np.savez("none.npz", x=sample[:0])
    np.savez("nan.npz", x=np.full_like(sample, np.nan))
    np.savez("counts.npz", a=normal(rng, (3, 8, 6, 6), 1), b=normal(rng, (2, 8, 6, 6), 1))
    np.savez("pair.npz", a=normal(rng, (3, 8, 6, 6), 1), b=normal(rng, (3, 8, 6, 6), 1))
    with open("calib.npz", "rb") as file:
        whole = file.read()
    with open("cut.npz", "wb") as file:
        file.write(whole[: len(whole) // 2])
    with open("text.npz", "w") as file:
        file.write("these are no arrays\n")
    with open("huge.toml", "w") as file:
        file.write("log_inp_buff = 16\n")
    np.save("x.npy", sample[:1])


class Samples:
    """Calibration data as onnxruntime.quantization wants it."""

    def __init__(self, name, shape, count):
        rng = np.random.default_rng(2)
        self.left = [{name: normal(rng, shape, 1)} for _ in range(count)]

    def get_next(self):
        return self.left.pop() if self.left else None


def qdq(path, per_channel):
    from onnxruntime import quantization as q

    rng = np.random.default_rng(3)
    nodes = [
        node("Conv", ["x", "w0", "b0"], "c0", **same(3, 2)), node("Relu", ["c0"], "r0"),
        node("MaxPool", ["r0"], "p0", **same(3, 1)),
        node("Conv", ["p0", "w1", "b1"], "c1", **same()), node("Relu", ["c1"], "r1"),
        node("Conv", ["r1", "w2", "b2"], "c2", **same()), node("Add", ["c2", "p0"], "sum"),
        node("Relu", ["sum"], "r2"), node("Conv", ["r2", "w3", "b3"], "y", **same(1, 1)),
    ]  # fmt: skip
    shapes = [(20, 3, 3, 3), (20, 20, 3, 3), (20, 20, 3, 3), (40, 20, 1, 1)]
    weights = []
    for i, shape in enumerate(shapes):
        spread = np.exp2(rng.uniform(-1, 1, (shape[0], 1, 1, 1))).astype(np.float32)
        weights += [(f"w{i}", normal(rng, shape) * spread), (f"b{i}", normal(rng, shape[:1], 0.2))]
    save("float.onnx", nodes, [value("x", [1, 3, 40, 36])], [value("y", [1, 40, 20, 18])], weights)
    q.quantize_static(
        "float.onnx", path, Samples("x", (1, 3, 40, 36), 6), quant_format=q.QuantFormat.QDQ,
        activation_type=q.QuantType.QInt8, weight_type=q.QuantType.QInt8, per_channel=per_channel,
        extra_options={"ActivationSymmetric": True, "WeightSymmetric": True},
    )  # fmt: skip
    np.save("picture.npy", normal(np.random.default_rng(4), (1, 3, 40, 36), 1))


def reference(path, x, y):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    np.save(y, session.run(None, {session.get_inputs()[0].name: np.load(x)})[0])


def cut(path, output, to):
    onnx.utils.extract_model(path, to, [onnx.load(path).graph.input[0].name], [output])
    return True


def exact(path):
    with open(path) as file:
        rows = json.load(file)["rows"]
    wrong = [r for r in rows if r["max_abs"] != 0 or not r["ok"]]
    for row in wrong:
        print(f"{row['output']} against {row['against']}: {row['max_abs']} ({row['state']})")
    print(f"{len(rows)} rows, {len(wrong)} differ")
    return bool(rows) and not wrong


def near(model, got, want):
    """The scale is that of the DequantizeLinear that makes the output."""
    graph = onnx.load(model).graph
    last = next(n for n in graph.node if graph.output[0].name in n.output)
    constants = {w.name: numpy_helper.to_array(w) for w in graph.initializer}
    got, want = np.load(got), np.load(want)
    units = np.abs(got - want) / float(constants[last.input[1]])
    off = float((units > 0.5).mean())
    print(f"{units.size} elements, {len(np.unique(want))} values, worst {units.max():.2f} units, "
          f"{100 * off:.3f} % off")
    return got.shape == want.shape and len(np.unique(want)) > 50 and units.max() < 1.5 and off < 0.01


def main(arguments):
    verb, rest = arguments[0], arguments[1:]
    if verb == "write":
        write()
    elif verb == "qdq":
        qdq(rest[0], len(rest) > 1)
    elif verb == "reference":
        reference(*rest)
    elif verb == "exact":
        return exact(*rest)
    elif verb == "cut":
        return cut(*rest)
    elif verb == "near":
        return near(*rest)
    elif verb == "differs":
        return not np.array_equal(np.load(rest[0]), np.load(rest[1]))
    return True


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
