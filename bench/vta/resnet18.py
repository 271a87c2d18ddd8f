#!/usr/bin/env python3
"""The experiments of the VTA and TVM papers on this compiler, simulator and machine.

resnet18.py [OPTIONS] EXPERIMENT...

  roofline   C2-C12 with and without latency hiding, beside the paper's 70 % -> 88 % peak
             (bench_vta_roofline); roofline.json, roofline.html
  parts      ResNet-18 end to end, CPU only against CPU + VTA at its clock; parts.json
  accuracy   int8 against f32: top-1 agreement and logit SNR on inputs of >= 20 classes, beside the
             QDQ forms of ONNX Runtime's static quantisation; accuracy.json
  mobilenet  MobileNet v2 on VTA, cycles by part; mobilenet.json

Example:
  bench/vta/resnet18.py --build build/release --out res roofline parts
"""

import argparse
import collections
import html
import json
import math
import os
import subprocess
import sys

import numpy as np


def run(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stderr}")
    return result.stdout


def table(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(c).ljust(w) for c, w in zip(row, widths)).rstrip())


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.program = os.path.join(arguments.build, "tilewright")
        os.makedirs(arguments.out, exist_ok=True)

    def path(self, name):
        return os.path.join(self.arguments.out, name)

    def tilewright(self, *words):
        return json.loads(run([self.program, "--json", "-q", *words]))

    def model(self, network):
        path = self.path(network + ".onnx")
        run([self.program, "-q", "zoo", network, "-o", path])
        return path

    def quantised(self, samples="random:8"):
        return ["--target", "vta", "--hw", self.arguments.hw, "--quantize", samples]

    def write(self, name, document):
        with open(self.path(name + ".json"), "w") as file:
            json.dump(document, file, indent=1)


# --- roofline ---------------------------------------------------------------------------------


def intensity(layer, way):
    """Operations per byte moved; a multiply-accumulate counts as two."""
    return 2 * layer["macs"] / (layer[way]["bytes_read"] + layer[way]["bytes_stored"])


def svg(document):
    """Attainable and measured GOP/s over operations per byte, both axes logarithmic."""
    width, height, left, bottom = 860, 520, 70, 60
    peak = 2e-3 * document["mac_per_step"] * document["clock_mhz"]  # GOP/s
    bandwidth = 1e-3 * document["bus_bytes"] * document["clock_mhz"]  # GB/s
    low, high, floor, top = 4, 512, peak / 32, peak * 1.5

    def x(value):
        return left + (width - left - 20) * math.log(value / low) / math.log(high / low)

    def y(value):
        return height - bottom - (height - bottom - 20) * math.log(value / floor) / math.log(
            top / floor
        )

    knee = peak / bandwidth
    parts = [f'<svg viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">']
    for tick in (4, 8, 16, 32, 64, 128, 256, 512):
        parts.append(
            f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="20" y2="{height - bottom}" '
            f'stroke="#ddd"/><text x="{x(tick):.1f}" y="{height - bottom + 18}" '
            f'text-anchor="middle">{tick}</text>'
        )
    for share in (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1):
        at = y(peak * share)
        parts.append(
            f'<line x1="{left}" x2="{width - 20}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>'
            f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{peak * share:.1f}</text>'
        )
    roof = [(max(low, floor / bandwidth), max(floor, low * bandwidth)), (knee, peak), (high, peak)]
    points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in roof)
    parts.append(f'<polyline points="{points}" fill="none" stroke="#333" stroke-width="2"/>')
    for layer in document["layers"]:
        at = {}
        for way, colour in (("single", "#c33"), ("hidden", "#27c")):
            speed = 2e-3 * layer["macs"] / layer[way]["cycles"] * document["clock_mhz"]
            at[way] = x(intensity(layer, way)), y(speed)
            parts.append(
                f'<circle cx="{at[way][0]:.1f}" cy="{at[way][1]:.1f}" r="5" fill="{colour}"/>'
            )
        (ax, ay), (bx, by) = at["single"], at["hidden"]
        parts.append(
            f'<line x1="{ax:.1f}" y1="{ay:.1f}" x2="{bx:.1f}" y2="{by:.1f}" stroke="#999"/>'
            f'<text x="{bx + 7:.1f}" y="{by - 6:.1f}">{html.escape(layer["layer"])}</text>'
        )
    parts.append(
        f'<text x="{width / 2}" y="{height - 12}" text-anchor="middle">operations per byte</text>'
        f'<text x="16" y="{height / 2}" transform="rotate(-90 16 {height / 2})" '
        f'text-anchor="middle">GOP/s</text></svg>'
    )
    return "\n".join(parts)


