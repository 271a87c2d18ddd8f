#!/usr/bin/env python3
"""Arena and bytes between kernels of every network of the zoo, beside their bounds.

memory.py PROGRAM [NETWORK...]; --json prints one document. Making the weights of a network takes
longer than planning it, so --models FOLDER keeps the files it makes (FOLDER/NETWORK.onnx) and uses
those that are there. Exit code 1 if the arena misses its bound on more than one network in twenty.
Needs no quiet machine: nothing is timed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile


def run(program: str, *arguments: str) -> str:
    environment = dict(os.environ, TILEWRIGHT_CALIBRATE="off")
    return subprocess.run(
        [program, *arguments], env=environment, check=True, capture_output=True, text=True
    ).stdout


def measure(program: str, network: str, folder: str, threads: int) -> dict:
    model = os.path.join(folder, network + ".onnx")
    if not os.path.exists(model):
        run(program, "zoo", network, "-o", model)
    return json.loads(
        run(program, "explain", model, "--memory", "--json", "--threads", str(threads))
    )


def measure_apart(program: str, network: str, threads: int) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        return measure(program, network, folder, threads)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--models", metavar="FOLDER")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    listed = json.loads(run(options.program, "zoo", "list", "--json"))
    networks = options.networks or [entry["name"] for entry in listed["networks"]]
    rows = []
    if not options.json:
        print(f"{'network':16} {'arena':>11} {'bound':>11} ratio  proven  "
              f"{'moved':>12} {'compulsory':>12} ratio")
    for network in networks:
        row = (
            measure(options.program, network, options.models, options.threads)
            if options.models
            else measure_apart(options.program, network, options.threads)
        )
        rows.append(row)
        if options.json:
            continue
        arena, between = row["arena"], row["between_kernels"]
        print(f"{network:16} {arena['bytes']:11} {arena['lower_bound']:11} {arena['ratio']:.3f}  "
              f"{'yes' if arena['optimal'] else 'no':6}  {between['bytes']:12} "
              f"{between['compulsory']:12} {between['ratio']:.3f}", flush=True)
    at_bound = sum(row["arena"]["bytes"] == row["arena"]["lower_bound"] for row in rows)
    within = sum(row["between_kernels"]["ratio"] <= 1.1 for row in rows)
    summary = {"networks": len(rows), "arena_at_bound": at_bound, "bytes_within_1.1": within}
    print(json.dumps({"rows": rows, **summary}, indent=2) if options.json else summary)
    return 0 if at_bound >= 0.95 * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
