#!/usr/bin/env python3
"""Tuning by two agents with a core each, in turn with `tune` and its own processes on both cores.

  agents.py --trials 320 --times 3 --direct

Each agent has a host name, a machine's id and a cache of its own (by `unshare`, so root must start this): two machines
to the fleet, which measure at the same time. All runs begin with empty stores. `candidates_s`: trials by the seconds
from the end of planning to the end of the command, races included; `model_ms`: the tuned model's time as `tune` says it.
A pair can be compared if both searches had the same kernels (`tasks_of_one` is near 0, and `tried_by_both` is all). At
its end both packages run in turn on this machine, whatever either search said of its own.
"""

import os
import pathlib
import statistics
import sys
import tempfile

import simulation
from latency import Program


AS_MACHINE = 'hostname "core$0"; [ ! -e /etc/machine-id ] || mount --bind "id$0" /etc/machine-id; exec "$@"'


def agents(program, cores):
    """A worker per core, once their devices are free."""
    started = []
    for core in cores:
        pathlib.Path(program.folder, f"id{core}").write_text(f"{core:032x}\n", encoding="ascii")
        before = ["unshare", "--uts", "--mount", "sh", "-c", AS_MACHINE, str(core), "taskset", "-c", str(core)]
        cache = {"XDG_CACHE_HOME": f"{program.folder}/agent{core}"}
        started.append(program.worker("cpu", free=len(started) + 1, name=f"agent{core}", before=before, environment=cache))
    return started


def tuned(program, chosen, package, *words):
    document = program.run("tune", "net.onnx", "--threads", "1", "--trials", str(chosen.trials), "--for", "10m", "-o", package, *chosen.direct, *words)[1]
    seconds = document["seconds"] - document["seconds_before_search"]
    ok = sum(task.get("outcomes", {}).get("ok", 0) for task in document["tasks"])
    model = document["models"][0]
    return {"trials": document["trials"], "ok": ok, "seconds": round(seconds, 1), "before_s": round(document["seconds_before_search"], 1),
            "candidates_s": round(document["trials"] / seconds, 2), "model_ms": round(model["tuned_ns"] / 1e6, 3),
            "measured_whole": model["measured_whole"], "devices": len(document.get("worker", {}).get("devices", [])),
            "tasks": {task["workload"]: task["tried"] for task in document["tasks"]}}  # fmt: skip


def shared(here, there):
    """How many kernels both searches had and tried, and how many one of them had alone."""
    ours, theirs = here.pop("tasks"), there.pop("tasks")
    both = set(ours) & set(theirs)
    return {"tasks": len(both), "tried_by_both": sum(ours[key] > 0 and theirs[key] > 0 for key in both),
            "tasks_of_one": len(set(ours) ^ set(theirs)), "trials_of_one": sum({**ours, **theirs}[key] for key in set(ours) ^ set(theirs))}  # fmt: skip


def pair(chosen):
    """One run here and one by agents, and the two packages in turn."""
    found = {}
    with simulation.server_for(20) as server, tempfile.TemporaryDirectory(prefix="tw-agents-") as folder:
        program = Program(chosen.program, folder, server.url(server.owner))
        program.environment["TILEWRIGHT_CALIBRATE"] = "off"  # both make the same spaces
        program.run("zoo", chosen.model, "-o", "net.onnx")
        found["here"] = tuned(program, chosen, "here.twm", "--store", f"sqlite:{folder}/records.sqlite")
        workers = agents(program, sorted(os.sched_getaffinity(0))[:2])
        try:
            found["agents"] = tuned(program, chosen, "agents.twm", "--worker", "cpu")
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()
        found.update(shared(found["here"], found["agents"]))
        compared = program.run("bench", "agents.twm", "--compare", "here.twm", "--threshold", "1000", "--duration", "3")[1]["compare"]
        found["time_of_here"] = {key: compared[key] for key in ("ratio", "interval")}
    return found


def main():
    parser = simulation.parser_of(__doc__, program=True)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--direct", action="store_const", const=["--direct"], default=[], help="convolutions have one form, so there are fewer kernels")
    chosen = parser.parse_args()
    pairs = []
    for _ in range(chosen.times):
        pairs.append(pair(chosen))
        print(pairs[-1], file=sys.stderr, flush=True)
    share = statistics.median(p["agents"]["candidates_s"] / p["here"]["candidates_s"] for p in pairs)
    time_of = statistics.median(p["time_of_here"]["ratio"] for p in pairs)
    text = f"agents do {share:.2f} times as many candidates per second, and their model takes {time_of:.3f} of the time (medians of {len(pairs)})"
    simulation.report(chosen, {"share": share, "time_of_here": time_of, "pairs": pairs}, [text])


if __name__ == "__main__":
    main()
