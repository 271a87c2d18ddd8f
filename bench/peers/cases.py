"""What is measured: networks, single operators and chains of layers, each written as an ONNX model.

A case is a dict: id, group, flops, and one of network (a name of `tilewright zoo`), layers (a list
of convolutions, pools and products, which oneDNN is given too) or node (any other operator).
"""

import fnmatch
import json
import math
import os
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import random_cases

NETWORKS = ["vgg16", "resnet18", "resnet50", "mobilenet_v2", "inception_v3", "squeezenet1.1",
            "densenet121", "yolov3", "lstm_lm", "bert_base"]
# 3x3, stride 1: channels and size of the map.
WINOGRAD = [(64, 56), (128, 28), (256, 14), (512, 7), (64, 224), (128, 112), (256, 56), (512, 28)]
SUITES = ["flextensor/conv2d", "tvm/conv2d", "tvm/depthwise_conv2d",
          "flextensor-extra/conv2d_overfeat", "flextensor/gemm", "flextensor/gemv",
          "flextensor/bilinear", "flextensor/conv1d", "flextensor/conv_transpose1d",
          "flextensor/conv_transpose2d", "flextensor/conv3d", "flextensor/conv_transpose3d",
          "flextensor/group_conv2d", "flextensor/depthwise_conv2d", "flextensor/dilated_conv2d"]
# Out channels, kernel, stride; "pool" halves the map.
VGG16 = [(64, 3, 1), (64, 3, 1), "pool", (128, 3, 1), (128, 3, 1), "pool", (256, 3, 1),
         (256, 3, 1), (256, 3, 1), "pool", (512, 3, 1), (512, 3, 1), (512, 3, 1), "pool",
         (512, 3, 1), (512, 3, 1), (512, 3, 1)]
YOLOV1 = ([(64, 7, 2), "pool", (192, 3, 1), "pool", (128, 1, 1), (256, 3, 1), (256, 1, 1),
           (512, 3, 1), "pool"] + [(256, 1, 1), (512, 3, 1)] * 4 + [(512, 1, 1), (1024, 3, 1),
           "pool"] + [(512, 1, 1), (1024, 3, 1)] * 2 + [(1024, 3, 1), (1024, 3, 2), (1024, 3, 1),
                                                       (1024, 3, 1)])


def conv(channels, out, kernel, stride=(1, 1), pad=(0, 0), dilation=(1, 1), groups=1):
    return {"kind": "conv", "in": channels, "out": out, "kernel": list(kernel),
            "stride": list(stride), "pad": list(pad), "dilation": list(dilation), "groups": groups}


def conv_size(layer, size):
    return [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, p, d in zip(
        size, layer["kernel"], layer["stride"], layer["pad"], layer["dilation"])]


def layers_flops(shape, layers):
    """Two per multiply-add, padded positions included."""
    flops, shape = 0, list(shape)
    for layer in layers:
        if layer["kind"] == "gemm":
            flops += 2 * shape[0] * shape[1] * layer["n"]
            shape = [shape[0], layer["n"]]
        elif layer["kind"] == "pool":
            shape[2:] = [s // 2 for s in shape[2:]]
        else:
            shape = [shape[0], layer["out"], *conv_size(layer, shape[2:])]
            flops += 2 * math.prod(shape) * layer["in"] // layer["groups"] * math.prod(
                layer["kernel"])
    return flops


def layer_case(name, group, shape, layers):
    return {"id": name, "group": group, "shape": list(shape), "layers": layers,
            "flops": layers_flops(shape, layers)}


