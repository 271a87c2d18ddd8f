"""Jobs and leases: invariants 1 to 3, and that time costs nobody a lease.

  1  a job is in exactly one of `jobs` and `ended`; an acknowledged submit stays, another happened once or not at all
  2  tokens rise and are never used twice; a leased job has its device's token
  3  the leases of one device do not overlap in the order of events
  time  no lease ends by time within lease_s of the sending of its claim or last good renewal

Example of 2: an agent was told token 2741 and the server was killed; another agent is told 2741 again.
"""

from evidence import Violation
from world import LEASE

OVER = ("done", "failed", "dead", "cancelled")


def jobs_are_once(e):
    """Invariant 1."""
    for job, rows in e.rows.items():
        if len(rows) > 1:
            yield Violation(1, f"job {job} is there {len(rows)} times: {[row['state'] for row in rows]}")
        if job not in e.specs:
            yield Violation(1, f"job {job} was submitted by nobody")
            continue
        spec, row = e.specs[job], rows[0]
        shown = {"run": str(row["run"]), "n": row["n"], "kind": row["kind"], "login": row["login"]}
        meant = {"run": e.run_of[job], "n": spec["n"], "kind": spec["kind"],
                 "login": e.login_of_run[e.run_of[job]]}
        if shown != meant:
            yield Violation(1, f"job {job} is {shown}, submitted was {meant}")
    for call in e.history.of("submit"):
        for job in call.arguments["jobs"] if call.ok else ():
            if job not in e.rows:
                yield Violation(1, f"job {job} was acknowledged and is lost: {call}")


def submits_are_once(e):
    """Invariant 1: of all repetitions of a submit, at most one was accepted."""
    batches = {}
    for call in e.history.of("submit"):
        batches.setdefault(tuple(call.arguments["jobs"]), []).append(call)
    for jobs, calls in batches.items():
        accepted = sum(call.result["accepted"] for call in calls if call.ok)
        if accepted > len(jobs):
            yield Violation(1, f"{len(jobs)} jobs, but {accepted} accepted: {jobs[0]} ...")
        answered = all(call.event in ("ok", "fail") for call in calls)
        if answered and any(call.ok for call in calls) and accepted != len(jobs):
            yield Violation(1, f"{len(jobs)} jobs, but only {accepted} were ever accepted: {jobs[0]} ...")


def tokens_are_new(e):
    """Invariant 2, by what agents were told: also when the server has forgotten it. A worker that asks again while
    it has a lease is told the same one."""
    owners = {}
    for call in e.claims:
        token, device, worker = call.result["token"], call.arguments["device"], call.arguments["worker"]
        first = owners.setdefault(token, call)
        if (first.arguments["device"], first.arguments["worker"]) != (device, worker):
            yield Violation(2, f"token {token} was given twice: {first} and {call}")
        lease = e.leases.get(token)
        jobs = {job["id"] for job in call.result["jobs"]}
        if lease is None:
            yield Violation(2, f"token {token} was given, but no event tells of it: {call}")
        elif lease.device != device or not jobs <= lease.jobs:
            yield Violation(2, f"token {token} was given for device {device} and {sorted(jobs)}, events say "
                               f"{lease.device} and {sorted(lease.jobs)}")
    for token, device in e.twice:
        yield Violation(2, f"token {token} began a second lease, of device {device}")


def tokens_rise(e):
    """Invariant 2: a claim that begins after another has ended gets a higher token, or again its own."""
    ended = sorted((call.end, call.result["token"]) for call in e.claims)
    highest, at, known = 0, 0, set()
    for call in sorted(e.claims, key=lambda call: call.start):
        token = call.result["token"]
        while at < len(ended) and ended[at][0] < call.start:
            highest = max(highest, ended[at][1])
            at += 1
        if token <= highest and token not in known and not e.is_repeated(call):
            yield Violation(2, f"token {token} came after {highest}: {call}")
        known.add(token)


def leased_jobs_fit(e):
    """Invariant 2: the tables."""
    devices = {row["id"]: row for row in e.tables.devices}
    for row in e.tables.jobs:
        if row["state"] == "leased":
            device = devices.get(row["device"])
            if device is None or device["token"] != row["token"]:
                yield Violation(2, f"job {row['id']} has token {row['token']}, its device {row['device']} "
                                   f"has {device and device['token']}")


def leases_do_not_overlap(e):
    """Invariant 3."""
    holders = {}
    for event in e.events:
        device, token = event["device"], event["token"]
        if event["what"] == "claimed":
            held = holders.get(device)
            if held is not None and held != token:
                yield Violation(3, f"device {device} was claimed under {token} while {held} held it "
                                   f"(event {event['seq']})")
            holders[device] = token
        elif event["what"] == "freed":
            if holders.get(device) != token:
                yield Violation(3, f"device {device} was freed of {token}, its holder is {holders.get(device)} "
                                   f"(event {event['seq']})")
            holders[device] = None
    for row in e.tables.devices:
        if row["token"] != holders.get(row["id"]):
            yield Violation(3, f"device {row['name']} has token {row['token']}, by events {holders.get(row['id'])}")


def jobs_are_leased_once(e):
    """Invariant 3 for jobs: none begins a lease while another lease has it."""
    holders, jobs_of = {}, {}
    for event in e.events:
        if event["what"] == "claimed":
            job, token = str(event["job"]), event["token"]
            if job in holders:
                yield Violation(3, f"job {job} was claimed under {token} while {holders[job]} had it")
            holders[job] = token
            jobs_of.setdefault(token, set()).add(job)
        elif event["what"] == "freed":
            for job in jobs_of.pop(event["token"], ()):
                holders.pop(job, None)
        elif event["what"] in ("ended", "returned"):
            job = str(event["job"])
            jobs_of.get(holders.pop(job, None), set()).discard(job)


def leases_last(e):
    """Time: neither a server that was away nor a stepped clock costs anyone a lease that he renews."""
    good = {call.result["token"]: call.start for call in e.claims}
    for call in e.history.of("renew"):
        if call.ok and call.result["ok"]:
            token = call.arguments["v"][3]
            good[token] = max(good.get(token, 0), call.start)
    for token, since in good.items():
        lease = e.leases.get(token)
        if lease is None or lease.how != LOST or lease.end_at is None:
            continue
        moves = sum(event["what"] == "moved" and lease.begin < event["seq"] < lease.end for event in e.events)
        if lease.end_at < since + LEASE - 0.05 - moves * LEASE / 30:
            yield Violation("time", f"lease {token} ended by time {lease.end_at - since:.3f} s after its last good "
                                    f"claim or renewal was sent")


def times_are_explained(e):
    """Every event's time is the server's clock at some offset that it had."""
    for event in e.events:
        if e.clock.true(event["at"].timestamp()) is None:
            yield Violation("time", f"event {event['seq']} ({event['what']}) at {event['at']} fits no clock")


LOST = "lost"
CHECKS = (jobs_are_once, submits_are_once, tokens_are_new, tokens_rise, leased_jobs_fit, leases_do_not_overlap,
          jobs_are_leased_once, leases_last, times_are_explained)
