"""An ONNX model as eager PyTorch calls on the GPU: what a network costs there.

Nodes run one by one, f32, batch normalisation apart as in eval mode; recurrences by cuDNN. Needs the
`onnx` package to read the file.
"""

import numpy
import onnx
import torch
from onnx import numpy_helper

functional = torch.nn.functional


def pads_of(attrs, rank):
    """Padding that PyTorch can give; it must be the same on both sides."""
    pads = attrs.get("pads", [0] * 2 * rank)
    if list(pads[:rank]) != list(pads[rank:]):
        raise RuntimeError(f"padding {pads} differs between sides")
    return tuple(pads[:rank])


def conv(x, w, bias=None, **attrs):
    rank = w.dim() - 2
    call = getattr(functional, f"conv{rank}d")
    return call(x, w, bias, tuple(attrs.get("strides", [1] * rank)), pads_of(attrs, rank),
                tuple(attrs.get("dilations", [1] * rank)), attrs.get("group", 1))  # yapf: disable


def conv_transpose(x, w, bias=None, **attrs):
    rank = w.dim() - 2
    call = getattr(functional, f"conv_transpose{rank}d")
    return call(x, w, bias, tuple(attrs.get("strides", [1] * rank)), pads_of(attrs, rank),
                tuple(attrs.get("output_padding", [0] * rank)), attrs.get("group", 1),
                tuple(attrs.get("dilations", [1] * rank)))  # yapf: disable


def max_pool(x, **attrs):
    rank = x.dim() - 2
    call = getattr(functional, f"max_pool{rank}d")
    pads = attrs.get("pads", [0] * 2 * rank)
    if list(pads[:rank]) != list(pads[rank:]):
        around = [side for i in reversed(range(rank)) for side in (pads[i], pads[rank + i])]
        x, pads = functional.pad(x, around, value=float("-inf")), [0] * 2 * rank
    return call(x, attrs["kernel_shape"], tuple(attrs.get("strides", [1] * rank)),
                tuple(pads[:rank]), ceil_mode=bool(attrs.get("ceil_mode", 0)))  # yapf: disable


def average_pool(x, **attrs):
    rank = x.dim() - 2
    call = getattr(functional, f"avg_pool{rank}d")
    return call(x, attrs["kernel_shape"], tuple(attrs.get("strides", [1] * rank)),
                pads_of(attrs, rank), bool(attrs.get("ceil_mode", 0)),
                bool(attrs.get("count_include_pad", 0)))  # yapf: disable


def gemm(a, b, c=None, **attrs):
    a = a.t() if attrs.get("transA", 0) else a
    b = b.t() if attrs.get("transB", 0) else b
    alpha, beta = attrs.get("alpha", 1.0), attrs.get("beta", 1.0)
    return alpha * (a @ b) if c is None else torch.addmm(c, a, b, beta=beta, alpha=alpha)


def batch_norm(x, scale, bias, mean, variance, **attrs):
    return functional.batch_norm(x, mean, variance, scale, bias, eps=attrs.get("epsilon", 1e-5))


def lrn(x, **attrs):
    return functional.local_response_norm(x, attrs["size"], attrs.get("alpha", 1e-4),
                                          attrs.get("beta", 0.75), attrs.get("bias", 1.0))


def flatten(x, **attrs):
    axis = attrs.get("axis", 1)
    return x.reshape(x.shape[:axis].numel() if axis else 1, -1)


def reshape(x, shape, **_):
    sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(shape.tolist())]
    return x.reshape(sizes)


def squeeze(x, axes=None, **_):
    for axis in sorted(axes.tolist(), reverse=True) if axes is not None else []:
        x = x.squeeze(axis)
    return x


def unsqueeze(x, axes, **_):
    for axis in sorted(axes.tolist()):
        x = x.unsqueeze(axis)
    return x


