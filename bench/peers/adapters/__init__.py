"""One module per peer, each with a class Peer: load(request), run(), outputs(), version() and
detail()."""

import numpy as np


def load_inputs(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def aligned(array):
    """A copy in memory aligned to 64 bytes, which no peer has to copy again."""
    room = np.empty(array.nbytes + 64, dtype=np.uint8)
    start = -room.ctypes.data % 64
    result = room[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result
