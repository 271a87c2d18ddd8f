#!/usr/bin/env python3
"""Default schedules against tuned ones, on shapes of no list: untuned.py --program build/release/tilewright [--count 60].

Each case is one convolution or product drawn at random: sizes log-uniform, windows 1 to 7, strides 1 and 2,
dilations 1 to 16, groups. It is compiled by rule, then with what `tune --for 60s` found in both spaces, and both
packages run in turn. The share is 1 where nothing faster was found. Case number i of a seed is the same on every
machine. Prints a line per case, then median and 10th percentile; --json writes all of it, and a second run with the
same file goes on where it stopped. An hour for 60 cases: nothing else may run on the machine. Needs NumPy and onnx,
as .venv/bin/python of the checkout has them.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "peers"))
import cases  # noqa: E402
import random_cases  # noqa: E402


def draw_layer(seed, number):
    """(shape, layer) of one case with at most 4 Gflop: 60 s of tuning should try many schedules."""
    dice = random.Random(f"untuned {seed} {number}")

    def size(least, most):
        return round(math.exp(dice.uniform(math.log(least), math.log(most))))

    while True:
        kind = dice.choice(["plain", "plain", "dilated", "grouped", "depthwise", "product"])
        if kind == "product":
            shape, layers = random_cases.product(size(1, 1024), size(16, 2048), size(16, 2048))
        else:
            groups = {"grouped": 2 ** dice.randint(1, 5), "depthwise": size(8, 512)}.get(kind, 1)
            channels = groups if kind == "depthwise" else groups * size(4, 512 // groups)
            out = groups if kind == "depthwise" else groups * size(4, 512 // groups)
            shape, layers = random_cases.conv(channels, out, [size(7, 112), size(7, 112)], [dice.randint(1, 7)] * 2,
                                              dice.randint(1, 2), dice.randint(2, 16) if kind == "dilated" else 1,
                                              groups)
        if 1e6 < cases.layers_flops(shape, layers) < 4e9:
            return shape, layers


def call(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def compare(options, folder, shape, layers):
    """Times in ns of the default and of the tuned package, run in turn, and how many schedules were tried."""
    model, tuned, plain = (os.path.join(folder, name) for name in ("m.onnx", "tuned.twm", "plain.twm"))
    cases.write_model(cases.layer_case("case", "untuned", shape, layers), model, options.program)
    shared = ["--threads", str(options.threads), "--json"]
    call([options.program, "compile", model, "--no-records", "-o", plain, *shared])
    tune = call([options.program, "tune", model, "--for", options.time, "--records",
                 os.path.join(folder, "records.sqlite"), "-o", tuned, *shared])
    race = call([options.program, "bench", tuned, "--compare", plain, "--threshold", "1000", "--duration", "2", *shared])
    return race, tune["trials"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--time", default="60s", help="of tuning, per case")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", help="file for all results; what it holds is not measured again")
    return parser.parse_args()


def main():
    options = parse()
    rows = {}
    if options.json and os.path.exists(options.json):
        with open(options.json, encoding="utf-8") as file:
            rows = {row["case"]: row for row in json.load(file)}
    for number in range(options.count):
        name = f"{options.seed}/{number}"
        if name not in rows:
            shape, layers = draw_layer(options.seed, number)
            with tempfile.TemporaryDirectory() as folder:
                race, trials = compare(options, folder, shape, layers)
            # A tuned package that is slower by the noise of the race means that nothing faster was found.
            share = min(1.0, race["compare"]["ratio"])
            rows[name] = {"case": name, "layer": random_cases.describe(shape, layers[0]), "share": share,
                          "race": race["compare"], "trials": trials}
            if options.json:
                with open(options.json + ".new", "w", encoding="utf-8") as file:
                    json.dump(list(rows.values()), file, indent=1)
                os.replace(options.json + ".new", options.json)
        row = rows[name]
        print(f"{name:8} {row['layer']:60} untuned {100 * row['share']:5.1f} % of tuned, {row['trials']} schedules",
              flush=True)
    shares = sorted(row["share"] for row in rows.values())
    print(f"{len(shares)} cases: median {100 * statistics.median(shares):.1f} %, 10th percentile "
          f"{100 * shares[len(shares) // 10]:.1f} %, worst {100 * shares[0]:.1f} %")


if __name__ == "__main__":
    main()
