"""Results: invariants 4 to 6, and that a submitter sees all of them.

  4  an item has at most one result; a measured one exactly one record of equal values, from the same transaction
  5  a result came under the token that was current when it committed; an acknowledged post is there after any crash
  6  `done` means results 0..n-1, all of them; nothing is accepted after `cancelled`
  look  what `look` gave, in order, is each result once

Example of 5: lease 9 ended at 81.0 s by time; a post under 9 that began at 82.5 s was answered `ok`.
"""

import collections

from checks_queue import OVER
from evidence import Violation
from world import SHARED, cost

SAME = ("outcome", "reason", "cost", "least", "spread", "readings")  # of a result and its record
LOST = "lost"  # the outcome of an item that the server gave up: nobody posted it
LATER = 0.1  # seconds that two clocks' views of one moment may differ


def results_are_once(e):
    """Invariant 4, and that a job has no gaps (5, 6)."""
    for job, rows in e.results.items():
        items = [row["item"] for row in rows]
        for item, count in collections.Counter(items).items():
            if count > 1:
                yield Violation(4, f"job {job} item {item} has {count} results")
        if sorted(set(items)) != list(range(len(set(items)))):
            yield Violation(6, f"job {job} has results {items}: not 0 to {len(items) - 1}")
        tokens = [row["token"] for row in rows]
        if tokens != sorted(tokens):
            yield Violation(5, f"job {job} has results under tokens {tokens}: an old lease wrote after a new one")


def records_fit(e):
    """Invariant 4: results and records."""
    records = collections.defaultdict(list)
    for row in e.tables.records:
        if row["job"] is not None:
            records[str(row["job"]), row["item"]].append(row)
    for job, rows in e.results.items():
        for row in rows:
            found = records.get((job, row["item"]), [])
            wanted = 1 if job in e.specs and e.specs[job]["kind"] == "measure" and row["outcome"] != LOST else 0
            if len(found) != wanted:
                yield Violation(4, f"job {job} item {row['item']} ({row['outcome']}) has {len(found)} records, "
                                   f"not {wanted}")
            for record in found:
                if record["token"] != row["token"] or any(record[k] != row[k] for k in SAME):
                    yield Violation(4, f"job {job} item {row['item']}: its record has other values")
                # Those that several devices measured are written again when one confirms another.
                if record["written_by"] != row["written_by"] and not record["schedule"].startswith(SHARED):
                    yield Violation(4, f"job {job} item {row['item']}: result of transaction {row['written_by']}, "
                                       f"record of {record['written_by']}")
    for (job, item), found in records.items():
        if not e.is_closed(job) and not any(row["item"] == item for row in e.results.get(job, ())):
            yield Violation(4, f"job {job} item {item} has a record and no result")
        if len(found) > 1:
            yield Violation(4, f"job {job} item {item} has {len(found)} records")


def results_were_posted(e):
    """Invariant 5: every result was sent, under a lease that had the job, and with these values."""
    for job, rows in e.results.items():
        for row in rows:
            if row["outcome"] == LOST:
                continue
            lease = e.leases.get(row["token"])
            if lease is None or job not in lease.jobs:
                yield Violation(5, f"job {job} item {row['item']}: no lease {row['token']} had this job")
            if row["cost"] != cost(job, row["item"], row["token"]):
                yield Violation(5, f"job {job} item {row['item']}: cost {row['cost']} was sent by nobody")
            attempts = e.attempts(job, row["token"], row["item"])
            if not any(call.ok and call.result["answer"] in ("ok", "known") or call.event == "unknown"
                       for call in attempts):
                yield Violation(5, f"job {job} item {row['item']}: all posts of it were refused, yet it is there: "
                                   f"{attempts}")


def acknowledged_posts_stay(e):
    """Invariant 5: an acknowledged post is there after any crash."""
    accepted = collections.Counter()
    for job, calls in e.posts.items():
        kept = {row["item"]: row for row in e.results.get(job, ())}
        for call in calls:
            if not call.ok or call.result["answer"] == "stale" or e.is_closed(job):
                continue
            a, answer = call.arguments, call.result["answer"]
            if answer == "ok":
                accepted[job, a["token"], a["first"], a["count"]] += 1
            for item in range(a["first"], a["first"] + a["count"]):
                row = kept.get(item)
                if row is None:
                    yield Violation(5, f"job {job} item {item}: answered {answer} and not there: {call}")
                elif answer == "ok" and row["token"] != a["token"]:
                    yield Violation(5, f"job {job} item {item}: accepted under {a['token']}, is of {row['token']}")
    for (job, token, first, _), count in accepted.items():
        if count > 1:
            yield Violation(5, f"job {job} from item {first} under {token}: accepted {count} times")


