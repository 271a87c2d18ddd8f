"""A fleet of simulated devices on a PostgreSQL of its own: what the benchmarks of this folder share.

A device claims a lease of one job, is silent for as long as measuring would take, posts the results of all its
candidates, and claims again. A submitter keeps jobs ready for all of them. All run in one thread.
"""

import argparse
import hashlib
import json
import os
import pathlib
import platform
import random
import sys
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fleet"))

from libpq import Link, Loop  # noqa: E402, F401
from server import PrivateServer, schema_files  # noqa: E402

CLASS = "cpu:simulated@1"
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0  # seconds until an agent asks again that got nothing (src/tilewright/fleet/agent.cc)
POOL = "default"
FUNC = "func f(x: f32[1,64,56,56], w: f32[64,64,3,3]) -> y\n" + "for n in 0..1 { for c in 0..64 { y[n, c] += x[n] * w[c] } }\n" * 30
SCHEDULE = "split(loop=h, factor=8)\nreorder(n, c, h, w)\nvectorize(w)\n" * 14  # about 800 bytes, as of a convolution
RECORD = {"workload": "sha256:" + hashlib.sha256(FUNC.encode()).hexdigest(), "name": "conv", "kind": "schedule", "machine": "1",
          "compiler": "tilewright 0.1", "unit": "ns", "searcher": "ours", "seed": 1}  # fmt: skip


def processor():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return f"{line.split(':')[1].strip()}, {os.cpu_count()} virtual cores"
    return platform.processor()


def parser_of(text, program=False):
    """For a benchmark whose opening comment is `text`. `program`: it runs `tilewright`."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    if program:
        parser.add_argument("--program", type=lambda path: str(pathlib.Path(path).resolve()), default=str(ROOT / "build" / "release" / "tilewright"))
    parser.add_argument("--json", action="store_true")
    return parser


def report(chosen, found, lines):
    """Prints `found` with where it was found, if the user wants JSON, else `lines`."""
    if chosen.json:
        print(json.dumps({"date": time.strftime("%Y-%m-%d"), "processor": processor(), **found}, indent=1))
    else:
        print("\n".join(lines))


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def milliseconds(values):
    """What is said of a list of times in seconds."""
    return {"p50": round(1e3 * percentile(values, 0.5), 2), "p99": round(1e3 * percentile(values, 0.99), 2), "count": len(values)}


def server_for(connections, folder="/var/tmp"):
    """A server whose files are on a disk, with the fleet's schema, and users and workers to log in."""
    server = PrivateServer({"max_connections": connections + 40, "shared_buffers": "'512MB'", "max_wal_size": "'4GB'",
                            "checkpoint_timeout": "'15min'", "autovacuum_naptime": "10s"}, base=folder)  # fmt: skip
    server.apply_schema()
    with server.connect() as owner, owner.cursor() as cursor:
        owner.autocommit = True
        cursor.execute("UPDATE fleet.meta SET version = %s", (len(schema_files()),))
        for login, kind in (("ann", "user"), ("bob", "user"), ("wes", "worker")):
            cursor.execute(f"CREATE ROLE {login} LOGIN")
            cursor.execute("SELECT fleet.login_set(%s, %s, max_ready => 1000000)", (login, kind))
            cursor.execute("SELECT fleet.member_set(%s, %s, %s, '*')", (POOL, login, "serve" if kind == "worker" else "submit"))
    return server


def payload(candidates):
    """Of a job of kind `measure`, as JSON text; each `~~` becomes what makes it another job."""
    items = [{"schedule": f"{SCHEDULE}# ~~ {i}", "point": f"h=8 w={i}", "prior": 1e5} for i in range(candidates)]
    return json.dumps({"func": FUNC, "target": "cpu", "threads": 2, "anchor": SCHEDULE, "anchor_cost": 1e6, "best_cost": 1e5,
                       "limit_s": 5, "record": RECORD, "candidates": items})  # fmt: skip


