"""Holds a history against the tables: the nine invariants of the fleet, and that nothing is stuck.

  checks_queue    1 to 3, time
  checks_results  4 to 6, look
  checks_rights   7 to 9, idle, error
Example: check(read(folder), tables.read(socket), base) -> [] or [Violation(5, "job ... accepted under 9 ...")].
"""

import collections

import checks_queue
import checks_results
import checks_rights
from evidence import Evidence

CHECKS = checks_queue.CHECKS + checks_results.CHECKS + checks_rights.CHECKS


def check(history, tables, base):
    """All violations, in the order of the checks. `base`: wall clock minus monotonic clock, in seconds."""
    evidence = Evidence(history, tables, base)
    return [violation for one in CHECKS for violation in one(evidence)]


def summary(history, tables):
    """How much was checked: a run that did little proves little."""
    posts = [call for call in history.of("post") if call.ok]
    answers = {kind: sum(call.result["answer"] == kind for call in posts) for kind in ("ok", "known", "stale")}
    states = {}
    for row in tables.ended:
        states[row["state"]] = states.get(row["state"], 0) + 1
    return {"calls": len(history.calls), "unknown": sum(call.event == "unknown" for call in history.calls),
            "claims": sum(bool(call.ok and call.result and "token" in call.result) for call in history.of("claim")),
            "posts": answers, "epochs": sum(e["what"] == "epoch" for e in tables.events),
            "jobs": states, "left": len(tables.jobs), "results": len(tables.results),
            "lost_leases": sum(e["what"] == "freed" and e["note"] == "lost" for e in tables.events),
            "late": len(tables.late), "records": len(tables.records),
            "links": dict(collections.Counter(note["a"]["fate"] for note in history.noted("cut"))),
            "partitions": dict(collections.Counter(note["a"]["side"] for note in history.noted("parted")))}
