"""Small networks for GPUs: residual.onnx, turned.onnx, choice.onnx, bytes.onnx."""
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as n

rng = np.random.default_rng(3)


def save(name, nodes, shape, out, weights, more=()):
    graph = h.make_graph(nodes, name, [h.make_tensor_value_info("x", T.FLOAT, shape), *more],
                         [h.make_tensor_value_info("y", T.FLOAT, out)],
                         [n.from_array(v, k) for k, v in weights.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8),
              name + ".onnx")


def normal(*shape):
    return rng.normal(0, 0.2, shape).astype(np.float32)


# A block of a residual network whose sum is fused into its second convolution.
save("residual", [
    h.make_node("Conv", ["x", "v", "b"], ["s"], pads=[1, 1, 1, 1]),
    h.make_node("Relu", ["s"], ["t"]),
    h.make_node("Conv", ["t", "w"], ["u"], pads=[1, 1, 1, 1]),
    h.make_node("Add", ["u", "x"], ["a"]),
    h.make_node("Relu", ["a"], ["y"]),
], [2, 16, 9, 7], [2, 16, 9, 7],
     {"v": normal(16, 16, 3, 3), "b": normal(16), "w": normal(16, 16, 3, 3)})

# A transposed convolution between transpositions.
save("turned", [
    h.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
    h.make_node("ConvTranspose", ["t", "w"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1],
                output_padding=[1, 1]),
    h.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1]),
], [1, 6, 5, 8], [1, 12, 10, 12], {"w": normal(8, 12, 3, 3)})

# Each thread has one sum, and writes it or another value: where PoCL 3.1 makes vectors of threads, it
# computes something else.
save("choice", [
    h.make_node("Conv", ["x", "w"], ["c"]),
    h.make_node("Where", ["m", "o", "c"], ["y"]),
], [1, 8, 12, 4], [1, 16, 8, 2],
     {"w": normal(16, 8, 5, 3)}, [h.make_tensor_value_info("m", T.BOOL, [1, 1, 8, 2]),
                                  h.make_tensor_value_info("o", T.FLOAT, [1, 1, 1, 2])])

# A convolution of unsigned bytes by signed ones, with zero points and padding.
save("bytes", [
    h.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
    h.make_node("QLinearConv", ["q", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["r"],
                pads=[1, 1, 1, 1]),
    h.make_node("DequantizeLinear", ["r", "ys", "yz"], ["y"]),
], [1, 8, 7, 7], [1, 16, 7, 7], {
    "xs": np.float32(0.03), "xz": np.uint8(121),
    "w": rng.integers(-100, 100, (16, 8, 3, 3)).astype(np.int8),
    "ws": np.full(16, 0.01, np.float32), "wz": np.zeros(16, np.int8),
    "ys": np.float32(0.05), "yz": np.uint8(130),
    "b": rng.integers(-500, 500, 16).astype(np.int32)})

# Nothing comes in, nothing goes out.
save("empty", [h.make_node("MatMul", ["x", "w"], ["t"]), h.make_node("Relu", ["t"], ["y"])],
     [0, 4], [0, 3], {"w": normal(4, 3)})
