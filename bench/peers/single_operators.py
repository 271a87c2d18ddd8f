#!/usr/bin/env python3
"""Single operators as real models have them, against ONNX Runtime: single_operators.py --program build/release/tilewright.

  single_operators.py --program P                       all, two threads
  single_operators.py --program P --only 'Reduce*' --threads 1 --rounds 5

Each is a model of one node; both programs run it in turn (`tilewright bench --against ort`). A line gives the middle of
the rounds by ratio; the last lines the geometric mean and what is below --weak. Needs onnx and ONNX Runtime, as
.venv/bin/python of the checkout has them. Nothing else may run on the machine.
"""
import argparse
import fnmatch
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(1)


def ints(*values):
    return np.array(values, np.int64)


def weights(*shape):
    return (RNG.standard_normal(shape) / math.sqrt(math.prod(shape[1:]))).astype(np.float32)


def places(limit, *shape):
    return RNG.integers(0, limit, shape).astype(np.int64)


NONE = np.array([], np.float32)
SCALES = {factor: np.array([1, 1, factor, factor], np.float32) for factor in (2, 3, 4)}
IMAGE, TOKENS, WIDE, MATRIX = [1, 64, 112, 112], [1, 197, 768], [1, 197, 3072], [512, 1024]


def padded(size):
    return {"pads": [size] * 4}


