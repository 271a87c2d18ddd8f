"""Models for strange.sh: legal ones that few people have, as small files in the current folder.

strange_files.py
"""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

RNG = np.random.default_rng(7)


def value(name, shape, dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


def save(path, nodes, inputs, outputs, weights=(), opset=18, functions=(), domains=()):
    graph = h.make_graph(nodes, "g", inputs, outputs, list(weights))
    opsets = [h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in domains]
    model = h.make_model(graph, opset_imports=opsets, ir_version=10, functions=list(functions))
    onnx.save(model, path)


class Net:
    """A network in the making; each method appends a node and returns its output."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def add(self, op, *inputs, **attrs):
        name = f"v{len(self.nodes)}"
        self.nodes.append(h.make_node(op, list(inputs), [name], name=f"{op}_{name}", **attrs))
        return name

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def conv(self, x, channels, filters, size=3, **attrs):
        w = RNG.normal(0, 0.3, (filters, channels // attrs.get("group", 1), size, size))
        b = self.weight(RNG.normal(size=filters).astype(np.float32))
        pads = [size // 2] * 4
        return self.add("Conv", x, self.weight(w.astype(np.float32)), b, pads=pads, **attrs)

    def save(self, path, inputs, outputs):
        save(path, self.nodes, inputs, [value(o, None) for o in outputs], self.weights)


def unet():
    n = Net()
    high = n.add("Relu", n.conv("image", 3, 16))
    low = n.add("MaxPool", high, kernel_shape=[2, 2], strides=[2, 2])
    low = n.add("Relu", n.conv(low, 16, 32))
    w = n.weight(RNG.normal(0, 0.3, (32, 16, 2, 2)).astype(np.float32))
    up = n.add("ConvTranspose", low, w, strides=[2, 2])
    joined = n.add("Relu", n.conv(n.add("Concat", up, high, axis=1), 32, 16))
    mask = n.add("Sigmoid", n.conv(joined, 16, 1, size=1))
    masked = n.add("Mul", "image", mask)
    n.save("unet.onnx", [value("image", [1, 3, 32, 32])], [mask, masked])


def heads():
    """Maps of one channel behind blocked ones, with everything that may come behind them."""
    n = Net()
    body = n.add("Relu", n.conv("x", 16, 24))
    outputs = []
    for i, op in enumerate(["Sigmoid", "Relu", "Tanh", "Exp", "Neg", "Softplus", "HardSwish"]):
        outputs.append(n.add(op, n.conv(body, 24, 1, size=1 + 2 * (i % 2))))
    one = n.conv(body, 24, 1, size=1)
    for op, shape in [("Add", []), ("Mul", [1]), ("Sub", [1, 1, 1, 1]), ("Div", [1, 1, 9, 1])]:
        outputs.append(n.add(op, one, n.weight(RNG.uniform(1, 2, shape).astype(np.float32))))
    outputs.append(n.add("Add", one, n.conv(body, 24, 1)))
    outputs.append(n.add("Mul", one, "other"))
    outputs.append(n.add("Mul", body, n.add("Sigmoid", one)))
    clip = n.add("Clip", one, n.weight(np.float32(-0.5)), n.weight(np.float32(0.5)))
    outputs.append(n.conv(clip, 1, 8))
    outputs.append(n.add("Sigmoid", n.add("GlobalAveragePool", one)))
    outputs.append(n.add("LRN", n.add("Sigmoid", n.conv(body, 24, 10)), size=5, alpha=0.5))
    n.save(
        "heads.onnx", [value("x", [2, 16, 9, 7]), value("other", [2, 1, 9, 7])], outputs
    )


def bf16():
    def weight(name, shape):
        bits = (RNG.normal(0, 0.3, shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return h.make_tensor(name, T.BFLOAT16, shape, bits.tobytes(), raw=True)

    def conv(path, channels, filters, group):
        node = h.make_node("Conv", ["x", "w", "b"], ["y"], group=group, pads=[1] * 4)
        weights = [weight("w", [filters, channels // group, 3, 3]), weight("b", [filters])]
        x = value("x", [1, channels, 9, 9], T.BFLOAT16)
        save(path, [node], [x], [value("y", None, T.BFLOAT16)], weights, opset=22)

    for channels, group in [(16, 2), (16, 4), (32, 4), (32, 8), (32, 2), (16, 16)]:
        conv(f"bf16_{channels}_{group}.onnx", channels, channels, group)


def named_outputs():
    x, y = value("x", [2, 3]), value("y", None)
    yes = numpy_helper.from_array(np.array(True), "yes")
    branches = {
        name: h.make_graph([h.make_node(op, ["x"], ["t"])], name, [], [value("t", [2, 3])])
        for name, op in [("then_branch", "Relu"), ("else_branch", "Neg")]
    }
    save("if.onnx", [h.make_node("If", ["yes"], ["y"], **branches)], [x], [y], [yes])
    nodes = [h.make_node("Add", ["i", "i"], ["o"]), h.make_node("Neg", ["o"], ["n"])]
    opsets = [h.make_opsetid("", 18)]
    function = h.make_function("own", "Twice", ["i"], ["o", "n"], nodes, opsets)
    call = h.make_node("Twice", ["x"], ["y", "negative"], domain="own")
    save("function.onnx", [call], [x], [y, value("negative", None)], [], 18, [function], ["own"])


def ceil_pools():
    nodes, outputs = [], []
    for op in ["MaxPool", "AveragePool"]:
        for size, stride in [(3, 2), (4, 3)]:
            outputs.append(f"{op}{size}")
            nodes.append(
                h.make_node(op, ["x"], outputs[-1:], kernel_shape=[size, size],
                            strides=[stride, stride], ceil_mode=1)
            )
    outputs = [value(o, None) for o in outputs]
    save("ceil.onnx", nodes, [value("x", [1, 3, 2, 5])], outputs, opset=22)


def refused():
    x, y = value("x", ["N", 3, 32, 32]), value("y", None)
    save("unbound.onnx", [h.make_node("Relu", ["x"], ["y"])], [x], [y])
    save("opset.onnx", [h.make_node("Relu", ["x"], ["y"])], [value("x", [2])], [y], opset=22)
    model = onnx.load("opset.onnx")
    model.opset_import[0].version = 27
    onnx.save(model, "opset.onnx")
    nodes = [
        h.make_node("Bernoulli", ["x"], ["a"], name="random_one"),
        h.make_node("Bernoulli", ["x"], ["b"], name="random_two"),
        h.make_node("FusedConv", ["x", "x"], ["c"], name="fused_one", domain="com.microsoft"),
        h.make_node("MatMul", ["x", "w"], ["d"], name="misfit"),
        h.make_node("Relu", ["nowhere"], ["e"], name="dangling"),
        h.make_node("Relu", ["x"], ["y"]),
    ]
    outputs = [value(o, None) for o in "abcdey"]
    w = numpy_helper.from_array(np.ones((5, 4), np.float32), "w")
    graph = h.make_graph(nodes, "g", [value("x", [2, 3])], outputs, [w])
    opsets = [h.make_opsetid("", 18), h.make_opsetid("com.microsoft", 1)]
    onnx.save(h.make_model(graph, opset_imports=opsets, ir_version=10), "several.onnx")
    huge = [40_000_000_000]
    save("huge.onnx", [h.make_node("Relu", ["x"], ["y"])], [value("x", huge)], [value("y", huge)])


def attributes():
    """What nobody would read: a name that ONNX does not have, and types that it does not give."""
    x, y = value("x", [2, 3]), value("y", None)
    nodes = [
        h.make_node("LeakyRelu", ["x"], ["a"], name="misspelt", alhpa=0.3),
        h.make_node("Transpose", ["a"], ["b"], name="turned", perm=1),
        h.make_node("Softmax", ["b"], ["y"], name="halved", axis=0.5),
    ]
    save("attributes.onnx", nodes, [x], [y])


def not_of_onnxruntime():
    """ONNX Runtime wants names of nodes to differ; the definition does not."""
    nodes = [h.make_node(op, [i], [o], name="n") for op, i, o in [("Relu", "x", "t"), ("Neg", "t", "y")]]
    save("names.onnx", nodes, [value("x", [2])], [value("y", None)])


def optional_inputs():
    """A function that hands an absent input on: Clip without a least value."""
    x, y = value("x", [2, 3]), value("y", None)
    nodes = [h.make_node("Clip", ["i", "low", "high"], ["o"])]
    function = h.make_function("own", "Below", ["i", "low", "high"], ["o"], nodes, [h.make_opsetid("", 18)])
    half = numpy_helper.from_array(np.float32(0.5), "half")
    call = h.make_node("Below", ["x", "", "half"], ["y"], domain="own")
    save("optional.onnx", [call], [x], [y], [half], 18, [function], ["own"])


def write():
    optional_inputs()
    attributes()
    not_of_onnxruntime()
    unet()
    heads()
    bf16()
    named_outputs()
    ceil_pools()
    refused()


if __name__ == "__main__":
    write()