def page(document, rows):
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows
    )
    return (
        "<!doctype html><meta charset='utf-8'><title>ResNet-18 on VTA</title>"
        "<style>body{font-family:sans-serif;max-width:900px;margin:2em auto}"
        "td{padding:2px 10px;text-align:right}svg{width:100%}</style>"
        f"<h1>C2-C12 on {html.escape(document['label'])}</h1>"
        "<p>Red: one buffer per operand. Blue: loads behind computation. The line is the roof of "
        f"{document['bus_bytes']} bytes and {document['mac_per_step']} multiply-accumulates per "
        f"cycle at {document['clock_mhz']} MHz.</p>{svg(document)}<table>{cells}</table>"
    )


def roofline(bench):
    document = json.loads(
        run([os.path.join(bench.arguments.build, "bench_vta_roofline"), bench.arguments.hw])
    )
    ways = ("serial", "single", "hidden")
    head = ["layer", "times", "op/byte"]
    head += ["serial", "one buffer", "hidden", "of bound"]
    rows = [head]
    cycles, steps = collections.Counter(), 0
    for layer in document["layers"]:
        steps += layer["repeats"] * layer["hidden"]["gemm_steps"]
        for way in ways:
            cycles[way] += layer["repeats"] * layer[way]["cycles"]
        share = [f"{100 * layer[way]['gemm_use']:.1f} %" for way in ways]
        of_bound = layer["hidden"]["cycles"] / layer["hidden"]["bound"]
        rows.append([layer["layer"], layer["repeats"], f"{intensity(layer, 'hidden'):.0f}", *share,
                     f"{of_bound:.3f}"])  # fmt: skip
    peak = {way: max(layer[way]["gemm_use"] for layer in document["layers"]) for way in ways}
    mean = [f"{100 * steps / cycles[way]:.1f} %" for way in ways]
    rows.append(["all", "", "", *mean, f"{cycles['hidden'] / 1e6:.3f} M cycles"])
    rows.append(["peak", "", "", *(f"{100 * peak[way]:.1f} %" for way in ways), ""])
    rows.append(["paper, peak", "", "", "", "70 %", "88 %", ""])
    document["peak"] = peak
    document["total_cycles"] = cycles
    bench.write("roofline", document)
    with open(bench.path("roofline.html"), "w") as file:
        file.write(page(document, rows))
    table(rows)


# --- parts ------------------------------------------------------------------------------------


def part_of(name, first):
    """Which part of a network a step or layer belongs to."""
    if name == first or name.startswith(first + "/"):
        return "first convolution"
    if "Pool" in name and "Global" not in name:
        return "max pooling"
    if "Gemm" in name or "Global" in name or "Flatten" in name:
        return "average, dense"
    if name.startswith("Conv") or name.startswith("Add"):
        return "C2-C12"
    return "rest"


def layers_of(launches):
    """(name, cycles) of each layer; what overlaps counts for the earlier one."""
    for launch in launches:
        done = 0
        for layer in launch["layers"]:
            yield layer["name"], max(0, layer["end"] - done)
            done = max(done, layer["end"])
        yield "end of launch", max(0, launch["cycles"] - done)


