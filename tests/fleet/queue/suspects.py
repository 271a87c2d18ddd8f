"""Devices whose times are not those of their class: which of two is wrong, and what becomes of it."""

import hashlib

from case import FleetCase, measuring, ok


class Comparing(FleetCase):
    """Devices that measure what others have measured."""

    emulated = False

    def setUp(self):
        super().setUp()
        self.workers = {}

    def measure(self, key, schedules, factor=1.0, **more):
        """A device measures these schedules: a good one's cost is fixed by the schedule, others' are off by a factor
        that is above 1 for some schedules and below for others."""
        if key not in self.workers:
            self.workers[key] = self.worker(key, emulated=self.emulated, **more)
        payload = measuring(len(schedules))
        for candidate, schedule in zip(payload["candidates"], schedules):
            candidate["schedule"] = candidate["point"] = schedule
        job = self.submitted(n=len(schedules), payload=payload, device=key)[0]
        self.assertEqual(self.workers[key].claimed(), [job])
        self.workers[key].post(job, 0, [ok(self.cost(s) * (factor if self.bit(key, s) else 1 / factor)) for s in schedules])

    @staticmethod
    def number(text):
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")

    def cost(self, schedule):
        return 1000 + self.number(schedule) % 1000

    def bit(self, key, schedule):
        return self.number(f"{key} {schedule}") % 2

    def names(self, count, prefix="s"):
        return [f"{prefix}{i}" for i in range(count)]

    def suspects(self):
        self.tick()
        return self.column("devices", "name", "state = 'suspect' ORDER BY name")

    def pairs(self, where="true"):
        return self.column("pairs", "count(*)", where)[0]