# (operator, its case, shapes of inputs, known inputs, attributes, number of outputs)
CASES = [
    ("Softmax", "heads", [[12, 197, 197]], [], {}, 1),
    ("Softmax", "channels", [[1, 21, 128, 128]], [], {"axis": 1}, 1),
    ("Softmax", "rows", [[64, 1000]], [], {}, 1),
    ("LogSoftmax", "rows", [[64, 1000]], [], {}, 1),
    ("LayerNormalization", "tokens", [TOKENS], [np.ones(768, np.float32), weights(768)], {}, 1),
    ("InstanceNormalization", "56", [[1, 64, 56, 56]], [np.ones(64, np.float32), weights(64)], {}, 1),
    ("GroupNormalization", "320", [[1, 320, 32, 32]], [np.ones(320, np.float32), weights(320)], {"num_groups": 32}, 1),
    ("LpNormalization", "rows", [MATRIX], [], {"axis": 1}, 1),
    ("LRN", "96", [[1, 96, 55, 55]], [], {"size": 5}, 1),
    ("ReduceMean", "planes", [[1, 256, 28, 28]], [ints(2, 3)], {}, 1),
    ("ReduceMean", "channels", [[1, 256, 28, 28]], [ints(1)], {}, 1),
    ("ReduceMean", "all", [[1, 256, 56, 56]], [ints(0, 1, 2, 3)], {}, 1),
    ("ReduceMean", "tokens", [[8, 197, 768]], [ints(1)], {}, 1),
    ("ReduceSum", "columns", [MATRIX], [ints(0)], {}, 1),
    ("ReduceMax", "rows", [MATRIX], [ints(1)], {}, 1),
    ("ReduceL2", "rows", [MATRIX], [ints(1)], {}, 1),
    ("ReduceLogSumExp", "rows", [MATRIX], [ints(1)], {}, 1),
    ("ArgMax", "channels", [[1, 21, 256, 256]], [], {"axis": 1}, 1),
    ("ArgMax", "rows", [MATRIX], [], {"axis": 1}, 1),
    ("CumSum", "rows", [[64, 1024]], [np.array(1)], {}, 1),
    ("Transpose", "heads", [[1, 197, 12, 64]], [], {"perm": [0, 2, 1, 3]}, 1),
    ("Transpose", "to NHWC", [[1, 64, 56, 56]], [], {"perm": [0, 2, 3, 1]}, 1),
    ("Transpose", "to NCHW", [[1, 56, 56, 64]], [], {"perm": [0, 3, 1, 2]}, 1),
    ("Transpose", "matrix", [[1024, 1024]], [], {"perm": [1, 0]}, 1),
    ("Resize", "bilinear", [[1, 64, 32, 32]], [NONE, SCALES[2]], {"mode": "linear"}, 1),
    ("Resize", "nearest by 2", [[1, 128, 32, 32]], [NONE, SCALES[2]], {}, 1),
    ("Resize", "nearest by 3", [[1, 64, 30, 30]], [NONE, SCALES[3]], {}, 1),
    ("Resize", "cubic", [[1, 3, 128, 128]], [NONE, SCALES[2]], {"mode": "cubic"}, 1),
    ("MaxPool", "3x3, stride 2", [IMAGE], [], {"kernel_shape": [3, 3], "strides": [2, 2], **padded(1)}, 1),
    ("MaxPool", "2x2, stride 2", [IMAGE], [], {"kernel_shape": [2, 2], "strides": [2, 2]}, 1),
    ("MaxPool", "13x13", [[1, 256, 20, 20]], [], {"kernel_shape": [13, 13], **padded(6)}, 1),
    ("AveragePool", "3x3", [[1, 192, 35, 35]], [], {"kernel_shape": [3, 3], **padded(1)}, 1),
    ("GlobalAveragePool", "2048", [[1, 2048, 7, 7]], [], {}, 1),
    ("Erf", "wide", [WIDE], [], {}, 1),
    ("Sigmoid", "image", [IMAGE], [], {}, 1),
    ("Tanh", "wide", [WIDE], [], {}, 1),
    ("Exp", "wide", [WIDE], [], {}, 1),
    ("Log", "wide", [WIDE], [], {}, 1),
    ("HardSwish", "image", [IMAGE], [], {}, 1),
    ("Sin", "wide", [WIDE], [], {}, 1),
    ("Atan", "wide", [WIDE], [], {}, 1),
    ("Pow", "2", [WIDE], [np.array(2, np.float32)], {}, 1),
    ("Pow", "tensors", [TOKENS, TOKENS], [], {}, 1),
    ("Div", "wide", [WIDE, WIDE], [], {}, 1),
    ("Add", "image", [IMAGE, IMAGE], [], {}, 1),
    ("Add", "channels", [IMAGE, [1, 64, 1, 1]], [], {}, 1),
    ("Clip", "image", [IMAGE], [np.array(0, np.float32), np.array(6, np.float32)], {}, 1),
    ("Concat", "channels", [[1, 64, 56, 56], [1, 64, 56, 56]], [], {"axis": 1}, 1),
    ("Split", "thirds", [[1, 197, 2304]], [], {"axis": 2, "num_outputs": 3}, 3),
    ("Slice", "every other", [IMAGE], [ints(0, 0), ints(112, 112), ints(2, 3), ints(2, 2)], {}, 1),
    ("Pad", "border", [[1, 64, 56, 56]], [ints(0, 0, 1, 1, 0, 0, 1, 1)], {}, 1),
    ("Pad", "reflected", [[1, 64, 56, 56]], [ints(0, 0, 1, 1, 0, 0, 1, 1)], {"mode": "reflect"}, 1),
    ("Tile", "by 2", [[1, 64, 28, 28]], [ints(1, 1, 2, 2)], {}, 1),
    ("Expand", "planes", [[1, 64, 1, 1]], [ints(1, 64, 56, 56)], {}, 1),
    ("DepthToSpace", "by 2", [[1, 256, 32, 32]], [], {"blocksize": 2}, 1),
    ("Gather", "rows", [[30522, 768]], [places(30522, 1, 128)], {}, 1),
    ("Gather", "columns", [[64, 1000]], [places(1000, 500)], {"axis": 1}, 1),
    ("GatherElements", "rows", [[64, 1000]], [places(1000, 64, 500)], {"axis": 1}, 1),
    ("ScatterElements", "rows", [[64, 1000]], [places(1000, 64, 500), weights(64, 500)], {"axis": 1}, 1),
    ("TopK", "100 of 8400", [[1, 8400]], [ints(100)], {}, 2),
    ("TopK", "5 of 1000", [[64, 1000]], [ints(5)], {}, 2),
    ("NonZero", "all", [[64, 1000]], [], {}, 1),
    ("MatMul", "heads", [[12, 197, 64], [12, 64, 197]], [], {}, 1),
    ("MatMul", "known", [TOKENS], [weights(768, 3072)], {}, 1),
    ("MatMul", "one row", [[1, 4096]], [weights(4096, 1000)], {}, 1),
    ("Gemm", "transposed", [[256, 512], [256, 512]], [], {"transB": 1}, 1),
    ("Einsum", "bik,bjk->bij", [[8, 197, 64], [8, 197, 64]], [], {"equation": "bik,bjk->bij"}, 1),
    ("Conv", "64 to 3, 3x3", [[1, 64, 224, 224]], [weights(3, 64, 3, 3)], padded(1), 1),
    ("Conv", "32 to 1, 5x5", [[1, 32, 128, 128]], [weights(1, 32, 5, 5)], padded(2), 1),
    ("Conv", "256 to 4, 5x5", [[1, 256, 56, 56]], [weights(4, 256, 5, 5)], padded(2), 1),
    ("Conv", "3 to 768, 16x16", [[1, 3, 224, 224]], [weights(768, 3, 16, 16)], {"strides": [16, 16]}, 1),
    ("Conv", "depthwise 7x7", [[1, 96, 56, 56]], [weights(96, 1, 7, 7)], {"group": 96, **padded(3)}, 1),
    ("Conv", "eight images", [[8, 64, 28, 28]], [weights(64, 64, 3, 3)], padded(1), 1),
    ("Conv", "one axis", [[1, 80, 3000]], [weights(384, 80, 3)], {"pads": [1, 1]}, 1),
    ("Conv", "three axes", [[1, 32, 16, 28, 28]], [weights(64, 32, 3, 3, 3)], {"pads": [1] * 6}, 1),
    ("ConvTranspose", "2x2, stride 2", [[1, 256, 28, 28]], [weights(256, 128, 2, 2)], {"strides": [2, 2]}, 1),
    ("ConvTranspose", "4x4, stride 2", [[1, 64, 32, 32]], [weights(64, 32, 4, 4)], {"strides": [2, 2], **padded(1)}, 1),
    ("LSTM", "256 cells", [[100, 1, 256]], [weights(1, 1024, 256), weights(1, 1024, 256)], {"hidden_size": 256}, 1),
    ("LSTM", "eight rows", [[50, 8, 128]], [weights(1, 1024, 128), weights(1, 1024, 256)], {"hidden_size": 256}, 1),
    ("GRU", "256 cells", [[100, 1, 256]], [weights(1, 768, 256), weights(1, 768, 256)],
     {"hidden_size": 256, "linear_before_reset": 1}, 1),
]