def profile(bench, what, *options):
    """Microseconds per step on this machine, one thread."""
    row = bench.tilewright("bench", what, "--threads", "1", "--profile", *options)["rows"][0]
    return {step["step"]: step["us"] for step in row["profile"]["steps"]}


def parts(bench):
    model = bench.model("resnet18")
    package = bench.path("resnet18.twm")
    run([bench.program, "-q", "compile", model, *bench.quantised(), "-o", package])
    clock = float(bench.arguments.clock)
    launches = bench.tilewright("run", package, "--device", "vta:tsim")["launches"]
    names = {launch["name"] for launch in launches}
    on_cpu, on_vta, border = (collections.Counter() for _ in range(3))
    for name, us in profile(bench, model).items():
        on_cpu[part_of(name, "Conv")] += us / 1e3
    for name, us in profile(bench, package).items():
        if name not in names:
            border[part_of(name, "Conv")] += us / 1e3
    for name, cycles in layers_of(launches):
        on_vta[part_of(name, "Conv")] += cycles / clock / 1e3
    every = ["first convolution", "C2-C12", "max pooling", "average, dense", "rest"]
    rows = [["milliseconds", "CPU only (f32)", "VTA runs C2-C12", "VTA runs all", "its CPU part"]]
    for name in every:
        mixed = on_vta[name] if name == "C2-C12" else on_cpu[name]
        values = [on_cpu[name], mixed, on_vta[name], border[name]]
        rows.append([name, *(f"{v:.3f}" for v in values)])
    mixed = sum(on_cpu.values()) - on_cpu["C2-C12"] + on_vta["C2-C12"]
    whole = sum(on_vta.values()) + sum(border.values())
    rows.append(["all", f"{sum(on_cpu.values()):.3f}", f"{mixed:.3f}", f"{whole:.3f}", "included"])
    cycles = sum(launch["cycles"] for launch in launches)
    bench.write("parts", {"cpu_ms": on_cpu, "vta_ms": on_vta, "vta_cpu_ms": border,
                          "clock_mhz": clock, "cycles": cycles})  # fmt: skip
    table(rows)
    print(f"VTA: {cycles} cycles at {clock:.0f} MHz; CPU: one core of this machine, least of its "
          "runs (the paper's is a Cortex-A9, over 3 s for CPU only, under 0.5 s with VTA)")


# --- accuracy ---------------------------------------------------------------------------------


def picture(seed):
    """Waves, checks, blobs, mosaics and edges over a plain colour."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:224, 0:224] / 224.0
    image = np.zeros((3, 224, 224)) + rng.uniform(-1.5, 1.5, (3, 1, 1))
    for _ in range(rng.integers(1, 5)):
        kind, strength = rng.integers(0, 5), rng.uniform(-2, 2, (3, 1, 1))
        if kind == 0:
            angle, pitch = rng.uniform(0, 2 * np.pi), 2 ** rng.uniform(0, 6)
            form = np.sin(2 * np.pi * pitch * (x * np.cos(angle) + y * np.sin(angle)))
        elif kind == 1:
            pitch = 2 ** rng.uniform(0, 5)
            form = np.sign(np.sin(2 * np.pi * pitch * x) * np.sin(2 * np.pi * pitch * y))
        elif kind == 2:
            cx, cy, size = rng.uniform(), rng.uniform(), 2 ** rng.uniform(-5, -1)
            form = np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * size**2))
        elif kind == 3:
            n = int(2 ** rng.integers(1, 7))
            mosaic = np.kron(rng.standard_normal((n, n)), np.ones((224 // n + 1, 224 // n + 1)))
            form = mosaic[:224, :224]
        else:
            a, b = rng.uniform(-1, 1, 2)
            form = ((x - rng.uniform()) * a + (y - rng.uniform()) * b > 0).astype(float)
        image += strength * form
    return image[None].astype(np.float32)


def logits_model(path, out):
    """The network without its final Softmax."""
    import onnx

    model = onnx.load(path)
    last = model.graph.node[-1]
    if last.op_type == "Softmax":
        model.graph.node.remove(last)
        model.graph.output[0].name = last.input[0]
    onnx.save(model, out)
    return model.graph.input[0].name


class Calibration:
    """Samples as onnxruntime.quantization wants them."""

    def __init__(self, name, samples):
        self.left = [{name: sample} for sample in samples]

    def get_next(self):
        return self.left.pop() if self.left else None


def static_variants(q):
    """The ways of ONNX Runtime's static quantisation (QDQ) that are tried, by name."""
    symmetric = {"ActivationSymmetric": True, "WeightSymmetric": True}
    signed = {"activation_type": q.QuantType.QInt8, "weight_type": q.QuantType.QInt8}
    unsigned = {"activation_type": q.QuantType.QUInt8, "weight_type": q.QuantType.QInt8}
    minmax, percentile = q.CalibrationMethod.MinMax, q.CalibrationMethod.Percentile
    return {
        "i8 per tensor, MinMax": {**signed, "extra_options": symmetric, "calibrate_method": minmax},
        "i8 per channel, MinMax": {**signed, "extra_options": symmetric, "per_channel": True,
                                   "calibrate_method": minmax},
        "i8 per channel, percentile": {**signed, "per_channel": True,
                                       "extra_options": {**symmetric, "CalibPercentile": 99.999},
                                       "calibrate_method": percentile},
        "u8 per channel, MinMax": {**unsigned, "per_channel": True, "calibrate_method": minmax},
    }  # fmt: skip


