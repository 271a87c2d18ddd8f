"""Run-time values that no operator can take: each is refused, or gives what ONNX says, and the session goes on.

hostile_values.py PROGRAM RUNTIME_LIBRARY [OPTIONS]

One model with all operators that take indices, lengths or numbers at run time, compiled with OPTIONS; without
options also what `check` says to sizes that nothing can have.
"""

import ctypes as c
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

LEAST, MOST = -(2**63), 2**63 - 1
rng = np.random.default_rng(11)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def ints(values, dtype=np.int64):
    return np.array(values, dtype)


X = floats(3, 5)
W = {"w": floats(2, 20, 3), "r": floats(2, 20, 5), "s": ints([2, 2]), "one": ints([1])}
INT32 = (-(2**31), 2**31 - 1, 2**16)

# Operator, its inputs (`i`: the indices, given at run time; arrays: constants), its attributes, good
# indices, and what lies outside. The last of the indices becomes each of these.
INDEXED = [
    ("Gather", [X, "i"], {"axis": 1}, ints([0, 1]), (5, 6, -6)),
    ("Gather", [X, "i"], {"axis": 0}, ints([0, 1], np.int32), (3, 4, -4, *INT32)),
    ("GatherElements", [X, "i"], {"axis": 1}, ints([[0], [1], [2]]), (5, 6, -6)),
    ("GatherND", [X, "i"], {}, ints([[0, 1], [1, 2]]), (5, 6, -6)),
    ("GatherND", [X, "i"], {"batch_dims": 1}, ints([[0], [1], [2]]), (5, 6, -6)),
    ("ScatterND", [X, "i", floats(2)], {}, ints([[0, 1], [1, 2]]), (5, 6, -6)),
    ("ScatterND", [X, "i", floats(2)], {"reduction": "add"}, ints([[0, 1], [1, 2]]), (5, 6, -6)),
    ("ScatterElements", [X, "i", floats(3, 1)], {"axis": 1}, ints([[0], [1], [2]]), (5, 6, -6)),
    ("ScatterElements", [X, "i", floats(3, 1)], {"axis": 1, "reduction": "max"}, ints([[0], [1], [2]]), (5, 6, -6)),
    ("ReverseSequence", [floats(4, 3), "i"], {"time_axis": 0, "batch_axis": 1}, ints([1, 2, 3]), (-1, 5, 6)),
    ("RoiAlign", [floats(3, 2, 4, 5), floats(2, 4), "i"], {}, ints([2, 0]), (-1, 3, 4)),
    ("MaxUnpool", [floats(1, 1, 2, 2), "i"], {"kernel_shape": [2, 2], "strides": [2, 2]}, ints([[[[0, 2], [8, 10]]]]), (-1, 16, 17)),
    *(
        (op, [floats(6, 3, 3), W["w"][:, : 5 * g], W["r"][:, : 5 * g], "", "i"],
         {"hidden_size": 5, "direction": "bidirectional"}, ints([6, 1, 3], np.int32), (-1, 7, 8, *INT32))
        for op, g in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
    ),
]  # fmt: skip

# Operators that take any number: operator, inputs, attributes, a good value, and the definition.
TABLE = floats(4, 4)
ANY = [
    ("OneHot", ["i", ints(4), floats(2) * 0 + ints([0, 1])], {}, ints([0, 1]),
     lambda i: (np.where(i < 0, i + 4, i)[:, None] == np.arange(4)).astype(np.float64)),
    ("Trilu", [TABLE, "i"], {}, ints(0), lambda k: np.triu(TABLE, int(np.clip(k, -9, 9)))),
    ("NonMaxSuppression", [floats(1, 6, 4), floats(1, 2, 6), "i", ints([1]).astype(np.float32)], {}, ints([2]), None),
]  # fmt: skip

