"""Makes a failing model smaller while it fails in the same way."""

import copy
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def used_names(nodes):
    """Names that nodes read, inside branches too."""
    names = set()
    for node in nodes:
        names |= set(node.input)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                names |= used_names(attribute.g.node)
    return names


def types_of(model):
    """Element type and shape of the values that onnx can tell."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    found = {}
    for info in [*inferred.value_info, *inferred.input, *inferred.output]:
        tensor = info.type.tensor_type
        dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
        if tensor.elem_type and None not in dims:
            found[info.name] = (tensor.elem_type, dims)
    return found


def tidy(model, feeds):
    """Drops what no output needs; None if nothing is left."""
    graph = model.graph
    needed = {o.name for o in graph.output}
    keep = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            keep.append(node)
            needed |= used_names([node])
    if not keep:
        return None
    for field, kept in (
        (graph.node, keep[::-1]),
        (graph.input, [i for i in graph.input if i.name in needed]),
        (graph.initializer, [i for i in graph.initializer if i.name in needed]),
    ):
        kept = [copy.deepcopy(v) for v in kept]
        del field[:]
        field.extend(kept)
    return model, {i.name: feeds[i.name] for i in graph.input}


def fewer_outputs(model, feeds):
    for i in range(len(model.graph.output)):
        if len(model.graph.output) > 1:
            smaller = copy.deepcopy(model)
            del smaller.graph.output[i]
            yield tidy(smaller, feeds)


def ends_earlier(model, feeds):
    """The values before the last nodes as outputs instead."""
    types = types_of(model)
    for node in reversed(model.graph.node):
        for name in node.input:
            if name in types and any(name in n.output for n in model.graph.node):
                smaller = copy.deepcopy(model)
                del smaller.graph.output[:]
                smaller.graph.output.append(helper.make_tensor_value_info(name, *types[name]))
                yield tidy(smaller, feeds)


def begins_later(model, feeds):
    """A node's result as an input instead."""
    types = types_of(model)
    rng = np.random.default_rng(0)
    outputs = {o.name for o in model.graph.output}
    for i, node in enumerate(model.graph.node):
        name = node.output[0]
        if len(node.output) != 1 or name not in types or name in outputs:
            continue
        dtype, shape = types[name]
        if dtype not in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
            continue
        smaller = copy.deepcopy(model)
        del smaller.graph.node[i]
        smaller.graph.input.append(helper.make_tensor_value_info(name, dtype, shape))
        value = rng.normal(size=shape).astype(helper.tensor_dtype_to_np_dtype(dtype))
        yield tidy(smaller, feeds | {name: value})


def passed_over(model, feeds):
    """A node whose result looks like one of its operands left out."""
    types = types_of(model)
    outputs = {o.name for o in model.graph.output}
    for i, node in enumerate(model.graph.node):
        for name in node.input:
            if node.output[0] in outputs or name not in types or types[name] != types.get(node.output[0]):
                continue
            smaller = copy.deepcopy(model)
            del smaller.graph.node[i]
            for other in smaller.graph.node:
                for k, operand in enumerate(other.input):
                    if operand == node.output[0]:
                        other.input[k] = name
            yield tidy(smaller, feeds)


def fewer_attributes(model, feeds):
    for i, node in enumerate(model.graph.node):
        for k in range(len(node.attribute)):
            if node.attribute[k].type != onnx.AttributeProto.GRAPH:
                smaller = copy.deepcopy(model)
                del smaller.graph.node[i].attribute[k]
                yield retyped(smaller), feeds


def smaller_extents(model, feeds):
    """Every extent E of inputs and weights as E / 2 or 1, wherever it occurs."""
    extents = {d for v in feeds.values() for d in v.shape}
    arrays = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    extents |= {d for v in arrays.values() for d in v.shape}
    for extent in sorted(extents, reverse=True):
        for less in {1, extent // 2} - {0, extent}:
            shape = lambda v: tuple(slice(less if d == extent else d) for d in v.shape)
            smaller = copy.deepcopy(model)
            fewer = {name: np.ascontiguousarray(v[shape(v)]) for name, v in feeds.items()}
            for i, t in enumerate(smaller.graph.initializer):
                v = arrays[t.name]
                if v.dtype.kind == "f":
                    smaller.graph.initializer[i].CopyFrom(numpy_helper.from_array(np.ascontiguousarray(v[shape(v)]), t.name))
            for info in smaller.graph.input:
                for d, n in zip(info.type.tensor_type.shape.dim, fewer[info.name].shape):
                    d.dim_value = n
            yield retyped(smaller), fewer


def retyped(model):
    """The model with the shapes of its outputs derived again."""
    bare = copy.deepcopy(model)
    for output in bare.graph.output:
        output.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(bare, strict_mode=True, data_prop=True)
    for mine, output in zip(model.graph.output, inferred.graph.output):
        mine.CopyFrom(output)
    return model


STEPS = (fewer_outputs, ends_earlier, begins_later, passed_over, smaller_extents, fewer_attributes)


def shrink(model, feeds, fails, seconds=60):
    """`fails(model, feeds)` holds for the given model; so it does for the one returned."""
    end = time.monotonic() + seconds
    again = True
    while again:
        again = False
        for step in STEPS:
            candidates = step(model, feeds)
            while time.monotonic() < end:
                try:
                    candidate = next(candidates, None)
                except Exception:  # onnx cannot type what this step made
                    break
                if candidate is None:
                    break
                try:
                    onnx.checker.check_model(candidate[0], full_check=True)
                except Exception:
                    continue
                if fails(*candidate):
                    model, feeds = candidate
                    again = True
                    candidates = step(model, feeds)
    return model, feeds