def accuracy_of_ort(bench, model, name, samples, chosen):
    """Logits of ONNX Runtime's own QDQ forms for the same inputs and calibration, by variant."""
    import onnxruntime as ort
    from onnxruntime import quantization as q

    prepared = bench.path("logits_prepared.onnx")
    q.quant_pre_process(model, prepared, skip_symbolic_shape=True)
    for variant, settings in static_variants(q).items():
        path = bench.path("logits_qdq.onnx")
        q.quantize_static(prepared, path, Calibration(name, samples), quant_format=q.QuantFormat.QDQ,
                          **settings)  # fmt: skip
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        yield variant, np.stack([session.run(None, {name: picture([7, i])})[0][0] for i, _ in chosen])


def agreement(want, got):
    """Top-1 agreement; that where the f32 margin exceeds 3 standard deviations; SNR in dB."""
    same = want.argmax(1) == got.argmax(1)
    ordered = np.sort(want, 1)
    clear = ordered[:, -1] - ordered[:, -2] > 3 * np.sqrt(np.mean((got - want) ** 2))
    snr = 10 * np.log10((want**2).sum() / ((got - want) ** 2).sum())
    return float(same.mean()), int(clear.sum()), int((same & clear).sum()), float(snr)


def accuracy(bench):
    import onnxruntime as ort

    model = bench.path("logits.onnx")
    name = logits_model(bench.model("resnet18"), model)
    f32 = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    wanted, limit = bench.arguments.inputs, max(1, bench.arguments.inputs // 16)
    chosen, classes = [], collections.Counter()
    for i in range(100 * wanted):  # at most `limit` of a class, so that many classes are met
        logits = f32.run(None, {name: picture([7, i])})[0][0]
        if classes[int(logits.argmax())] < limit:
            classes[int(logits.argmax())] += 1
            chosen.append((i, logits))
        if len(chosen) == wanted:
            break
    tested, calibration = bench.path("tested.npz"), bench.path("calibration.npz")
    np.savez(tested, **{name: np.concatenate([picture([7, i]) for i, _ in chosen])})
    samples = [picture([8, i]) for i in range(bench.arguments.samples)]  # not among those tested
    np.savez(calibration, **{name: np.concatenate(samples)})
    rows, results = [["8-bit form", "top-1 agreement", "where f32 is clear", "logit SNR"]], {}

    def add(form, top1, clear, clear_agree, snr):
        results[form] = {"top1": top1, "clear": clear, "clear_agree": clear_agree, "snr_db": snr}
        rows.append([form, f"{100 * top1:.1f} %", f"{clear_agree} of {clear}", f"{snr:.1f} dB"])

    for form, options in (("Tilewright, powers of two", []),
                          ("Tilewright, --per-channel", ["--per-channel", "--fallback", "cpu"])):
        output = bench.tilewright("verify", model, *bench.quantised(calibration), *options, "--against",
                                  "f32", "--test-inputs", tested)["loss"][0]["outputs"][0]  # fmt: skip
        top = output["top1"]
        add(form, top["agree"] / top["rows"], top["clear"], top["clear_agree"], output["sqnr_db"])
    want = np.stack([logits for _, logits in chosen])
    for variant, got in accuracy_of_ort(bench, model, name, samples, chosen):
        add(f"ONNX Runtime {ort.__version__}, {variant}", *agreement(want, got))
    bench.write("accuracy", {"inputs": len(chosen), "classes": len(classes),
                             "calibration_samples": len(samples), "forms": results})  # fmt: skip
    print(f"{len(chosen)} inputs of {len(classes)} f32 classes, {len(samples)} calibration samples")
    table(rows)


# --- mobilenet --------------------------------------------------------------------------------


def mobilenet(bench):
    import onnx

    model = bench.model("mobilenet_v2")
    weights = {w.name: w for w in onnx.load(model).graph.initializer}
    kinds, first = {}, None
    for node in onnx.load(model).graph.node:
        if node.op_type != "Conv":
            continue
        group = next((a.i for a in node.attribute if a.name == "group"), 1)
        shape = list(weights[node.input[1]].dims)
        first = first or node.name
        kinds[node.name] = "depthwise" if group > 1 else "1x1" if shape[2] == 1 else "3x3"
    kinds[first] = "first convolution"
    launches = bench.tilewright("run", model, *bench.quantised(), "--device", "vta:tsim")["launches"]
    cycles, layers, steps, bounds = (collections.Counter() for _ in range(4))
    for launch in launches:
        for layer in launch["layers"]:
            kind = kinds.get(layer["name"].split("/")[0], "average, dense, rest")
            layers[kind] += 1
            steps[kind] += layer["counters"]["gemm_steps"]
            bounds[kind] += layer["bound_cycles"]
    for name, count in layers_of(launches):
        cycles[kinds.get(name.split("/")[0], "average, dense, rest")] += count
    rows = [["part", "layers", "cycles", "share", "GEMM use", "of bound"]]
    total = sum(cycles.values())
    for kind, count in cycles.most_common():
        rows.append([kind, layers[kind], count, f"{100 * count / total:.1f} %",
                     f"{100 * steps[kind] / count:.1f} %", f"{count / bounds[kind]:.3f}"])  # fmt: skip
    rows.append(["all", sum(layers.values()), total, "", f"{100 * sum(steps.values()) / total:.1f} %",
                 f"{total / sum(bounds.values()):.3f}"])  # fmt: skip
    bench.write("mobilenet", {"cycles": cycles, "gemm_steps": steps, "bound_cycles": bounds})
    table(rows)


EXPERIMENTS = {"roofline": roofline, "parts": parts, "accuracy": accuracy, "mobilenet": mobilenet}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS, metavar="EXPERIMENT")
    parser.add_argument("--build", default="build/release", help="folder of the programs")
    parser.add_argument("--hw", default="vta", help="configuration, as --hw of tilewright")
    parser.add_argument("--clock", default=100, type=float, help="MHz")
    parser.add_argument("--out", default="vta-results", help="folder for JSON, HTML and models")
    parser.add_argument("--inputs", default=200, type=int, help="of `accuracy`")
    parser.add_argument("--samples", default=32, type=int, help="of its calibration")
    bench = Bench(parser.parse_args())
    for name in bench.arguments.experiments:
        print(f"{name} ({bench.arguments.hw})")
        EXPERIMENTS[name](bench)
        print()


if __name__ == "__main__":
    main()
