"""Posting: results, repeated and late ones, gaps, values that no measurement gives, records."""

from case import CLASS, FUNC, RECORD, RECORD_TARGET, FleetCase, measuring, ok
from psycopg2.extras import Json


class Posts(FleetCase):
    def leased(self, **more):
        job = self.submitted(**more)[0]
        worker = self.worker()
        worker.claim()
        return worker, job

    def test_posts_follow_each_other(self):
        worker, job = self.leased(n=5)
        self.assertEqual(worker.post(job, 0, [ok(), ok()]), {"answer": "ok", "cancel": [], "drain": False, "yield": False})
        self.assertEqual(worker.answer(job, 0, [ok(), ok()]), "known")
        self.assertEqual(worker.answer(job, 1, [ok()]), "known")
        with self.refused("TW409", "items 2 to 2"):
            worker.post(job, 3, [ok()])
        with self.refused("TW409"):
            worker.post(job, 3, [], "failed")
        self.assertEqual(worker.answer(job, 1, [ok(1), ok(2)]), "ok", "the second one is new")
        self.assertEqual(self.column("results", "cost", "true ORDER BY item"), [100, 100, 2])
        with self.refused("TW400", "has 5 items, not 6"):
            worker.post(job, 3, [ok()] * 3)
        self.assertEqual(worker.answer(job, 3, []), "ok")
        self.assertEqual(worker.answer(job, 3, [ok(), ok()]), "ok")
        self.assertEqual(self.state(job), "done")
        self.assertEqual(self.column("devices", "state"), ["free"])
        self.check_invariants()

    def test_a_post_whose_answer_was_lost(self):
        """Known under the same token, also after the job, the lease, and the next lease."""
        worker, job = self.leased(n=2)
        token = worker.token
        worker.post(job, 0, [ok()])
        worker.post(job, 1, [ok()])
        self.assertEqual(worker.answer(job, 1, [ok()]), "known")
        self.assertEqual(worker.answer(job, 0, [ok(), ok()]), "known")
        self.submitted()
        worker.claim()
        self.assertEqual(worker.answer(job, 1, [ok()], token=token), "known")
        self.assertEqual(worker.answer(job, 1, [ok()]), "stale", "under another token")
        self.assertEqual(self.column("results", "item"), [0, 1])

    def test_known_of_a_lease_that_was_lost(self):
        worker, job = self.leased(n=3)
        token = worker.token
        worker.post(job, 0, [ok()])
        self.expire(worker)
        self.assertEqual(worker.answer(job, 0, [ok()], token=token), "known", "it is there")
        self.assertEqual(worker.answer(job, 0, [ok(), ok()], token=token), "stale")
        self.assertEqual(worker.answer(job, 1, [ok()], token=token), "stale")
        worker.claim()
        self.assertEqual(worker.answer(job, 0, [ok()]), "known", "below next, whoever measured it")

    def test_failed(self):
        worker, job = self.leased(n=3)
        self.assertEqual(worker.answer(job, 0, [ok()], failed="blob damaged"), "ok")
        self.assertEqual(self.state(job), "failed")
        self.assertEqual(self.column("ended", "reason"), ["blob damaged"])
        self.assertEqual(self.column("results", "item"), [0])
        self.assertEqual(worker.answer(job, 0, [ok()], failed="blob damaged"), "known")
        self.assertEqual(worker.answer(job, 1, [], failed="blob damaged"), "known")
        self.check_invariants()

    def test_a_job_without_items(self):
        worker, job = self.leased(n=0, kind="run")
        self.assertEqual(worker.answer(job, 0, []), "ok")
        self.assertEqual(self.state(job), "done")
        self.assertEqual(worker.answer(job, 0, []), "known")

    def test_the_last_job_ends_the_lease(self):
        a, b = self.submitted(2, n=1)
        worker = self.worker()
        worker.claim(2)
        worker.post(b, 0, [ok()])
        self.assertEqual(self.column("devices", "state"), ["leased"])
        self.assertEqual(worker.answer(b, 0, [ok()]), "known", "while the lease goes on")
        worker.post(a, 0, [ok()])
        self.assertEqual(self.column("devices", "state"), ["free"])
        self.assertEqual(len(self.column("usage", "token")), 1)
        self.check_invariants()

    def test_a_post_renews(self):
        worker, job = self.leased()
        self.change("UPDATE fleet.devices SET ends = clock_timestamp() + interval '1 s'")
        worker.post(job, 0, [ok()])
        self.assertGreater(self.column("devices", "extract(epoch FROM ends - clock_timestamp())")[0], 28)

    def test_values_that_no_measurement_gives(self):
        worker, job = self.leased()
        for bad, text in ((ok(0), "cost is 0"), (ok(-1), "negative"), (ok("NaN"), "not finite"), (ok("Infinity"), "not finite"),
                          (ok(5, least=6), "above its cost"), (ok(spread=-1), "negative"), (ok(fastest="NaN"), "not finite"),
                          (ok(readings=-1), "negative"), ({"outcome": "ok"}, "no cost"), ({"outcome": "good", "cost": 1}, "good"),
                          ({}, "its outcome is"), (ok(reason="x" * 70000), "64 KiB"), (ok(output="x" * 70000), "64 KiB"),
                          (ok("dear"), "invalid input"), (ok(readings="x"), "invalid input"), (ok(readings=1e30), "bigint"),
                          (7, "array of objects"), ([ok()], "array of objects")):  # fmt: skip
            with self.subTest(bad=str(bad)[:60]), self.refused("TW400", text):
                worker.post(job, 0, [bad])
        for bad in ({}, 7):
            with self.refused("TW400"):
                worker.post(job, 0, Json(bad).adapted)
        with self.refused("TW400"):
            worker.post(job, -1, [ok()])
        self.assertEqual(self.column("results", "item"), [])
        self.assertEqual(self.state(job), "leased")
        self.assertEqual(worker.answer(job, 0, [{"outcome": "timeout", "reason": "10 s"}]), "ok")

    def test_records(self):
        """Their texts are the job's, their numbers the result's, target and login those of device and job."""
        worker, job = self.leased(n=3, payload=measuring(3))
        worker.post(job, 0, [ok(5), ok(5), {"outcome": "crash", "reason": "signal 11"}])
        rows = self.keeper.rows("SELECT item, workload, name, kind, machine, compiler, unit, searcher, target, outcome, reason, cost, "
                                "least, spread, readings, seed, login, class, trust, job::text, token, worker::text, device, schedule, "
                                "point FROM fleet.records ORDER BY item")
        texts = tuple(RECORD[field] for field in ("workload", "name", "kind", "machine", "compiler", "unit", "searcher"))
        want = (*texts, RECORD_TARGET, "ok", "", 5, 4.5, 0.01, 7, -3, "ann", CLASS, 0, job, worker.token, worker.id, worker.device)
        self.assertEqual(rows[0], (0, *want, "s0", "p0"))
        self.assertEqual(rows[1], (1, *want, "s1", "p1"))
        self.assertEqual(rows[2][9:12] + rows[2][-2:], ("crash", "signal 11", 0, "s2", "p2"))
        whens = self.column("records", '"when"')
        self.assertTrue(all(when.startswith("2") and when.endswith("Z") for when in whens), whens)
        same = self.keeper.rows("SELECT count(DISTINCT xmin::text) FROM (SELECT xmin FROM fleet.records UNION ALL SELECT xmin FROM "
                                "fleet.results) t")
        self.assertEqual(same, [(1,)], "of one transaction")
        self.check_invariants()

    def test_records_of_several_posts(self):
        worker, job = self.leased(n=4, payload=measuring(4))
        worker.post(job, 0, [ok(1)])
        worker.post(job, 0, [ok(7), ok(2), ok(3)])  # the first is there
        worker.post(job, 3, [ok(4)])
        self.assertEqual(self.keeper.rows("SELECT item, schedule, cost FROM fleet.records ORDER BY item"),
                         [(0, "s0", 1), (1, "s1", 2), (2, "s2", 3), (3, "s3", 4)])  # fmt: skip

    def test_equal_readings_are_two_records(self):
        payload = measuring(2)
        payload["candidates"][1] = payload["candidates"][0]
        worker, job = self.leased(payload=payload)
        worker.post(job, 0, [ok(5), ok(5)])
        self.assertEqual(self.column("records", "item", "true ORDER BY item"), [0, 1])

    def test_what_a_worker_says_of_records_is_not_read(self):
        worker, job = self.leased(n=1, payload=measuring(1))
        lie = {"workload": "w", "target": "cuda:h200", "login": "bob", "kind": "race", "schedule": "mine", "cost": 0.5}
        self.assertEqual(worker.answer(job, 0, [ok(9, record=lie)]), "ok")
        self.assertEqual(self.keeper.rows("SELECT workload, target, login, kind, schedule, cost FROM fleet.records"),
                         [(RECORD["workload"], RECORD_TARGET, "ann", "schedule", "s0", 9)])

    def test_the_schedule_of_the_rules(self):
        payload = measuring(1)
        payload["candidates"][0]["point"] = ""
        worker, job = self.leased(n=1, payload=payload)
        worker.post(job, 0, [ok()])
        self.assertEqual(self.keeper.rows("SELECT kind, searcher FROM fleet.records"), [("rule", "rule")])

    def test_targets_of_records(self):
        for n, (kind, target) in enumerate({"cpu:x@1": "cpu:x@1:2", "cuda-sm_90a:NVIDIA H200": "cuda-sm_90a:NVIDIA H200", "vta:tsim": "vta:tsim"}.items()):
            job = self.submitted(n=1, **{"class": kind})[0]
            worker = self.worker(f"d{n}", **{"class": kind})
            self.assertEqual(worker.claimed(), [job])
            worker.post(job, 0, [ok()])
            self.assertEqual(self.column("records", "target", f"job = '{job}'"), [target])

    def test_other_kinds_make_no_records(self):
        for kind in ("run", "race", "build"):
            job = self.submitted(n=1, kind=kind)[0]
            worker = self.worker()
            worker.claim()
            self.assertEqual(worker.answer(job, 0, [ok(output={"ratios": [1]})]), "ok")
        self.assertEqual(self.column("records", "id"), [])
        self.assertEqual(self.column("results", "output"), [{"ratios": [1]}] * 3)

    def test_emulated_devices_make_no_records(self):
        job = self.submitted(n=1)[0]
        worker = self.worker(emulated=True)
        worker.claim()
        self.assertEqual(worker.answer(job, 0, [ok()]), "ok")
        self.assertEqual(self.column("records", "id"), [])

    def test_programs_are_kept(self):
        self.submitted(2)
        self.assertEqual(self.keeper.rows("SELECT key, func FROM fleet.workloads"), [(RECORD["workload"], FUNC)])
        self.assertEqual(self.ann.workload_text(RECORD["workload"]), FUNC)

    def test_jobs_that_measure_nothing(self):
        good = measuring(2)
        record = good["record"]
        for bad, text in (({"candidates": good["candidates"][:1]}, "not as many"), ({"candidates": {}}, "not as many"),
                          ({"func": FUNC + " "}, "not the hash"), ({"func": None}, "not the hash"), ({"func": 7}, "not the hash"),
                          ({"record": None}, "a seed"), ({"record": {**record, "seed": None}}, "a seed"),
                          ({"record": {**record, "seed": "x"}}, "invalid input"), ({"record": {**record, "kind": None}}, "the kind"),
                          ({"record": {**record, "unit": 7}}, "the unit"), ({"record": {**record, "name": "x" * 1025}}, "the name"),
                          ({"record": {**record, "workload": "sha256:x"}}, "not the hash"), ({"threads": 0}, "threads"),
                          ({"threads": None}, "threads"), ({"threads": 1.5}, "invalid input"),
                          ({"candidates": [{"schedule": "s", "point": 1}] * 2}, "a candidate"),
                          ({"candidates": [{"schedule": "s"}] * 2}, "a candidate"), ({"candidates": [7, 8]}, "a candidate"),
                          ({"candidates": [{"schedule": "s" * 65537, "point": ""}] * 2}, "64 KiB")):  # fmt: skip
            with self.subTest(bad=str(bad)[:60]), self.refused("TW400", text):
                self.submitted(payload={**good, **bad})
        for n in (0, 257):
            with self.refused("TW400", "1 to 256"):
                self.submitted(n=n, payload=measuring(n))
        with self.refused("TW400"):
            self.submitted(payload=[])
        self.assertEqual(self.column("jobs", "id") + self.column("workloads", "key"), [])

    def measure(self, key, cost, **more):
        job = self.submitted(n=1, payload=measuring(1))[0]
        worker = self.worker(key, **more)
        self.assertEqual(worker.claimed(), [job])
        worker.post(job, 0, [ok(cost)])

    def trusts(self):
        return self.column("records", "trust", "true ORDER BY id")

    def test_a_second_device_confirms(self):
        self.measure("a", 100)
        self.measure("a", 100)
        self.assertEqual(self.trusts(), [0, 0], "the same device")
        self.measure("b", 120)
        self.assertEqual(self.trusts(), [0, 0, 0], "too far off")
        self.measure("b", 105)
        self.assertEqual(self.trusts(), [1, 1, 0, 1])

    def test_a_post_is_one_transaction(self):
        """What fails at its end takes its beginning with it."""
        worker, job = self.leased(n=1)
        self.change("ALTER TABLE fleet.usage ADD CONSTRAINT broken CHECK (seconds < 0) NOT VALID")
        with self.refused("23514"):
            worker.post(job, 0, [ok()])
        self.change("ALTER TABLE fleet.usage DROP CONSTRAINT broken")
        self.assertEqual(self.column("results", "item") + self.column("records", "id"), [])
        self.assertEqual(self.state(job), "leased")
        self.assertEqual(worker.answer(job, 0, [ok()]), "ok")
