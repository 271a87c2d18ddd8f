"""An agent: enrols one device, claims jobs, renews, posts; half of them careful, half as rude as a bug could make them.

A careful agent drops its lease when its own clock says that the lease may be over; a rude one posts on. Both send
posts twice, send old posts again later, leave gaps, and post under tokens that are not theirs. The server has to
stand all of it: what each was answered is in the log, and the checker compares it with the tables. Example of one
lease: claim -> token 9, job J from item 0 of 5; post 0..1 ok; post 0..1 again -> known; stopped for 3 s;
post 2 under token 9 -> stale; claim -> token 14.
"""

import collections
import random
import time

from client import Client, Refused, Unknown
from log import Log
from world import BLOBS, COMPILER, LEASE, OWNERS, POOL, PROGRAM, cost, parts_of, sha256

CAREFUL_AFTER = 0.8 * LEASE  # 24 s of 30
RENEW_AFTER = LEASE / 3
OFTEN = {"twice": 0.06, "old": 0.06, "gap": 0.03, "forged": 0.02, "other_job": 0.02, "give_back": 0.03, "failed": 0.02,
         "spy": 0.05, "leave": 0.02}


class Stale(Exception):
    """The lease is not ours any more."""


class Agent:
    def __init__(self, folder, socket, device, incarnation, seed):
        self.device, self.random = device, random.Random(f"{seed} {device.key} {incarnation}")
        self.log = Log(folder, f"agent:{device.name}:{incarnation}")
        self.client = Client(socket, device.login, self.log, limit=1.5)
        self.careful = self.random.random() < 0.5
        self.worker = self.secret = self.id = None
        self.old_posts = collections.deque(maxlen=20)
        self.old_jobs = collections.deque(maxlen=20)
        self.token, self.good, self.renewed = None, 0.0, 0.0

    def often(self, what):
        return self.random.random() < OFTEN[what]

    def run(self):
        while True:
            try:
                if self.worker is None:
                    self.enroll()
                self.turn()
            except Refused as error:
                if error.code in ("TW403", "TW404", "TW409") and self.token is None:
                    self.worker = None  # the worker is known as gone: enrol again, under a new id
                time.sleep(self.random.uniform(0.01, 0.05))
            except Unknown:
                time.sleep(self.random.uniform(0.02, 0.15))
            except Stale:
                pass
            self.token = None

    def enroll(self):
        got = self.client.call("enroll", "host", PROGRAM, COMPILER, "none", POOL, [self.device.enrolment()])
        self.worker, self.secret, self.id = got["worker"], got["secret"], got["devices"][0]["id"]

    def turn(self):
        """A claim and, if there is something to do, the lease."""
        self.client.tick(self.random.uniform(0.3, 1.0) * LEASE)
        if self.often("old") and self.old_posts:
            self.send(self.random.choice(self.old_posts))
        if self.often("leave"):
            worker, self.worker = self.worker, None
            self.client.call("leave", worker, self.secret)
            return
        sent = time.clock_gettime(time.CLOCK_BOOTTIME)
        most = self.random.choice((1, 1, 2, 3))
        lease = self.client.call("claim", self.worker, self.secret, self.id, most, [],
                                 shown={"worker": self.worker, "device": self.id, "most": most})
        if lease is not None and lease.get("drain"):
            self.worker = None  # an operator wants this worker to leave: the next one is another
            return
        if lease is None:
            time.sleep(self.random.uniform(0.02, 0.12))
            return
        self.token, self.good, self.renewed = lease["token"], sent, sent
        for job in lease["jobs"]:
            if self.often("give_back"):
                self.client.call("give_back", self.worker, self.secret, self.id, self.token)
                return
            if not self.serve(job):
                return

    # --- one job

    def serve(self, job):
        """True if the lease goes on."""
        self.fetch(job)
        item, pace = job["next"], self.random.choice((0.002, 0.005, 0.02, 0.06))
        while item < job["n"]:
            self.mischief(job, item)
            count = min(self.random.choice((1, 1, 2, 3)), job["n"] - item)
            for _ in range(count):
                time.sleep(pace)
                self.keep()
            failed = "cannot be compiled" if self.often("failed") else None
            answer = self.post(job, item, count, failed)
            if answer["answer"] == "stale":
                raise Stale
            item += count
            if failed or job["id"] in (answer.get("cancel") or []):
                break
            if answer.get("yield") or answer.get("drain"):
                self.client.call("give_back", self.worker, self.secret, self.id, self.token)
                return False
        self.old_jobs.append(job)
        return True

    def keep(self):
        """Renews in time; a careful agent ends its work when its lease may be over."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        if self.careful and now > self.good + CAREFUL_AFTER:
            raise Stale
        if now < self.renewed + RENEW_AFTER:
            return
        self.renewed = now
        try:
            if self.client.call("renew", self.worker, self.secret, self.id, self.token)["ok"]:
                self.good = now
            elif self.careful:
                raise Stale
        except Unknown:
            pass  # a failed renewal ends nothing

    def post(self, job, first, count, failed=None):
        """The answer, asked for until there is one: items are the same each time."""
        post = self.made(job, first, count, self.token, failed)
        self.old_posts.append(post)
        if self.often("twice"):
            self.send(post)
        while True:
            try:
                return self.send(post)
            except Unknown:
                if self.careful and time.clock_gettime(time.CLOCK_BOOTTIME) > self.good + CAREFUL_AFTER:
                    raise Stale from None
                time.sleep(self.random.uniform(0.02, 0.15))
            except Refused as error:
                if not error.again:
                    raise
                time.sleep(self.random.uniform(0.001, 0.01))

    def made(self, job, first, count, token, failed=None):
        """Arguments of a post. What it says of the record is a lie: that is not the worker's to name."""
        results = []
        for item in range(first, first + count):
            value = cost(job["id"], item, token)
            outcome = "wrong_result" if int(value) % 19 == 0 else "ok"
            result = {"outcome": outcome, "reason": "" if outcome == "ok" else "differs", "cost": value,
                      "least": value - 1, "spread": 0.25, "fastest": 0, "readings": 3, "output": None}
            if job["kind"] == "measure":
                result["record"] = {"workload": "w", "target": "model:evil", "login": "mallory", "device": 0}
            results.append(result)
        return {"worker": self.worker, "secret": self.secret, "device": self.id, "job": job["id"], "token": token,
                "first": first, "results": results, "failed": failed}

    def send(self, post):
        shown = {k: post[k] for k in ("worker", "device", "job", "token", "first", "failed")}
        shown["count"] = len(post["results"])
        return self.client.call("post", post["worker"], post["secret"], post["device"], post["job"], post["token"],
                                post["first"], post["results"], post["failed"], shown=shown)

    # --- what must be refused

    def mischief(self, job, item):
        try:
            if self.often("gap") and item + 1 < job["n"]:
                self.send(self.made(job, item + self.random.choice((1, 2)), 1, self.token))
            if self.often("forged"):
                self.send(self.made(job, item, 1, self.token + self.random.choice((-1, 1, 1000))))
            if self.often("other_job") and self.old_jobs:
                self.send(self.made(self.random.choice(self.old_jobs), 0, 1, self.token))
        except (Refused, Unknown):
            pass

    def fetch(self, job):
        """Reads the blobs that the job names; and, as a spy, others."""
        for named in job["blobs"] or []:
            data, digest = b"", named["sha256"]
            for part in range(len(parts_of(BLOBS[OWNERS[digest]][digest]))):
                data += bytes(self.read(job["id"], self.token, digest, part) or b"")
            if sha256(data) != digest:
                self.log.note("damaged", job=job["id"], sha256=digest, bytes=len(data))
        if self.often("spy"):
            try:
                if self.random.random() < 0.5 and self.old_jobs:
                    job = self.random.choice(self.old_jobs)
                token = self.token - self.random.choice((0, 0, 1))
                self.read(job["id"], token, self.random.choice(sorted(OWNERS)), 0)
            except (Refused, Unknown):
                pass

    def read(self, job, token, digest, part):
        return self.client.call("worker_blob_get", self.worker, self.secret, self.id, token, job, digest, part,
                                shown={"device": self.id, "token": token, "job": job, "sha256": digest, "part": part})