class Submitter:
    """Keeps `wanted` jobs ready, and looks at its run once a second as `tune` does: at jobs that it has out."""

    def __init__(self, loop, url, wanted, candidates=16, band=2, kind="measure", batch=50):
        self.loop, self.link, self.wanted, self.batch, self.stopped = loop, Link(loop, url), wanted, batch, False
        self.run, self.out, self.submitted, self.times, self.looks = str(uuid.uuid4()), set(), 0, [], []
        body = payload(candidates) if kind == "measure" else "{}"
        self.text = f'{{"id":"%s","kind":"{kind}","class":"{CLASS}","band":{band},"n":{candidates},"limit_s":60,"payload":{body}}}'
        self.link.ask("SELECT fleet.new_run($1, 'load', true)", [self.run], self.made)

    def made(self, _, error, __):
        assert error is None, error
        self.fill()
        self.look()

    def taken(self, job):
        """A device has it."""
        self.out.discard(job)

    def fill(self):
        if self.stopped:
            return
        missing = self.wanted - len(self.out)
        if missing < min(self.batch, self.wanted):
            self.loop.after(0.005, self.fill)
            return
        ids = [str(uuid.UUID(int=random.getrandbits(128), version=4)) for _ in range(min(missing, self.batch))]
        jobs = "[" + ",".join((self.text % ident).replace("~~", ident) for ident in ids) + "]"
        self.out.update(ids)
        self.submitted += len(ids)
        self.link.ask("SELECT fleet.submit($1, $2)", [self.run, jobs], self.filled)

    def filled(self, _, error, seconds):
        assert error is None, error
        self.times.append(seconds)
        self.fill()

    def look(self):
        if self.stopped:
            return
        some = json.dumps({job: 0 for job in list(self.out)[:64]})
        self.link.ask("SELECT fleet.look($1, $2)", [self.run, some], lambda _, e, s: self.looks.append(s))
        self.loop.after(1, self.look)


class Device:
    """`period`: seconds that a lease's work takes. `told(lease, at)` hears of leases."""

    def __init__(self, loop, url, worker, secret, ident, period, candidates, told):
        self.loop, self.link, self.period, self.candidates, self.told = loop, Link(loop, url), period, candidates, told
        self.worker, self.secret, self.id, self.stopped = worker, secret, ident, False
        self.claims, self.posts, self.idle, self.errors, self.pause = [], [], 0, [], FIRST_PAUSE
        # What differs from job to job are the costs alone.
        self.result = '{"outcome":"ok","reason":"","cost":%d,"least":%d,"spread":0.01,"fastest":%d,"readings":7}'

    def claim(self):
        if not self.stopped:
            self.link.ask("SELECT fleet.claim($1, $2, $3, 1, '{}')", [self.worker, self.secret, self.id], self.claimed)

    def claimed(self, value, error, seconds):
        now = time.monotonic()
        self.claims.append((now, seconds))
        if error or not value:
            self.errors += [error] if error else []
            self.idle += 1
            self.loop.after(random.uniform(0.8, 1.2) * self.pause, self.claim)
            self.pause = min(1.5 * self.pause, LONGEST_PAUSE)
            return
        self.pause = FIRST_PAUSE
        lease = json.loads(value)
        self.told(lease, now)
        self.loop.after(self.period, lambda: self.post(lease["token"], lease["jobs"][0]))

    def post(self, token, job):
        costs = [random.randint(100_000, 1_000_000_000) for _ in range(job["n"])]
        results = "[" + ",".join(self.result % (c, c - 9, c - 9) for c in costs) + "]"
        self.link.ask("SELECT fleet.post($1, $2, $3, $4, $5, 0, $6, NULL)",
                      [self.worker, self.secret, self.id, job["id"], token, results], self.posted)  # fmt: skip

    def posted(self, value, error, seconds):
        self.posts.append((time.monotonic(), seconds))
        if error or b'"answer": "ok"' not in value:
            self.errors.append(error or value.decode())
        self.claim()


def enrol(server, count):
    """Ids of so many devices: (worker, secret, id)."""
    found = []
    with server.connect("wes") as connection, connection.cursor() as cursor:
        for begin in range(0, count, 200):
            devices = [{"key": f"d{i}", "name": f"d{i}", "class": CLASS, "target": "cpu", "tags": [], "emulated": False, "facts": {},
                        "rates": {}} for i in range(begin, min(begin + 200, count))]  # fmt: skip
            cursor.execute("SELECT fleet.enroll('host', 'load', 'tilewright 0.1', 'none', %s, %s)", (POOL, json.dumps(devices)))
            made = cursor.fetchone()[0]
            found += [(made["worker"], made["secret"], d["id"]) for d in made["devices"]]
    return found


class Ticker:
    def __init__(self, loop, url):
        self.loop, self.link, self.times = loop, Link(loop, url), []
        self.tick()

    def tick(self):
        self.link.ask("SELECT fleet.tick()", [], self.ticked)

    def ticked(self, _, error, seconds):
        assert error is None, error
        self.times.append(seconds)
        self.loop.after(1, self.tick)


def server_usage(server):
    """CPU seconds and resident bytes (shared ones once) of the server and its processes."""
    seconds = memory = 0
    for pid in [server.process.pid, *server.processes()]:
        try:
            stat = open(f"/proc/{pid}/stat", encoding="ascii").read().rpartition(")")[2].split()
            seconds += (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
            for line in open(f"/proc/{pid}/smaps_rollup", encoding="ascii"):
                if line.startswith("Pss:"):
                    memory += int(line.split()[1]) << 10
        except OSError:
            pass
    return seconds, memory
