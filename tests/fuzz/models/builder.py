"""Random models node by node: values with known types and shapes, which onnx's own rules give."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.shape_inference import infer_node_outputs

FLOAT, DOUBLE, HALF, BF16 = (
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
)
I8, U8, I16, U16, I32, U32, I64, U64, BOOL = (
    TensorProto.INT8,
    TensorProto.UINT8,
    TensorProto.INT16,
    TensorProto.UINT16,
    TensorProto.INT32,
    TensorProto.UINT32,
    TensorProto.INT64,
    TensorProto.UINT64,
    TensorProto.BOOL,
)
FLOATS = (FLOAT, DOUBLE, HALF, BF16)
INTS = (I8, U8, I16, U16, I32, U32, I64, U64)
OPSETS = (7, 8, 9, 10) + 2 * (11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23) + (24, 25, 26)
IR_VERSIONS = {7: 4, 8: 4, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10}
IR_VERSIONS |= {23: 11, 24: 11, 25: 11, 26: 11}
EXTENTS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33)
MOST_ELEMENTS = 20000
# Functions of onnx, whose results have the type and shape of the first operand: onnx infers nothing.
LIKE_FIRST = ("GroupNormalization", "MeanVarianceNormalization")
F32_ONLY = ("CenterCropPad", "MeanVarianceNormalization")  # by their bodies, though the table says otherwise
# The last bit of an operand may change their results altogether. In types of few bits two correct
# results often differ in that bit, so there these operators get only operands that are not computed.
JUMPS = set(
    "ArgMax ArgMin TopK Hardmax Equal Greater Less GreaterOrEqual LessOrEqual Round Ceil Floor Sign Mod "
    "Cast CastLike QuantizeLinear NonZero Unique NonMaxSuppression Not Shrink ThresholdedRelu IsInf".split()
)


class Unfit(Exception):
    """What a generator tried does not fit the operator or the values at hand: try something else."""


def require(condition):
    if not condition:
        raise Unfit()


class Value:
    """A tensor of the model. `data` is its value where the model knows it."""

    def __init__(self, name, dtype, shape, data=None):
        self.name, self.dtype, self.shape, self.data = name, dtype, tuple(shape), data

    @property
    def rank(self):
        return len(self.shape)

    @property
    def size(self):
        return int(np.prod(self.shape, dtype=np.int64))


def allowed_types(schema, index):
    formals = schema.inputs
    variadic = formals and formals[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    if index >= len(formals):
        require(variadic)
        index = len(formals) - 1
    return formals[index].types


class Builder:
    """Values and nodes so far. `rng` decides everything; `real` is the model's type of floats."""

    def __init__(self, rng, opset=None, real=FLOAT):
        self.rng, self.real = rng, real
        self.opset = opset or int(rng.choice(OPSETS))
        self.nodes, self.values, self.inputs, self.feeds, self.constants = [], [], [], {}, []
        self.functions, self.counter = [], 0
        self.terminal = set()  # names of values that no node may use (their extents are unknown)
        self.held = set()  # names that branches of an If use

    # Chances.
    def chance(self, p):
        return self.rng.random() < p

    def choice(self, options):
        options = list(options)
        require(options)
        return options[int(self.rng.integers(len(options)))]

    def between(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def fresh(self, prefix="v"):
        self.counter += 1
        return f"{prefix}{self.counter}"

    def shape(self, rank=None, limit=4096):
        if rank is None:
            rank = self.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5))
        shape = [self.choice(EXTENTS) for _ in range(rank)]
        while np.prod(shape, dtype=np.int64) > limit:
            shape[self.between(0, rank - 1)] = self.choice((1, 2, 3, 4))
        return tuple(shape)

    def array(self, dtype, shape, low=None, high=None):
        """Random numbers: floats normal, integers from `low` to `high`, both included."""
        if dtype == BOOL:
            return self.rng.random(shape) < 0.5
        kind = helper.tensor_dtype_to_np_dtype(dtype)
        if low is None and dtype in FLOATS:
            return np.asarray(self.rng.normal(size=shape)).astype(kind)
        if low is None:
            low, high = (0 if dtype in (U8, U16, U32, U64) else -5), 9
        return np.asarray(self.rng.integers(low, high + 1, size=shape)).astype(kind)

    # Values.
    def input(self, dtype, shape, data=None):
        name = self.fresh("x")
        self.inputs.append(Value(name, dtype, shape))
        self.feeds[name] = self.array(dtype, shape) if data is None else data
        self.values.append(self.inputs[-1])
        return self.inputs[-1]

    def constant(self, data, dtype=None):
        data = np.asarray(data)
        if dtype is not None:
            data = data.astype(helper.tensor_dtype_to_np_dtype(dtype))
        value = Value(self.fresh("c"), helper.np_dtype_to_tensor_dtype(data.dtype), data.shape, data)
        self.constants.append(value)
        return value

    def ints(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def weights(self, *shape, scale=None, dtype=None):
        fan = np.prod(shape[1:], dtype=np.float64) if len(shape) > 1 else 1.0
        data = self.rng.normal(size=shape) * (scale or 1 / np.sqrt(max(fan, 1.0)))
        return self.constant(data, dtype or self.real)

    def pick(self, dtypes=None, rank=None, where=None, new=0.3):
        """A value of one of `dtypes` with `rank` (a number or those allowed); often one that is there."""
        dtypes = (self.real,) if dtypes is None else dtypes
        ranks = (rank,) if isinstance(rank, int) else rank
        fits = [
            v
            for v in self.values
            if v.dtype in dtypes
            and v.name not in self.terminal
            and (ranks is None or v.rank in ranks)
            and (where is None or where(v))
        ]
        if fits and not self.chance(new):
            return fits[-1] if self.chance(0.6) else self.choice(fits)
        for _ in range(20):
            shape = self.shape(None if ranks is None else self.choice(ranks))
            candidate = Value("", self.choice(dtypes), shape)
            if where is None or where(candidate):
                if self.chance(0.1):
                    return self.constant(self.array(candidate.dtype, shape), candidate.dtype)
                return self.input(candidate.dtype, shape)
        raise Unfit()

    # Nodes.
    def add(self, op, inputs, outputs=1, domain="", absent=(), **attributes):
        """Appends a node; None stands for an absent operand or attribute. The Values of the outputs but for `absent`."""
        inputs = list(inputs)
        while inputs and inputs[-1] is None:
            inputs.pop()
        try:
            schema = onnx.defs.get_schema(op, self.opset, domain)
        except onnx.defs.SchemaError as unknown:
            raise Unfit() from unknown
        attributes = {k: v for k, v in attributes.items() if v is not None}
        require(all(k in schema.attributes for k in attributes))
        require(len(inputs) <= schema.max_input)
        for i, v in enumerate(inputs):
            if v is not None:
                kind = helper.tensor_dtype_to_string(v.dtype).split(".")[-1].lower()
                require(f"tensor({kind})" in allowed_types(schema, i))
        require(op not in F32_ONLY or self.real == FLOAT)
        if self.real in (HALF, BF16) and op in JUMPS:
            require(all(v.name in self.feeds or v.data is not None for v in inputs if v))
        names = ["" if i in absent else self.fresh() for i in range(outputs)]
        node = helper.make_node(op, [v.name if v else "" for v in inputs], names, domain=domain, **attributes)
        types = self.infer(schema, node, [v for v in inputs if v])
        self.nodes.append(node)
        results = [Value(n, t[0], t[1]) for n, t in zip([n for n in names if n], types)]
        self.values += results
        return results[0] if outputs == 1 else results

    def infer(self, schema, node, inputs):
        known = lambda shape: [None if d < 0 else d for d in shape]
        types = {v.name: helper.make_tensor_type_proto(v.dtype, known(v.shape)) for v in inputs}
        data = {v.name: numpy_helper.from_array(v.data, v.name) for v in inputs if v.data is not None}
        opset = [helper.make_opsetid("", self.opset)]
        try:
            found = infer_node_outputs(schema, node, types, data, opset_imports=opset)
        except Exception as refused:  # whatever onnx thinks is wrong with the node
            raise Unfit() from refused
        if node.op_type in LIKE_FIRST:
            return [(inputs[0].dtype, inputs[0].shape)]
        result = []
        for name in filter(None, node.output):
            require(name in found)
            tensor = found[name].tensor_type
            require(tensor.HasField("shape"))
            shape = [d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim]
            if -1 in shape:
                self.terminal.add(name)
            require(np.prod([max(d, 1) for d in shape], dtype=np.int64) <= MOST_ELEMENTS)
            result.append((tensor.elem_type, shape))
        return result

    def mark(self):
        return (len(self.nodes), len(self.values), len(self.inputs), len(self.constants), len(self.functions))

    def undo(self, mark):
        """Forgets what was added since `mark`."""
        nodes, values, inputs, constants, functions = mark
        for v in self.inputs[inputs:]:
            self.feeds.pop(v.name)
        del self.nodes[nodes:], self.values[values:], self.inputs[inputs:]
        del self.constants[constants:], self.functions[functions:]

    def attempt(self, generator):
        """Whether `generator(self)` added something; if it does not fit, nothing is changed."""
        mark = self.mark()
        try:
            generator(self)
        except Unfit:
            self.undo(mark)
            return False
        return len(self.nodes) > mark[0]

    # The model.
    def constant_nodes(self, constants):
        """Some constants as nodes, as some exporters write them; and the others."""
        as_nodes = [v for v in constants if self.chance(0.15)]
        make = lambda v: helper.make_node("Constant", [], [v.name], value=numpy_helper.from_array(v.data))
        return [make(v) for v in as_nodes], [v for v in constants if v not in as_nodes]

    def model(self):
        used = {name for n in self.nodes for name in n.input} | self.held
        made = [v for v in self.values if v not in self.inputs]
        outputs = [v for v in made if v.name not in used or (v.name not in self.terminal and self.chance(0.1))]
        require(outputs)
        constants = [v for v in self.constants if v.name in used]
        inputs = [v for v in self.inputs if v.name in used]
        info = lambda v: helper.make_tensor_value_info(
            v.name, v.dtype, [None if d < 0 else d for d in v.shape]
        )
        nodes, constants = self.constant_nodes(constants)
        for i, node in enumerate(self.nodes):
            node.name = f"{node.op_type.lower()}/{i}" if self.chance(0.5) else ""
        graph = helper.make_graph(
            nodes + self.nodes,
            "random",
            [info(v) for v in inputs],
            [info(v) for v in outputs],
            [numpy_helper.from_array(v.data, v.name) for v in constants],
        )
        imports = [helper.make_opsetid("", self.opset)]
        if self.functions:
            imports.append(helper.make_opsetid("local", 1))
        model = helper.make_model(graph, opset_imports=imports, functions=self.functions)
        model.ir_version = max(IR_VERSIONS[self.opset], 8 if self.functions else 0)
        return model, {v.name: self.feeds[v.name] for v in inputs}