def write_model(case, path):
    operator, _, shapes, known, attributes, outputs = case
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, s) for i, s in enumerate(shapes)]
    constants = [numpy_helper.from_array(np.asarray(array), f"c{i}") for i, array in enumerate(known)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(operator, [v.name for v in inputs] + [c.name for c in constants], results, **attributes)
    graph = helper.make_graph([node], "case", inputs, [onnx.ValueInfoProto(name=r) for r in results], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True), path)


def measured(options, model):
    """(ms, ratio to ONNX Runtime's time) of the round with the middle ratio."""
    rounds = []
    for _ in range(options.rounds):
        done = subprocess.run([options.program, "bench", model, "--against", "ort", "--no-records", "--json", "--threads",
                               str(options.threads), "--duration", str(options.duration)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{model}: {done.stderr.strip()}")
        row = json.loads(done.stdout)["rows"][0]
        rounds.append((row["ratio"], row["compute"]))
    ratio, time = sorted(rounds)[len(rounds) // 2]
    return time, ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--only", default="*", help="operators, as a pattern")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--duration", type=float, default=0.3, help="seconds, per round and program")
    parser.add_argument("--weak", type=float, default=0.95)
    parser.add_argument("--json", help="file for all ratios")
    options = parser.parse_args()
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            name = f"{case[0]}, {case[1]}"
            if not fnmatch.fnmatch(case[0], options.only):
                continue
            model = os.path.join(folder, "model.onnx")
            write_model(case, model)
            time, ratios[name] = measured(options, model)
            print(f"{name:32} {time:9.4f} ms  {ratios[name]:5.2f}x", flush=True)
    if not ratios:
        sys.exit(f"no operator is called {options.only}")
    mean = math.exp(sum(math.log(r) for r in ratios.values()) / len(ratios))
    weak = sorted((r, name) for name, r in ratios.items() if r < options.weak)
    print(f"{len(ratios)} cases, geometric mean {mean:.2f}x; below {options.weak}: "
          + (", ".join(f"{name} {r:.2f}" for r, name in weak) or "none"))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(ratios, file, indent=1)


if __name__ == "__main__":
    main()
