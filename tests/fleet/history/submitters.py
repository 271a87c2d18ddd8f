"""A submitter: makes runs, uploads blobs, submits jobs, looks until they are over; and a canceller of runs.

A submitter that was killed is started again and goes on from its own log: it submits again what it meant to submit
(the server skips what it has) and looks from the start. Example: note `run` R; note `batch` R [J1, J2]; submit ->
connection lost; killed; next life: submit R [J1, J2] -> accepted 0, known 2; look R {J1: 0, J2: 0} -> results.
"""

import os
import random
import time

import psycopg2

from client import Client, Late, Refused, Unknown
from log import Log, lines_of
from world import BLOBS, CLASSES, COMPILER, LEASE, OWNERS, POOL, SHARED, SUBMITTERS, USERS, measuring, new_id, parts_of

OPEN_RUNS = 2
OFTEN = {"again": 0.1, "close": 0.15, "spy": 0.04, "damage": 0.1}


class Run:
    def __init__(self, run):
        self.id, self.batches, self.have, self.over, self.cut = run, [], {}, set(), False

    @property
    def jobs(self):
        return [job for batch in self.batches for job in batch]


class Submitter:
    """`quiet`: a file; once it is there no new runs are made, and the process ends when its runs are over."""

    def __init__(self, folder, socket, name, incarnation, seed, quiet):
        self.folder, self.name, self.login, self.quiet = folder, name, SUBMITTERS[name], quiet
        self.random = random.Random(f"{seed} {name} {incarnation}")
        self.log = Log(folder, f"submitter:{name}:{incarnation}")
        login = self.login
        self.client = Client(socket, login, self.log)
        self.runs = self.remembered()

    def often(self, what):
        return self.random.random() < OFTEN[what]

    def remembered(self):
        """Runs that earlier lives began and did not finish."""
        runs = {}
        names = [n for n in os.listdir(self.folder) if n.startswith(f"submitter-{self.name}-")]
        for line in sorted((l for n in names for l in lines_of(os.path.join(self.folder, n))), key=lambda l: l["t"]):
            if line["e"] != "note":
                continue
            fields = line["a"]
            if line["f"] == "run":
                runs[fields["run"]] = Run(fields["run"])
            elif line["f"] == "batch":
                runs[fields["run"]].batches.append(fields["jobs"])
            elif line["f"] == "cut_short":
                runs[fields["run"]].cut = True
            elif line["f"] == "finished":
                runs.pop(fields["run"], None)
        return list(runs.values())

    def run(self):
        for run in self.runs:
            self.insist(lambda run=run: self.begin(run))
        while True:
            quiet = os.path.exists(self.quiet)
            if quiet and not self.runs:
                self.log.note("ended")
                return
            try:
                if not quiet and len(self.runs) < OPEN_RUNS:
                    self.new_run()
                for run in list(self.runs):
                    self.look(run)
                self.client.tick(self.random.uniform(0.3, 1.0) * LEASE)
                if self.often("spy"):
                    self.spy()
            except Refused:
                pass
            except Unknown:
                time.sleep(self.random.uniform(0.02, 0.15))
            time.sleep(self.random.uniform(0.005, 0.1))

    def insist(self, call):
        """Calls until there is an answer. Refused again and again: given up, and noted."""
        for attempt in range(200):
            try:
                return call()
            except Unknown:
                time.sleep(self.random.uniform(0.02, 0.15))
            except Refused as error:
                if not error.again and attempt > 3:
                    self.log.note("gave_up", text=str(error)[:200])
                    return None
                time.sleep(self.random.uniform(0.005, 0.05))
        return None

    # --- submitting

    def job(self, before):
        """A job as `submit` takes it; some wait for one of the same batch."""
        kind = "measure" if self.random.random() < 0.8 else "run"
        job = {"id": new_id(self.random), "kind": kind, "pool": POOL, "class": self.random.choice(CLASSES),
               "device": None, "compiler": COMPILER, "needs": self.random.choice(([], ["t"])),
               "band": self.random.choice((0, 1, 2)), "after": [], "payload": {"salt": self.random.random()},
               "limit_s": 60, "n": self.random.choice((1, 2, 3, 5, 8)), "blobs": [], "key": None, "signature": None}
        if kind == "measure":
            job["payload"] = measuring(SHARED if self.random.random() < 0.2 else job["id"], job["n"])
        if before and self.random.random() < 0.25:
            job["after"] = [self.random.choice(before)["id"]]
        if self.random.random() < 0.3:
            digest = self.random.choice(list(BLOBS[self.login])[:2 if self.random.random() < 0.9 else 3])
            job["blobs"] = [{"sha256": digest, "name": "weights"}]
        return job

    def new_run(self):
        run = Run(new_id(self.random))
        self.log.note("run", run=run.id, login=self.login)
        self.runs.append(run)
        for _ in range(self.random.choice((1, 1, 2))):
            batch = []
            for _ in range(self.random.randint(1, 4)):
                batch.append(self.job(batch))
            self.log.note("batch", run=run.id, jobs=batch)
            run.batches.append(batch)
        self.insist(lambda: self.begin(run))

    def begin(self, run):
        """All that the run needs; what is there already is skipped by the server, so it may be repeated. A run that
        was cancelled meanwhile takes no more jobs."""
        if run.cut:
            return True
        try:
            return self.send(run)
        except Refused as error:
            if error.code != "TW409" or "is over" not in str(error):
                raise
            run.cut = True
            self.log.note("cut_short", run=run.id)
            return True

    def send(self, run):
        self.client.call("new_run", run.id, "history", int(run.id[0], 16) % 2 == 0)
        for batch in run.batches:
            for digest in {b["sha256"] for job in batch for b in job["blobs"]}:
                self.upload(digest)
            shown = {"run": run.id, "jobs": [job["id"] for job in batch]}
            self.client.call("submit", run.id, batch, shown=shown)
            if self.often("again"):
                self.client.call("submit", run.id, batch, shown=shown)
        return True

    def upload(self, digest):
        parts = parts_of(BLOBS[self.login][digest])
        state = self.client.call("blob_begin", digest, sum(map(len, parts)), len(parts))
        while not state["whole"]:
            damaged = self.often("damage")
            for part, data in enumerate(parts):
                if part not in (state["have"] or []):
                    self.client.call("blob_put", digest, part, data[:-1] + b"?" if damaged else data)
            if self.client.call("blob_finish", digest):
                return
            state = self.client.call("blob_begin", digest, sum(map(len, parts)), len(parts))

    # --- looking

    def look(self, run):
        have = {} if run.cut and not run.have else {job["id"]: run.have.get(job["id"], 0) for job in run.jobs}
        seen = self.client.call("look", run.id, have, shown={"run": run.id, "have": have})
        for job in seen["jobs"]:
            run.have[job["id"]] = run.have.get(job["id"], 0) + len(job["results"])
            if job["state"] in ("done", "failed", "dead", "cancelled"):
                run.over.add(job["id"])
        there = {job["id"] for job in seen["jobs"]} if run.cut else {job["id"] for job in run.jobs}
        if there <= run.over:
            self.finish(run)

    def finish(self, run):
        self.runs.remove(run)
        closes = self.often("close")
        self.log.note("finished", run=run.id, have=run.have, closed=closes)
        if closes:
            self.client.call("close_run", run.id)

    def spy(self):
        """Another login's blob and run: must be refused, or not be there."""
        other = self.random.choice([digest for digest, login in OWNERS.items() if login != self.login])
        self.client.call("blob_get", other, 0, shown={"sha256": other, "part": 0, "login": self.login})


class Canceller:
    """Cancels a run now and then, as its login."""

    def __init__(self, folder, socket, direct, seed):
        self.random = random.Random(f"{seed} canceller")
        self.log = Log(folder, f"canceller:{time.monotonic_ns()}")
        self.reader = Client(direct, "postgres", self.log)
        self.clients = {login: Client(socket, login, self.log) for login in USERS}

    def run(self):
        while True:
            time.sleep(self.random.uniform(0.3, 1.5))
            leased = self.random.random() < 0.7  # those end only with a post or a lease: more can go wrong
            try:
                runs = self.reader.select(
                    "SELECT DISTINCT r.id::text, r.login, r.made FROM fleet.runs r JOIN fleet.jobs j ON j.run = r.id "
                    "WHERE r.cancelled IS NULL AND j.state = ANY (%s) ORDER BY r.made DESC LIMIT 5",
                    [["leased"] if leased else ["waiting", "ready"]])
                if runs:
                    run, login, _ = self.random.choice(runs)
                    for _ in range(self.random.choice((1, 1, 2))):
                        self.client_of(login).call("cancel", run, shown={"run": run})
            except (Refused, Unknown, Late, psycopg2.Error):
                pass

    def client_of(self, login):
        return self.clients[login]
