"""QDQ models for dpu.sh, in the current folder, and checks of what the program wrote.

dpu_qdq_files.py residual NAME.onnx [UNROUNDED]   a QDQ model with a residual addition, all scales powers of two; with
                                              UNROUNDED nothing rounds the second convolution before the addition
dpu_qdq_files.py judged VERIFY.json OPERATOR...   ONNX Runtime judged layers of each operator, and agrees
"""

import collections
import json
import re
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper


class Model:
    def __init__(self):
        self.rng = np.random.default_rng(1)
        self.nodes, self.weights = [], []

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(h.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def constant(self, array):
        name = f"k{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def parameters(self, scale):
        return [self.constant(np.float32(scale)), self.constant(np.int8(0))]

    def rounded(self, value, scale):
        parameters = self.parameters(scale)
        self.node("QuantizeLinear", [value, *parameters], value + "_q")
        return self.node("DequantizeLinear", [value + "_q", *parameters], value + "_r")

    def conv(self, x, output, shape, scale):
        codes = self.constant(self.rng.integers(-127, 128, shape).astype(np.int8))
        w = self.node("DequantizeLinear", [codes, *self.parameters(scale)], output + "_w")
        return self.node("Conv", [x, w], output, pads=[shape[2] // 2] * 4)

    def save(self, path, x, y):
        graph = h.make_graph(self.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, x)],
                             [h.make_tensor_value_info(self.nodes[-1].output[0], T.FLOAT, y)], self.weights)
        model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def residual(path, unrounded=False):
    m = Model()
    first = m.conv(m.rounded("x", 2.0**-5), "first", (8, 4, 3, 3), 2.0**-10)
    short = m.rounded(m.node("Relu", [first], "short"), 2.0**-5)
    long = m.conv(short, "long", (8, 8, 3, 3), 2.0**-10)
    if not unrounded:
        long = m.rounded(long, 2.0**-4)
    total = m.node("Relu", [m.node("Add", [long, short], "sum")], "total")
    m.rounded(m.conv(m.rounded(total, 2.0**-4), "last", (8, 8, 1, 1), 2.0**-9), 2.0**-3)
    m.save(path, [1, 4, 8, 8], [1, 8, 8, 8])


def judged(path, *operators):
    with open(path) as file:
        report = json.load(file)
    rows = [row for row in report["rows"] if row["against"] == "ort"]
    seen = collections.Counter(re.search(r"\((\w+)\)", row["node"]).group(1) for row in rows)
    print(dict(seen), [row["output"] for row in rows if not row["ok"]])
    # One unit is allowed where floats do not hold every integer on the way: long LeakyRelu, large averages.
    exact = {"EltwiseFixed", "MaxPool", "Concat", "Resize"}
    strict = all(row["limit"] == 0 for row in rows if re.search(r"\((\w+)\)", row["node"]).group(1) in exact)
    return report["ok"] and strict and all(seen[operator] > 0 for operator in operators)


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    sys.exit({"residual": residual, "judged": judged}[command](*words) is False)
