#!/usr/bin/env python3
"""The 15 YOLO layers on a GPU without measurement and tuned, beside each other.

tune.py PROGRAM [--device cuda|opencl] [--seconds 20] [--only TEXT] [--limit N] [--json]
    [--workload FILE --suite NAME]      the f32 cases of this suite instead of the YOLO layers

Each layer is tuned for `--seconds` (15 of them: five minutes) into a store of its own, by the
device's clock; the last race of both forms in turn gives the times. "of tuned" says how much of the
tuned speed the model's choice reaches without measuring.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

# Channels, filters, height and width, kernel, stride (FlexTensor paper, table 4).
YOLO = [
    (3, 64, 448, 7, 2), (64, 192, 112, 3, 1), (192, 128, 56, 1, 1), (128, 256, 56, 3, 1),
    (256, 256, 56, 1, 1), (256, 512, 56, 3, 1), (512, 256, 28, 1, 1), (256, 512, 28, 3, 1),
    (512, 512, 28, 1, 1), (512, 1024, 28, 3, 1), (1024, 512, 14, 1, 1), (512, 1024, 14, 3, 1),
    (1024, 1024, 14, 3, 1), (1024, 1024, 14, 3, 2), (1024, 1024, 7, 3, 1),
]  # yapf: disable


def write_yolo(path):
    """The layers as a workload file."""
    cases = []
    for number, (channels, filters, size, kernel, stride) in enumerate(YOLO, 1):
        params = {"batch": 1, "in_channels": channels, "out_channels": filters}
        for axis, extent in (("h", "height"), ("w", "width")):
            params |= {extent: size, f"kernel_{axis}": kernel, f"stride_{axis}": stride}
            params[f"pad_{axis}"] = kernel // 2
        output = [1, filters, -(-size // stride), -(-size // stride)]
        cases.append({"id": f"yolo/C{number}", "suite": "yolo", "operator": "conv2d", "params": params,
                      "dtype": "float32", "output_shape": output})  # yapf: disable
    with open(path, "w") as file:
        json.dump({"cases": cases}, file)


def tune(options, case, folder):
    """Times of one layer in microseconds, and what was tried."""
    command = [options.program, "-q", "--json", "tune", "--workload", options.workload]
    command += ["--id", case["id"], "--device", options.device, "--for", f"{options.seconds}s"]
    command += ["--records", os.path.join(folder, "records.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=4 * options.seconds + 120)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "failed").splitlines()[0])
    result = json.loads(done.stdout)
    outcomes = {}
    for task in result["tasks"]:
        for kind, count in task.get("outcomes", {}).items():
            outcomes[kind] = outcomes.get(kind, 0) + count
    model = result["models"][0]
    best = max(result["tasks"], key=lambda task: task.get("untuned_ns", 0))
    return {
        "untuned_us": model["untuned_ns"] / 1e3,
        "tuned_us": model["tuned_ns"] / 1e3,
        "of_tuned": model["tuned_ns"] / model["untuned_ns"],
        "tried": sum(outcomes.values()),
        "outcomes": outcomes,
        "point": best.get("point", ""),
    }


def chosen_cases(options):
    with open(options.workload) as file:
        cases = json.load(file)["cases"]
    cases = [c for c in cases if c["suite"] == options.suite and c["dtype"] == "float32"]
    return [c for c in cases if options.only in c["id"]][: options.limit]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int, default=100, help="of layers")
    parser.add_argument("--workload", help="file of a suite to tune instead")
    parser.add_argument("--suite", help="its name")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if (options.workload is None) != (options.suite is None):
        parser.error("--workload and --suite go together")
    start, rows = time.monotonic(), []
    if not options.json:
        print(f"{'layer':28} {'untuned us':>12} {'tuned us':>12} {'of tuned':>9} {'tried':>6}")
    with tempfile.TemporaryDirectory() as folder:
        if options.workload is None:
            options.workload, options.suite = os.path.join(folder, "yolo.json"), "yolo"
            write_yolo(options.workload)
        for case in chosen_cases(options):
            row = {"case": case["id"]}
            try:
                row.update(tune(options, case, folder))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                row["error"] = str(error)
            rows.append(row)
            if options.json:
                continue
            if "error" in row:
                print(f"{row['case']:28} {row['error']}", flush=True)
                continue
            print(
                f"{row['case']:28} {row['untuned_us']:12.1f} {row['tuned_us']:12.1f} "
                f"{100 * row['of_tuned']:8.1f}% {row['tried']:6} {row['point']}",
                flush=True,
            )
    shares = [row["of_tuned"] for row in rows if "of_tuned" in row]
    summary = {
        "layers": len(rows),
        "failed": sum("error" in row for row in rows),
        "untuned_of_tuned": math.exp(sum(map(math.log, shares)) / len(shares)) if shares else None,
        "worst": min(shares, default=None),
        "seconds": round(time.monotonic() - start, 1),
    }
    print(json.dumps({"rows": rows, **summary}, indent=2) if options.json else summary)
    return 1 if summary["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
