"""Tilewright through libtilewright_runtime.so (include/tilewright/runtime.h), in this process."""

import ctypes
import os
import subprocess
import time

import numpy as np

from adapters import aligned, load_inputs

Pointer = ctypes.c_void_p
KINDS = {(0, 8): np.int8, (0, 16): np.int16, (0, 32): np.int32, (0, 64): np.int64, (1, 8): np.uint8,
         (2, 16): np.float16, (2, 32): np.float32, (2, 64): np.float64, (6, 8): np.bool_}


class DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", Pointer), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("dtype", DType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", Pointer),
                ("byte_offset", ctypes.c_uint64)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint64), ("name", ctypes.c_char_p),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("ndim", ctypes.c_int32),
                ("dtype", DType), ("dynamic_axis", ctypes.c_int32)]


class SessionOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint64), ("threads", ctypes.c_int32),
                ("flush_denormals", ctypes.c_int32)]


def bind(path):
    lib = ctypes.CDLL(path)
    lib.tw_version.restype = lib.tw_error_text.restype = ctypes.c_char_p
    lib.tw_error_text.argtypes = lib.tw_error_free.argtypes = [Pointer]
    lib.tw_module_close.argtypes = lib.tw_session_close.argtypes = [Pointer]
    lib.tw_module_open.argtypes = [ctypes.c_char_p, Pointer, Pointer, Pointer]
    lib.tw_session_create.argtypes = [Pointer, Pointer, Pointer, Pointer]
    for side in ("input", "output"):
        count = getattr(lib, f"tw_session_{side}_count")
        count.restype, count.argtypes = ctypes.c_size_t, [Pointer]
        getattr(lib, f"tw_session_{side}_info").argtypes = [Pointer, ctypes.c_size_t, Pointer,
                                                            Pointer]
    lib.tw_session_run.argtypes = [Pointer, Pointer, Pointer, ctypes.c_size_t, Pointer, Pointer,
                                   ctypes.c_size_t, Pointer]
    return lib


class Peer:
    def __init__(self, setup):
        self.tool, self.math, self.threads = setup["tilewright"], setup["math"], setup["threads"]
        self.lib = bind(setup["runtime"])
        self.session = Pointer()
        self.module = Pointer()
        self.compile_seconds = 0

    def call(self, function, *arguments):
        error = Pointer()
        if function(*arguments, ctypes.byref(error)) != 0:
            text = self.lib.tw_error_text(error).decode(errors="replace")
            self.lib.tw_error_free(error)
            raise RuntimeError(text)

    def compile(self, request):
        package = os.path.join(request["work"], f"model-{os.getpid()}.twm")
        start = time.perf_counter()
        done = subprocess.run(
            [self.tool, "--progress", "none", "compile", request["model"], "-o", package,
             "--threads", str(self.threads), "--math", self.math], capture_output=True, text=True)
        self.compile_seconds = time.perf_counter() - start
        if done.returncode != 0:
            raise RuntimeError(f"tilewright compile exits with {done.returncode}: "
                               + (done.stderr or done.stdout)[-300:])
        return package

    def load(self, request):
        if self.session:
            self.lib.tw_session_close(self.session)
            self.lib.tw_module_close(self.module)
            self.session, self.module = Pointer(), Pointer()
        package = self.compile(request)
        try:
            self.call(self.lib.tw_module_open, package.encode(), None, ctypes.byref(self.module))
        finally:
            os.unlink(package)
        options = SessionOptions(ctypes.sizeof(SessionOptions), self.threads, 0)
        self.call(self.lib.tw_session_create, self.module, ctypes.byref(options),
                  ctypes.byref(self.session))
        given = load_inputs(request["inputs"])
        self.arrays = [self.allocate("input", i, given) for i in range(
            self.lib.tw_session_input_count(self.session))]
        self.results = [self.allocate("output", i, None) for i in range(
            self.lib.tw_session_output_count(self.session))]
        self.inputs = (Tensor * len(self.arrays))(*(t for t, _ in self.arrays))
        self.outs = (Tensor * len(self.results))(*(t for t, _ in self.results))

    def allocate(self, side, index, given):
        """(tensor, array) for an input or output; an input's values come from `given`."""
        info = TensorInfo(struct_size=ctypes.sizeof(TensorInfo))
        self.call(getattr(self.lib, f"tw_session_{side}_info"), self.session, index,
                  ctypes.byref(info))
        shape = [info.shape[d] for d in range(info.ndim)]
        dtype = KINDS[(info.dtype.code, info.dtype.bits)]
        array = np.zeros(shape, dtype) if given is None else given[info.name.decode()]
        array = aligned(np.ascontiguousarray(array.reshape(shape), dtype))
        extents = (ctypes.c_int64 * len(shape))(*shape)
        tensor = Tensor(array.ctypes.data, 1, 0, len(shape), info.dtype, extents, None, 0)
        return tensor, array

    def run(self):
        self.call(self.lib.tw_session_run, self.session, None, self.inputs, len(self.inputs), None,
                  self.outs, len(self.outs))

    def outputs(self):
        return [array for _, array in self.results]

    def version(self):
        return self.lib.tw_version().decode()

    def detail(self):
        return f"--math {self.math}, compiled in {self.compile_seconds:.1f} s"
