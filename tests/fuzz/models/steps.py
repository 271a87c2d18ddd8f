"""A model node by node: what ONNX Runtime makes of each node alone, and how far rounding errors carry."""

import copy

import numpy as np
import onnx
import onnx.reference
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from shrink import used_names

FEW_BITS = {TensorProto.FLOAT16: 2.0**-11, TensorProto.BFLOAT16: 2.0**-9}  # and half a unit in their last place
TRANSFORMS = {"DFT", "STFT"}  # where the exact result is 0, sums leave what their terms were rounded by
UNITS = 4e-7  # a few units in the last place of f32


class Reference:
    """ONNX Runtime in this process, without its own rewriting of the graph."""

    def __init__(self, model):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.names = [o.name for o in self.session.get_outputs()]

    def run(self, feeds):
        arrays = {k: np.asarray(v) for k, v in feeds.items()}  # a scalar of numpy's is none
        return dict(zip(self.names, (np.asarray(v) for v in self.session.run(None, arrays))))


def stated(model, feeds):
    """What onnx's own reference computes."""
    results = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    return {o.name: np.asarray(v) for o, v in zip(model.graph.output, results)}


def moved(value, amount, rng, cancels=False):
    """A value with a rounding error of this relative size in each element; of sums that cancel, relative to the largest."""
    if value.dtype != np.float32 or amount == 0:
        return value
    errors = amount * rng.choice([-1, 1], value.shape)
    if not cancels:
        return np.asarray(value * (1 + errors), np.float32)
    largest = np.max(np.abs(value), initial=0, where=np.isfinite(value))
    result = np.asarray(value + largest * errors, np.float32)
    nothing = np.abs(result) <= 2 * amount * largest  # the order of a sum decides whether it is 0
    return np.where(nothing & (rng.random(value.shape) < 0.5), np.float32(0), result)


def widened(model):
    """The model with f32 for f16 and bf16, and the rounding error of the coarsest type in it."""
    model, found = copy.deepcopy(model), [UNITS]

    def tensor(t):
        if t.data_type in FEW_BITS:
            found.append(FEW_BITS[t.data_type])
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float32), t.name))

    def typed(infos):
        for info in infos:
            if info.type.tensor_type.elem_type in FEW_BITS:
                found.append(FEW_BITS[info.type.tensor_type.elem_type])
                info.type.tensor_type.elem_type = TensorProto.FLOAT

    def nodes(all_nodes):
        for node in all_nodes:
            for a in node.attribute:
                if a.name == "to" and a.i in FEW_BITS:
                    a.i = TensorProto.FLOAT
                tensor(a.t)
                if a.type == onnx.AttributeProto.GRAPH:
                    graph(a.g)

    def graph(g):
        for t in g.initializer:
            tensor(t)
        typed([*g.input, *g.output, *g.value_info])
        nodes(g.node)

    graph(model.graph)
    for function in model.functions:
        nodes(function.node)
    return model, max(found)


class Steps:
    """The nodes that the values `wanted` need, in order, and the constants of the model."""

    def __init__(self, model, wanted):
        self.model, self.sessions, needed, nodes = model, {}, set(wanted), []
        self.constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        for node in reversed(model.graph.node):
            if needed & set(node.output):
                needed |= used_names([node])
                nodes.append(node)
        self.nodes = []
        for node in reversed(nodes):
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
            else:
                self.nodes.append(node)

    def alone(self, node, values, fixed, shapes=True):
        """The node as a model of its own; operands are inputs but for the constants `fixed`, and their values."""
        operands = {n: values[n] for n in [*node.input, *sorted(used_names([node]))] if n in values}
        dtype = lambda v: helper.np_dtype_to_tensor_dtype(v.dtype)
        graph = helper.make_graph(
            [node],
            "alone",
            [
                helper.make_tensor_value_info(n, dtype(v), v.shape if shapes else [None] * v.ndim)
                for n, v in operands.items()
                if n not in fixed
            ],
            [onnx.ValueInfoProto(name=n) for n in node.output if n],
            [numpy_helper.from_array(v, n) for n, v in operands.items() if n in fixed],
        )
        model = helper.make_model(graph, opset_imports=self.model.opset_import, functions=self.model.functions)
        model.ir_version = self.model.ir_version
        return model, {n: v for n, v in operands.items() if n not in fixed}

    def reference(self, node, values):
        """What ONNX Runtime, or onnx's reference if that cannot, makes of the node's operands; None if neither can."""
        model, feeds = self.alone(node, values, self.constants, shapes=False)
        try:
            if node.output[0] not in self.sessions:
                self.sessions[node.output[0]] = Reference(model)
            return self.sessions[node.output[0]].run(feeds)
        except Exception:  # no kernel for the types, or finds fault with the node
            pass
        try:
            return stated(model, feeds)
        except Exception:
            return None

    def run(self, feeds, given, amount, seed):
        """All values with rounding errors behind every node; those of the nodes in `given` are what it says."""
        rng = np.random.default_rng(seed)
        values = self.constants | {n: moved(v, amount, rng) for n, v in feeds.items()}
        for node in self.nodes:
            results = given if node.output[0] in given else self.reference(node, values)
            if results is None:
                raise ValueError(f"nobody knows {node.op_type}")
            cancels = node.op_type in TRANSFORMS
            values |= {n: moved(results[n], amount, rng, cancels) for n in node.output if n}
        return values
