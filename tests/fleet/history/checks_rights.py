"""Who may read what, who pays, and that nothing waits for nothing.

  7  bytes of a blob are read by its login, and by the holder of a live lease on a job that names it
  8  a record's target is its device's, its login and texts its job's, whatever the post said
  9  usage of a login is the seconds of its ended leases
  idle   no ready job waits 5 s beside a free device whose agent asks; the drain comes to its end
  error  no call fails in a way that the interface does not know

Example of 7: agent d2 asks under its token 9 for a blob of a job that lease 9 does not have, and gets bytes.
"""

import collections
import math

from evidence import Violation
from world import LEASE, OWNERS, THREADS

IDLE = 5.0  # seconds
LATER = 2.0  # seconds that the commit of a lease's end may take, until which a read rightly sees the lease
# Beside the schema's own: retry (lock, deadlock), the server's end and start, a full disk, a limit of time.
KNOWN_ERRORS = ("TW400", "TW403", "TW404", "TW409", "TW429", "40P01", "40001", "55P03", "57014", "57P01", "57P02",
                "57P03", "53100", "53300")
FULL_DISK = ("58030", "XX000")  # what else PostgreSQL says when it cannot write


def blobs_are_private(e):
    """Invariant 7."""
    for call in e.history.of("blob_get"):
        if call.ok and call.result is not None:
            owner, login = OWNERS[call.arguments["sha256"]], call.arguments["login"]
            if owner != login:
                yield Violation(7, f"{login} read a blob of {owner}: {call}")
    for call in e.history.of("worker_blob_get"):
        if not call.ok or call.result is None:
            continue
        a = call.arguments
        lease, named = e.leases.get(a["token"]), [b["sha256"] for b in e.specs.get(a["job"], {}).get("blobs", ())]
        if a["sha256"] not in named:
            yield Violation(7, f"a worker read a blob that the job {a['job']} does not name: {call}")
        elif lease is None or a["job"] not in lease.jobs or lease.device != a["device"]:
            yield Violation(7, f"a worker read a blob under {a['token']}, which does not lease {a['job']}: {call}")
        elif lease.end_at is not None and lease.end_at + LATER < call.start:
            yield Violation(7, f"a worker read a blob {call.start - lease.end_at:.3f} s after its lease: {call}")
    for note in e.history.noted("damaged"):
        yield Violation(7, f"a blob came with other bytes: {note['a']}")


def records_name_the_truth(e):
    """Invariant 8."""
    devices = {row["id"]: row for row in e.tables.devices}
    for row in e.tables.records:
        if row["job"] is None:
            continue
        job, device = str(row["job"]), devices.get(row["device"])
        lease = e.leases.get(row["token"])
        if lease is not None and lease.device != row["device"]:
            yield Violation(8, f"record {row['id']}: device {row['device']}, its lease is of {lease.device}")
        if device is None or row["target"] != f"{device['class']}:{THREADS}" or row["class"] != device["class"]:
            yield Violation(8, f"record {row['id']}: target {row['target']}, its device's class is "
                               f"{device and device['class']}")
        payload = e.specs[job]["payload"] if job in e.specs else None
        schedules = dict(enumerate(c["schedule"] for c in payload["candidates"])) if payload else {}
        if payload and (row["schedule"] != schedules.get(row["item"]) or row["workload"] != payload["record"]["workload"]):
            yield Violation(8, f"record {row['id']}: {row['schedule']} of {row['workload']}, not what job {job} says "
                               f"of item {row['item']}")
        if row["login"] != e.login_of_run.get(e.run_of.get(job)):
            yield Violation(8, f"record {row['id']}: login {row['login']}, its job's is "
                               f"{e.login_of_run.get(e.run_of.get(job))}")


