"""Models, inputs and comparisons for aarch64.sh.

aarch64_files.py write                    writes bytes.onnx, convolutions and a product of bytes, and
                                          rows.onnx, products of several rows of bytes
aarch64_files.py input MODEL.onnx NAME    writes NAME.npy, NAME.raw and NAME.name for its input
aarch64_files.py compare WANT.npy GOT.raw TOLERANCE
"""

import sys

import numpy as np


class Quantised:
    """A model of quantised layers. Scales are powers of two, so that sums in f32 and in integers
    are the same."""

    def __init__(self):
        from onnx import helper, numpy_helper
        self.rng = np.random.default_rng(5)
        self.nodes, self.weights = [], []
        self.helper, self.from_array = helper, numpy_helper.from_array

    def node(self, operator, inputs, output, **attributes):
        self.nodes.append(self.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(self, name, array):
        self.weights.append(self.from_array(array, name))
        return name

    def scale(self, exponent):
        return self.constant(f"scale{len(self.weights)}", np.float32(2.0**exponent))

    def quantised(self, value, exponent, dtype, zero):
        parameters = [self.scale(exponent),
                      self.constant(f"zero{len(self.weights)}", np.array(zero, dtype))]
        self.node("QuantizeLinear", [value, *parameters], value + ".q")
        return self.node("DequantizeLinear", [value + ".q", *parameters], value + ".d")

    def weight(self, name, shape):
        array = self.rng.integers(-9, 10, shape).astype(np.int8)
        return self.node("DequantizeLinear", [self.constant(name, array), self.scale(-4)],
                         name + ".d")

    def save(self, name, shape, result):
        import onnx
        helper, kind = self.helper, onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes, name, [helper.make_tensor_value_info("x", kind, shape)],
            [helper.make_tensor_value_info("y", kind, result)], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                    ir_version=8), name + ".onnx")
        make_input(name + ".onnx", name)


def write():
    m = Quantised()
    x = m.quantised("x", -3, np.uint8, 113)
    m.node("Conv", [x, m.weight("w1", (16, 8, 3, 3))], "a", pads=[1, 1, 1, 1])
    m.node("Relu", ["a"], "b")
    b = m.quantised("b", 0, np.uint8, 0)
    m.node("Conv", [b, m.weight("w4", (16, 1, 3, 3))], "f", group=16, pads=[1, 1, 1, 1])
    f = m.quantised("f", 1, np.uint8, 121)
    m.node("Conv", [f, m.weight("w2", (24, 16, 1, 1))], "c")
    c = m.quantised("c", 1, np.int8, -3)
    m.node("MaxPool", [c], "d", kernel_shape=[13, 13])
    m.node("Flatten", ["d"], "e")
    e = m.quantised("e", 1, np.int8, -3)
    m.node("MatMul", [e, m.weight("w3", (24, 20))], "y")
    m.save("bytes", [1, 8, 13, 13], [1, 20])

    m = Quantised()
    x = m.quantised("x", -3, np.uint8, 113)
    m.node("MatMul", [x, m.weight("w1", (40, 24))], "a")
    m.node("Relu", ["a"], "b")
    b = m.quantised("b", 0, np.int8, -5)
    m.node("MatMul", [b, m.weight("w2", (24, 28))], "y")
    m.save("rows", [2, 13, 40], [2, 13, 28])


def make_input(model, name):
    import onnx

    graph = onnx.load(model).graph
    known = {w.name for w in graph.initializer}
    value = next(v for v in graph.input if v.name not in known)
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    array = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    np.save(name + ".npy", array)
    array.tofile(name + ".raw")
    with open(name + ".name", "w") as file:
        file.write(value.name)


def compare(want, got, tolerance):
    want = np.load(want)
    got = np.fromfile(got, want.dtype).reshape(want.shape)
    error = np.max(np.abs(got - want)) / max(1.0, np.max(np.abs(want)))
    print(f"largest difference {error:.2e}, limit {tolerance}")
    sys.exit(not error <= float(tolerance))


commands = {"write": write, "input": make_input, "compare": compare}
commands[sys.argv[1]](*sys.argv[2:])
