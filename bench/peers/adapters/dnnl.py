"""oneDNN's primitives through dnnl_peer.cc: layouts `any`, weights reordered beforehand.

row_major: inputs and results are row-major, as the other peers have them, and reorders are timed;
otherwise they are in the layout oneDNN likes best.
algorithm: direct, winograd (where oneDNN accepts it, direct elsewhere), or best (per layer, the
faster of both when timed alone at load).
"""

import ctypes
import itertools
import time

import numpy as np
import onnx
from onnx import numpy_helper

from adapters import load_inputs

DIRECT, WINOGRAD = 1, 2


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class Peer:
    def __init__(self, setup):
        self.algorithm, self.row_major = setup["algorithm"], setup["row_major"]
        lib = self.lib = ctypes.CDLL(setup["library"])
        for name in ("version", "failure", "error", "detail"):
            getattr(lib, "dp_" + name).restype = ctypes.c_char_p
        lib.dp_create.restype = ctypes.c_void_p
        for name in ("error", "detail", "finish", "run", "free"):
            getattr(lib, "dp_" + name).argtypes = [ctypes.c_void_p]
        lib.dp_output.argtypes = lib.dp_set_input.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        lib.dp_pool.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        lib.dp_gemm.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
        lib.dp_conv.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int, ctypes.c_int]
        self.handle = None

    def create(self, shape):
        handle = self.lib.dp_create((ctypes.c_int64 * len(shape))(*shape), len(shape),
                                    int(self.row_major))
        if not handle:
            raise RuntimeError(self.lib.dp_failure().decode())
        return handle

    def must(self, handle, code):
        if code != 0:
            raise RuntimeError(self.lib.dp_error(handle).decode())

    def add(self, handle, layer, weights, i, algorithm):
        """Adds a layer, direct where `algorithm` is refused; returns whether it was taken."""
        lib = self.lib
        if layer["kind"] == "pool":
            self.must(handle, lib.dp_pool(handle, (ctypes.c_int64 * 6)(2, 2, 2, 2, 0, 0)))
        elif layer["kind"] == "gemm":
            self.must(handle, lib.dp_gemm(handle, layer["n"], pointer(weights[f"w{i}"])))
        else:
            p = (ctypes.c_int64 * 10)(layer["out"], *layer["kernel"], *layer["stride"],
                                      *layer["pad"], *layer["dilation"], layer["groups"])
            arguments = (p, pointer(weights[f"w{i}"]), pointer(weights[f"b{i}"]), 1)
            if lib.dp_conv(handle, *arguments, algorithm) != 0:
                self.must(handle, lib.dp_conv(handle, *arguments, DIRECT))
                return algorithm == DIRECT
        return True

    def alone(self, shape, layer, weights, i, algorithm):
        """Seconds of a run of one layer, infinite where the algorithm is refused."""
        handle = self.create(shape)
        try:
            if not self.add(handle, layer, weights, i, algorithm):
                return float("inf")
            self.must(handle, self.lib.dp_finish(handle))
            self.must(handle, self.lib.dp_set_input(handle, pointer(np.zeros(shape, np.float32))))
            times = []
            for _ in range(5):
                start = time.perf_counter()
                self.must(handle, self.lib.dp_run(handle))
                times.append(time.perf_counter() - start)
            return min(times)
        finally:
            self.lib.dp_free(handle)

    def choose(self, shape, layer, weights, i):
        if layer["kind"] != "conv" or self.algorithm == "direct":
            return DIRECT
        if self.algorithm == "winograd":
            return WINOGRAD
        return min((DIRECT, WINOGRAD),
                   key=lambda a: self.alone(shape, layer, weights, i, a))

    def load(self, request):
        case = request["case"]
        if "layers" not in case:
            raise NotImplementedError("oneDNN is given 2-d convolutions, pools and products only")
        if self.handle:
            self.lib.dp_free(self.handle)
            self.handle = None
        weights = {t.name: numpy_helper.to_array(t) for t in onnx.load(request["model"]).graph
                   .initializer}
        handle, shape = self.create(case["shape"]), list(case["shape"])
        self.handle = handle
        for i, layer in enumerate(case["layers"]):
            self.add(handle, layer, weights, i, self.choose(shape, layer, weights, i))
            shape = next_shape(shape, layer)
        self.must(handle, self.lib.dp_finish(handle))
        self.result = np.empty(shape, np.float32)
        (value,) = load_inputs(request["inputs"]).values()
        self.must(handle, self.lib.dp_set_input(handle, pointer(np.ascontiguousarray(value))))

    def run(self):
        if self.lib.dp_run(self.handle) != 0:
            raise RuntimeError(self.lib.dp_error(self.handle).decode())

    def outputs(self):
        self.must(self.handle, self.lib.dp_output(self.handle, pointer(self.result)))
        return [self.result]

    def version(self):
        return self.lib.dp_version().decode()

    def detail(self):
        names = self.lib.dp_detail(self.handle).decode().split(", ")
        return ", ".join(f"{len(list(g))} x {n}" for n, g in itertools.groupby(names))


def next_shape(shape, layer):
    from cases import conv_size
    if layer["kind"] == "gemm":
        return [shape[0], layer["n"]]
    if layer["kind"] == "pool":
        return [*shape[:2], *(s // 2 for s in shape[2:])]
    return [shape[0], layer["out"], *conv_size(layer, shape[2:])]
