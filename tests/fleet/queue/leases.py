"""Enrolling, claiming, renewing, giving back, leaving; what is lost with a lease."""

import threading

from case import CLASS, TARGET, FleetCase, Worker, new_id, ok
from psycopg2.extras import Json


class Leases(FleetCase):
    def test_enroll(self):
        made = self.wes.enroll("h", "p", "c", "s", "default", [self.device("b", name="pi"), self.device("a", name="pi")])
        self.assertEqual([(d["key"]) for d in made["devices"]], ["b", "a"])
        self.assertEqual(sorted(d["name"] for d in made["devices"]), ["pi", "pi-2"])
        again = self.wil.enroll("h", "p", "c", "s", "default", [self.device("a", name="pi", tags=["t"])])
        self.assertEqual(again["devices"][0], made["devices"][1], "the same device, the same name")
        self.assertNotEqual(again["worker"], made["worker"])
        self.assertEqual(self.column("devices", "tags", "key = 'a'"), [["t"]])
        self.assertEqual(self.column("classes", "class, target"), [CLASS])
        stored = bytes(self.column("workers", "secret_sha256")[0])
        self.assertNotIn(made["secret"].encode(), stored)

    def test_a_device_has_the_tags_of_all_its_workers(self):
        desk, lab = self.worker(tags=["desk", "fast"]), self.worker(login="wil", tags=["lab", "fast"])
        self.assertEqual(self.column("devices", "tags"), [["desk", "fast", "lab"]])
        jobs = self.submitted(needs=["desk"]) + self.submitted(needs=["lab"])
        for worker, job in zip((lab, desk), jobs):
            self.assertEqual(worker.claimed(), [job], "who comes first does what either is asked for")
            worker.post(job, 0, [ok(), ok()])
        lab.leave()
        self.assertEqual(self.column("devices", "tags"), [["desk", "fast"]])
        waits = self.submitted(needs=["lab"])
        self.assertIsNone(desk.claim())
        lab = self.worker(login="wil", tags=["lab"])
        self.assertEqual(desk.claimed(), waits)
        # One that was killed does not say so; its tags go when another one comes, and return with it.
        self.change("UPDATE fleet.workers SET seen = seen - interval '1 h' WHERE id = %s", desk.id)
        third = self.worker(tags=["bench"])
        self.assertEqual(self.column("devices", "tags"), [["bench", "lab"]])
        desk.renew()
        self.assertEqual(self.column("devices", "tags"), [["bench", "desk", "fast", "lab"]])
        for worker in (lab, third, desk):
            worker.leave()
        self.assertEqual(self.column("devices", "state"), ["off"])
        self.assertEqual(self.column("devices", "tags"), [["desk", "fast"]], "who asks for them hears that they are off")

    def test_bad_devices(self):
        for bad, code, text in (({"key": ""}, "TW400", "needs a key"), ({"name": None}, "TW400", "needs a name"),
                                ({"class": "c" * 300}, "TW400", "needs a class"), ({"tags": "lab"}, "TW400", "too large"),
                                ({"emulated": "perhaps"}, "TW400", "invalid input"),
                                ({"target": "cpu:other"}, "TW409", "has the target")):  # fmt: skip
            self.worker("first")
            with self.subTest(bad=str(bad)[:40]), self.refused(code, text):
                self.wes.enroll("h", "p", "c", "s", "default", [self.device(**bad)])
        with self.refused("TW404"):
            self.worker(pool="attic")
        with self.refused("TW400"):
            self.wes.enroll("h", "p", "c", "s", "default", Json({}))
        self.assertEqual(self.column("devices", "key"), ["first"])

    def test_a_leased_device_does_not_become_another(self):
        self.submitted()
        self.worker().claim()
        with self.refused("TW409", "at work as"):
            self.worker(**{"class": "cpu:znver5/1", "target": "cpu:znver5"})
        self.worker(tags=["new"])

    def test_a_device_of_another_pool(self):
        self.keeper.pool_set("lab")
        self.keeper.member_set("lab", "wil", "serve", "*")
        self.worker()
        self.keeper.member_set("default", "wil", "serve", None)
        with self.refused("TW403", "another pool"):
            self.worker(login="wil", pool="lab")

    def test_claim(self):
        a, b, c = self.submitted(3, payload={"func": "f"}, key="k", signature="s", limit_s=7, kind="run", n=1, compiler="cc 1")
        run = str(self.column("runs", "id")[0])
        worker = self.worker()
        lease = worker.claim(2)
        self.assertEqual(lease["seconds"], 30)
        self.assertEqual(lease["jobs"][0], {"id": a, "kind": "run", "run": run, "login": "ann", "payload": {"func": "f"}, "limit_s": 7,
                                            "n": 1, "next": 0, "blobs": [], "compiler": "cc 1", "signature": "s", "key": "k"})  # fmt: skip
        self.assertEqual([j["id"] for j in lease["jobs"]], [a, b])
        self.assertEqual(self.column("jobs", "token", "state = 'leased'"), [lease["token"]] * 2)
        self.assertEqual(self.column("devices", "token"), [lease["token"]])
        self.assertEqual(self.state(c), "ready")
        self.assertIsNone(self.worker("e", compiler="cc 2").claim(), "of another version")
        self.assertIsNone(self.worker("f", login="wil").claim(9)["jobs"][1:] or None)
        self.check_invariants()

    def test_a_claim_that_finds_nothing_writes_nothing(self):
        """So it need not wait for the disk: idle workers ask all the time."""
        worker = self.worker()
        written = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL"
        self.wes.rows("BEGIN")
        self.assertIsNone(worker.claim())
        self.assertFalse(self.wes.one(written))
        job = self.submitted()
        self.assertEqual(worker.claimed(), job)
        self.assertTrue(self.wes.one(written))
        self.wes.rows("COMMIT")

    def test_a_device_that_changes_while_its_lines_are_looked_for(self):
        """Somebody reserves it just then: the job of another must not go there."""
        worker, job = self.worker(), self.submitted()[0]
        self.keeper.rows("CREATE OR REPLACE FUNCTION fleet.lines_for(d fleet.devices, compiler text) RETURNS TABLE (queue bigint, login text, "
                         "band smallint, low bigint, head timestamptz) LANGUAGE plpgsql AS $$ BEGIN "
                         "UPDATE devices v SET held_by = 'bob', held_until = clock_timestamp() + interval '1 min' WHERE v.held_by IS NULL; "
                         "RETURN QUERY SELECT l.queue, l.login, 1::smallint, l.low, clock_timestamp() FROM lines l; END $$")  # fmt: skip
        self.assertIsNone(worker.claim())
        self.assertEqual(self.state(job), "ready")
        self.assertEqual(worker.claimed(), [job], "the stand-in does not ask for whom it is")

    def test_a_lease_changes_no_index_of_devices(self):
        """Else each lease would write entries into all of them."""
        used = self.keeper.rows("SELECT DISTINCT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = "
                                "ANY (i.indkey) WHERE i.indrelid = 'fleet.devices'::regclass ORDER BY 1")  # fmt: skip
        self.assertEqual(used, [("id",), ("key",), ("name",), ("pool",)])
        self.assertEqual(self.keeper.one("SELECT count(*) FROM pg_index WHERE indrelid = 'fleet.devices'::regclass AND indpred IS NOT NULL"), 0)

    def test_at_most_eight(self):
        self.submitted(12)
        worker = self.worker()
        self.assertEqual(len(worker.claimed(100)), 8)
        worker.give_back()
        self.assertEqual(len(worker.claimed(0)), 1)

    def test_tokens_rise(self):
        self.submitted()
        tokens = []
        a, b = self.worker("a"), self.worker("b")
        for worker in (a, b, a, a, b):
            worker.claim()
            tokens.append(worker.token)
            worker.give_back()
        self.assertEqual(tokens, sorted(set(tokens)))

    def test_claim_again_after_a_lost_answer(self):
        jobs = self.submitted(3)
        worker, other = self.worker(), self.worker(login="wil")  # both reach the device
        lease = worker.claim(2)
        worker.post(jobs[0], 0, [ok()])
        self.assertIsNone(other.claim(), "the device is not free")
        again = worker.claim(2)
        self.assertEqual((again["token"], [(j["id"], j["next"]) for j in again["jobs"]]),
                         (lease["token"], [(jobs[0], 1), (jobs[1], 0)]))  # fmt: skip
        self.assertEqual(len(self.column("events", "seq", "what = 'claimed'")), 2)
        worker.claim()
        worker.claim()
        self.assertIsNone(worker.claim(), "who cannot do it shall lose it")
        self.assertEqual(self.expire(worker)["ended"], 1)
        self.check_invariants()

    def test_claim_again_without_what_was_cancelled(self):
        run = self.run_of()
        self.submitted(run=run)
        later = self.submitted()[0]
        worker = self.worker()
        worker.claim()
        self.ann.cancel(run)
        self.assertEqual(worker.claimed(), [later])
        self.check_invariants()

    def test_two_claims_at_once(self):
        """SKIP LOCKED: the second neither waits for the first nor gets the same."""
        self.submitted(1)
        second = self.submitted(1)[0]
        self.submitted(1)
        a, b = self.worker("a"), Worker(self.another("wes"), [self.device("b")])
        c = Worker(self.another("wes"), [self.device("a")])
        a.caller.connection.autocommit = False
        a.claim()
        self.assertEqual(b.claimed(), [second])
        self.assertIsNone(c.claim(), "the device is being claimed")
        a.caller.connection.commit()
        self.check_invariants()

    def test_many_claims_at_once(self):
        jobs = set(self.submitted(40, n=1))
        workers = [Worker(self.another("wes"), [self.device(f"d{i}")]) for i in range(6)]
        done, problems = [], []

        def work(worker):
            try:
                while lease := worker.claim(3):
                    for job in lease["jobs"]:
                        done.append(job["id"])
                        assert worker.answer(job["id"], 0, [ok()]) == "ok"
            except Exception as problem:  # noqa: BLE001
                problems.append(problem)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])
        self.assertEqual(sorted(done), sorted(jobs))
        self.check_invariants()

    def test_commits_wait_for_the_disk(self):
        """Also where the session says otherwise. Where a standby shall have it, too, it stays so."""
        run = self.run_of()
        worker = self.worker()
        job = self.job(n=1)
        calls = ((self.ann, lambda: self.ann.submit(run, [job])), (self.wes, worker.claim), (self.wes, worker.renew),
                 (self.wes, lambda: worker.post(job["id"], 0, [ok()])), (self.ann, lambda: self.ann.cancel(run)),
                 (self.ann, lambda: self.ann.tick()), (self.wes, worker.give_back))  # fmt: skip
        for given, expected in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
            for caller, call in calls:
                caller.rows(f"SET synchronous_commit = {given}")
                self.change("UPDATE fleet.ticks SET last = clock_timestamp() - interval '2 s'")
                caller.connection.autocommit = False
                call()
                self.assertEqual(caller.one("SELECT current_setting('synchronous_commit')"), expected)
                caller.connection.commit()
                self.assertEqual(caller.one("SELECT current_setting('synchronous_commit')"), given, "of the session")
                caller.connection.commit()
                caller.connection.autocommit = True
            job = self.job(n=1)
            run = self.run_of()

    def test_renew(self):
        self.submitted()
        worker = self.worker()
        self.assertFalse(worker.renew(0)["ok"], "an idle worker has no lease")
        worker.claim()
        self.change("UPDATE fleet.devices SET ends = ends - interval '20 s', renewed = renewed - interval '20 s'")
        self.assertEqual(worker.renew(), {"ok": True, "cancel": [], "drain": False, "yield": False})
        left = self.column("devices", "extract(epoch FROM ends - clock_timestamp())")[0]
        self.assertTrue(28 < left <= 30, left)
        self.assertFalse(worker.renew(worker.token + 1)["ok"])

    def test_only_tick_ends_a_lease(self):
        """An end in the past ends nothing by itself: clocks step."""
        job = self.submitted()[0]
        worker, other = self.worker(), self.worker(login="wil")
        worker.claim()
        self.change("UPDATE fleet.devices SET ends = clock_timestamp() - interval '1 hour'")
        self.assertIsNone(other.claim())
        self.assertTrue(worker.renew()["ok"])
        self.change("UPDATE fleet.devices SET ends = clock_timestamp() - interval '1 hour'")
        self.assertEqual(worker.answer(job, 0, [ok()]), "ok")
        self.assertEqual(self.tick()["ended"], 0)

    def test_give_back(self):
        jobs = self.submitted(2)
        worker = self.worker()
        worker.claim(2)
        worker.post(jobs[0], 0, [ok()])
        self.assertEqual(worker.give_back(), {"ok": True, "drain": False})
        self.assertEqual(worker.give_back(), {"ok": False, "drain": False})
        self.assertEqual([self.state(j) for j in jobs], ["ready", "ready"])
        lease = worker.claim(2)
        self.assertEqual([(j["id"], j["next"]) for j in lease["jobs"]], [(jobs[0], 1), (jobs[1], 0)])
        self.assertEqual(self.column("jobs", "losses"), [0, 0])
        self.check_invariants()

    def test_leave(self):
        job = self.submitted()[0]
        worker, other = self.worker(), self.worker(login="wil")
        worker.claim()
        worker.leave()
        self.assertEqual(self.state(job), "ready")
        self.assertEqual(self.column("jobs", "losses"), [0])
        self.assertEqual(self.column("devices", "state"), ["free"], "another worker reaches it")
        with self.refused("TW404"):
            worker.claim()
        other.leave()
        self.assertEqual(self.column("devices", "state"), ["off"])
        self.assertEqual(self.worker().claimed(), [job], "on again")
        self.check_invariants()

    def test_drain(self):
        job = self.submitted()[0]
        worker = self.worker()
        worker.claim()
        with self.refused("TW403"):
            self.change("GRANT EXECUTE ON FUNCTION fleet.drain TO mon")
            self.change("GRANT USAGE ON SCHEMA fleet TO mon")
            self.mon.drain(worker.id)
        self.keeper.drain(worker.id)
        self.assertTrue(worker.renew()["drain"])
        self.assertTrue(worker.post(job, 0, [ok()])["drain"])
        self.assertTrue(worker.give_back()["drain"])
        self.assertEqual(worker.claim(), {"drain": True})
        self.assertTrue(worker.renew(0)["drain"])
        with self.refused("TW404"):
            self.keeper.drain(new_id())


