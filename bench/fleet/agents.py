#!/usr/bin/env python3
"""Tuning by two agents with a core each, in turn with `tune` and its own processes on both cores.

  agents.py --trials 60 --times 3

Each agent has a host name, a machine's id and a cache of its own (by `unshare`, so root must start this): two machines
to the fleet, which measure at the same time. All runs begin with empty stores. `candidates_s`: trials by the seconds
from the end of planning to the end of the command, races included; `kernels_ms`: the sum of the kernels' costs as
`tune` says it.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import simulation
from latency import Program


AS_MACHINE = 'hostname "core$0"; [ ! -e /etc/machine-id ] || mount --bind "id$0" /etc/machine-id; exec "$@"'


def agents(program, cores):
    """A worker per core, once their devices are free."""
    started = []
    for core in cores:
        environment = {**program.environment, "XDG_CACHE_HOME": f"{program.folder}/agent{core}"}
        with open(f"{program.folder}/agent{core}.log", "w", encoding="utf-8") as log:
            pathlib.Path(program.folder, f"id{core}").write_text(f"{core:032x}\n", encoding="ascii")
            words = ["unshare", "--uts", "--mount", "sh", "-c", AS_MACHINE, str(core), "taskset", "-c", str(core), program.path, "worker", "--device", "cpu"]
            started.append(subprocess.Popen(words, env=environment, cwd=program.folder, stdout=log, stderr=log))
        end = time.monotonic() + 60
        while sum(d["state"] == "free" for d in program.run("fleet", "status")[1]["status"]["devices"]) < len(started):
            if time.monotonic() > end or started[-1].poll() is not None:
                raise RuntimeError("no worker: " + pathlib.Path(program.folder, f"agent{core}.log").read_text(encoding="utf-8"))
            time.sleep(0.1)
    return started


def tuned(program, trials, *words):
    document = program.run("tune", "net.onnx", "--threads", "1", "--trials", str(trials), "--for", "10m", *words)[1]
    seconds = document["seconds"] - document["seconds_before_search"]
    ok = sum(task.get("outcomes", {}).get("ok", 0) for task in document["tasks"])
    return {"trials": document["trials"], "ok": ok, "seconds": round(seconds, 1), "before_s": round(document["seconds_before_search"], 1),
            "candidates_s": round(document["trials"] / seconds, 2), "kernels_ms": round(document["models"][0]["tuned_ns"] / 1e6, 3),
            "devices": len(document.get("worker", {}).get("devices", []))}  # fmt: skip


def pair(chosen):
    """One run here and one by agents."""
    found = {}
    with simulation.server_for(20) as server, tempfile.TemporaryDirectory(prefix="tw-agents-") as folder:
        program = Program(chosen.program, folder, server.url(server.owner))
        program.environment["TILEWRIGHT_CALIBRATE"] = "off"  # both make the same spaces
        program.run("zoo", chosen.model, "-o", "net.onnx")
        found["here"] = tuned(program, chosen.trials, "--store", f"sqlite:{folder}/records.sqlite")
        workers = agents(program, sorted(os.sched_getaffinity(0))[:2])
        try:
            found["agents"] = tuned(program, chosen.trials, "--worker", "cpu")
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=simulation.ROOT / "build" / "release" / "tilewright")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    chosen.program = str(pathlib.Path(chosen.program).resolve())
    pairs = []
    for _ in range(chosen.times):
        pairs.append(pair(chosen))
        print(pairs[-1], file=sys.stderr, flush=True)
    share = statistics.median(p["agents"]["candidates_s"] / p["here"]["candidates_s"] for p in pairs)
    if chosen.json:
        print(json.dumps({"date": time.strftime("%Y-%m-%d"), "processor": simulation.processor(), "share": share, "pairs": pairs}, indent=1))
    else:
        print(f"agents do {share:.2f} times as many candidates per second (median of {len(pairs)})")
    sys.exit(0)


if __name__ == "__main__":
    main()
