#!/usr/bin/env python3
"""Tuning on simulated devices: how much faster many of them are, and what disturbs it.

  tuning.py --devices 1,8,32,64 --trials 2000 --seeds 5      ResNet-50, 0.25 s per candidate
  tuning.py --devices 1,8 --workload F.json --one ID         one operator: also the time to 95 % of the best
  tuning.py --devices 20 --bad 10                            every 10th device is another machine than it says
  tuning.py --devices 8 --outage 60                          the server is stopped for so long in the middle

Each is `tilewright tune M.onnx --worker model` against a server of its own. Devices sleep as long as a candidate takes
and answer with the model's cost times a factor per decision (docs/fleet.md), so few processors serve many of them.
`measuring_s` is the time from the first post to the last, `search_s` that from the end of planning to the end of the
command: making spaces, measuring, races, compiling the result. `kernels_ms` is the sum
of the kernels' costs as `tune` says it: after races, which have no noise on these devices.
"""

import pathlib
import signal
import sys
import tempfile
import threading
import time

import simulation
from latency import Program


def workers(program, count, seconds, bad):
    """A process that offers all devices; every `bad`-th is another machine."""
    def offer(i):
        other = f",other={i}" if bad and i % bad == 0 else ""
        return f"model:seed=1,id={i},seconds={seconds}{other}"

    return program.worker(*map(offer, range(1, count + 1)), free=count)


class Outage(threading.Thread):
    """Stops the server for some seconds, once so many candidates are measured."""

    def __init__(self, server, after, seconds):
        super().__init__(daemon=True)
        self.server, self.after, self.seconds, self.over = server, after, seconds, threading.Event()
        self.connection = server.connect()
        self.connection.autocommit = True

    def run(self):
        results = 0
        while results < self.after:
            time.sleep(0.2)
            with self.connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM fleet.results")
                results = cursor.fetchone()[0]
        self.connection.close()
        self.server.process.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
        self.server.process.wait()
        time.sleep(self.seconds)
        self.server.start()
        self.over.wait()  # a server goes with the thread that started it


# Items that a device has posted: `3 to 5`.
POSTED = ("SELECT e.device, e.at, split_part(e.note, ' to ', 2)::int - split_part(e.note, ' to ', 1)::int + 1 AS items "
          "FROM fleet.events e JOIN fleet.ended j ON j.id = e.job AND j.kind = 'measure' WHERE e.what = 'posted'")  # fmt: skip


def found_suspects(server):
    """Of suspects: name and how many candidates they had measured by then."""
    with server.connect() as owner, owner.cursor() as cursor:
        cursor.execute(f"SELECT d.name, (SELECT sum(p.items) FROM ({POSTED}) p WHERE p.device = d.id AND p.at <= e.at) "
                       "FROM fleet.devices d JOIN fleet.events e ON e.device = d.id AND e.what = 'suspect' "
                       "WHERE d.state = 'suspect' ORDER BY 1")  # fmt: skip
        return {name: int(count or 0) for name, count in cursor.fetchall()}


def measuring(server):
    """Seconds between the first and the last post, and items posted."""
    with server.connect() as owner, owner.cursor() as cursor:
        cursor.execute(f"SELECT extract(epoch FROM max(at) - min(at)), sum(items) FROM ({POSTED}) p")
        seconds, items = cursor.fetchone()
        return round(float(seconds or 0), 1), int(items or 0)


