#!/usr/bin/env python3
"""The experiments of the DPUV3INT8 paper on this compiler and its cycle simulator.

dpu.py [OPTIONS] EXPERIMENT...

  table1    Table I (column xnn; YOLO: partitioned) with the paper's compiler (dpu-paper); table1.json
  best      the same networks with everything this compiler can do (dpu); best.json
  figure9   when the additions at 56x56 of resnet50_slim end and weight tiling begins; figure9.json
  ablation  one decision of the compiler changed at a time, on four networks; ablation.json
  deconv    a transposed convolution as one over zeros, and as four small ones; deconv.json
  scaling   images, processing elements and kernels; scaling.json
  accuracy  logits of the integer graph against f32, 200 inputs; accuracy.json
  speed     of the simulators and the compiler, in processor time; needs bench_dpu_sim (bench/README.md); speed.json

Times are cycles at the clock of the configuration, for four images on one kernel; as in the paper, networks end
before a global average pool. Every experiment is a page too: NAME.html. Source of the paper's figures: its Table I
and Figure 9.

Example:
  bench/dpu/dpu.py --build build/release --out res table1 best
"""

import argparse
import html
import json
import math
import os
import resource
import subprocess
import sys
import time

# Row of the paper: network of the zoo, further options of `zoo`, milliseconds, changed decisions.
TABLE = {
    "resnet-v1-50": ("resnet50_slim", [], 8.158, {}),
    "resnet50": ("resnet50", [], 9.605, {}),
    "resnet18": ("resnet18", [], 4.194, {}),
    "vgg-16": ("vgg16", [], 37.499, {}),
    "inception-v1": ("inception_v1_bn", [], 4.470, {}),
    "inception-v1, parallel": ("inception_v1_bn", [], 3.463, {"branches": "parallel"}),
    "inception-v3": ("inception_v3", [], 37.588, {}),
    "squeezenet": ("squeezenet1.1", ["--size", "227"], 1.174, {}),
    "yolov3-voc": ("yolov3_voc", [], 74.394, {}),
}
# What the hand-written code of the paper needs, or what a real average pool allows.
BEYOND = {"resnet-v1-50": 7.5, "inception-v3": 15.0}
DECISIONS = {
    "no fusion": {"fusion": False},
    "no prefetch": {"prefetch": False},
    "layer barrier": {"layer_barrier": True},
    "serial branches": {"branches": "serial"},
    "plain strides": {"stride": "plain"},
    "tokens of barriers": {"tokens": "barrier"},
}
# Figure 9 of the paper: what happens between which milliseconds.
ANCHORS = {
    "first addition at 56x56 ends": (0.75, 0.9),
    "second addition at 56x56 ends": (1.2, 1.4),
    "weight tiling begins": (5.8, 6.4),
}
ACCURATE = ("resnet18", "vgg16", "inception_v1_bn")
INPUTS, LEAST_DB = 200, 20
PM_WORDS = 8192
SCALED = ((1, 4, 1), (2, 4, 1), (3, 4, 1), (4, 4, 1), (16, 4, 1), (16, 4, 4), (1, 1, 1))
ABLATED = ("resnet50_slim", "inception_v1_bn", "squeezenet1.1", "resnet18")


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stderr}")
    return result.stdout


def print_table(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())


def convolutions_alone(row, network, layers):
    """Without the dense layers at the end, which wait for their weights."""
    layers = [layer for layer in layers if layer["name"].startswith("Conv")]
    cycles = max(layer["end"] for layer in layers)
    macs = sum(layer["counters"]["macs"] for layer in layers)
    busy = sum(layer["conv"] for layer in layers)
    return [f"{row}, convolutions", network, "", round(cycles / 3e5, 3), "", round(100 * macs / 2048 / cycles, 1),
            round(100 * busy / cycles, 1)]


