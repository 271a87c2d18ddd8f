#!/usr/bin/env python3
"""The checker alone, without a server: a small true history passes, and each lie in it is found by its rule.

The history: alice submits J (measure, 2 items, with a blob) and K (run, 1 item); agent d0 leases J under token 5 and
posts both items; d1 leases K under 6, is lost, and d0 does K under 7. Each case below changes one thing.
"""

import copy
import datetime
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import checker  # noqa: E402
import checks_rights  # noqa: E402
import defects  # noqa: E402
import install  # noqa: E402
from log import History  # noqa: E402
from patience import Patience  # noqa: E402
from tables import Tables  # noqa: E402
from world import BLOBS, OWNERS, USERS, cost, measuring  # noqa: E402

BASE = 1_000_000.0
RUN, J, K = "run", "job-j", "job-k"
BLOB = next(iter(BLOBS["alice"]))
OTHER_BLOB = next(digest for digest, login in OWNERS.items() if login != "alice")


class Story:
    """Lines of a history and rows of tables, to be told and then changed."""

    def __init__(self):
        self.lines, self.events, self.number = [], [], 0
        self.tables = {name: [] for name in ("jobs", "ended", "results", "records", "usage", "devices")}

    def note(self, at, what, process="p", **fields):
        self.lines.append({"p": process, "n": 0, "t": at, "e": "note", "f": what, "a": fields})

    def call(self, at, function, arguments, result, event="ok", process="p", lasts=0.01):
        self.number += 1
        head = {"p": process, "n": self.number, "f": function}
        self.lines.append({**head, "t": at, "e": "invoke", "a": arguments})
        if event is not None:
            self.lines.append({**head, "t": at + lasts, "e": event, "r": result})

    def event(self, at, what, offset=0, **fields):
        row = {"seq": len(self.events) + 1, "what": what, "job": None, "token": None, "device": None, "worker": None,
               "login": None, "seconds": None, "note": ""}
        moment = datetime.datetime.fromtimestamp(BASE + at + offset, datetime.timezone.utc)
        self.events.append({**row, "at": moment, **fields})

    def row(self, table, **fields):
        self.tables[table].append(fields)

    def violations(self):
        return checker.check(History(self.lines), Tables(events=self.events, **self.tables), BASE)


def result(job, item, token):
    value = cost(job, item, token)
    return {"outcome": "ok", "reason": "", "cost": value, "least": value - 1, "spread": 0.25, "readings": 3}


def post(job, token, first, count, worker="w0", device=1):
    return {"worker": worker, "device": device, "job": job, "token": token, "first": first, "failed": None,
            "count": count}


def claim(story, at, token, job, device, worker):
    shown = {"worker": worker, "device": device, "most": 1}
    story.call(at, "claim", shown, {"token": token, "jobs": [{"id": job}]}, process=worker)
    story.event(at + 0.005, "claimed", token=token, job=job, device=device, worker=worker, login="alice")


