"""Files for inputs.sh, all in the current folder, and checks of what the program wrote.

inputs_files.py write       models, arrays and images
inputs_files.py check       what inputs.sh had the program write is what NumPy computes
"""

import base64
import struct
import sys
import zlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

# 16 x 8 pixels of the colour 200, 100, 50.
JPEG = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wCEAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsLEBYQERMU"
    "FRUVDA8XGBYUGBIUFRQBAwQEBQQFCQUFCRQNCw0UFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU"
    "FBQUFP/AABEIAAgAEAMBIgACEQEDEQH/xAGiAAABBQEBAQEBAQAAAAAAAAAAAQIDBAUGBwgJCgsQAAIBAwMCBAMFBQQEAAABfQEC"
    "AwAEEQUSITFBBhNRYQcicRQygZGhCCNCscEVUtHwJDNicoIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVm"
    "Z2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxsfIycrS09TV1tfY2drh4uPk5ebn6Onq"
    "8fLz9PX29/j5+gEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoLEQACAQIEBAMEBwUEBAABAncAAQIDEQQFITEGEkFRB2FxEyIy"
    "gQgUQpGhscEJIzNS8BVictEKFiQ04SXxFxgZGiYnKCkqNTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqCg4SF"
    "hoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxsfIycrS09TV1tfY2dri4+Tl5ufo6ery8/T19vf4+fr/2gAMAwEA"
    "AhEDEQA/AKtFFFfh5/SB/9k="
)


def model(path, nodes, inputs, outputs):
    info = h.make_tensor_value_info
    graph = h.make_graph(
        nodes, "g", [info(*i) for i in inputs], [info(*o) for o in outputs]
    )
    made = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, path)


def png(path, pixels):
    """pixels: u8 [height, width, 3]."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)))
        file.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def picture():
    return np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 4, 3) * 10


def write():
    # p = a - b, q = a * b: not symmetric, so that swapped inputs are seen.
    model(
        "two.onnx",
        [h.make_node("Sub", ["a", "b"], ["p"]), h.make_node("Mul", ["a", "b"], ["q"])],
        [("a", T.FLOAT, [2, 3]), ("b", T.FLOAT, [2, 3])],
        [("p", T.FLOAT, [2, 3]), ("q", T.FLOAT, [2, 3])],
    )
    shape = [1, 3, 2, 4]
    model(
        "image.onnx",
        [h.make_node("Neg", ["x"], ["y"])],
        [("x", T.FLOAT, shape)],
        [("y", T.FLOAT, shape)],
    )
    model(
        "scores.onnx",
        [h.make_node("Neg", ["x"], ["y"])],
        [("x", T.FLOAT, [1, 4])],
        [("y", T.FLOAT, [1, 4])],
    )
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((2, 3)).astype(np.float32) for _ in range(2))
    np.save("a.npy", np.asfortranarray(a))
    np.save("b.npy", b)
    np.save("a64.npy", a.astype(np.float64))
    np.save("huge.npy", np.full((2, 3), 1e300))
    np.save("flat.npy", a.reshape(6))
    np.savez("ab.npz", a=a, b=b)
    np.savez_compressed("turn.npz", a, b)
    np.savez("other.npz", c=a, d=b)
    np.save("s.npy", np.array([[-1, -7, 2, -3]], np.float32))
    png("cat.png", picture())
    data = base64.b64decode(JPEG)
    for name, part in (("cat.jpg", data), ("cut.jpg", data[:120])):
        with open(name, "wb") as file:
            file.write(part)
    with open("cut.png", "wb") as file, open("cat.png", "rb") as whole:
        file.write(whole.read()[:50])
    with open("labels.txt", "w") as file:
        file.write("ant\nbee\ncat\ndog\n")


def equal(path, want, tolerance=1e-5):
    got = np.load(path)
    assert got.shape == want.shape and got.dtype == want.dtype, (path, got, want)
    assert np.allclose(got, want, atol=tolerance), (path, got, want)


def check():
    a, b = np.load("a.npy"), np.load("b.npy")
    for name in "named", "turn", "numbers", "archive", "in_turn", "cast":
        equal(f"{name}/p.npy", a - b)
        equal(f"{name}/q.npy", a * b)
    equal("p.npy", a - b)
    equal("q.npy", a * b)
    with np.load("y.npz") as archive:
        assert sorted(archive.files) == ["p", "q"]
        assert np.allclose(archive["p"], a - b) and np.allclose(archive["q"], a * b)
    planes = picture().transpose(2, 0, 1)[None].astype(np.float32)
    equal("raw.npy", -planes)
    mean = np.array([100, 50, 25], np.float32).reshape(1, 3, 1, 1)
    equal("normal.npy", -(planes - mean) / 255)
    colour = np.array([200, 100, 50], np.float32).reshape(1, 3, 1, 1)
    equal("jpeg.npy", -np.broadcast_to(colour, (1, 3, 2, 4)), 4)


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]]()
