"""layers.onnx for spatial.sh, in the current folder: one layer of each kind, each an output."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main():
    rng = np.random.default_rng(1)
    weights, nodes = {}, []

    def conv(name, outputs, inputs, kernel, **attributes):
        shape = (outputs, inputs, *kernel)
        weight = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        weights[name + "_w"] = weight.astype(np.float32)
        weights[name + "_b"] = rng.standard_normal(outputs).astype(np.float32)
        nodes.append(helper.make_node("Conv", ["x", name + "_w", name + "_b"], [name], name=name, **attributes))

    conv("plain", 20, 12, (1, 1))
    conv("padded", 20, 12, (3, 3), pads=[1] * 4)
    conv("strided", 9, 12, (3, 3), strides=[2, 2], pads=[1] * 4)
    conv("dilated", 9, 12, (3, 3), dilations=[2, 2], pads=[2] * 4)
    conv("both", 9, 12, (2, 3), strides=[2, 1], dilations=[1, 2], pads=[0, 1, 1, 2])
    conv("stride3", 17, 12, (1, 1), strides=[3, 3])
    conv("grouped", 24, 4, (3, 3), group=3, pads=[1] * 4)
    conv("depthwise", 12, 1, (3, 3), group=12, pads=[1] * 4)
    results = [helper.make_tensor_value_info(n.output[0], TensorProto.FLOAT, None) for n in nodes]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 12, 17, 13])
    constants = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "layers", [x], results, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "layers.onnx")


main()
