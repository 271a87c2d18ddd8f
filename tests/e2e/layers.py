"""Whether a network's activations are alive: ONNX Runtime runs it with every layer as an output.

layers.py MODEL...   for each model, every float output of a computing layer must be finite and have
                     a standard deviation between 0.05 and 20; the outputs must follow the inputs.
Prints one line per model and one per layer out of range; exit status 1 if there is any.
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime as ort

LEAST, MOST = 0.05, 20.0
# Probabilities and gates are small by nature: not in LAYERS.
SQUASHING = {"Softmax", "LogSoftmax", "Sigmoid"}
LAYERS = {
    "Add",
    "AveragePool",
    "BatchNormalization",
    "Concat",
    "Conv",
    "ConvTranspose",
    "Gemm",
    "GlobalAveragePool",
    "LRN",
    "LSTM",
    "LayerNormalization",
    "LeakyRelu",
    "MatMul",
    "MaxPool",
    "Mul",
    "Relu",
    "Tanh",
}


def random_inputs(session, seed):
    """Images and states: normal; token numbers: 0 to 999; masks: nothing is hidden."""
    random = np.random.default_rng(seed)
    feeds = {}
    for value in session.get_inputs():
        if "mask" in value.name:
            feeds[value.name] = np.ones(value.shape, np.float32)
        elif value.type == "tensor(int64)":
            feeds[value.name] = random.integers(0, 1000, value.shape)
        else:
            feeds[value.name] = random.standard_normal(value.shape).astype(np.float32)
    return feeds


def prepared(path):
    """The model with every layer's result as an output: (bytes, name -> operator, own outputs)."""
    model = onnx.load(path)
    own = [value.name for value in model.graph.output]
    layers = {}
    # What is computed from the mask alone is no activation.
    idle = {w.name for w in model.graph.initializer}
    idle |= {v.name for v in model.graph.input if "mask" in v.name}
    for node in model.graph.node:
        if all(name in idle for name in node.input):
            idle.update(node.output)
        elif node.op_type in LAYERS:
            layers[node.output[0]] = node.op_type
    for name in layers:
        if name not in own:
            model.graph.output.add().name = name
    # A large logit hides every other behind a probability of 1: look at the logits.
    logits = {n.output[0]: n.input[0] for n in model.graph.node if n.op_type in SQUASHING}
    own = [name if logits.get(name) not in layers else logits[name] for name in own]
    return model.SerializeToString(), layers, own


def check(path):
    data, layers, own = prepared(path)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    del data
    names = list(dict.fromkeys(list(layers) + own))
    values = dict(zip(names, session.run(names, random_inputs(session, 1))))
    problems, low, high, integers = [], np.inf, 0.0, 0
    for name, op in layers.items():
        value = values[name]
        if value.dtype != np.float32:
            integers += 1
            continue
        if not np.isfinite(value).all():
            problems.append(f"{op} '{name}' is not finite")
            continue
        deviation = float(value.std(dtype=np.float64))
        low, high = min(low, deviation), max(high, deviation)
        if not LEAST <= deviation <= MOST:
            problems.append(f"{op} '{name}' {list(value.shape)} has standard deviation {deviation:.3g}")
    if len(layers) == integers:
        problems.append("it has no layer to look at")
    # A saturated or dead network answers everything alike.
    other = session.run(own, random_inputs(session, 2))
    for name, second in zip(own, other):
        first = values[name].astype(np.float64)
        change = float(np.abs(first - second).max() / max(np.abs(first).max(), 1e-30))
        if not change > 1e-3:
            problems.append(f"output '{name}' changes by only {change:.1e} with other inputs")
    state = "FAIL" if problems else "ok"
    network = os.path.basename(path).removesuffix(".onnx")
    print(f"{state} {network}: {len(layers)} layers, standard deviations {low:.3g} to {high:.3g}")
    for problem in problems[:8]:
        print(f"  {problem}")
    if len(problems) > 8:
        print(f"  and {len(problems) - 8} more")
    return not problems


if __name__ == "__main__":
    sys.exit(0 if all([check(path) for path in sys.argv[1:]]) and len(sys.argv) > 1 else 1)