# Floats of any kind pass through: what comes out is not looked at here.
FLOATS = [
    ("TopK", ["i", ints([2])], {}, X), ("ArgMax", ["i"], {"axis": 1}, X), ("Cast", ["i"], {"to": T.INT32}, X),
    ("NonZero", ["i"], {}, X), ("Unique", ["i"], {}, X), ("CumSum", ["i", ints(1)], {}, X),
    ("Where", [np.array([True, False, True, True, False]), "i", X], {}, X), ("Clip", ["i", "", np.float32(1)], {}, X),
    ("Resize", ["i", "", ints([2, 2]).astype(np.float32)], {"mode": "linear"}, X),
    ("GridSample", [floats(1, 2, 4, 4), "i"], {"padding_mode": "reflection"}, floats(1, 3, 3, 2)),
    ("RoiAlign", [floats(1, 2, 4, 4), "i", ints([0, 0, 0])], {}, floats(3, 4)),
    ("DynamicQuantizeLinear", ["i"], {}, X), ("NonMaxSuppression", ["i", floats(1, 2, 6), ints([2])], {}, floats(1, 6, 4)),
]  # fmt: skip
# What must be known at compile time: operator, inputs (`i`: the sizes), attributes, good sizes.
SIZES = [
    ("Slice", [X, ints([0]), "i", ints([1]), ints([1])], {}, ints([3])),
    ("Slice", [X, "i", ints([3]), ints([1])], {}, ints([0])),
    ("Slice", [X, ints([0]), ints([3]), "i"], {}, ints([1])),
    ("Slice", [X, ints([0]), ints([3]), ints([1]), "i"], {}, ints([1])),
    ("Pad", [X, "i"], {}, ints([0, 1, 0, 1])),
    ("Tile", [X, "i"], {}, ints([1, 2])),
    ("Expand", [X, "i"], {}, ints([2, 1, 5])),
    ("Reshape", [X, "i"], {}, ints([5, 3])),
    ("ConstantOfShape", ["i"], {}, ints([2, 3])),
    ("OneHot", [ints([0, 1]), "i", floats(2)], {}, ints([4])),
    ("TopK", [X, "i"], {}, ints([2])),
    ("CumSum", [X, "i"], {}, ints(1)),
    ("Range", [ints(0), "i", ints(1)], {}, ints(5)),
    ("Range", [ints(0), ints(5), "i"], {}, ints(1)),
    ("Resize", [floats(1, 1, 4, 4), "", "", "i"], {}, ints([1, 1, 8, 8])),
    ("Resize", [floats(1, 1, 4, 4), "", "i"], {}, np.array([1, 1, 2, 2], np.float32)),
    ("Split", [X, "i"], {"axis": 1}, ints([5])),
    ("ReduceSum", [X, "i"], {}, ints([1])),
    ("Squeeze", [floats(3, 1), "i"], {}, ints([1])),
    ("Unsqueeze", [X, "i"], {}, ints([1])),
]
OUTPUTS = {"TopK": 2, "DynamicQuantizeLinear": 3}


class Model:
    """One node for each row; input and output of row k are i<k> and y<k>."""

    def __init__(self):
        self.nodes, self.inputs, self.weights, self.outputs, self.feeds = [], [], [], [], {}

    def add(self, op, operands, attributes, good):
        k = len(self.nodes)
        names = []
        for at, operand in enumerate(operands):
            names.append(operand if isinstance(operand, str) else f"c{k}_{at}")
            if operand is not None and not isinstance(operand, str):
                self.weights.append(numpy_helper.from_array(np.asarray(operand), names[-1]))
        name = f"i{k}"
        self.inputs.append(h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(good.dtype), good.shape))
        self.feeds[name] = good
        outputs = [f"y{k}"] + [f"z{k}_{o}" for o in range(1, OUTPUTS.get(op, 1))]
        self.nodes.append(h.make_node(op, [name if n == "i" else n for n in names], outputs, name=f"{op}_{k}", **attributes))
        self.outputs.append(onnx.ValueInfoProto(name=f"y{k}"))
        return name, f"y{k}"

    def save(self, path):
        graph = h.make_graph(self.nodes, "hostile", self.inputs, self.outputs, self.weights)
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8), path)


