#!/usr/bin/env python3
"""Random models against references: run.py --program tilewright [--for 3m | --count N] [--seed S] [--set NAME].

Model number i of seed S is the same on every machine. Models that fail are made smaller and kept, with
their inputs, in --keep; the last line is a summary, --json writes all of it. Exit code 1 if anything
crashed, failed behind `check`, or gave wrong results.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

# What to compile with, which floats to draw, and who judges.
SETS = {
    "default": ([], "f32", "ort"),
    "O0": (["-O", "0"], "f32", "ort"),
    "O1": (["-O", "1"], "f32", "ort"),
    "exact": (["--math", "exact"], "f32", "ort"),
    "c": (["--backend", "c"], "f32", "ort"),
    "v2": (["--target", "x86-64-v2"], "f32", "ort"),
    "v3": (["--target", "x86-64-v3"], "f32", "ort"),
    "opencl": (["--target", "opencl"], "f32", "ort"),
    "f64": ([], "f64", "ort"),
    "f16": ([], "f16", "interp"),
    "bf16": ([], "bf16", "interp"),
    "hostile": (["--direct"], "f32", "hostile"),  # Winograd spreads one NaN over a tile
    "hostile_c": (["--direct", "--backend", "c"], "f32", "hostile"),
    "guarded": ([], "f32", "guarded"),
    "guarded_c": (["--backend", "c"], "f32", "guarded"),
}


def seconds(text):
    units = {"s": 1, "m": 60, "h": 3600}
    return float(text[:-1]) * units[text[-1]] if text[-1] in units else float(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the tilewright to test")
    parser.add_argument("--for", dest="time", type=seconds, help="stop after this time: 90s, 3m, 8h")
    parser.add_argument("--count", type=int, help="stop after this many models")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first model")
    parser.add_argument("--set", default="default", help=f"comma-separated, taken in turn: {', '.join(SETS)}")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", help="folder for models that fail (default: a new one)")
    parser.add_argument("--json", dest="report", help="file for the whole report")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("options", nargs="*", help="further options for the program, behind --")
    chosen = parser.parse_args()
    unknown = [s for s in chosen.set.split(",") if s not in SETS]
    if unknown:
        parser.error(f"there is no set '{unknown[0]}'; the sets are {', '.join(SETS)}")
    if not chosen.worker and chosen.time is None and chosen.count is None:
        parser.error("say when to stop: --for 3m or --count 500")
    chosen.program = os.path.abspath(chosen.program)
    chosen.keep = os.path.abspath(chosen.keep or tempfile.mkdtemp(prefix="models_"))
    return chosen


def environment():
    """Neither the user's records nor the rates of this machine decide what is tested."""
    scratch = tempfile.gettempdir()
    return os.environ | {
        "TILEWRIGHT_CALIBRATE": "off",
        "TILEWRIGHT_RECORDS": os.path.join(scratch, f"models_{os.getuid()}.sqlite"),
        "TILEWRIGHT_PYTHON": sys.executable,
    }


# A worker tests the models whose numbers it is told, one line of JSON each.
def worker(chosen):
    from generate import describe, generate
    from judge import Judge

    sets = chosen.set.split(",")
    for line in sys.stdin:
        number = int(line)
        name = sets[number % len(sets)]
        options, real, against = SETS[name]
        threads = ["--threads", str(1 + number % 3)]
        judge = Judge(chosen.program, [*options, *threads, *chosen.options], against)
        model, feeds = generate(chosen.seed * 1_000_000 + number, real)
        start = time.monotonic()
        verdict = judge.judge(model, feeds)
        took = time.monotonic() - start
        found = {"number": number, "set": name, "verdict": verdict.kind, "text": verdict.text}
        found |= {"model": describe(model), "seconds": round(took, 3), "opset": model.opset_import[0].version}
        found["operators"] = sorted({n.op_type for n in model.graph.node})
        if verdict.fault:
            found["file"] = keep(chosen, judge, number, name, model, feeds, verdict)
        print(json.dumps(found), flush=True)


def keep(chosen, judge, number, name, model, feeds, verdict):
    """Writes the model, as small as it still fails, and its inputs."""
    import numpy as np
    import onnx
    from shrink import shrink

    if not chosen.no_shrink:
        model, feeds = shrink(model, feeds, lambda m, f: judge.judge(m, f).kind == verdict.kind)
    os.makedirs(chosen.keep, exist_ok=True)
    stem = os.path.join(chosen.keep, f"{name}_{chosen.seed}_{number}_{verdict.kind}")
    onnx.save(model, stem + ".onnx")
    np.savez(stem + ".npz", **{k: v for k, v in feeds.items() if v.dtype.kind in "fiub"})
    return stem + ".onnx"


def start(chosen):
    command = [sys.executable, os.path.abspath(__file__), "--worker", "--program", chosen.program]
    command += ["--seed", str(chosen.seed), "--set", chosen.set, "--keep", chosen.keep]
    command += ["--no-shrink"] * chosen.no_shrink + ["--", *chosen.options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())


def results(chosen):
    """Verdicts as they come. A worker that dies took ONNX Runtime's word: that model judges nothing."""
    import threading
    from queue import Queue

    end = None if chosen.time is None else time.monotonic() + chosen.time
    numbers = iter(range(chosen.first, chosen.first + (chosen.count or 10**9)))
    lock, queue = threading.Lock(), Queue()

    def tend():
        process = start(chosen)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None or (end and time.monotonic() > end):
                break
            line = ""
            try:
                process.stdin.write(f"{number}\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except BrokenPipeError:
                pass
            if line:
                queue.put(json.loads(line))
                continue
            process.kill()
            queue.put({"number": number, "verdict": "nothing", "text": "the reference died", "operators": []})
            process = start(chosen)
        process.stdin.close()
        process.wait()
        queue.put(None)

    for _ in range(chosen.jobs):
        threading.Thread(target=tend, daemon=True).start()
    for _ in range(chosen.jobs):
        while (found := queue.get()) is not None:
            yield found


def main():
    chosen = arguments()
    if chosen.worker:
        return worker(chosen)
    begin, counts, operators, all_found = time.monotonic(), collections.Counter(), set(), []
    for found in results(chosen):
        counts[found["verdict"]] += 1
        operators |= set(found["operators"])
        all_found.append(found)
        if found["verdict"] not in ("ok", "known", "unsure"):
            print(f"{found['number']} {found['verdict']}: {found['text']}", flush=True)
            if "file" in found:
                print(f"    {found['model']}\n    kept: {found['file']}", flush=True)
    took = time.monotonic() - begin
    faults = sum(counts[k] for k in ("crash", "failed", "wrong"))
    total = sum(counts.values())
    if chosen.report:
        report = {"seed": chosen.seed, "set": chosen.set, "seconds": took, "counts": counts}
        with open(chosen.report, "w") as file:
            json.dump(report | {"operators": sorted(operators), "models": all_found}, file, indent=1)
    each = ", ".join(f"{n} {kind}" for kind, n in counts.most_common())
    print(f"{total} models of seed {chosen.seed} ({chosen.set}), {len(operators)} operators, {took:.0f} s: {each}")
    return 1 if faults or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