def truth():
    """What a fleet without a fault leaves behind."""
    s = Story()
    s.note(0.5, "run", run=RUN, login="alice")
    jobs = [{"id": J, "n": 2, "kind": "measure", "payload": measuring(J, 2),
             "blobs": [{"sha256": BLOB, "name": "weights"}]},
            {"id": K, "n": 1, "kind": "run", "blobs": []}]
    s.note(0.6, "batch", run=RUN, jobs=jobs)
    s.call(1, "submit", {"run": RUN, "jobs": [J, K]}, {"accepted": 2, "known": 0})
    claim(s, 2, 5, J, 1, "w0")
    s.call(2.2, "worker_blob_get", {"device": 1, "token": 5, "job": J, "sha256": BLOB, "part": 0}, "200 bytes")
    claim(s, 2.5, 6, K, 2, "w1")
    s.call(2.6, "post", post(J, 5, 0, 1), {"answer": "ok"})
    s.call(2.7, "post", post(J, 5, 0, 1), {"answer": "known"})
    s.call(2.8, "post", post(J, 5, 1, 1), {"answer": "ok"})
    s.event(2.805, "ended", job=J, token=5, device=1, worker="w0", note="done")
    s.event(2.806, "freed", token=5, device=1, worker="w0", login="alice", seconds=0.8, note="done")
    s.event(3.6, "returned", job=K, token=6, device=2, worker="w1", note="lost")
    s.event(3.6, "freed", token=6, device=2, worker="w1", login="alice", seconds=1.0, note="lost")
    claim(s, 4, 7, K, 1, "w0")
    s.call(4.1, "post", post(K, 6, 0, 1, "w1", 2), {"answer": "stale"})
    s.call(4.2, "post", post(K, 7, 0, 1), {"answer": "ok"})
    s.event(4.205, "ended", job=K, token=7, device=1, worker="w0", note="done")
    s.event(4.206, "freed", token=7, device=1, worker="w0", login="alice", seconds=0.2, note="done")
    seen = [{"id": J, "state": "done", "results": [{"item": 0}, {"item": 1}]},
            {"id": K, "state": "done", "results": [{"item": 0}]}]
    s.call(5, "look", {"run": RUN, "have": {J: 0, K: 0}}, {"jobs": seen})
    s.note(5.1, "finished", run=RUN, have={J: 2, K: 1}, closed=False)
    s.note(6, "drained", over=True, seconds=1.0)
    for job, n, kind, token in ((J, 2, "measure", 5), (K, 1, "run", 7)):
        s.row("ended", id=job, run=RUN, login="alice", kind=kind, n=n, next=n, state="done", reason="", token=token)
        for item in range(n):
            s.row("results", job=job, item=item, token=token, written_by=100 + item, **result(job, item, token))
    for item in range(2):
        s.row("records", id=item, job=J, item=item, token=5, device=1, target="cpu:model@a:2", login="alice",
              written_by=100 + item, workload=measuring(J, 2)["record"]["workload"], schedule=f"{J} {item}",
              **{"class": "cpu:model@a"}, **result(J, item, 5))
    for token, seconds in ((5, 0.8), (6, 1.0), (7, 0.2)):
        s.row("usage", token=token, login="alice", seconds=seconds)
    for device in (1, 2):
        s.row("devices", id=device, name=f"d{device}", state="free", token=None, target="cpu",
              **{"class": "cpu:model@a"})
    return s


def change(story, table, number, **fields):
    story.tables[table][number].update(fields)


def lease_of(story, token, how):
    return next(e for e in story.events if e["what"] == how and e["token"] == token)


def _answer(story, function, number, **fields):
    ends = [line for line in story.lines if line["e"] == "ok" and line["f"] == function]
    ends[number]["r"] = {**ends[number]["r"], **fields}


def step_in_between(s):
    """Beside the truth: an hour is added at 3 s, and all later events have such times."""
    s.note(3, "step", before=0, after=3600)
    for event in s.events:
        if event["at"].timestamp() - BASE > 3:
            event["at"] += datetime.timedelta(hours=1)


