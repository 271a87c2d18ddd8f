#!/usr/bin/env python3
"""Runs a package with every input and output between pages that nobody may touch: guarded.py LIBRARY PACKAGE INPUTS.npz

Good inputs first, then ones that no sound caller gives (hostile.py). Whatever they hold, the code reads and
writes its tensors only: an access outside kills this process, or changes the bytes around a tensor, or the
results. After each refusal the good inputs must give the same results as before. A line says what is wrong.
"""

import ctypes as c
import mmap
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "e2e")]
from hostile import TRIALS, spoiled  # noqa: E402
from hostile_values import Session, Tensor, Type  # noqa: E402

PAGE, ALIGNMENT, FILL = mmap.PAGESIZE, 64, 0xFF  # floats of such bytes are NaN
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}
libc = c.CDLL(None, use_errno=True)
libc.mmap.restype = c.c_void_p
libc.mmap.argtypes = [c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_int, c.c_long]
libc.mprotect.argtypes = [c.c_void_p, c.c_size_t, c.c_int]
libc.munmap.argtypes = [c.c_void_p, c.c_size_t]


class Guarded:
    """Room for `size` bytes, at the end or the beginning of pages with forbidden ones on both sides."""

    def __init__(self, size, at_end):
        self.size, self.room = size, max(-(-size // PAGE), 1) * PAGE
        self.base = libc.mmap(None, self.room + 2 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        for outside in (self.base, self.base + PAGE + self.room):
            if libc.mprotect(outside, PAGE, 0) != 0:
                raise OSError("mprotect")
        first = self.room - -(-size // ALIGNMENT) * ALIGNMENT if at_end else 0
        self.pages = (c.c_uint8 * self.room).from_address(self.base + PAGE)
        self.bytes = np.frombuffer(self.pages, np.uint8)
        self.bytes[:] = FILL
        self.inside = slice(first, first + size)
        self.address = self.base + PAGE + first

    def put(self, array):
        self.bytes[self.inside] = np.frombuffer(array.tobytes(), np.uint8)

    def untouched(self):
        around = np.delete(self.bytes, np.r_[self.inside])
        return bool(np.all(around == FILL))

    def close(self):
        del self.bytes, self.pages
        libc.munmap(self.base, self.room + 2 * PAGE)


def tensor(address, dtype, shape):
    sizes = (c.c_int64 * max(len(shape), 1))(*shape)
    return Tensor(address, 1, 0, len(shape), Type(CODES[dtype.kind], 8 * dtype.itemsize, 1), sizes, None, 0), sizes


class Info(c.Structure):  # tw_tensor_info
    _fields_ = [("struct_size", c.c_uint64), ("name", c.c_char_p), ("shape", c.POINTER(c.c_int64)), ("ndim", c.c_int32),
                ("dtype", Type), ("dynamic_axis", c.c_int32)]  # fmt: skip


class Runner:
    def __init__(self, library, package):
        self.session = Session(library, package)
        lib, self.outputs = self.session.library, []
        lib.tw_session_output_count.restype = c.c_size_t
        for i in range(lib.tw_session_output_count(self.session.session)):
            info = Info(struct_size=c.sizeof(Info))
            self.session.must("tw_session_output_info", self.session.session, c.c_size_t(i), c.byref(info))
            dtype = np.dtype(f"{KINDS[info.dtype.code]}{info.dtype.bits // 8}")
            self.outputs.append((info.name, dtype, tuple(info.shape[: info.ndim])))

    def run(self, feeds, at_end):
        """The code, and the results, or None; raises ValueError where memory outside a tensor changed."""
        memory, inputs, outputs, keep = [], [], [], []
        for value in feeds.values():
            memory.append(Guarded(value.nbytes, at_end))
            memory[-1].put(value)
            made = tensor(memory[-1].address, value.dtype, value.shape)
            inputs.append(made[0]), keep.append(made)
        for _, dtype, shape in self.outputs:
            memory.append(Guarded(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize, at_end))
            made = tensor(memory[-1].address, dtype, shape)
            outputs.append(made[0]), keep.append(made)
        names = lambda all_names: (c.c_char_p * max(len(all_names), 1))(*all_names)
        array = lambda tensors: (Tensor * max(len(tensors), 1))(*tensors)
        given, made = array(inputs), array(outputs)
        code, text = self.session.call(
            "tw_session_run", self.session.session, names([n.encode() for n in feeds]), given, c.c_size_t(len(inputs)),
            names([n for n, _, _ in self.outputs]), made, c.c_size_t(len(outputs)),
        )  # fmt: skip
        results = None
        if code == 0:
            results = {}
            for (name, dtype, _), t in zip(self.outputs, made):
                shape = tuple(t.shape[: t.ndim])
                data = c.string_at(t.data, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
                results[name] = (dtype, shape, data)
        for m, value in zip(memory, feeds.values()):
            if m.bytes[m.inside].tobytes() != value.tobytes():
                raise ValueError("an input was written")
        if not all(m.untouched() for m in memory):
            raise ValueError("bytes beside a tensor were written")
        for m in memory:
            m.close()
        return code, text, results


def main():
    library, package, inputs = sys.argv[1:4]
    feeds = {k: np.ascontiguousarray(v).reshape(v.shape) for k, v in np.load(inputs).items()}
    runner = Runner(library, package)
    code, text, want = runner.run(feeds, False)
    if code != 0:
        return f"good inputs: code {code} {text}"
    for trial in range(-1, TRIALS):
        for at_end in (True, False):
            where = f"trial {trial}, {'end' if at_end else 'beginning'} of a page"
            if trial >= 0:
                code, text, _ = runner.run(spoiled(feeds, trial), at_end)
                if code not in (0, 2):
                    return f"{where}: code {code} {text}"
            code, text, got = runner.run(feeds, at_end)
            if code != 0 or got != want:
                return f"{where}: good inputs give code {code} {text}, or other results"
    return None


if __name__ == "__main__":
    problem = main()
    print(problem or "ok")
    sys.exit(1 if problem else 0)