ELEMENTWISE = {
    "Add": torch.add,
    "Sub": torch.sub,
    "Mul": torch.mul,
    "Div": torch.div,
    "Pow": torch.pow,
    "Relu": functional.relu,
    "Sigmoid": torch.sigmoid,
    "Tanh": torch.tanh,
    "Erf": torch.erf,
    "Sqrt": torch.sqrt,
    "Exp": torch.exp,
    "MatMul": torch.matmul,
}
CALLS = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "Gemm": gemm,
    "BatchNormalization": batch_norm,
    "LRN": lrn,
    "Flatten": flatten,
    "Reshape": reshape,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Identity": lambda x, **_: x,
    "Dropout": lambda x, *_, **__: x,
    "LeakyRelu": lambda x, **a: functional.leaky_relu(x, a.get("alpha", 0.01)),
    "Clip": lambda x, low=None, high=None, **_: torch.clamp(x, low, high),
    "GlobalAveragePool": lambda x, **_: x.mean(tuple(range(2, x.dim())), keepdim=True),
    "Softmax": lambda x, **a: functional.softmax(x, a.get("axis", -1)),
    "Transpose": lambda x, **a: x.permute(a["perm"]),
    "Concat": lambda *x, **a: torch.cat(x, a["axis"]),
    "Gather": lambda x, at, **a: (
        functional.embedding(at, x) if a.get("axis", 0) == 0 and x.dim() == 2
        else x.index_select(a.get("axis", 0), at.reshape(-1))
    ),
}
CALLS.update({name: lambda *x, f=f, **_: f(*x) for name, f in ELEMENTWISE.items()})


class Lstm:
    """A node's LSTM in cuDNN: gates i, o, f, c become i, f, c, o."""

    def __init__(self, values):
        w, r, b = (values[i] for i in range(3))
        hidden = r.shape[2]
        if w.shape[0] != 1 or values[3] is not None:
            raise RuntimeError("only plain LSTMs of one direction")

        def gates(x):
            i, o, f, c = x.split(hidden)
            return torch.cat([i, f, c, o])

        self.module = torch.nn.LSTM(w.shape[2], hidden, bias=b is not None).cuda()
        with torch.no_grad():
            self.module.weight_ih_l0.copy_(gates(w[0]))
            self.module.weight_hh_l0.copy_(gates(r[0]))
            if b is not None:
                self.module.bias_ih_l0.copy_(gates(b[0, : 4 * hidden]))
                self.module.bias_hh_l0.copy_(gates(b[0, 4 * hidden :]))
        self.module.flatten_parameters()

    def __call__(self, x, h=None, c=None):
        zero = torch.zeros(1, x.shape[1], self.module.hidden_size, device=x.device)
        y, (h, c) = self.module(x, (zero if h is None else h, zero if c is None else c))
        return y.unsqueeze(1), h, c


def value_of(attribute):
    value = onnx.helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


class Network:
    def __init__(self, path):
        model = onnx.load(path)
        self.values = {}
        self.sizes = {}  # values that are shapes and axes: PyTorch wants them on the processor
        for tensor in model.graph.initializer:
            self.keep(tensor.name, numpy_helper.to_array(tensor))
        self.nodes = []
        for node in model.graph.node:
            attrs = {a.name: value_of(a) for a in node.attribute}
            if node.op_type == "Constant":
                self.keep(node.output[0], numpy_helper.to_array(attrs["value"]))
            elif node.op_type == "LSTM":
                weights = [self.values.get(name) for name in node.input[1:5]] + [None]
                self.nodes.append((Lstm(weights), [node.input[0], *node.input[5:7]], node.output))
            elif node.op_type in CALLS:
                self.nodes.append((self.bound(node.op_type, attrs), node.input, node.output))
            else:
                raise RuntimeError(f"no PyTorch call for {node.op_type}")
        self.inputs = {}
        for value in model.graph.input:
            if value.name not in self.values:
                self.inputs[value.name] = self.random(value.type.tensor_type)

    def keep(self, name, array):
        array = numpy.array(array)
        self.sizes[name] = torch.from_numpy(array)
        self.values[name] = self.sizes[name].cuda()

    @staticmethod
    def bound(op, attrs):
        return lambda *x: CALLS[op](*x, **attrs)

    @staticmethod
    def random(kind):
        shape = [dim.dim_value or 1 for dim in kind.shape.dim]
        if kind.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
            return torch.randint(0, 100, shape, device="cuda")
        return torch.randn(shape, device="cuda")

    def __call__(self):
        values = {**self.values, **self.inputs}
        for call, inputs, outputs in self.nodes:
            operands = [self.pick(values, name) for name in inputs]
            results = call(*operands)
            results = results if isinstance(results, tuple) else (results,)
            values.update(zip(outputs, results))
        return values

    def pick(self, values, name):
        """Small integers are sizes: reading them from the GPU would wait for it."""
        if not name:
            return None
        known = self.sizes.get(name)
        small = known is not None and known.dim() <= 1 and known.dtype == torch.int64
        return known if small else values[name]


def load(path):
    """A function that runs the model of `path` once, on random inputs."""
    return Network(path)