CASES = {
    "lost job": (1, lambda s: s.tables["ended"].pop()),
    "job twice": (1, lambda s: s.row("jobs", **{**s.tables["ended"][0], "state": "ready", "next": 2})),
    "nobody's job": (1, lambda s: s.row("jobs", id="x", run=RUN, state="ready", next=0, n=1)),
    "accepted twice": (1, lambda s: s.call(1.5, "submit", {"run": RUN, "jobs": [J, K]}, {"accepted": 2})),
    "other n": (1, lambda s: change(s, "ended", 0, n=3)),
    "token again": (2, lambda s: claim(s, 4.5, 5, "job-l", 2, "w1")),
    "token forgotten": (2, lambda s: s.call(4.5, "claim", {"worker": "w1", "device": 2, "most": 1},
                                            {"token": 8, "jobs": [{"id": K}]})),
    "token falls": (2, lambda s: claim(s, 4.5, 4, "job-l", 2, "w1")),
    "job without its device": (2, lambda s: s.row("jobs", id="l", run=RUN, state="leased", token=9, device=1, next=0)),
    "two leases": (3, lambda s: s.events.insert(2, {**s.events[0], "seq": 1.5, "token": 6, "device": 1})),
    "two leases of a job": (3, lambda s: s.events.append({**lease_of(s, 6, "claimed"), "seq": 2.5, "token": 8,
                                                          "device": 3})),
    "freed twice": (3, lambda s: s.events.append({**lease_of(s, 5, "freed"), "seq": 99})),
    "lease cut short": ("time", lambda s: s.call(3.0, "renew", {"v": ["w1", "s", 2, 6]}, {"ok": True})),
    "time of no clock": ("time", lambda s: s.events.append({**s.events[-1], "seq": 99, "what": "x",
                                                            "at": s.events[-1]["at"] + datetime.timedelta(hours=5)})),
    "result twice": (4, lambda s: s.tables["results"].append(dict(s.tables["results"][0]))),
    "record missing": (4, lambda s: s.tables["records"].pop()),
    "record alone": (4, lambda s: s.row("records", **{**s.tables["records"][0], "item": 7})),
    "record twice": (4, lambda s: s.row("records", **s.tables["records"][0])),
    "other cost": (4, lambda s: change(s, "records", 0, cost=1.0)),
    "other transaction": (4, lambda s: change(s, "records", 0, written_by=999)),
    "unknown cost": (5, lambda s: change(s, "results", 2, cost=1.0)),
    "lost post": (5, lambda s: s.tables["results"].pop()),
    "late post": (5, lambda s: s.call(4.0, "post", post(J, 5, 1, 1), {"answer": "ok"})),
    "foreign post": (5, lambda s: s.call(4.15, "post", post(K, 7, 0, 1, "w9"), {"answer": "ok"})),
    "old lease after new": (5, lambda s: change(s, "results", 0, token=7)),
    "refused and there": (5, lambda s: _answer(s, "post", -1, answer="stale")),
    "gap": (6, lambda s: change(s, "results", 1, item=2)),
    "done too early": (6, lambda s: change(s, "ended", 0, n=3, next=3)),
    "claimed after cancel": (6, lambda s: s.call(3.8, "cancel", {"run": RUN}, 1)),
    "nobody cancelled": (6, lambda s: change(s, "ended", 1, state="cancelled", reason="lapsed")),
    "over and back": (6, lambda s: s.call(5.05, "look", {"run": RUN, "have": {K: 1}}, {
        "jobs": [{"id": K, "state": "ready", "results": []}]})),
    "look skips": ("look", lambda s: _answer(s, "look", 0, jobs=[{"id": J, "state": "done",
                                                                  "results": [{"item": 1}]}])),
    "look misses": ("look", lambda s: next(n for n in s.lines if n["f"] == "finished")["a"]["have"].update({J: 1})),
    "foreign blob": (7, lambda s: s.call(3, "blob_get", {"sha256": OTHER_BLOB, "part": 0, "login": "alice"}, "1 byte")),
    "blob not named": (7, lambda s: s.call(2.3, "worker_blob_get", {
        "device": 1, "token": 5, "job": J, "sha256": OTHER_BLOB, "part": 0}, "1 byte")),
    "blob after the lease": (7, lambda s: s.call(5.5, "worker_blob_get", {
        "device": 1, "token": 5, "job": J, "sha256": BLOB, "part": 0}, "1 byte")),
    "false target": (8, lambda s: change(s, "records", 0, target="model:evil")),
    "false schedule": (8, lambda s: change(s, "records", 0, schedule=f"{J} 1")),
    "false workload": (8, lambda s: change(s, "records", 1, workload="w")),
    "false login": (8, lambda s: change(s, "records", 0, login=USERS[1])),
    "paid twice": (9, lambda s: s.tables["usage"].append(dict(s.tables["usage"][0]))),
    "paid too much": (9, lambda s: change(s, "usage", 0, seconds=1.6)),
    "an hour of use": (9, lambda s: (lease_of(s, 5, "freed").update(seconds=3600.8),
                                     change(s, "usage", 0, seconds=3600.8))),
    "stuck": ("idle", lambda s: s.note(7, "drained", over=False, seconds=40.0)),
    "strange error": ("error", lambda s: s.call(3, "renew", {"v": []}, {"code": "23505", "text": "duplicate"},
                                                event="fail")),
}