class Losses(FleetCase):
    def lose(self, *workers):
        """Leases that end by time, one after the other; what the last tick said."""
        for worker in workers:
            self.assertIsNotNone(worker.claim())
            said = self.expire(worker)
        return said

    def test_a_lost_lease(self):
        jobs = self.submitted(2, n=3)
        later = self.submitted(1)[0]
        worker = self.worker()
        worker.claim(2)
        worker.post(jobs[0], 0, [ok()])
        self.assertEqual(self.expire(worker), {"ended": 1, "moved_ms": 0})
        self.assertEqual([self.state(j) for j in jobs], ["ready", "ready"])
        self.assertEqual(self.column("jobs", "losses", "true ORDER BY seq"), [1, 0, 0], "only the first one ran")
        self.assertEqual(self.keeper.rows("SELECT job::text, item FROM fleet.suspects"), [(jobs[0], 1)])
        lease = worker.claim(8)
        self.assertEqual([j["id"] for j in lease["jobs"]], [*jobs, later], "at their old places")
        self.assertEqual(lease["jobs"][0]["next"], 1)
        self.check_invariants()

    def test_a_lease_that_is_lost_is_stale(self):
        job = self.submitted()[0]
        worker, other = self.worker(), self.worker("e", login="wil")
        token = worker.claim()["token"]
        self.expire(worker)
        self.assertFalse(worker.renew(token)["ok"])
        self.assertEqual(worker.answer(job, 0, [ok()], token=token), "stale")
        other.claim()
        self.assertEqual(worker.answer(job, 0, [ok()], token=token), "stale", "also while another has the job")
        self.assertEqual(worker.answer(job, 0, [ok()], token=other.token), "stale")
        self.assertEqual(self.column("results", "item"), [])
        self.assertEqual(self.column("records", "id"), [])
        self.assertEqual(self.keeper.rows("SELECT job::text, token, from_item FROM fleet.late ORDER BY id LIMIT 1"), [(job, token, 0)])
        worker.claim()
        self.assertFalse(worker.give_back(token)["ok"])
        self.assertEqual(other.answer(job, 0, [ok()]), "ok")

    def test_a_stale_token_on_a_device_that_another_has(self):
        """Two workers reach one board: the first was stopped, its lease ended, the second has the same job now."""
        job = self.submitted()[0]
        worker, other = self.worker(), self.worker(login="wil")
        token = worker.claim()["token"]
        self.expire(worker)
        self.assertEqual(other.claimed(), [job])
        self.assertFalse(worker.renew(token)["ok"])
        self.assertFalse(worker.give_back(token)["ok"])
        self.assertEqual(worker.answer(job, 0, [ok()], token=token), "stale")
        worker.token = None
        self.assertIsNone(worker.claim())
        self.assertFalse(worker.give_back(other.token)["ok"], "a token is its worker's")
        # One worker again: its old token is as stale as anybody's.
        self.expire(other)
        first = other.token
        self.assertEqual(other.claimed(), [job])
        self.assertFalse(other.renew(first)["ok"])
        self.assertFalse(other.give_back(first)["ok"])
        self.assertEqual(other.answer(job, 0, [ok()], token=first), "stale")
        self.assertEqual(other.answer(job, 0, [ok()]), "ok")
        self.assertEqual(self.column("results", "token"), [other.token])

    def test_a_job_of_another_lease(self):
        first, second = self.submitted(2)
        a, b = self.worker("a"), self.worker("b")
        a.claim()
        b.claim()
        self.assertEqual(b.answer(first, 0, [ok()]), "stale")
        self.assertEqual(self.column("results", "item"), [])
        self.assertEqual(b.answer(second, 0, [ok()]), "ok", "its own lease goes on")

    def test_three_losses(self):
        job = self.submitted(n=3)[0]
        a, b = self.worker("a"), self.worker("b")
        a.claim()
        a.post(job, 0, [ok()])
        self.expire(a)
        self.lose(a)
        self.assertIsNone(a.claim(), "another device shall try it")
        self.lose(b)
        self.assertEqual(self.keeper.rows("SELECT item, outcome, reason FROM fleet.results ORDER BY item"),
                         [(0, "ok", ""), (1, "lost", "3 workers ended while it ran")])  # fmt: skip
        lease = a.claim()
        self.assertEqual(lease["jobs"][0]["next"], 2, "the run goes on")
        self.assertEqual(a.answer(job, 2, [ok()]), "ok")
        self.assertEqual(self.state(job), "done")
        self.assertEqual(self.column("records", "item", "true ORDER BY item"), [0, 2], "a lost item is not measured")
        self.assertEqual(self.column("suspects", "item"), [])
        self.check_invariants()

    def test_three_losses_of_the_last_item(self):
        job = self.submitted(n=1)[0]
        worker = self.worker()
        self.lose(worker, worker, worker)  # the only device
        self.assertEqual(self.state(job), "done")
        self.assertEqual(worker.answer(job, 0, [ok()]), "stale", "its item was given up, not posted")

    def test_three_losses_of_a_job_without_items(self):
        job = self.submitted(n=0, kind="run")[0]
        worker = self.worker()
        self.lose(worker, worker)
        self.assertEqual(self.state(job), "ready")
        self.lose(worker)
        self.assertEqual(self.state(job), "dead")
        self.assertEqual(self.column("ended", "reason"), ["3 workers ended while it ran"])
        self.check_invariants()

    def test_two_devices_where_there_are_two(self):
        """Three losses on one device say nothing of the item, if another device works."""
        job = self.submitted(n=1)[0]
        worker = self.worker("a")
        self.lose(worker, worker)
        self.worker("b")
        self.change("UPDATE fleet.jobs SET losses = 0")  # so that it is given to `a` once more
        self.lose(worker)
        self.assertEqual(self.state(job), "ready")

    def test_five_losses_in_a_row(self):
        worker = self.worker()
        for round in range(5):
            self.assertEqual(self.column("devices", "state"), ["free"])
            self.submitted(n=1)
            self.change("UPDATE fleet.jobs SET n = 9")  # never three of one item
            self.change("DELETE FROM fleet.suspects")
            self.lose(worker)
        self.assertEqual(self.column("devices", "state"), ["suspect"])
        self.submitted()
        self.assertIsNone(worker.claim())
        self.worker()
        self.assertEqual(self.column("devices", "state"), ["suspect"], "enrolling does not clear it")
        self.keeper.clear_device("d")
        self.assertIsNotNone(worker.claim())

    def test_a_result_ends_the_row(self):
        worker = self.worker()
        for round in range(6):
            job = self.submitted(n=2)[0]
            self.change("DELETE FROM fleet.suspects")
            lease = worker.claim(1)
            if round == 3:
                worker.post(lease["jobs"][0]["id"], lease["jobs"][0]["next"], [ok()])
            self.expire(worker)
        self.assertEqual(self.column("devices", "state, losses"), ["free"])
        self.assertEqual(self.column("devices", "losses"), [3])
        self.assertEqual(self.state(job), "ready")