class Type(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class Tensor(c.Structure):  # DLTensor
    _fields_ = [("data", c.c_void_p), ("device", c.c_int), ("number", c.c_int32), ("ndim", c.c_int32), ("type", Type),
                ("shape", c.POINTER(c.c_int64)), ("strides", c.c_void_p), ("offset", c.c_uint64)]  # fmt: skip


class Session:
    def __init__(self, library, package):
        self.library, self.error, self.session = c.CDLL(library), c.c_void_p(), c.c_void_p()
        self.library.tw_error_text.restype = c.c_char_p
        module = c.c_void_p()
        self.must("tw_module_open", package.encode(), None, c.byref(module))
        self.must("tw_session_create", module, None, c.byref(self.session))

    def call(self, function, *arguments):
        """The code, and the error's text."""
        code = getattr(self.library, function)(*arguments, c.byref(self.error))
        return code, self.library.tw_error_text(self.error).decode() if code else ""

    def must(self, function, *arguments):
        code, text = self.call(function, *arguments)
        if code:
            sys.exit(f"FAIL {function}: {text}")

    def set(self, name, array):
        array = np.ascontiguousarray(array).reshape(array.shape)
        kind = {"f": 2, "i": 0}[array.dtype.kind]
        shape = (c.c_int64 * max(array.ndim, 1))(*array.shape)
        tensor = Tensor(array.ctypes.data, 1, 0, array.ndim, Type(kind, 8 * array.itemsize, 1), shape, None, 0)
        self.must("tw_session_set_input", self.session, name.encode(), c.byref(tensor))

    def run(self):
        none = c.c_size_t(0)
        return self.call("tw_session_run", self.session, None, None, none, None, None, none)

    def get(self, name):
        tensor = Tensor()
        self.must("tw_session_get_output", self.session, name.encode(), c.byref(tensor))
        shape = tensor.shape[: tensor.ndim]
        size = int(np.prod(shape, dtype=np.int64)) * tensor.type.bits // 8
        kind = {0: "i", 1: "u", 2: "f"}.get(tensor.type.code, "u")
        return np.frombuffer(c.string_at(tensor.data, size), f"{kind}{tensor.type.bits // 8}").reshape(shape)


def spoiled(good, value):
    bad = good.copy()
    bad.reshape(-1)[-1:] = value
    return bad


def check_sizes(program):
    """Sizes that nothing can have: `check` answers, whatever it says. Yields what it did not."""
    for op, operands, attributes, good in SIZES:
        for value in (np.nan, np.inf, -1.0, 3e38) if good.dtype.kind == "f" else (LEAST, MOST, -2, 2**62):
            model = Model()
            model.add(op, [spoiled(good, value) if isinstance(o, str) and o == "i" else o for o in operands], attributes, good)
            model.save("size.onnx")
            done = subprocess.run([program, "check", "size.onnx"], capture_output=True, text=True, timeout=60)
            if done.returncode not in (0, 3, 6):
                yield f"{op} of {value}: exit {done.returncode} {done.stderr}"


def main():
    program, library = sys.argv[1:3]
    model, tries = Model(), []
    for op, operands, attributes, good, outside in INDEXED:
        name, _ = model.add(op, operands, attributes, good)
        far = () if good.dtype == np.int32 else (LEAST, MOST, 2**32)
        tries += [(op, name, spoiled(good, v), "refused", None, v) for v in (*outside, *far)]
    for op, operands, attributes, good, definition in ANY:
        name, output = model.add(op, operands, attributes, good)
        for v in (LEAST, MOST, -1, -5, 4, 5, 2**32):
            tries.append((op, name, spoiled(good, v), output, definition, v))
    for op, operands, attributes, good in FLOATS:
        name, output = model.add(op, operands, attributes, good)
        for v in (np.nan, np.inf, -np.inf, 3e38):
            tries += [(op, name, bad, output, None, v) for bad in (spoiled(good, v), np.full_like(good, v))]
    model.save("hostile.onnx")
    subprocess.run([program, "-q", "compile", "hostile.onnx", "-o", "hostile.twm", "--samples", "none", *sys.argv[3:]], check=True)
    session = Session(library, "hostile.twm")
    for name, good in model.feeds.items():
        session.set(name, good)
    problems = [] if sys.argv[3:] else list(check_sizes(program))
    session.must("tw_session_run", session.session, None, None, c.c_size_t(0), None, None, c.c_size_t(0))
    want = {o.name: session.get(o.name) for o in model.outputs}
    for op, name, bad, expected, definition, value in tries:
        session.set(name, bad)
        code, text = session.run()
        where = f"{op}, {name} = {value}"
        if expected == "refused":
            if code != 2 or not (f"'{name}'" in text or f"{op}_{name[1:]}" in text):
                problems.append(f"{where}: code {code} {text}")
        elif code:
            problems.append(f"{where}: code {code} {text}")
        elif definition and not np.array_equal(session.get(expected), definition(bad)):
            problems.append(f"{where}: {session.get(expected)} instead of {definition(bad)}")
        session.set(name, model.feeds[name])
        code, text = session.run()
        if code:
            problems.append(f"{where}: afterwards code {code} {text}")
        problems += [f"{where}: {o} differs afterwards" for o, v in want.items() if not np.array_equal(session.get(o), v, equal_nan=v.dtype.kind == "f")]
    for problem in problems:
        print(f"FAIL {problem}")
    print(f"{len(tries)} values in {len(model.nodes)} operators, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