class Watch(threading.Thread):
    """Costs of results as they come: (seconds since the first, cheapest so far)."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.connection, self.curve, self.begin, self.ended = server.connect(), [], None, False
        self.connection.autocommit = True

    def run(self):
        while not self.ended:
            time.sleep(0.1)
            with self.connection.cursor() as cursor:
                cursor.execute("SELECT min(r.cost) FROM fleet.results r WHERE r.outcome = 'ok' AND r.cost > 0")
                cost = cursor.fetchone()[0]
            if cost is None:
                continue
            self.begin = self.begin or time.monotonic()
            if not self.curve or cost < self.curve[-1][1]:
                self.curve.append((time.monotonic() - self.begin, cost))


def measure(chosen, count, seed):
    with simulation.server_for(3 * count + 20) as server, tempfile.TemporaryDirectory(prefix="tw-tuning-") as folder:
        program = Program(chosen.program, folder, server.url(server.owner))
        program.environment.pop("XDG_CACHE_HOME", None)  # the machine's rates are known there
        model = ["--workload", chosen.workload, "--id", chosen.one] if chosen.one else ["net.onnx"]
        if not chosen.one:
            program.run("zoo", chosen.model, "-o", "net.onnx")
        process = workers(program, count, chosen.seconds, chosen.bad)
        watch = Watch(server) if chosen.one else None
        outage = Outage(server, chosen.outage_after, chosen.outage) if chosen.outage else None
        try:
            for thread in filter(None, (outage, watch)):
                thread.start()
            words = ["tune", *model, "--worker", "model", "--trials", str(chosen.trials), "--for", "60m", "--seed", str(seed), "--method", chosen.method]
            tuned = program.run(*words)[1]
        finally:
            process.terminate()
            process.wait()
        if watch:
            watch.ended = True
            watch.join()
        suspects, (seconds, items) = found_suspects(server), measuring(server)
        with server.connect() as owner, owner.cursor() as cursor:
            cursor.execute("SELECT count(*), count(*) FILTER (WHERE state = 'done') FROM fleet.ended WHERE kind = 'measure'")
            jobs, done = cursor.fetchone()
        if outage:
            outage.over.set()
    model = tuned["models"][0] if tuned.get("models") else {}
    result = {"devices": count, "seed": seed, "trials": tuned["trials"], "measuring_s": seconds, "posted": items,
              "search_s": round(tuned["seconds"] - tuned["seconds_before_search"], 1),
              "kernels_ms": round(model.get("tuned_ns", sum(t.get("tuned_ns", 0) * t["uses"] for t in tuned["tasks"])) / 1e6, 3),
              "untuned_ms": round(model.get("untuned_ns", 0) / 1e6, 3), "jobs": jobs, "jobs_done": done}  # fmt: skip
    if chosen.bad:
        result["bad"] = count // chosen.bad
        result["suspects"] = suspects
    if chosen.one:
        result["curve"] = watch.curve
    return result


def to_share(curve, best, share):
    """Seconds until a cost is within `share` of the best; none: never."""
    return next((round(at, 1) for at, cost in curve if best / cost >= share), None)


def main():
    parser = simulation.parser_of(__doc__, program=True)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--one", help="a case of the workload file instead of a model")
    parser.add_argument("--workload", help="the file that --one is a case of")
    parser.add_argument("--method", default="ours")
    parser.add_argument("--devices", default="1,8")
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=0.25, help="that a candidate takes")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--bad", type=int, default=0, help="each so many-th device is another machine than it says")
    parser.add_argument("--outage", type=float, default=0, help="seconds without a server")
    parser.add_argument("--outage-after", type=int, default=300, help="candidates")
    chosen = parser.parse_args()
    if chosen.one and not chosen.workload:
        parser.error("--one: the file that has the case is missing; add --workload FILE")
    if chosen.one:
        chosen.workload = str(pathlib.Path(chosen.workload).resolve())
    results = []
    for seed in range(1, chosen.seeds + 1):
        for count in map(int, chosen.devices.split(",")):
            results.append(measure(chosen, count, seed))
            print({k: v for k, v in results[-1].items() if k != "curve"}, file=sys.stderr, flush=True)
    if chosen.one:
        best = min(cost for r in results for _, cost in r["curve"])
        for r in results:
            r["to_95_percent_s"] = to_share(r.pop("curve"), best, 0.95)
    simulation.report(chosen, {"results": results}, (", ".join(f"{k} {v}" for k, v in r.items()) for r in results))


if __name__ == "__main__":
    main()