class Bench:
    def __init__(self, arguments):
        self.out = arguments.out
        self.program = os.path.join(arguments.build, "tilewright")
        self.known = {}
        os.makedirs(self.out, exist_ok=True)

    def path(self, name):
        return os.path.join(self.out, name)

    def model(self, network, options=()):
        path = self.path("_".join([network, *options]).replace("--", "") + ".onnx")
        if not os.path.exists(path):
            run([self.program, "-q", "zoo", network, *options, "-o", path])
        return path

    def hardware(self, base, **settings):
        """A configuration: `base` with other decisions of the compiler, or other keys."""
        if not settings:
            return base
        name = "_".join([base, *(f"{key}-{value}" for key, value in settings.items())]).replace(".", "-")
        path = self.path(name + ".toml")
        changes = [word for key, value in settings.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        run([self.program, "-q", "hw", "new", base, *changes, "-o", path])
        return path

    def compiled(self, model, hardware):
        package = self.path("model.twm")
        run([self.program, "-q", "compile", model, "--target", "dpu", "--hw", hardware, "--quantize", "random:1",
             "--fallback", "cpu", "--no-calibrate", "-o", package])
        return package

    def simulated(self, model, hardware):
        """What `sim` says: cycles of all launches, milliseconds, layers."""
        key = (model, hardware)
        if key not in self.known:
            package = self.compiled(model, hardware)
            self.known[key] = json.loads(run([self.program, "-q", "sim", package, "--json"]))
        report = self.known[key]
        cycles = sum(launch["cycles"] for launch in report["launches"])
        clock = report["launches"][0].get("clock_mhz", 300)
        return cycles, cycles / clock / 1e3, report

    def compiler(self, base, decisions):
        return self.hardware(base, **{f"compiler.{key}": value for key, value in decisions.items()})

    def save(self, name, title, rows):
        """rows: the first has headings."""
        print_table(rows)
        with open(self.path(name + ".json"), "w") as file:
            json.dump([dict(zip(rows[0], row)) for row in rows[1:]], file, indent=1)
        cells = ["".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows]
        with open(self.path(name + ".html"), "w") as file:
            file.write(f"<!doctype html><meta charset=utf-8><title>{title}</title><h1>{title}</h1>"
                       "<style>td{padding:0 1em;font-family:sans-serif}</style><table>"
                       + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>\n")

    def table1(self):
        rows = [["row", "network", "paper ms", "ms", "error %"]]
        errors = []
        for row, (network, options, paper, decisions) in TABLE.items():
            _, ms, _ = self.simulated(self.model(network, options), self.compiler("dpu-paper", decisions))
            errors.append(100 * (ms / paper - 1))
            rows.append([row, network, paper, round(ms, 3), round(errors[-1], 1)])
        rms = math.sqrt(sum(error * error for error in errors) / len(errors))
        rows.append(["rms, worst", "", "", round(rms, 2), round(max(errors, key=abs), 1)])
        self.save("table1", "Table I with the paper's compiler", rows)

    def best(self):
        rows = [["row", "network", "to beat ms", "ms", "of it %", "efficiency %", "array busy %"]]
        for row, (network, options, paper, _) in TABLE.items():
            if row.endswith("parallel"):
                continue
            paper = min(paper, BEYOND.get(row, paper), TABLE.get(row + ", parallel", (0, 0, paper))[2])
            hardware = self.compiler("dpu", {"global_pool": "cpu"})
            cycles, ms, report = self.simulated(self.model(network, options), hardware)
            macs = sum(launch["counters"]["macs"] for launch in report["launches"])
            busy = sum(launch["counters"]["conv_busy"] for launch in report["launches"])
            rows.append([row, network, paper, round(ms, 3), round(100 * ms / paper, 1),
                         round(100 * macs / 2048 / cycles, 1), round(100 * busy / cycles, 1)])
            if network == "vgg16":
                rows.append(convolutions_alone(row, network, report["launches"][0]["layers"]))
        self.save("best", "Table I with everything this compiler can do", rows)

    def figure9(self):
        _, _, report = self.simulated(self.model("resnet50_slim"), "dpu-paper")
        layers = report["launches"][0]["layers"]
        rows = [["layer", "begin ms", "end ms", "CONV %", "MISC %", "LOAD %"]]
        for layer in layers:
            length = max(1, layer["end"] - layer["begin"])
            rows.append([layer["name"], *(round(layer[key] / 3e5, 3) for key in ("begin", "end")),
                         *(round(100 * layer[key] / length) for key in ("conv", "misc", "load"))])
        self.save("figure9_layers", "Layers of resnet50_slim over time", rows)
        additions, tiled = self.anchors(self.model("resnet50_slim"), 56)

        def first(names, key, count=1):
            return [layer[key] for layer in layers if names & set(layer["name"].replace("/", "+").split("+"))][:count]

        times = [cycles / 3e5 for cycles in first(additions, "end", 2) + first(tiled, "begin")]
        rows = [["anchor", "paper ms", "dpu-paper ms", "inside"]]
        for (anchor, (low, high)), ms in zip(ANCHORS.items(), times, strict=True):
            rows.append([anchor, f"{low}-{high}", round(ms, 3), "yes" if low <= ms <= high else "no"])
        self.save("figure9", "resnet50_slim over time", rows)

    @staticmethod
    def anchors(path, size):
        """Names of nodes: those that end an addition of maps of `size` rows (itself, or the Relu behind it), and
        convolutions with more weights than PM holds."""
        import onnx

        graph = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
        rows = {v.name: v.type.tensor_type.shape.dim[2].dim_value for v in graph.value_info
                if len(v.type.tensor_type.shape.dim) == 4}
        made = {node.output[0] for node in graph.node if node.op_type == "Add" and rows.get(node.output[0]) == size}
        additions = ({node.name for node in graph.node if node.output[0] in made}
                     | {node.name for node in graph.node if node.op_type == "Relu" and node.input[0] in made})
        dims = {weight.name: weight.dims for weight in graph.initializer}
        words = {node.name: math.ceil(w[0] / 16) * math.ceil(w[1] / 16) * w[2] * w[3] + math.ceil(w[0] / 64)
                 for node in graph.node if node.op_type == "Conv" for w in [dims[node.input[1]]]}
        return additions, {name for name, count in words.items() if count > PM_WORDS}

    def ablation(self):
        rows = [["network", "dpu ms", *(f"{name} %" for name in DECISIONS)]]
        for network in ABLATED:
            model = self.model(network)
            _, best, _ = self.simulated(model, "dpu")
            changed = [self.simulated(model, self.compiler("dpu", decisions))[1] for decisions in DECISIONS.values()]
            rows.append([network, round(best, 3), *(round(100 * (ms / best - 1), 1) + 0.0 for ms in changed)])
        self.save("ablation", "One decision changed at a time: time added", rows)
        # The same under the rules of the paper's compiler, which has one way for branches only.
        model = self.model("inception_v1_bn")
        serial, parallel = (self.simulated(model, self.compiler("dpu-paper", {"branches": how}))[1]
                            for how in ("serial", "parallel"))
        rows = [["inception_v1_bn, dpu-paper", "ms"], ["branches one after the other", round(serial, 3)],
                ["parallel branches", round(parallel, 3)], ["gain (paper: 1.007)", round(serial - parallel, 3)]]
        self.save("branches", "Parallel branches", rows)

    def deconv(self):
        import numpy as np
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        weights = np.random.default_rng(1).normal(size=(16, 16, 4, 4)).astype(np.float32)
        graph = helper.make_graph(
            [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])], "deconv",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16, 48, 90])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 16, 96, 180])],
            [numpy_helper.from_array(weights, "w")])
        path = self.path("deconv.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        rows = [["as", "paper ms", "dpu-paper ms", "dpu ms"]]
        for how, paper in (("upsample", 0.130), ("convs", 0.086)):
            times = [round(self.simulated(path, self.compiler(base, {"deconvolution": how}))[1], 3)
                     for base in ("dpu-paper", "dpu")]
            rows.append([how, paper, *times])
        self.save("deconv", "16 -> 16 channels, 4x4, stride 2, 48x90 -> 96x180", rows)

    def scaling(self):
        rows = [["images", "processing elements", "kernels", "cycles", "images/s"]]
        for images, elements, kernels in SCALED:
            hardware = self.hardware("dpu", pe=elements, kernels=kernels)
            model = self.model("resnet50_slim", ["--batch", str(images)])
            package = self.compiled(model, hardware)
            report = json.loads(run([self.program, "-q", "run", package, "--device", "dpu:tsim", "--json"]))
            cycles = sum(launch["cycles"] for launch in report["launches"])
            rows.append([images, elements, kernels, cycles, round(images * 3e8 / cycles, 1)])
        self.save("scaling", "resnet50_slim on more images, elements and kernels", rows)

    def accuracy(self):
        """`verify --against f32` runs the integer graph, whose bits are the device's, on the processor."""
        import numpy as np

        rng = np.random.default_rng(2)  # others than those of --quantize random:4
        inputs = self.path("inputs.npz")
        np.savez(inputs, data=rng.standard_normal((INPUTS, 1, 3, 224, 224), dtype=np.float32))
        rows = [["network", "inputs", "logits dB", "worst input dB", "same first class", f">= {LEAST_DB} dB"]]
        for network in ACCURATE:
            report = json.loads(run([
                self.program, "-q", "verify", self.model(network), "--target", "dpu", "--quantize", "random:4",
                "--fallback", "cpu", "--no-calibrate", "--against", "f32", "--test-inputs", inputs, "--json"]))
            loss = report["loss"][0]
            logits = loss["layers"][-1]  # what the softmax reads
            first = loss["outputs"][0]["top1"]
            rows.append([network, loss["samples"], round(logits["sqnr_db"], 1), round(logits["least_db"], 1),
                         f"{first['agree']} of {first['rows']}", "yes" if logits["sqnr_db"] >= LEAST_DB else "no"])
        os.remove(inputs)
        self.save("accuracy", "Integers against f32", rows)

    def speed(self):
        """Processor time: other programs on the machine do not count."""
        model = self.model("resnet50_slim")
        package = self.compiled(model, "dpu")
        dump = self.path("dump")
        run([self.program, "-q", "sim", package, "--dump-program", dump])
        simulators = os.path.join(os.path.dirname(self.program), "bench_dpu_sim")
        bench = json.loads(run([simulators, os.path.join(dump, "dpu_0")]))
        begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        run([self.program, "-q", "compile", model, "--target", "dpu", "--quantize", "random:4", "--fallback", "cpu",
             "--no-calibrate", "-o", package])
        wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        rows = [["what", "value", "target"],
                ["fsim, G MAC/s of a core", round(bench["fsim_gmacs"], 1), ">= 20"],
                ["tsim without data, G cycles/s", round(bench["tsim_gcycles"], 2), ">= 1"],
                ["compile resnet50_slim, s", round(wall, 1), "<= 15"],
                ["compile resnet50_slim, s of processor time", round(used, 1), ""]]
        self.save("speed", "Speed of simulators and compiler", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="folder of the built program")
    parser.add_argument("--out", default="build/bench/dpu", help="folder for results")
    parser.add_argument("experiments", nargs="+",
                        choices=["table1", "best", "figure9", "ablation", "deconv", "scaling", "accuracy", "speed"])
    arguments = parser.parse_args()
    bench = Bench(arguments)
    for experiment in arguments.experiments:
        print(f"== {experiment}", flush=True)
        getattr(bench, experiment)()


if __name__ == "__main__":
    main()