class Suspects(Comparing):
    def test_one_that_differs(self):
        """All measured what the bad one had measured first: it is the one that is wrong."""
        self.measure("x", self.names(8), 1.4)
        for key in ("a", "b"):
            self.assertEqual(self.suspects(), [])
            self.measure(key, self.names(8))
        self.assertEqual(self.suspects(), ["x"])
        reason = self.column("devices", "reason", "name = 'x'")[0]
        self.assertRegex(reason, r"cost it 40 % more or less than a, b \(median of 10\)")
        self.assertEqual(self.column("events", "note", "what = 'suspect'"), [reason])
        self.submitted(n=1, device="x")
        self.assertIsNone(self.workers["x"].claim(), "no more leases")
        self.check_invariants()

    def test_noise_is_no_reason(self):
        for key in "abcd":
            self.measure(key, self.names(8), 1.04)
        self.measure("d", self.names(2, "t"), 2)
        self.measure("a", self.names(2, "t"))
        self.measure("b", self.names(2, "t"))
        self.assertEqual(self.suspects(), [], "four of ten are off")

    def test_two_alone(self):
        """Nobody can tell which one is wrong."""
        self.measure("a", self.names(12))
        self.measure("x", self.names(12), 1.4)
        self.assertEqual(self.suspects(), [])
        self.assertEqual(self.pairs(), 20, "ten of each")
        self.assertEqual(self.pairs("fresh"), 20, "and it may be told later")
        self.measure("b", self.names(4))
        self.assertEqual(self.suspects(), ["x"], "a third one has come")

    def test_who_is_wrong_may_show_later(self):
        """a and b are against x, and are compared with each other only after that."""
        self.measure("x", self.names(4) + self.names(4, "t"), 1.4)
        self.measure("a", self.names(4))
        self.measure("b", self.names(4, "t"))
        self.assertEqual(self.suspects(), [])
        for key in ("a", "b"):
            self.measure(key, self.names(2, "u"))
        self.assertEqual(self.suspects(), ["x"])
        self.assertEqual(self.pairs("fresh"), 0)

    def test_few_pairs_say_nothing(self):
        for count, found in ((2, []), (3, ["x"])):
            for key in ("a", "b"):
                self.measure(key, self.names(count, f"{count} "))
            self.measure("x", self.names(count, f"{count} "), 1.4)
            self.assertEqual(self.suspects(), found, f"after {count} candidates: two pairs each")

    def test_a_good_one_beside_two_bad_ones(self):
        """It disagrees with both, but nobody agrees with them."""
        self.measure("x", self.names(8), 1.4)
        self.measure("y", self.names(8, "t"), 1.4)
        self.measure("a", self.names(8) + self.names(8, "t"))
        self.assertEqual(self.suspects(), [])
        self.measure("b", self.names(8) + self.names(8, "t"))
        self.measure("c", self.names(8) + self.names(8, "t"))
        self.assertEqual(self.suspects(), ["x", "y"])

    def test_two_of_another_kind_against_one(self):
        """Two that agree are believed, whatever they are: there is nothing better to go by."""
        self.measure("a", self.names(8))
        for key in ("x", "y"):
            self.measure_wrongly(key, self.names(8))
        self.assertEqual(self.suspects(), ["a"])

    def wrong(self, schedule):
        """The cost on another machine."""
        return Comparing.cost(self, schedule) * (2 if self.bit("other", schedule) else 0.5)

    def measure_wrongly(self, key, schedules):
        self.cost = self.wrong
        self.measure(key, schedules)
        del self.cost

    def test_as_many_beside_it_as_against_it(self):
        """Two are like it and two are not, who are like each other: nobody can tell."""
        self.measure("a", self.names(5))
        for key, count in (("b", 2), ("c", 2)):
            self.measure(key, self.names(count))
        for key in ("x", "y"):
            self.measure_wrongly(key, self.names(3, "t"))
        self.measure("a", self.names(3, "t"))
        self.assertEqual(self.suspects(), [])

    def test_two_against_two(self):
        for key in ("a", "b"):
            self.measure(key, self.names(8))
        for key in ("x", "y"):
            self.measure_wrongly(key, self.names(8))
        self.assertEqual(self.suspects(), [])

    def test_pairs_with_suspects_do_not_count(self):
        """x and y are of one other kind. Once x is found out, that y is like x says nothing for y."""
        for key in ("a", "b", "c"):
            self.measure(key, self.names(3, "u") + self.names(8, "t"))
        self.measure_wrongly("x", self.names(7))
        self.measure_wrongly("y", self.names(3, "u"))
        self.measure_wrongly("y", self.names(7))
        self.measure_wrongly("x", self.names(8, "t"))
        self.assertEqual(self.suspects(), ["x", "y"])

    def test_cleared(self):
        """It starts anew: what it measured before is compared with nothing."""
        for key, factor in (("a", 1), ("b", 1), ("x", 1.4)):
            self.measure(key, self.names(8), factor)
        self.assertEqual(self.suspects(), ["x"])
        self.keeper.clear_device("x")
        self.assertEqual(self.suspects(), [])
        self.assertEqual(self.pairs("(SELECT id FROM fleet.devices WHERE name = 'x') IN (device, other)"), 0)
        before = self.pairs()
        self.measure("x", self.names(2, "u"))
        self.measure("a", self.names(2, "u"))
        self.assertEqual(self.pairs(), before + 4, "what it measures now counts")
        self.measure("c", self.names(8))
        self.suspects()
        self.assertEqual(self.pairs("(SELECT id FROM fleet.devices WHERE name = 'x') IN (device, other)"), 4)
        self.assertEqual(self.suspects(), [])

    def test_a_lease_that_it_has(self):
        """Its jobs go elsewhere, and what it posts is late."""
        for key in ("a", "b"):
            self.measure(key, self.names(8))
        self.measure("x", self.names(8), 1.4)
        job, worker = self.submitted(n=1)[0], self.workers["x"]
        self.assertEqual(worker.claimed(), [job])
        self.assertEqual(self.suspects(), ["x"])
        self.assertEqual(self.state(job), "ready")
        self.assertFalse(worker.renew()["ok"])
        self.assertEqual(worker.answer(job, 0, [ok()]), "stale")
        self.assertEqual(self.workers["a"].claimed(), [job])
        self.check_invariants()

    def test_one_that_is_locked_is_judged_later(self):
        for key, factor in (("a", 1), ("b", 1), ("x", 1.4)):
            self.measure(key, self.names(8), factor)
        self.owner.connection.autocommit = False
        self.owner.rows("SELECT FROM fleet.devices WHERE name = 'x' FOR UPDATE")
        self.assertEqual(self.suspects(), [])
        self.owner.connection.rollback()
        self.assertEqual(self.suspects(), ["x"])

    def test_other_classes_are_not_compared(self):
        self.measure("a", self.names(8))
        self.workers["v"] = self.worker("v", emulated=self.emulated, **{"class": "cpu:other@1"})
        payload = measuring(8)
        job = self.submitted(n=8, payload=payload, **{"class": "cpu:other@1"})[0]
        self.assertEqual(self.workers["v"].claimed(), [job])
        self.workers["v"].post(job, 0, [ok(5)] * 8)
        self.assertEqual(self.pairs(), 0)

    def test_costs_far_apart(self):
        """No number of theirs overflows."""
        for key, cost in (("a", 1e-300), ("b", 1e300)):
            payload = measuring(1)
            self.workers[key] = self.worker(key, emulated=self.emulated)
            job = self.submitted(n=1, payload=payload, device=key)[0]
            self.workers[key].claim()
            self.assertEqual(self.workers[key].answer(job, 0, [ok(cost)]), "ok")
        self.assertEqual(self.pairs("abs(ratio) > 1000"), 2)


class EmulatedSuspects(Suspects):
    """The same of devices that make no records: their results remember."""

    emulated = True

    def test_they_make_no_records(self):
        self.measure("a", self.names(2))
        self.assertEqual(self.column("records", "id"), [])


class Trust(Comparing):
    """Of records: a suspect's are not trusted, and confirm nothing."""

    def trusts(self, name):
        return self.column("records", "trust", f"device = (SELECT id FROM fleet.devices WHERE name = '{name}') ORDER BY id")

    def test_trust(self):
        for key in ("a", "b"):
            self.measure(key, self.names(8))
        self.measure("x", ["good"])
        self.measure("a", ["good"])
        self.assertEqual(self.trusts("x"), [1])
        self.measure("x", self.names(8), 1.4)
        self.assertEqual(self.trusts("x"), [1] + [0] * 8)
        self.measure("x", ["lonely"])
        self.assertEqual(self.suspects(), ["x"])
        self.assertEqual(self.trusts("x"), [0] * 10)
        self.assertEqual(self.trusts("a"), [1] * 9, "b has confirmed them")
        self.measure("c", ["lonely"])
        self.assertEqual(self.trusts("c"), [0])
        self.keeper.clear_device("x")
        self.measure("d", ["lonely"])
        self.assertEqual(self.trusts("d"), [1], "c confirms it")
        self.assertEqual(self.trusts("x"), [0] * 10)
