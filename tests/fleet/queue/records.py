"""The store of records: what the C++ suite of stores asks of each, in SQL, and whose records one sees."""

import hashlib

from case import FleetCase
from psycopg2.extras import Json


def sample(i, **more):
    """The records of the C++ suite: valid unless i leaves 4 by 5; the cheaper, the larger i."""
    bad = i % 5 == 4
    return {"workload": f"sha256:{i % 3}", "name": 'conv\twith "quotes" and\nlines', "kind": "schedule",
            "target": "cpu:znver4@1a2b3c4d:2" if i % 2 == 0 else "cpu:x86-64-v3:2", "machine": "1a2b3c4d" if i % 2 == 0 else "",
            "compiler": "tilewright 0.1", "point": "", "schedule": f"split(loop=h, factor={i})",
            "outcome": "timeout" if bad else "ok", "reason": "1000 ms" if bad else "", "cost": 1000.5 - i, "unit": "ns", "least": 0,
            "spread": 0, "readings": 7, "searcher": "ours", "seed": -1 - i, "when": f"2026-11-20T10:15:{i % 60:02}Z", **more}  # fmt: skip


class Records(FleetCase):
    ALL = ("", "", "", "", False)

    def add(self, *records, workloads=None, login="ann"):
        return getattr(self, login).records_add(Json(list(records)), workloads or {})

    def page(self, *match, after=0, most=1000, login="ann"):
        match = match or self.ALL
        return getattr(self, login).rows("SELECT * FROM fleet.records_page(%s, %s, %s, %s, %s, %s, %s)", (*match, after, most))

    def all(self, *match, login="ann"):
        return [record for _, record in self.page(*match, login=login)]

    def test_they_come_back_as_they_were(self):
        many = [sample(i) for i in range(20)]
        self.assertEqual(self.add(*many), 20)
        self.assertEqual(self.add(many[3]), 0)
        self.assertEqual(self.add(many[4], sample(20), many[5]), 1)
        many.append(sample(20))
        self.assertEqual(self.all(), many)
        self.assertEqual(self.ann.records_count(*self.ALL), 21)
        exact = sample(30, cost=0.1 + 0.2, least=1e-300, spread=1 / 3, seed=-(1 << 63), readings=(1 << 63) - 1)
        self.add(exact)
        self.assertEqual(self.all()[-1], exact)

    def test_pages(self):
        self.add(*[sample(i) for i in range(7)])
        seen, after = [], 0
        while rows := self.page(after=after, most=3):
            seen += [record["seed"] for _, record in rows]
            after = rows[-1][0]
        self.assertEqual(seen, [-1 - i for i in range(7)])

    def test_filters(self):
        race = sample(0, kind="race")
        self.add(sample(0), sample(4), race)
        for match, count in ((("sha256:0", "", "", "", False), 2), (("sha256:2", "", "", "", False), 0),
                             (("", "cpu:znver4@1a2b3c4d:2", "", "", False), 3), (("", "cpu:znver4", "", "", False), 0),
                             (("", "", "tilewright 0.1", "", False), 3), (("", "", "tilewright 0.2", "", False), 0),
                             (("", "", "", "", True), 2), (("sha256:0", "", "", "schedule", False), 1)):  # fmt: skip
            self.assertEqual(self.ann.records_count(*match), count, match)
        self.assertEqual(self.all("", "", "", "race", False), [race])

    def test_best_and_last(self):
        for i in (16, 10, 4):
            self.add(sample(i))
        match = ("sha256:1", "cpu:znver4@1a2b3c4d:2", "", "", False)
        self.assertEqual(self.ann.records_count(*match), 3)
        self.assertEqual(self.ann.records_best(*match), sample(16))
        self.assertEqual(self.ann.records_last(*match), sample(10))
        self.assertIsNone(self.ann.records_best("sha256:9", "", "", "", False))
        self.assertIsNone(self.ann.records_last("sha256:9", "", "", "", False))

    def test_costs_that_no_machine_has(self):
        """They are kept, to be looked at, and never chosen."""
        bad = [sample(0, cost=c, schedule=str(c)) for c in (0, -1, 1e-300, "NaN", "Infinity", 1e300)]
        self.assertEqual(self.add(*bad), 6)
        self.assertIsNone(self.ann.records_best(*self.ALL))
        self.assertIsNone(self.ann.records_last(*self.ALL))
        self.add(sample(0))
        self.assertEqual(self.ann.records_best(*self.ALL), sample(0))
        for broken in ({"cost": "dear"}, {"seed": 1.5}, {"readings": 1e30}):
            with self.refused("TW400"):
                self.add(sample(1), sample(0, **broken))
        with self.refused("TW400"):
            self.ann.records_add(Json({"a": 1}), {})
        self.assertEqual(self.ann.records_count(*self.ALL), 7, "all or none")

    def test_prune(self):
        self.add(*[sample(i) for i in range(20)])
        self.assertEqual(self.ann.records_prune(1), 14)
        kept = self.all()
        for record in kept:
            self.assertEqual(self.ann.records_best(record["workload"], record["target"], "", "", False), record)
        self.assertEqual(self.ann.records_prune(1), 0)

    def test_prune_keeps_what_decides(self):
        def one(kind, cost, schedule, **more):
            record = sample(0, kind=kind, cost=cost, schedule=schedule, **more)
            self.add(record)
            return record

        one("rule", 99, "old rule")
        keep = [one("rule", 100, "rule"), one("race", 97, "won later")]
        one("schedule", 90, "slower")
        keep.append(one("schedule", 10, "cheapest"))
        keep.append(one("algorithm", 500, "", point="algorithm: direct"))
        theirs = sample(0, cost=200)
        self.add(theirs, login="bob")
        self.assertEqual(self.ann.records_prune(1), 2)
        self.assertEqual(self.all(), keep)
        self.assertEqual(self.all(login="bob"), [theirs], "not ann's to prune")
        self.keeper.records_prune(0)
        self.assertEqual(self.all(login="bob"), [])

    def test_workloads(self):
        self.add(workloads={"b": "func b", "c": "func\nc"})
        self.add(workloads={"a": "func a", "b": "another"})
        self.assertEqual(self.ann.workload_text("c"), "func\nc")
        self.assertEqual(self.ann.workload_text("b"), "func b")
        self.assertIsNone(self.ann.workload_text("d"))
        page = lambda after, most: self.ann.rows("SELECT * FROM fleet.workloads_page(%s, %s)", (after, most))  # noqa: E731
        self.assertEqual(page("", 10), [("a", "func a"), ("b", "func b"), ("c", "func\nc")])
        self.assertEqual(page("a", 1), [("b", "func b")])
        true = "sha256:" + hashlib.sha256(b"func").hexdigest()
        self.add(workloads={true: "func"})
        with self.refused("TW400", "not what its key says"):
            self.add(workloads={"sha256:" + "0" * 64: "func"})

    def test_whose_records_one_sees(self):
        self.add(sample(0), login="ann")
        self.add(sample(6, cost=1), login="bob")
        self.assertEqual(self.all(login="ann"), [sample(0)])
        self.assertEqual(self.ann.records_best(*self.ALL), sample(0), "not what bob says")
        self.assertEqual(self.ann.records_count(*self.ALL, "any"), 2)
        self.change("UPDATE fleet.records SET trust = 1")
        self.assertEqual(self.ann.records_best(*self.ALL), sample(6, cost=1))
        self.assertEqual(self.ann.records_best(*self.ALL, "own"), sample(0))