def posts_were_current(e):
    """Invariant 5: no post is accepted that began after its lease's end, or is of another's lease."""
    for job, calls in e.posts.items():
        for call in calls:
            if not call.ok or call.result["answer"] != "ok":
                continue
            token = call.arguments["token"]
            lease = e.leases.get(token)
            if lease is None or job not in lease.jobs:
                yield Violation(5, f"job {job}: accepted under {token}, whose lease does not have it: {call}")
            elif lease.worker is not None and str(lease.worker) != call.arguments["worker"]:
                yield Violation(5, f"job {job}: accepted from {call.arguments['worker']}, the lease {token} is "
                                   f"of {lease.worker}")
            elif lease.end_at is not None and lease.end_at + LATER < call.start:
                yield Violation(5, f"job {job}: accepted under {token} {call.start - lease.end_at:.3f} s after the "
                                   f"lease had ended: {call}")


def done_is_complete(e):
    """Invariant 6: rows of jobs against results."""
    for row in e.tables.jobs + e.tables.ended:
        job = str(row["id"])
        if e.is_closed(job):
            continue
        found = len({r["item"] for r in e.results.get(job, ())})
        if row["next"] != found:
            yield Violation(6, f"job {job} ({row['state']}) says {row['next']} results, there are {found}")
        if row["state"] == "done" and found != row["n"]:
            yield Violation(6, f"job {job} is done with {found} results of {row['n']}")


def cancelled_is_the_end(e):
    """Invariant 6: after a cancel was acknowledged nothing begins, and what runs ends with its next post."""
    cancelled, asked = {}, set()
    for call in e.history.of("cancel"):
        run = call.arguments["run"]
        asked.add(run)
        if call.ok:
            cancelled[run] = min(call.end, cancelled.get(run, float("inf")))
    for call in e.claims:
        for job in call.result["jobs"]:
            if call.start > cancelled.get(e.run_of.get(job["id"]), float("inf")) and not e.is_repeated(call):
                yield Violation(6, f"job {job['id']} was claimed after its run was cancelled: {call}")
    for job, calls in e.posts.items():
        end = cancelled.get(e.run_of.get(job), float("inf"))
        after = [call for call in calls if call.start > end and call.ok and call.result["answer"] == "ok"]
        if after:
            yield Violation(6, f"job {job}: {len(after)} posts accepted after its run was cancelled: {after[:2]}")
    for row in e.tables.ended:
        if row["state"] == "cancelled" and str(row["run"]) not in asked:
            yield Violation(6, f"job {row['id']} was cancelled ({row['reason']}) and nobody had asked for it")
        if row["state"] in ("failed", "dead") and not row["reason"]:
            yield Violation(6, f"job {row['id']} is {row['state']} without a reason")
    for row in e.tables.jobs:
        if str(row["run"]) in cancelled and row["state"] != "leased":
            yield Violation(6, f"job {row['id']} is {row['state']}, its run was cancelled")


def looks_are_whole(e):
    """look: results come in order and once, and what is over stays as it is."""
    over = {}
    for call in e.history.of("look"):
        if not call.ok:
            continue
        for job in call.result["jobs"]:
            first, ident = call.arguments["have"].get(job["id"], 0), job["id"]
            items = [result["item"] for result in job["results"]]
            if items != list(range(first, first + len(items))):
                yield Violation("look", f"job {ident}: asked from {first}, got {items}")
            if ident in over and e.run_of.get(ident) not in e.closed:
                state, total = over[ident]
                if job["state"] != state or first + len(items) > total and total >= 0 and first <= total:
                    yield Violation(6, f"job {ident} was {state} with {total} results, later {job['state']} with "
                                       f"{first + len(items)}")
            if job["state"] in OVER:
                over[ident] = (job["state"], first + len(items))
    for note in e.history.noted("finished"):
        for job, count in note["a"]["have"].items():
            found = len(e.results.get(job, ()))
            if not e.is_closed(job) and count != found:
                yield Violation("look", f"job {job}: its submitter saw {count} results, there are {found}")


CHECKS = (results_are_once, records_fit, results_were_posted, acknowledged_posts_stay, posts_were_current,
          done_is_complete, cancelled_is_the_end, looks_are_whole)
