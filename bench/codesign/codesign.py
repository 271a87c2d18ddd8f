#!/usr/bin/env python3
"""The experiments of the HASCO paper (ISCA 2021) by the model of `tilewright codesign`.

codesign.py [OPTIONS] EXPERIMENT...

  fig2     a 16x16 array with 256 KiB beside an 8x8 one with 128 KiB: area, power, peak throughput
  fig7     64 units, 256 KiB: which of four units is the fastest for ten products and ten convolutions
  fig8     6 728 designs for six convolutions of Xception: range of power, what latency and area follow; the true
           front, and what searches of 20 evaluations find of it (the paper's Figures 8 and 9)
  fig10    hypervolume of searches of 40 evaluations, ResNet-50 and GEMM
  fig11    ResNet-50's convolutions on a 16x16 array with 256 KiB beside im2col and GEMM
  table2   random search, NSGA-II and MOBO of 40 evaluations: latency, power, area; GEMM and CONV2D
  table3   the fastest design within 2 W and 20 W beside the baseline GEMMCore
  parts    the fastest design within 2 W and 20 W of 20 evaluations: HASCO's search, then its choice of loops, its
           mappings and its search for hardware replaced by ours one after the other (an hour of processor time)
  front    seconds until the first designs and until 40 designs, ResNet-50

Everything is a prediction of the model: no hardware ran. Each experiment prints the paper's figures beside ours and is
a file too: NAME.json in --out. Models with single layers need the Python package onnx; their shapes are those of
--workload FILE (suites hasco/conv2d and hasco/gemm for fig7, hasco-extra/resnet50_conv2d for fig11).

Example:
  bench/codesign/codesign.py --build build/release --out res --workload operators.json fig2 fig11
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

# Two ends of the paper's six convolutions of Xception are known (86.7 and 454.2 million operations); the four between
# are pointwise layers of the network: inputs, height, width, outputs, kernel, stride, padding.
SIX = [(3, 224, 224, 32, 3, 1, 1), (32, 111, 111, 64, 3, 1, 1), (64, 147, 147, 128, 1, 1, 0), (128, 74, 74, 256, 1, 1, 0),
       (728, 19, 19, 728, 1, 1, 0), (1024, 10, 10, 1536, 1, 1, 0)]
UNITS = ("gemm", "gemv", "dot", "conv2d")
NETWORKS = {"ResNet": "resnet50", "MobileNet": "mobilenet_v2", "Xception": "xception"}
# Table II: latency (cycles), power (mW), area (um2) of random search, NSGA-II, MOBO.
TABLE2 = {
    ("ResNet", "gemm"): ((3.972e8, 3293.5, 9.470e7), (3.528e8, 3099.8, 7.005e7), (3.528e8, 3099.8, 7.005e7)),
    ("ResNet", "conv2d"): ((4.439e8, 3298.65, 7.469e7), (3.863e8, 2989.44, 6.551e7), (3.411e8, 2403.87, 5.438e7)),
    ("MobileNet", "gemm"): ((3.062e9, 4068.14, 1.933e8), (1.923e9, 3874.18, 1.686e8), (1.923e9, 3487.17, 1.193e8)),
    ("MobileNet", "conv2d"): ((2.135e9, 3811.98, 1.304e8), (2.335e9, 3589.21, 1.229e8), (1.813e9, 3589.21, 1.229e8)),
    ("Xception", "gemm"): ((2.286e10, 4874.48, 2.716e8), (2.286e10, 4355.45, 2.425e8), (2.286e10, 3874.18, 1.686e8)),
    ("Xception", "conv2d"): ((2.375e10, 4013.59, 1.756e8), (2.177e10, 4456.74, 1.943e8), (2.177e10, 4013.59, 1.756e8)),
}
# Table III: units, KiB, banks, ms of the baseline, of HASCO's GEMMCore and ConvCore.
TABLE3 = {
    ("edge", "ResNet"): ((64, 256, 4, 12321.8), (64, 256, 6, 8547.8), (144, 320, 8, 4673.7)),
    ("edge", "MobileNet"): ((64, 256, 4, 56457.6), (64, 512, 8, 42977.1), (121, 512, 6, 24273.5)),
    ("edge", "Xception"): ((64, 256, 4, 707105.1), (64, 512, 8, 544023.8), (144, 512, 8, 318485.6)),
    ("cloud", "ResNet"): ((4096, 1024, 4, 260.5), (4096, 1024, 8, 197.2), (4096, 1536, 8, 195.3)),
    ("cloud", "MobileNet"): ((4096, 1024, 4, 1456.9), (4096, 1024, 8, 1020.5), (4096, 1024, 8, 901.5)),
    ("cloud", "Xception"): ((4096, 1024, 4, 15706.3), (4096, 1024, 8, 12548.9), (4096, 1536, 8, 11594.4)),
}


def print_table(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())


def geomean(values):
    product = 1.0
    for value in values:
        product *= value ** (1 / len(values))
    return product


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.out = arguments.out
        self.program = os.path.join(arguments.build, "tilewright")
        os.makedirs(self.out, exist_ok=True)

    def path(self, name):
        return os.path.join(self.out, name)

    def run(self, *words):
        result = subprocess.run([self.program, "-q", *words], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{' '.join(words)}\n{result.stderr}")
        return result.stdout

    def network(self, name):
        path = self.path(name + ".onnx")
        if not os.path.exists(path):
            self.run("zoo", name, "-o", path)
        return path

    def layers(self, name, convolutions=(), products=()):
        """A model of layers that have nothing to do with each other."""
        from onnx import TensorProto, helper, save
        path = self.path(name + ".onnx")
        nodes, weights, inputs, outputs = [], [], [], []

        def add(op, x, w, y, **attributes):
            i = len(nodes)
            inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, x))
            count = 1
            for extent in w:
                count *= extent
            weights.append(helper.make_tensor(f"w{i}", TensorProto.FLOAT, w, bytes(4 * count), raw=True))
            outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, y))
            nodes.append(helper.make_node(op, [f"x{i}", f"w{i}"], [f"y{i}"], **attributes))

        for c, h, w, k, r, s, p in convolutions:
            out = [1, k, (h + 2 * p - r) // s + 1, (w + 2 * p - r) // s + 1]
            add("Conv", [1, c, h, w], [k, c, r, r], out, kernel_shape=[r, r], strides=[s, s], pads=[p] * 4)
        for m, n, k in products:
            add("MatMul", [m, k], [k, n], [m, n])
        graph = helper.make_graph(nodes, name, inputs, outputs, weights)
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
        return path

    def suite(self, name):
        """Cases of the suite as arguments of `layers`."""
        with open(self.arguments.workload) as file:
            cases = [case for case in json.load(file)["cases"] if case["suite"] == name]
        shapes = []
        for case in cases:
            p = case["params"]
            if case["operator"] == "conv2d":
                shapes.append((p["in_channels"], p["height"], p["width"], p["out_channels"], p["kernel_h"],
                               p["stride_h"], p["pad_h"]))
            else:
                shapes.append((p["m"], p["n"], p["k"]))
        return [case["id"].split("/")[-1] for case in cases], shapes, cases

    def design(self, name, **keys):
        path = self.path(name + ".toml")
        with open(path, "w") as file:
            file.write('kind = "spatial"\n')
            for key, value in keys.items():
                file.write(f"{key} = {json.dumps(value)}\n")
        return path

    def evaluated(self, design, model, technology="asic45"):
        return json.loads(self.run("codesign", "eval", design, model, "--technology", technology, "--json"))

    def save(self, name, rows, notes=()):
        """rows: the first has headings."""
        print(f"\n{name}")
        print_table(rows)
        for note in notes:
            print(note)
        with open(self.path(name + ".json"), "w") as file:
            json.dump({"rows": [dict(zip(rows[0], row)) for row in rows[1:]], "notes": list(notes)}, file, indent=1)

    def fig2(self):
        model = self.layers("gemm512", products=[(512, 512, 512)])
        rows = [["ratio of GA_L to GA_S", "paper", "hasco-fpga", "asic45"]]
        found = {}
        for technology in ("hasco-fpga", "asic45"):
            large, small = (self.evaluated(self.design(f"ga_{side}", rows=side, cols=side, spad_kb=kb), model, technology)
                            for side, kb in ((16, 256), (8, 128)))
            found[technology] = {key: large[key] / small[key] for key in ("area", "power", "peak_power")}
            found[technology]["throughput"] = small["latency"] / large["latency"]
        for key, paper in (("area", 2.58), ("power", 1.49), ("peak_power", ""), ("throughput", 4.27)):
            rows.append([key, paper, *(round(found[t][key], 2) for t in ("hasco-fpga", "asic45"))])
        self.save("fig2", rows, [
            "The line of power in hasco-fpga was fitted to this ratio among others; area is the scarcest cells' share.",
            "Single programs on both: bench_mapping programs."])

    def fig7(self):
        with open(self.arguments.workload) as file:
            cases = json.load(file)["cases"]
        rows = [["case", *(f"{unit} cycles" for unit in UNITS), "fastest"]]
        wins = {}
        for kind in ("gemm", "conv2d", "ttm", "mttkrp"):
            for case in (case for case in cases if case["suite"] == "hasco/" + kind):
                cycles = [self.operator_cycles(unit, case["id"]) for unit in UNITS]
                best = min(((c, unit) for c, unit in zip(cycles, UNITS) if c), default=(0, "host"))[1]
                wins.setdefault(kind, []).append(best)
                rows.append([case["id"], *(f"{c:.4g}" if c else "-" for c in cycles), best])
        self.save("fig7", rows, [
            "paper: GEMM is the fastest for GEMM and TTM, CONV2D for convolutions, GEMV for MTTKRP, DOT generally the slowest.",
            *(f"ours, {kind}: " + ", ".join(f"{unit} {units.count(unit)}" for unit in UNITS) for kind, units in wins.items()),
            "- : the unit computes nothing of it. What a unit does not compute the host does, a multiplication per cycle."])

    def operator_cycles(self, unit, case):
        """Of an operator of the workload on 64 units, 256 KiB, 4 banks; None: all of it is the host's."""
        design = self.design("fig7_" + unit, intrinsic=unit, links="systolic" if unit == "gemm" else "full", rows=8, cols=8)
        result = subprocess.run([self.program, "-q", "--json", "codesign", "eval", design, "--workload",
                                 self.arguments.workload, "--id", case], capture_output=True, text=True, check=False)
        no_match = 3
        if result.returncode not in (0, no_match):
            sys.exit(result.stderr)
        layers = json.loads(result.stdout)["layers"] if result.returncode == 0 else []
        if all(layer["on_host"] for layer in layers):
            return None
        return sum(layer["cycles"] * layer["runs"] for layer in layers)

    def contest(self, name, model, space, budgets):
        return json.loads(self.run("codesign", "contest", model, "--space", space, "-o", self.path(name), "--evaluations",
                                   budgets, "--seeds", str(self.arguments.seeds), "--json"))

    @staticmethod
    def contest_rows(report):
        rows = [["method", "evaluations", "median %", "worst %"]]
        rows += [["ceiling", line["evaluations"], round(100 * line["share"], 2), ""] for line in report["ceilings"]]
        rows += [[line["method"], line["evaluations"], round(100 * line["median"], 2), round(100 * line["worst"], 2)]
                 for line in report["runs"]]
        return rows

    def fig8(self):
        report = self.contest("fig8", self.layers("six", SIX), "hasco-truth", "20")
        self.save("fig8", self.contest_rows(report), [
            f"{report['points']} designs, {report['front']} on the true front, {report['table_seconds']:.0f} s",
            "paper, 20 evaluations, share of the best latency/power/area found: random 74.8/43.8/41.6 %, NSGA-II "
            "80.5/95.2/62.2 %; our shares are of hypervolume: its own measure of a front is not defined there."])

    def fig10(self):
        report = self.contest("fig10", self.network("resnet50"), "hasco-gemm", "16,40")
        shares = {(line["method"], line["evaluations"]): line["median"] for line in report["runs"]}
        self.save("fig10", self.contest_rows(report), [
            "paper: MOBO has 1.19 times NSGA-II's hypervolume, and passes the others' last value at trial 16 of 40.",
            *(f"ours: {m} has {shares[m, 40] / shares['nsga2', 40]:.3f} times that of NSGA-II" for m in
              ("mobo", "mobo:ehvi", "ours")),
            *(f"{method} has what {other} has at the end after {count or 'more'} evaluations"
              for method in ("mobo", "ours") for other, count in report["evaluations_to"][method].items())])

    def fig11(self):
        names, shapes, cases = self.suite("hasco-extra/resnet50_conv2d")
        design = self.design("fig11", rows=16, cols=16)
        rows = [["case", "times", "cycles", "im2col: GEMM", "im2col: host", "faster by"]]
        ratios = []
        for name, (c, h, w, k, r, s, p), case in zip(names, shapes, cases):
            out = ((h + 2 * p - r) // s + 1) * ((w + 2 * p - r) // s + 1)
            ours = self.evaluated(design, self.layers("case", [(c, h, w, k, r, s, p)]))["layers"][0]
            product = self.evaluated(design, self.layers("case", products=[(out, k, c * r * r)]))["layers"][0]
            # The host writes the matrix and turns the result around, a byte per cycle.
            host = c * r * r * out + out * k
            ratio = (product["cycles"] + host) / ours["cycles"]
            times = case.get("repeat", 1)
            ratios += [ratio] * times
            rows.append([name, times, round(ours["cycles"]), round(product["cycles"]), host, round(ratio, 2)])
        self.save("fig11", rows, [
            "paper: 3.17 times faster than the im2col library on average, more than 2 times in 18 of 53.",
            f"ours: {sum(ratios) / len(ratios):.2f} on average, geomean {geomean(ratios):.2f}, more than 2 times in "
            f"{sum(ratio > 2 for ratio in ratios)} of {len(ratios)}",
            "The library is modelled: its GEMM has the best mapping, its host moves a byte per cycle. A template with tile "
            "sizes alone (AutoTVM, paper: 1.21) and HASCO's search: bench_mapping methods."])

    def table2(self):
        rows = [["network", "unit", "method", "paper cycles", "mW", "um2", "cycles", "mW", "um2"]]
        gains = []
        for (network, unit), papers in TABLE2.items():
            if network not in self.arguments.networks:
                continue
            found = []
            for method, paper in zip(("random", "nsga2", "mobo", "ours"), (*papers, None)):
                knees = [self.knee(network, unit, method, seed) for seed in range(self.arguments.seeds)]
                found.append([statistics.median(column) for column in zip(*knees)])
                quoted = [f"{x:.4g}" for x in paper] if paper else [""] * 3
                rows.append([network, unit, method, *quoted, *(f"{x:.4g}" for x in found[-1])])
            gains.append([a / b for a, b in zip(found[0], found[2])])
        notes = [f"The knee of each front, medians of {self.arguments.seeds} seeds; absolute values are of other "
                 "technologies and cannot be compared.",
                 "paper, random over MOBO on average: latency 1.215, power 1.154, area 1.336"]
        if gains:
            means = [sum(g[i] for g in gains) / len(gains) for i in range(3)]
            notes.append("ours: latency {:.3f}, power {:.3f}, area {:.3f}".format(*means))
        self.save("table2", rows, notes)

    def knee(self, network, unit, method, seed):
        """Latency, power and area of the knee of a search's front. A search that has ended is not repeated."""
        folder = self.path(f"table2_{network}_{unit}_{method}_{seed}")
        space = "hasco-gemm" if unit == "gemm" else "hasco-conv2d"
        front = json.loads(self.run("codesign", "search", self.network(NETWORKS[network]), "--space", space, "--method",
                                    method, "--evaluations", "40", "--seed", str(seed), "-o", folder, "--json"))["front"]
        point = next(p for p in front if p["knee"])
        return [point[key] for key in ("latency", "power", "area")]

    def table3(self):
        rows = [["scenario", "network", "design", "paper: units/KiB/banks", "ms", "units/KiB/banks", "ms", "gain"]]
        gains = {}
        for (scenario, network), papers in TABLE3.items():
            if network not in self.arguments.networks:
                continue
            model = self.network(NETWORKS[network])
            side, kb = (8, 256) if scenario == "edge" else (64, 1024)
            wide = {} if scenario == "edge" else {"bank_bytes": 64, "bus_bytes": 32, "local_kb": 256}
            base = self.evaluated(self.design(f"baseline_{scenario}", rows=side, cols=side, spad_kb=kb, **wide), model,
                                  "hasco-fpga")["seconds"] * 1e3
            rows.append([scenario, network, "baseline", "/".join(map(str, papers[0][:3])), papers[0][3],
                         f"{side * side}/{kb}/4", round(base, 1), ""])
            for unit, paper in zip(("gemm", "conv2d"), papers[1:]):
                folder = self.path(f"table3_{scenario}_{network}_{unit}")
                self.run("codesign", "search", model, "--space", self.space_of_unit(scenario, unit), "--objectives",
                         "latency,area", "--evaluations", "40", "-o", folder)
                self.run("codesign", "front", folder, "--pick", "min:latency", "-o", folder, "--no-package")
                result = self.evaluated(folder + "/hw.toml", model, "hasco-fpga")
                keys = dict(line.split(" = ") for line in open(folder + "/hw.toml").read().split("\n") if " = " in line)
                text = "/".join([str(int(keys["rows"]) * int(keys["cols"])), keys["spad_kb"], keys["banks"]])
                ms = result["seconds"] * 1e3
                gains.setdefault((scenario, unit), []).append(base / ms)
                rows.append([scenario, network, unit, "/".join(map(str, paper[:3])), paper[3], text, round(ms, 1),
                             f"{papers[0][3] / paper[3]:.2f} / {base / ms:.2f}"])
        self.save("table3", rows, [
            "gain over the baseline: paper / ours. Absolute times are no goal: the paper writes depthwise layers as dense "
            "ones, and its software reaches some per cent of the array.",
            *(f"{scenario}, {unit}: {geomean(values):.2f} on average" for (scenario, unit), values in gains.items()),
            "The baseline has the mapper's best mappings here, not those of AutoTVM: gains are of the hardware alone."])

    def parts(self):
        steps = (("HASCO's", "mobo", "hasco", "one"), ("our choice", "mobo", "hasco", "all"),
                 ("our mapping", "mobo", "ours", "all"), ("our hardware", "ours", "ours", "all"))
        rows = [["scenario", "network", *(f"{step[0]}, ms" for step in steps), "faster by"]]
        factors = []  # of each cell: what each step brings
        for scenario in ("edge", "cloud"):
            for network in self.arguments.networks:
                best = []
                for name, method, mapper, choices in steps:
                    folder = self.path(f"parts_{scenario}_{network}_{name.replace(' ', '_')}")
                    # A search that has ended is read from its folder again.
                    front = json.loads(self.run("codesign", "search", self.network(NETWORKS[network]), "--space", scenario,
                                                "--objectives", "latency,area", "--method", method, "--mapper", mapper,
                                                "--choices", choices, "--evaluations", "20", "-o", folder, "--json"))["front"]
                    best.append(min(point["latency"] for point in front) / 200e3)  # of cycles at 200 MHz
                factors.append([a / b for a, b in zip(best, best[1:])])
                rows.append([scenario, network, *(f"{ms:.4g}" for ms in best), f"{best[0] / best[-1]:.2f}"])
        means = [geomean(column) for column in zip(*factors)]
        self.save("parts", rows, [
            "paper: 29.5 % of the gain from hardware, 70.5 % from software.",
            "ours, geomean: choice {:.3f}, mapping {:.3f}, hardware {:.3f}".format(*means)])

    def space_of_unit(self, scenario, unit):
        """The space with one unit instead of the choice."""
        with open(os.path.join(self.arguments.spaces, scenario + ".toml")) as file:
            lines = file.read().split("\n")
        lines = [line for line in lines if not line.startswith("intrinsic")]
        if unit != "gemm":
            lines = [line for line in lines if not line.startswith("dataflow")]
        at = lines.index("[fixed]") + 1
        path = self.path(f"{scenario}_{unit}.toml")
        with open(path, "w") as file:
            file.write("\n".join([*lines[:at], f'intrinsic = "{unit}"', *lines[at:]]))
        return path

    def front(self):
        rows = [["network", "space", "designs", "seconds", "on the front"]]
        for count in (5, 40):
            start = time.monotonic()
            front = json.loads(self.run("codesign", "search", self.network("resnet50"), "--space", "edge", "--evaluations",
                                        str(count), "-o", self.path(f"front_{count}_{int(time.time())}"), "--json"))
            rows.append(["resnet50", "edge", count, round(time.monotonic() - start, 1), len(front["front"])])
        self.save("front", rows, ["Wall-clock time of this machine, reading the model included."])


EXPERIMENTS = ("fig2", "fig7", "fig8", "fig10", "fig11", "table2", "table3", "parts", "front")
WITH_SUITES = ("fig7", "fig11")  # of a workload file


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="folder with the program")
    parser.add_argument("--out", default="codesign-results", help="folder for models, searches and results")
    parser.add_argument("--workload", help="workload file with the layers of fig7 and fig11")
    parser.add_argument("--spaces", default=os.path.join(here, "../../spaces"), help="folder of the spaces")
    parser.add_argument("--networks", default="ResNet", type=lambda text: text.split(","),
                        help="of table2, table3 and parts: ResNet,MobileNet,Xception (default ResNet)")
    parser.add_argument("--seeds", default=20, type=int, help="of fig8, fig10 and table2")
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS)
    arguments = parser.parse_args()
    if not arguments.workload and (needing := [name for name in arguments.experiments if name in WITH_SUITES]):
        parser.error(f"{', '.join(needing)}: the layers are missing; add --workload FILE")
    bench = Bench(arguments)
    for experiment in arguments.experiments:
        getattr(bench, experiment)()


if __name__ == "__main__":
    main()
