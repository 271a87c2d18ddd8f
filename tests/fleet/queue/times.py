"""Time: tick(), and clocks that step. Steps are made by moving what the tables say the other way."""

import threading

from case import FleetCase, new_id, ok

STAMPS = (("ticks", "last"), ("devices", "since"), ("devices", "renewed"), ("devices", "ends"), ("devices", "held_until"),
          ("runs", "seen"), ("runs", "made"), ("jobs", "ready_at"), ("workers", "seen"))  # fmt: skip


class Times(FleetCase):
    def step(self, seconds):
        """As if the server's clock were set forward by so much."""
        for table, column in STAMPS:
            self.change(f"UPDATE fleet.{table} SET {column} = {column} - %s * interval '1 s'", seconds)

    def left(self, worker):
        return float(self.column("devices", "extract(epoch FROM ends - clock_timestamp())", f"id = {worker.device}")[0])

    def leased(self, key="d"):
        self.submitted()
        worker = self.worker(key)
        worker.claim()
        return worker

    def test_a_tick_a_second(self):
        worker = self.leased()
        self.change("UPDATE fleet.devices SET ends = clock_timestamp() - interval '1 s'")
        self.change("UPDATE fleet.ticks SET last = clock_timestamp()")
        self.assertEqual(self.ann.tick(), {"ended": 0, "moved_ms": 0}, "too soon")
        self.assertEqual(self.tick(1.1, "wes"), {"ended": 1, "moved_ms": 0})
        self.assertFalse(worker.renew()["ok"])

    def test_one_tick_at_a_time(self):
        worker = self.leased()
        self.change("UPDATE fleet.devices SET ends = clock_timestamp() - interval '1 s'")
        self.change("UPDATE fleet.ticks SET last = clock_timestamp() - interval '2 s'")
        self.ann.connection.autocommit = False
        self.assertEqual(self.ann.tick()["ended"], 1)
        self.bob.rows("SET lock_timeout = '2s'")
        self.assertEqual(self.bob.tick()["ended"], 0, "and it does not wait")
        self.ann.connection.rollback()
        self.ann.connection.autocommit = True
        self.assertTrue(worker.renew()["ok"], "that tick was rolled back")

    def test_a_lease_that_is_renewed_just_now_is_passed_over(self):
        worker = self.leased()
        self.change("UPDATE fleet.devices SET ends = clock_timestamp() - interval '1 s'")
        self.wes.connection.autocommit = False
        worker.renew()
        self.assertEqual(self.tick()["ended"], 0)
        self.wes.connection.commit()
        self.assertEqual(self.tick()["ended"], 0)
        self.wes.connection.autocommit = True

    def test_the_server_was_down(self):
        worker = self.leased()
        self.change("UPDATE fleet.devices SET ends = ends - interval '10 s', renewed = renewed - interval '10 s'")
        self.step(600)
        said = self.ann.tick()
        self.assertEqual(said["ended"], 0)
        self.assertAlmostEqual(said["moved_ms"], 600000, delta=3000)
        self.assertTrue(17 < self.left(worker) < 20, self.left(worker))
        self.assertTrue(worker.renew()["ok"])
        self.assertEqual(self.column("ticks", "moves"), [1])

    def test_the_clock_steps_forward(self):
        old, new = self.leased("a"), self.worker("b")
        self.step(3600)
        self.submitted()
        new.claim()  # after the step, before any tick
        self.assertAlmostEqual(self.ann.tick()["moved_ms"], 3600000, delta=3000)
        self.assertTrue(28 < self.left(old) <= 30, self.left(old))
        self.assertTrue(28 < self.left(new) <= 30, self.left(new))

    def test_the_clock_steps_back(self):
        old, new = self.leased("a"), self.worker("b")
        self.step(-3600)
        self.submitted()
        new.claim()
        self.assertAlmostEqual(self.ann.tick()["moved_ms"], -3600000, delta=3000)
        for worker in (old, new):
            self.assertTrue(28 < self.left(worker) <= 30, self.left(worker))
        # A worker that is gone loses its lease in time all the same.
        self.change("UPDATE fleet.devices SET ends = ends - interval '31 s', renewed = renewed - interval '31 s'")
        self.assertEqual(self.tick()["ended"], 2)

    def test_usage_of_a_lease_beside_a_step(self):
        for seconds in (3600, -3600):
            worker = self.leased(f"d{seconds}")
            self.step(seconds)
            worker.give_back()
            self.tick()
        self.assertTrue(all(0 <= s <= 31 for s in self.column("usage", "seconds")), self.column("usage", "seconds"))

    def test_ticks_that_are_never_within_five_seconds(self):
        """A dead worker's lease ends nevertheless."""
        worker = self.leased()
        for round in range(60):
            self.step(10)
            if self.ann.tick()["ended"]:
                break
        self.assertTrue(20 < round < 40, round)
        self.assertFalse(worker.renew()["ok"])

    def test_a_small_gap_moves_nothing(self):
        worker = self.leased()
        self.step(3)
        self.assertEqual(self.ann.tick()["moved_ms"], 0)
        self.assertLess(self.left(worker), 27.1)

    def test_short_leases(self):
        self.change("UPDATE fleet.meta SET lease_s = 1")
        self.submitted()
        worker = self.worker()
        self.assertEqual(worker.claim()["seconds"], 1)
        self.assertEqual(self.column("devices", "extract(epoch FROM ends - renewed)"), [1])
        self.step(1.2)
        self.assertEqual(self.ann.tick(), {"ended": 1, "moved_ms": 0})

    def test_a_standby_took_over(self):
        job = self.submitted()[0]
        worker = self.worker()
        worker.claim()
        token = worker.token
        self.change("UPDATE fleet.meta SET timeline = timeline - 1")
        self.assertIsNone(worker.claim(), "not before the leases are void")
        self.assertFalse(worker.renew(token)["ok"])
        self.assertEqual(worker.answer(job, 0, [ok()], token=token), "stale")
        self.assertEqual(self.tick(0.01)["ended"], 1)
        self.assertEqual(self.ann.version()["epoch"], 2)
        self.assertEqual(self.column("jobs", "losses"), [0], "nobody's fault")
        self.keeper.rows("SELECT setval('fleet.tokens', 1)")  # as if the newest tokens were lost
        worker.claim()
        self.assertGreater(worker.token, token + 1000)
        self.check_invariants()

    def test_runs_that_nobody_looks_at(self):
        run, kept = self.run_of(), self.run_of(keep=True)
        a, b = self.submitted(2, run=run)
        c = self.submitted(run=kept)[0]
        worker = self.worker()
        worker.claim()
        self.change("UPDATE fleet.runs SET seen = seen - interval '119 s'")
        self.tick()
        self.assertEqual(self.state(b), "ready")
        self.change("UPDATE fleet.runs SET seen = seen - interval '3 s'")
        self.tick()
        self.assertEqual([self.state(j) for j in (a, b, c)], ["leased", "cancelled", "ready"])
        self.assertEqual(worker.answer(a, 0, [ok(), ok()]), "ok", "what has begun goes on")
        # The submitter is back.
        self.ann.look(run, {})
        d = self.submitted(run=run)[0]
        self.tick()
        self.assertEqual(self.state(d), "ready")
        self.change("UPDATE fleet.runs SET seen = seen - interval '122 s'")
        self.ann.look(run, {})
        self.tick()
        self.assertEqual(self.state(d), "ready", "a look counts")

    def test_runs_and_steps(self):
        run = self.run_of()
        job = self.submitted(run=run)[0]
        for seconds in (3600, -3600):
            self.step(seconds)
            self.ann.tick()
            self.assertEqual(self.state(job), "ready")
        self.change("UPDATE fleet.runs SET seen = seen - interval '122 s'")
        self.tick()
        self.assertEqual(self.state(job), "cancelled")

    def test_holds_end(self):
        self.worker()
        self.ann.hold("d", 60)
        self.step(3600)
        self.ann.tick()
        self.assertEqual(self.column("devices", "held_by"), ["ann"], "the clock stepped")
        self.change("UPDATE fleet.devices SET held_until = clock_timestamp()")
        self.tick()
        self.assertEqual(self.column("devices", "held_by"), [None])

    def test_lines(self):
        """tick() moves `low` and marks empty lines; what comes back or is submitted meanwhile is found."""
        worker = self.worker()
        jobs = self.submitted(1, n=1)
        worker.claim()
        self.tick()
        self.assertEqual(self.column("lines", "idle"), [True])
        worker.give_back()
        self.assertEqual(self.column("lines", "idle"), [False])
        self.assertEqual(worker.claimed(), jobs)
        worker.post(jobs[0], 0, [ok()])
        self.tick()
        more = self.submitted(150, n=1)
        for _ in range(19):
            lease = worker.claim(8)
            for job in lease["jobs"]:
                worker.post(job["id"], 0, [ok()])
            if _ == 14:
                self.tick()
                self.check_invariants()
        self.assertIsNone(worker.claim())
        self.assertEqual({self.state(j) for j in more}, {"done"})
        self.tick()
        self.assertEqual(self.column("lines", "idle"), [True])
        self.check_invariants()

    def test_a_submit_while_lines_are_tidied(self):
        """tick() must not declare a line empty while a submit to it is about to commit."""
        self.submitted()
        self.worker().claim()
        run = self.run_of()
        ann = self.another("ann")
        ann.connection.autocommit = False
        ann.submit(run, [self.job()])
        ticker = threading.Thread(target=self.tick)
        ticker.start()
        ticker.join(10)
        self.assertFalse(ticker.is_alive(), "it does not wait")
        ann.connection.commit()
        self.check_invariants()
        self.assertIsNotNone(self.worker("e").claim())

    def test_anyone_ticks(self):
        for login in ("ann", "wes", "mon"):
            self.tick(login=login)
        self.assertIsNotNone(new_id())