class CheckerTest(unittest.TestCase):
    def test_truth_passes(self):
        self.assertEqual([str(v) for v in truth().violations()], [])

    def test_stepped_truth_passes(self):
        story = truth()
        step_in_between(story)
        self.assertEqual([str(v) for v in story.violations()], [])

    def test_each_lie_is_found_by_its_rule(self):
        for name, (rule, lie) in CASES.items():
            with self.subTest(name):
                story = copy.deepcopy(truth())
                lie(story)
                found = story.violations()
                self.assertIn(str(rule), {str(v.rule) for v in found}, [str(v) for v in found])

    def test_an_idle_device_beside_a_ready_job(self):
        story = truth()
        for at in (10, 12, 14, 15.5):
            story.note(at, "sample", pairs=[[K, "d1"]])
        self.assertEqual([str(v.rule) for v in story.violations()], [])  # nobody asked
        story.call(10.5, "tick", {"v": []}, {"ended": 0, "moved_ms": 0})
        for at in (11, 12.5):
            story.call(at, "claim", {"worker": "w0", "device": 1, "most": 1}, None)
        self.assertEqual({str(v.rule) for v in story.violations()}, {"idle"})

    def test_a_job_that_is_stuck_is_shown_with_its_last_calls(self):
        story = truth()
        story.row("jobs", id=K, state="leased")
        story.call(6.5, "renew", {"token": 7}, True, process="w0")
        story.note(7, "drained", over=False, seconds=40.0)
        evidence = checker.Evidence(History(story.lines), Tables(events=story.events, **story.tables), BASE)
        text = " ".join(str(v) for v in checks_rights.nothing_waits(evidence))
        self.assertIn(f"left are 1 jobs: ['{K} leased']", text)
        self.assertIn("p post [4.200, 4.210] ok", text)  # named the job last
        self.assertIn("w0 renew [6.500, 6.510] ok", text)  # its claimer's last word

    def test_what_nobody_saw_does_not_wait(self):
        story = truth()
        story.note(10, "sample", pairs=[[K, "d1"]])
        story.call(10.5, "tick", {"v": []}, {"ended": 0, "moved_ms": 0})
        for at in (11, 12.5):
            story.call(at, "claim", {"worker": "w0", "device": 1, "most": 1}, None)
        story.note(70, "sample", pairs=[[K, "d1"]])
        self.assertEqual([str(v.rule) for v in story.violations()], [])

    def test_a_stopped_test_keeps_its_patience(self):
        now = [0.0]
        patience = Patience(40, lambda: now[0])
        for _ in range(4):
            now[0] += 100  # stopped
            self.assertFalse(patience.over())
        for _ in range(3):
            now[0] += 5
            self.assertFalse(patience.over())
        now[0] += 5
        self.assertTrue(patience.over())

    def test_every_defect_fits_the_schema(self):
        files = install.sources()
        for name in defects.DEFECTS:
            with self.subTest(name):
                self.assertNotEqual(defects.planted(name, files), files)

    def test_every_check_finds_something(self):
        silent = {one.__name__ for one in checker.CHECKS}
        for _, lie in CASES.values():
            story = truth()
            lie(story)
            evidence = checker.Evidence(History(story.lines), Tables(events=story.events, **story.tables), BASE)
            silent -= {one.__name__ for one in checker.CHECKS if any(True for _ in one(evidence))}
        self.assertEqual(silent, set())


if __name__ == "__main__":
    unittest.main()
