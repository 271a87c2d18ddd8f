"""Inputs and expected outputs for models.sh.

model_files.py light                      prints the light models of the onnx package, one per line
model_files.py package NAME FILE          prints the path of FILE in an installed package, or nothing
model_files.py formula MODEL FOLDER       writes the input that the onnx package's own test uses
model_files.py compare ACTUAL.npy EXPECTED.pb
model_files.py image CxHxW OUT.npy        a page of drawn digits on a shaded background
model_files.py audio SAMPLES OUT.npy      a tone that rises through the range of speech
model_files.py bytes COUNT OUT.npy        readable text as byte values
model_files.py state SHAPE OUT.npy        zeros: the state before the first step
model_files.py borders NEAR.onnx FAR.onnx a rounded product: its sums lie at the middle between two
                                          steps; in FAR, steps are finer than the sums are exact
model_files.py steps REPORT.json          of `verify` on NEAR: the results must be one step apart
"""

import glob
import importlib.util
import json
import os
import sys

import numpy as np

DIGITS = {  # 3x5 bitmaps, rows from the top
    0: "111101101101111",
    1: "010110010010111",
    2: "111001111100111",
    3: "111001111001111",
    4: "101101111001001",
    5: "111100111001111",
    6: "111100111101111",
    7: "111001010010010",
    8: "111101111101111",
    9: "111101111001111",
}


def package_folder(name):
    spec = importlib.util.find_spec(name)
    return spec.submodule_search_locations[0] if spec else None


def light():
    folder = os.path.join(package_folder("onnx"), "backend", "test", "data", "light")
    print("\n".join(sorted(glob.glob(os.path.join(folder, "*.onnx")))))


def package(name, file):
    folder = package_folder(name)
    if folder and os.path.exists(os.path.join(folder, file)):
        print(os.path.join(folder, file))


def formula(model, folder):
    """The onnx runner feeds every input with 0, 1/n, ... (n-1)/n."""
    import onnx

    graph = onnx.load(model, load_external_data=False).graph
    weights = {w.name for w in graph.initializer}
    for i, value in enumerate(v for v in graph.input if v.name not in weights):
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        n = int(np.prod(shape))
        path = os.path.join(folder, f"in{i}.npy")
        np.save(path, (np.arange(n).reshape(shape) / n).astype(np.float32))
        print(f"{value.name}=@{path}")


def compare(actual, expected):
    import onnx
    from onnx import numpy_helper

    tensor = onnx.TensorProto()
    with open(expected, "rb") as file:
        tensor.ParseFromString(file.read())
    want, got = numpy_helper.to_array(tensor), np.load(actual)
    if got.shape != want.shape:
        sys.exit(f"shape {got.shape} instead of {want.shape}")
    error = np.abs(got - want).max() / np.abs(want).max()
    print(f"relative error {error:.2e}")
    if not error < 1e-3:
        sys.exit("it must be below 1e-3")


def image(size, path):
    channels, height, width = (int(n) for n in size.split("x"))
    y, x = np.mgrid[0:height, 0:width]
    page = 0.9 - 0.3 * (x / width) * (y / height)
    scale = max(1, min(height // 8, width // 24))
    for row in range(max(1, height // (8 * scale))):
        for column in range(width // (4 * scale)):
            bits = np.array([int(b) for b in DIGITS[(3 * row + 7 * column) % 10]]).reshape(5, 3)
            ink = np.kron(bits, np.ones((scale, scale)))
            top, left = scale + row * 8 * scale, column * 4 * scale
            target = page[top : top + ink.shape[0], left : left + ink.shape[1]]
            target -= 0.55 * ink[: target.shape[0], : target.shape[1]]
    tints = np.array([1.0, 0.9, 0.8, 1.1])[:channels, None, None]
    pixels = (page[None] * tints - 0.5) / 0.25
    np.save(path, pixels[None].astype(np.float32))


def audio(samples, path):
    t = np.arange(int(samples)) / 16000
    phase = 2 * np.pi * (200 * t + 0.5 * 2400 * t * t / t[-1])
    np.save(path, (0.4 * np.sin(phase) * np.hanning(len(t)))[None].astype(np.float32))


def text(count, path):
    line = b"for (int row = 0; row < height; ++row) total += weight[row] * pixel[row];\n"
    values = np.frombuffer((line * (int(count) // len(line) + 1))[: int(count)], np.uint8)
    np.save(path, values[None].astype(np.int32))


def state(shape, path):
    np.save(path, np.zeros([int(n) for n in shape.split("x")], np.float32))


def borders(near, far):
    """q = QuantizeLinear(x w + b), y = DequantizeLinear(q), with everything known."""
    import onnx
    from onnx import helper as h
    from onnx import numpy_helper

    random = np.random.default_rng(1)
    x = random.standard_normal((8, 512)).astype(np.float32)
    w = random.standard_normal((512, 64)).astype(np.float32)
    sums = x.astype(np.float64) @ w
    for path, scale, b in ((near, 1.0, np.floor(sums) + 0.5 - sums), (far, 2.0**-24, -sums)):
        known = {
            "w": w,
            "b": b.astype(np.float32),
            "scale": np.float32(scale),
            "zero": np.uint8(128),
        }
        nodes = [
            h.make_node("MatMul", ["x", "w"], ["product"]),
            h.make_node("Add", ["product", "b"], ["sum"]),
            h.make_node("QuantizeLinear", ["sum", "scale", "zero"], ["q"]),
            h.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
        ]
        graph = h.make_graph(
            nodes,
            "borders",
            [h.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)],
            [
                h.make_tensor_value_info("q", onnx.TensorProto.UINT8, sums.shape),
                h.make_tensor_value_info("y", onnx.TensorProto.FLOAT, sums.shape),
            ],
            [numpy_helper.from_array(np.asarray(a), name) for name, a in known.items()],
        )
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)
    np.save(os.path.splitext(near)[0] + ".npy", x)


def steps(report):
    with open(report) as file:
        rows = json.load(file)["rows"]
    apart = {row["output"]: row["max_abs"] for row in rows}
    if apart != {"q": 1, "y": 1}:
        sys.exit(f"the results are {apart} apart, not one step")


if __name__ == "__main__":
    verbs = {
        "light": light,
        "package": package,
        "formula": formula,
        "compare": compare,
        "image": image,
        "audio": audio,
        "bytes": text,
        "state": state,
        "borders": borders,
        "steps": steps,
    }
    verbs[sys.argv[1]](*sys.argv[2:])