def usage_is_true(e):
    """Invariant 9: rows of usage against leases, and leases against time."""
    used, ended = collections.Counter(), collections.Counter()
    rows = collections.Counter(row["token"] for row in e.tables.usage)
    for row in e.tables.usage:
        used[row["login"]] += row["seconds"]
    for lease in e.leases.values():
        if lease.end is None:
            if rows[lease.token]:
                yield Violation(9, f"lease {lease.token} has not ended and has usage")
            continue
        login = lease.login
        for job in lease.jobs:
            login = e.login_of_run.get(e.run_of.get(job), login)
        ended[login] += lease.seconds
        if rows[lease.token] != 1:
            yield Violation(9, f"lease {lease.token} has {rows[lease.token]} rows of usage")
        if lease.begin_at is None or lease.end_at is None:
            continue
        true = lease.end_at - lease.begin_at
        # Between a step and the next tick the two times are on two clocks: then it may be a lease too much.
        stepped = e.clock.stepped_between(lease.begin_at, lease.end_at)
        if lease.seconds > true + (1.1 * LEASE if stepped else 0.2):
            yield Violation(9, f"lease {lease.token} lasted {true:.3f} s, counted are {lease.seconds:.3f}")
    for login in sorted(set(used) | set(ended)):
        if not math.isclose(used[login], ended[login], rel_tol=1e-9, abs_tol=1e-6):
            yield Violation(9, f"{login} has {used[login]:.6f} s of usage, its leases lasted {ended[login]:.6f}")


def nothing_waits(e):
    """idle: by samples of the drain. Only where somebody called tick() in that time, and then the device's agent
    asked twice and got nothing: on a machine that is too busy these may be away."""
    names = {row["id"]: row["name"] for row in e.tables.devices}
    empty = collections.defaultdict(list)
    for call in e.history.of("claim"):
        if call.ok and not call.result:
            empty[names.get(call.arguments["device"])].append(call)
    ticks, since, last = [call for call in e.history.of("tick") if call.ok], {}, 0.0
    for note in e.history.noted("sample", "drained"):
        pairs = {tuple(pair) for pair in note["a"].get("pairs", ())}
        if note["t"] - last > IDLE:  # the test did not look, so perhaps all of it was stopped
            since = {}
        since, last = {pair: since.get(pair, note["t"]) for pair in pairs}, note["t"]
        for (job, device), begin in since.items():
            if note["t"] - begin <= IDLE:
                continue
            ticked = min((call.end for call in ticks if call.start > begin), default=note["t"])
            asked = [call for call in empty[device] if call.start > ticked and call.end < note["t"]]
            if len(asked) >= 2:
                yield Violation("idle", f"job {job} was ready for {note['t'] - begin:.1f} s beside {device}, "
                                        f"which asked {len(asked)} times")
    for note in e.history.noted("drained"):
        if not note["a"]["over"]:
            left = [f"{row['id']} {row['state']}" for row in e.tables.jobs]
            last = last_calls(e, e.tables.jobs[0]["id"]) if left else []
            yield Violation("idle", f"the drain did not end in {note['a']['seconds']:.0f} s; left are "
                                    f"{len(left)} jobs: {left[:5]}; the last calls about the first: {last}")


def last_calls(e, job):
    """The last calls that name a job, and the last ones of the process that claimed it."""
    named = [call for call in e.history.calls if str(job) in f"{call.arguments} {call.result}"]
    claimers = [call.process for call in named if call.function == "claim"]
    return named[-3:] + [call for call in e.history.calls if call.process in claimers[-1:]][-4:]


def errors_are_known(e):
    """error: no call ends in an error of PostgreSQL that the interface does not know."""
    full = bool(e.history.noted("disk_full"))
    for call in e.history.calls:
        if call.event == "fail" and call.result["code"] not in KNOWN_ERRORS:
            if full and call.result["code"] in FULL_DISK:
                continue
            yield Violation("error", f"{call}: {call.result['code']} {call.result['text']}")
    for note in e.history.noted("gave_up"):
        yield Violation("error", f"{note['p']} gave up: {note['a']['text']}")


CHECKS = (blobs_are_private, records_name_the_truth, usage_is_true, nothing_waits, errors_are_known)
