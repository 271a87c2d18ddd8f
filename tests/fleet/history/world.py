"""The small world of the test: its logins, devices and blobs, and the values that agents report.

Four devices of one class and two of another, in one pool; two logins that submit, two that serve. Everything that
the checker compares can be computed again from its name: the cost of item 3 of a job under token 17 is
`cost(job, 3, 17)`, so a row tells which lease it came from.
"""

import hashlib
import uuid

LEASE = 1.0  # seconds
POOL, COMPILER, PROGRAM = "lab", "history", "history"
USERS, WORKERS = ("alice", "bob"), ("site1", "site2")
SUBMITTERS = {"alice1": "alice", "alice2": "alice", "bob1": "bob"}
PART = 1 << 20  # bytes of a blob's part, but the last


class Device:
    def __init__(self, key, kind, target, login):
        self.key, self.kind, self.target, self.login = key, kind, target, login
        self.name = key.split("/")[1]

    def enrolment(self):
        return {"key": self.key, "name": self.name, "class": self.kind, "target": self.target, "tags": ["t"],
                "emulated": False, "facts": {}, "rates": {}}


DEVICES = [Device(f"site/d{i}", "cpu:model@a", "cpu", WORKERS[i % 2]) for i in range(4)]
DEVICES += [Device(f"site/d{i}", "cpu:model@b", "cpu", WORKERS[i % 2]) for i in (4, 5)]
CLASSES = sorted({d.kind for d in DEVICES})


THREADS = 2
SHARED = "shared"  # name of candidates that many jobs have


def measuring(name, n):
    """The payload of a job of kind `measure`. Jobs with the same `name` have the same candidates: their devices are
    compared, and as costs are random, many become suspects."""
    func = f"func {name}"
    record = {"workload": f"sha256:{sha256(func.encode())}", "name": "f", "kind": "schedule", "machine": "m",
              "compiler": COMPILER, "unit": "ns", "searcher": "random", "seed": 1}  # fmt: skip
    candidates = [{"schedule": f"{name} {i}", "point": str(i), "prior": 1} for i in range(n)]
    return {"func": func, "threads": THREADS, "record": record, "candidates": candidates}


def _number(*parts):
    text = "/".join(str(p) for p in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def cost(job, item, token):
    """Nanoseconds; exact in binary, other for every lease."""
    return 1024 + _number(job, item, token) / 65536


def blob(login, number):
    """Bytes of the login's blob: nobody else has the same. Number 2 has two parts."""
    size = PART + 1000 if number == 2 else 200 + 300 * number
    seed = hashlib.sha256(f"{login} {number}".encode()).digest()
    return (seed * (size // len(seed) + 1))[:size]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


BLOBS = {login: {sha256(blob(login, i)): blob(login, i) for i in range(3)} for login in USERS}
OWNERS = {digest: login for login, blobs in BLOBS.items() for digest in blobs}


def parts_of(data):
    return [data[i:i + PART] for i in range(0, len(data), PART)] or [b""]


def new_id(random):
    """A UUID of version 4 from the seeded generator."""
    return str(uuid.UUID(int=random.getrandbits(128), version=4))
