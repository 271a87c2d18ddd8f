"""ncnn, Winograd on, f32 storage; models are converted by pnnx."""

import os
import subprocess
import sys

import ncnn
import numpy as np

from adapters import load_inputs


def convert_input(array):
    """As pnnx expects it: without the batch axis, which is 1, and indices as a row of int32."""
    if np.issubdtype(array.dtype, np.integer):
        return np.ascontiguousarray(array.ravel(), np.int32)
    return np.ascontiguousarray(array[0] if array.ndim > 2 or array.shape[0] == 1 else array)


def in_order(names):
    """in0, in1, ...: as in the ONNX model, not as in ncnn's graph."""
    return sorted(names, key=lambda name: int("".join(filter(str.isdigit, name)) or 0))


class Peer:
    def __init__(self, setup):
        self.threads = setup["threads"]
        ncnn.set_omp_dynamic(0)
        ncnn.set_omp_num_threads(self.threads)
        self.pools = ncnn.UnlockedPoolAllocator(), ncnn.PoolAllocator()
        self.net = None

    def convert(self, request):
        """Runs pnnx in a folder of its own; returns the paths of the ncnn model."""
        inputs = load_inputs(request["inputs"])
        folder = os.path.join(request["work"], "ncnn")
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        model = os.path.join(folder, "model.onnx")
        os.symlink(os.path.abspath(request["model"]), model)
        kinds = {"float32": "f32", "int64": "i64", "int32": "i32"}
        shapes = ",".join("[" + ",".join(map(str, a.shape)) + "]" + kinds[str(a.dtype)]
                          for a in inputs.values())
        tool = os.path.join(os.path.dirname(os.path.dirname(ncnn.__file__)), "pnnx", "pnnx")
        done = subprocess.run([tool, "model.onnx", "inputshape=" + shapes, "fp16=0"], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        sys.stderr.write(done.stdout)
        paths = [os.path.join(folder, "model.ncnn." + end) for end in ("param", "bin")]
        if done.returncode != 0 or not all(map(os.path.exists, paths)):
            raise RuntimeError("pnnx does not convert the model: " + done.stdout[-200:])
        return *paths, inputs

    def load(self, request):
        param, weights, inputs = self.convert(request)
        net = ncnn.Net()
        options = net.opt
        options.num_threads = self.threads
        options.lightmode = True
        options.use_winograd_convolution = options.use_sgemm_convolution = True
        options.use_packing_layout = True
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
        options.use_bf16_storage = False
        options.blob_allocator, options.workspace_allocator = self.pools
        if net.load_param(param) != 0 or net.load_model(weights) != 0:
            raise RuntimeError("ncnn does not load the converted model")
        self.net, self.names = net, (in_order(net.input_names()), in_order(net.output_names()))
        # Clones have ncnn's alignment and reference count, so no layer works in place on them.
        self.values = [ncnn.Mat(convert_input(a)).clone() for a in inputs.values()]

    def run(self):
        extractor = self.net.create_extractor()
        for name, value in zip(self.names[0], self.values):
            extractor.input(name, value)
        self.results = []
        for name in self.names[1]:
            code, value = extractor.extract(name)
            if code != 0:
                raise RuntimeError(f"ncnn fails to compute {name} (code {code})")
            self.results.append(value)

    def outputs(self):
        return [np.array(value) for value in self.results]

    def version(self):
        return ncnn.__version__

    def detail(self):
        return "winograd on"
