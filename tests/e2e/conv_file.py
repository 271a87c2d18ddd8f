"""conv.onnx, a 3x3 convolution with Relu: conv_file.py CHANNELS PIXELS. 16 filters, pixels square."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

channels, pixels = int(sys.argv[1]), int(sys.argv[2])
weight = np.random.default_rng(1).integers(-2, 3, (16, channels, 3, 3)).astype(np.float32)
value = lambda name, count: helper.make_tensor_value_info(
    name, TensorProto.FLOAT, [1, count, pixels, pixels])
nodes = [helper.make_node("Conv", ["x", "w"], ["s"], name="conv", pads=[1, 1, 1, 1]),
         helper.make_node("Relu", ["s"], ["y"], name="relu")]
graph = helper.make_graph(nodes, "g", [value("x", channels)], [value("y", 16)],
                          [numpy_helper.from_array(weight, "w")])
opsets = [helper.make_opsetid("", 17)]
onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "conv.onnx")
