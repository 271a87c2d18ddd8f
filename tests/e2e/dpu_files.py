"""Files for dpu.sh, in the current folder.

dpu_files.py write          models that the DPU refuses
dpu_files.py race A.asm B.asm   the program without the token that a convolution waits for
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(path, nodes, weights, size, outputs):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, size, size])
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", [x], results, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs, [output], name=output, **attributes)


def write():
    rng = np.random.default_rng(1)

    def weight(*shape):
        return (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)

    # Each output breaks one limit of the hardware.
    nodes = [
        node("Conv", ["x", "w17"], "kernel17", pads=[8] * 4),
        node("Conv", ["x", "w1"], "stride9", strides=[9, 9]),
        node("Conv", ["x", "widen"], "wide"), node("Conv", ["wide", "narrow"], "channels5000"),
        node("Conv", ["x", "w3"], "dilated", dilations=[2, 2], strides=[2, 2]),
        node("Conv", ["x", "w1"], "before"), node("PRelu", ["before", "slope"], "prelu"),
        node("Conv", ["x", "many"], "maps"), node("Conv", ["maps", "large"], "sums"),
    ]  # fmt: skip
    weights = {
        "w17": weight(8, 8, 17, 17), "w1": weight(8, 8, 1, 1), "w3": weight(8, 8, 3, 3),
        "widen": weight(5000, 8, 1, 1), "narrow": weight(8, 5000, 1, 1),
        "slope": np.linspace(0.1, 0.8, 8, dtype=np.float32).reshape(8, 1, 1),
        "many": weight(4096, 8, 1, 1), "large": np.full((16, 4096, 5, 5), 0.99, np.float32),
    }  # fmt: skip
    save("limits.onnx", nodes, weights, 18, [n.output[0] for n in nodes if n.output[0] not in ("wide", "before", "maps")])

    # A model in QDQ form, with scales of two kinds.
    for name, scale in (("powers", 1 / 32), ("others", 0.03)):
        def quantised(value, to):
            return [node("QuantizeLinear", [value, "scale", "zero"], to + "_q"),
                    node("DequantizeLinear", [to + "_q", "scale", "zero"], to)]  # fmt: skip
        nodes = [*quantised("x", "xd"), node("DequantizeLinear", ["w_q", "wscale", "zero"], "wd"),
                 node("Conv", ["xd", "wd"], "c"), *quantised("c", "y")]  # fmt: skip
        weights = {"scale": np.float32(scale), "wscale": np.float32(1 / 64), "zero": np.int8(0),
                   "w_q": rng.integers(-60, 60, (8, 8, 3, 3)).astype(np.int8)}  # fmt: skip
        save(name + ".onnx", nodes, weights, 12, ["y"])

    # One pixel of 64 x 8 channels is more than the smallest memories hold.
    save("large.onnx", [node("Conv", ["x", "a"], "m"), node("Conv", ["m", "b"], "y")],
         {"a": weight(4096, 8, 1, 1), "b": weight(16, 4096, 1, 1)}, 6, ["y"])  # fmt: skip


def race(path, to):
    with open(path) as file:
        lines = file.readlines()
    for i, line in enumerate(lines):
        if line.startswith("CONV dpon=L "):
            lines[i] = line.replace("dpon=L ", "")
            break
    with open(to, "w") as file:
        file.writelines(lines)


if __name__ == "__main__":
    write() if sys.argv[1] == "write" else race(*sys.argv[2:])