def sequence(name, channels, size, text):
    layers, start = [], channels
    for item in text:
        if item == "pool":
            layers.append({"kind": "pool"})
            continue
        out, kernel, stride = item
        layers.append(conv(channels, out, (kernel,) * 2, (stride,) * 2, (kernel // 2,) * 2))
        channels = out
    return layer_case(name, "sequence", [1, start, size, size], layers)


def chain(name, group, shape, layer):
    """Equal layers one after another (out and back where the channels differ), 4 of large ones
    and 8 of others; None where the map changes its size or has too few channels."""
    size = shape[2:]
    if conv_size(layer, size) != list(size) or min(layer["in"], layer["out"]) < 16:
        return None
    if len(size) != 2 or layer["groups"] not in (1, layer["in"]):
        return None
    back = dict(layer, **{"in": layer["out"], "out": layer["in"]})
    count = 4 if layers_flops(shape, [layer]) > 2e9 else 8
    return layer_case(name, group, shape, [layer, back] * (count // 2))


def operator_cases(path):
    """The single operators of operators.json, and chains of its convolutions."""
    with open(path) as file:
        listed = json.load(file)["cases"]
    cases = []
    for entry in listed:
        if entry["suite"] not in SUITES:
            continue
        p, name, operator = entry["params"], entry["id"], entry["operator"]
        if operator == "gemm":
            cases.append(layer_case(name, entry["suite"], [p["m"], p["k"]],
                                    [{"kind": "gemm", "n": p["n"]}]))
            continue
        case = {"id": name, "group": entry["suite"], "flops": entry["flops"], "node": operator,
                "params": p, "input_shapes": entry["input_shapes"]}
        if operator.endswith("conv2d"):
            axes = "hw"
            layer = conv(p["in_channels"], p["out_channels"], [p["kernel_" + a] for a in axes],
                         [p["stride_" + a] for a in axes], [p["pad_" + a] for a in axes],
                         [p["dilation_" + a] for a in axes], p["groups"])
            case = layer_case(name, entry["suite"], entry["input_shapes"][0], [layer])
            cases.append(case)
            links = chain(name + "/chain", entry["suite"] + "/chain", case["shape"], layer)
            if links:
                cases.append(links)
            continue
        cases.append(case)
    return cases


def all_cases(operators):
    cases = [{"id": "network/" + name, "group": "network", "network": name, "flops": None}
             for name in NETWORKS]
    cases.append(sequence("sequence/vgg16_convolutions", 3, 224, VGG16))
    cases.append(sequence("sequence/yolov1_convolutions", 3, 448, YOLOV1))
    for channels, size in WINOGRAD:
        layer = conv(channels, channels, (3, 3), pad=(1, 1))
        cases.append(chain(f"3x3/{channels}@{size}", "3x3", [1, channels, size, size], layer))
    for rows in (1, 2, 4):
        cases.append(layer_case(f"gemv/{rows}x4096x4096", "gemv", [rows, 4096],
                                [{"kind": "gemm", "n": 4096}]))
    for name, group, shape, layers in random_cases.random_layers(layers_flops):
        cases.append(dict(layer_case(name, group, shape, layers),
                          what=random_cases.describe(shape, layers[0])))
    return cases + (operator_cases(operators) if operators else [])


def select(cases, patterns):
    return [case for case in cases if any(fnmatch.fnmatch(case["id"], p) for p in patterns)]


def tensor(name, array):
    return numpy_helper.from_array(np.ascontiguousarray(array, dtype=np.float32), name)


def build_layers(case, rng):
    """Bias and ReLU after each convolution; weights keep the scale of the values."""
    nodes, weights, value, shape = [], [], "x", list(case["shape"])
    for i, layer in enumerate(case["layers"]):
        result = f"v{i}"
        if layer["kind"] == "gemm":
            w = rng.standard_normal((shape[1], layer["n"])) / math.sqrt(shape[1])
            weights.append(tensor(f"w{i}", w))
            nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [result]))
            shape = [shape[0], layer["n"]]
        elif layer["kind"] == "pool":
            nodes.append(helper.make_node("MaxPool", [value], [result], kernel_shape=[2, 2],
                                          strides=[2, 2]))
            shape[2:] = [s // 2 for s in shape[2:]]
        else:
            filters = (layer["out"], layer["in"] // layer["groups"], *layer["kernel"])
            w = rng.standard_normal(filters) * math.sqrt(2 / math.prod(filters[1:]))
            weights += [tensor(f"w{i}", w), tensor(f"b{i}", 0.1 * rng.standard_normal(filters[0]))]
            nodes.append(helper.make_node(
                "Conv", [value, f"w{i}", f"b{i}"], [f"c{i}"], kernel_shape=layer["kernel"],
                strides=layer["stride"], pads=layer["pad"] * 2, dilations=layer["dilation"],
                group=layer["groups"]))
            nodes.append(helper.make_node("Relu", [f"c{i}"], [result]))
            shape = [shape[0], layer["out"], *conv_size(layer, shape[2:])]
        value = result
    return nodes, weights, {"x": case["shape"]}, value, shape


def build_node(case, rng):
    """One operator; its second input is a weight known when the model is compiled."""
    p, shapes, kind = case["params"], case["input_shapes"], case["node"]
    scale = 1 / math.sqrt(math.prod(shapes[1][1:]) or 1)
    if kind == "gemv":  # the matrix is the weight
        node = helper.make_node("MatMul", ["w", "x"], ["y"])
        w = tensor("w", rng.standard_normal(shapes[0]))
        return [node], [w], {"x": shapes[1]}, "y", [p["m"]]
    w = tensor("w", rng.standard_normal(shapes[1]) * scale)
    if kind == "bilinear":
        node = helper.make_node("Einsum", ["x", "w", "z"], ["y"], equation="bi,oij,bj->bo")
        result = [shapes[0][0], shapes[1][0]]
        return [node], [w], {"x": shapes[0], "z": shapes[2]}, "y", result
    axes = {"1d": "l", "2d": "hw", "3d": "dhw"}[kind[-2:]]
    attributes = {"kernel_shape": [p["kernel_" + a] for a in axes],
                  "strides": [p["stride_" + a] for a in axes],
                  "pads": [p["pad_" + a] for a in axes] * 2,
                  "dilations": [p["dilation_" + a] for a in axes], "group": p["groups"]}
    operator = "Conv"
    if "transpose" in kind:
        operator = "ConvTranspose"
        attributes["output_padding"] = [p.get("output_pad_" + a, 0) for a in axes]
    node = helper.make_node(operator, ["x", "w"], ["y"], **attributes)
    return [node], [w], {"x": shapes[0]}, "y", None


def write_model(case, path, tilewright):
    """Writes the case's ONNX model."""
    if "network" in case:
        subprocess.run([tilewright, "-q", "zoo", case["network"], "-o", path], check=True,
                       stdout=subprocess.DEVNULL)
        return
    build = build_layers if "layers" in case else build_node
    nodes, weights, inputs, result, shape = build(case, np.random.default_rng(1))
    describe = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "case", [describe(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [describe(result, TensorProto.FLOAT, shape)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)


def dims(value):
    return [d.dim_value for d in value.type.tensor_type.shape.dim]


def node_flops(node, shapes):
    """Of convolutions, products and LSTMs, which is what counts; 0 for all others."""
    kind = node.op_type
    if kind in ("Conv", "ConvTranspose"):
        weight = shapes[node.input[1]]
        spatial = shapes[node.output[0] if kind == "Conv" else node.input[0]]
        return 2 * math.prod(spatial) * math.prod(weight[1:])
    if kind in ("MatMul", "Gemm"):
        attributes = {a.name: a.i for a in node.attribute}
        depth = shapes[node.input[0]][0 if attributes.get("transA") else -1]
        return 2 * math.prod(shapes[node.output[0]]) * depth
    if kind == "LSTM":
        steps, batch = shapes[node.input[0]][:2]
        return 2 * steps * batch * (math.prod(shapes[node.input[1]]) +
                                    math.prod(shapes[node.input[2]]))
    return 0


def describe_model(path):
    """(flops of the large operators, bytes of weights, inputs and outputs: each read or written
    once is the least any implementation can do)."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    graph = model.graph
    shapes = {v.name: dims(v) for v in [*graph.input, *graph.output, *graph.value_info]}
    weights = 0
    for initializer in graph.initializer:
        shapes[initializer.name] = list(initializer.dims)
        size = helper.tensor_dtype_to_np_dtype(initializer.data_type).itemsize
        weights += math.prod(initializer.dims) * size
    flops = 0
    for node in graph.node:
        try:
            flops += node_flops(node, shapes)
        except (KeyError, IndexError):
            continue  # a shape the model does not state
    fixed = {i.name for i in graph.initializer}
    ends = [v for v in [*graph.input, *graph.output] if v.name not in fixed]
    return flops, weights + 4 * sum(math.prod(dims(v)) for v in ends)


def write_inputs(model_path, path):
    """Seeded values for the model's inputs, as a .npz that every peer is given."""
    graph = onnx.load(model_path, load_external_data=False).graph
    fixed, rng, arrays = {i.name for i in graph.initializer}, np.random.default_rng(7), {}
    for value in graph.input:
        if value.name in fixed:
            continue
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = dims(value)
        if np.issubdtype(dtype, np.integer):
            arrays[value.name] = rng.integers(0, 2, shape).astype(dtype)
        else:
            arrays[value.name] = rng.standard_normal(shape).astype(dtype)
    np.savez(path, **arrays)
