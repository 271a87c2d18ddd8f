#!/usr/bin/env python3
"""The experiments of the DPUV3INT8 paper on this compiler and its cycle simulator.

dpu.py [OPTIONS] EXPERIMENT...

  table1    Table I (column xnn; YOLO: partitioned) with the paper's compiler (dpu-paper); table1.json
  best      the same networks with everything this compiler can do (dpu); best.json
  figure9   when the additions of resnet50_slim end and weight tiling begins; figure9.json
  ablation  one decision of the compiler changed at a time, on four networks; ablation.json
  deconv    a transposed convolution as one over zeros, and as four small ones; deconv.json
  scaling   images, processing elements and kernels; scaling.json

Times are cycles at the clock of the configuration, for four images on one kernel; as in the paper, networks end
before a global average pool. Every experiment is a page too: NAME.html. source of the paper's figures: Table I and Figure 9 of the paper.

Example:
  bench/dpu/dpu.py --build build/release --out res table1 best
"""

import argparse
import html
import json
import math
import os
import subprocess
import sys

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
    "fusion": {"fusion": False},
    "prefetch": {"prefetch": False},
    "layer barrier": {"layer_barrier": True},
    "branches": {"branches": "serial"},
    "stride": {"stride": "plain"},
    "tokens": {"tokens": "barrier"},
}
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
            cycles, ms, report = self.simulated(self.model(network, options), self.compiler("dpu", {"global_pool": "cpu"}))
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
        rows = [["layer", "begin ms", "end ms"]]
        rows += [[layer["name"], round(layer["begin"] / 3e5, 3), round(layer["end"] / 3e5, 3)] for layer in layers]
        self.save("figure9", "Layers of resnet50_slim over time", rows)

    def ablation(self):
        rows = [["network", "dpu ms", *(f"without {name} %" if name != "layer barrier" else "with a layer barrier %"
                                       for name in DECISIONS)]]
        for network in ABLATED:
            model = self.model(network)
            _, best, _ = self.simulated(model, "dpu")
            changed = [self.simulated(model, self.compiler("dpu", decisions))[1] for decisions in DECISIONS.values()]
            rows.append([network, round(best, 3), *(round(100 * (ms / best - 1), 1) for ms in changed)])
        self.save("ablation", "One decision changed at a time: time added", rows)

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
        for images, elements, kernels in ((1, 4, 1), (2, 4, 1), (3, 4, 1), (4, 4, 1), (16, 4, 1), (16, 4, 4), (1, 1, 1)):
            hardware = self.hardware("dpu", pe=elements, kernels=kernels)
            model = self.model("resnet50_slim", ["--batch", str(images)])
            package = self.compiled(model, hardware)
            report = json.loads(run([self.program, "-q", "run", package, "--device", "dpu:tsim", "--json"]))
            cycles = sum(launch["cycles"] for launch in report["launches"])
            rows.append([images, elements, kernels, cycles, round(images * 3e8 / cycles, 1)])
        self.save("scaling", "resnet50_slim on more images, elements and kernels", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="folder of the built program")
    parser.add_argument("--out", default="build/bench/dpu", help="folder for results")
    parser.add_argument("experiments", nargs="+",
                        choices=["table1", "best", "figure9", "ablation", "deconv", "scaling"])
    arguments = parser.parse_args()
    bench = Bench(arguments)
    for experiment in arguments.experiments:
        print(f"== {experiment}", flush=True)
        getattr(bench, experiment)()


if __name__ == "__main__":
    main()
