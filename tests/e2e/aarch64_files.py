"""Models, inputs and comparisons for aarch64.sh.

aarch64_files.py write                    writes bytes.onnx: convolutions and a product of bytes
aarch64_files.py input MODEL.onnx NAME    writes NAME.npy, NAME.raw and NAME.name for its input
aarch64_files.py compare WANT.npy GOT.raw TOLERANCE
"""

import sys

import numpy as np


def write():
    """Scales are powers of two, so that sums in f32 and in integers are the same."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(5)
    nodes, weights = [], []

    def constant(name, array):
        weights.append(numpy_helper.from_array(array, name))
        return name

    def scale(exponent):
        return constant(f"scale{len(weights)}", np.float32(2.0**exponent))

    def quantised(value, exponent, dtype, zero):
        parameters = [scale(exponent), constant(f"zero{len(weights)}", np.array(zero, dtype))]
        nodes.append(helper.make_node("QuantizeLinear", [value, *parameters], [value + ".q"]))
        nodes.append(helper.make_node("DequantizeLinear", [value + ".q", *parameters], [value + ".d"]))
        return value + ".d"

    def weight(name, shape):
        array = rng.integers(-9, 10, shape).astype(np.int8)
        nodes.append(helper.make_node("DequantizeLinear", [constant(name, array), scale(-4)],
                                      [name + ".d"]))
        return name + ".d"

    x = quantised("x", -3, np.uint8, 113)
    nodes.append(helper.make_node("Conv", [x, weight("w1", (16, 8, 3, 3))], ["a"], pads=[1, 1, 1, 1]))
    nodes.append(helper.make_node("Relu", ["a"], ["b"]))
    b = quantised("b", 0, np.uint8, 0)
    nodes.append(helper.make_node("Conv", [b, weight("w4", (16, 1, 3, 3))], ["f"], group=16,
                                  pads=[1, 1, 1, 1]))
    f = quantised("f", 1, np.uint8, 121)
    nodes.append(helper.make_node("Conv", [f, weight("w2", (24, 16, 1, 1))], ["c"]))
    c = quantised("c", 1, np.int8, -3)
    nodes.append(helper.make_node("MaxPool", [c], ["d"], kernel_shape=[13, 13]))
    nodes.append(helper.make_node("Flatten", ["d"], ["e"]))
    e = quantised("e", 1, np.int8, -3)
    nodes.append(helper.make_node("MatMul", [e, weight("w3", (24, 20))], ["y"]))
    graph = helper.make_graph(
        nodes, "bytes", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 13, 13])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 20])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              "bytes.onnx")
    make_input("bytes.onnx", "bytes")


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
