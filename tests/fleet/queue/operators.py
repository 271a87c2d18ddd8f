"""What the owner and monitors call: logins, pools, holds, suspects, status, log, metrics, what is removed."""

import contextlib
import hashlib
import pathlib

from case import CLASS, TARGET, FleetCase, new_id, ok, server
import case


class Operators(FleetCase):
    def test_only_the_owner(self):
        for call in ("login_set('bob', 'user')", "pool_set('x')", "member_set('default', 'bob', 'submit', '*')",
                     "drain(gen_random_uuid())", "clear_device('d')", "gc()"):  # fmt: skip
            self.change(f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fleet TO mon")
            with self.subTest(call=call), self.refused("TW403", "only the owner"):
                self.mon.rows(f"SELECT fleet.{call}")

    def test_login_set(self):
        with self.refused("TW404", "no login zoe"):
            self.keeper.login_set("zoe", "user")
        for bad in (("bob", "king"), ("bob", None, 0), ("bob", None, None, -1), ("bob", None, None, None, -1)):
            with self.refused("TW400"):
                self.keeper.login_set(*bad)
        self.keeper.login_set("bob", None, 3)
        self.assertEqual(self.keeper.rows("SELECT kind, weight, max_ready FROM fleet.logins WHERE login = 'bob'"), [("user", 3, 20000)])
        self.keeper.login_set("bob", "worker")
        try:
            with self.refused("42501"):
                self.bob.look(new_id(), {})
            self.bob.tick()
        finally:
            self.keeper.login_set("bob", "user")
        self.bob.new_run(new_id(), "x", False)
        with self.refused("42501"):
            self.worker(login="bob")

    def test_pool_set(self):
        self.keeper.pool_set("lab")
        self.keeper.pool_set("lab", 60)
        self.keeper.pool_set("lab")
        self.assertEqual(self.column("pools", "max_seconds", "pool = 'lab'"), [60])
        for bad in (("lab", 0), ("", 5), (None, 5), ("x" * 64, 5)):
            with self.refused("TW400"):
                self.keeper.pool_set(*bad)
        with self.refused("TW404"):
            self.keeper.member_set("attic", "ann", "submit", "*")
        with self.refused("TW400"):
            self.keeper.member_set("lab", "ann", "rule", "*")

    def test_hold(self):
        worker = self.worker()
        self.assertEqual(self.ann.hold("d", 60)["held_by"], "ann")
        with self.refused("TW409", "ann holds the device d"):
            self.bob.hold("d", 60)
        with self.refused("TW403"):
            self.bob.release_hold("d")
        theirs = self.submitted(login="bob")[0]
        self.assertIsNone(worker.claim())
        hers = self.submitted()[0]
        self.assertEqual(worker.claimed(), [hers])
        worker.give_back()
        self.ann.release_hold("d")
        self.ann.cancel(str(self.column("jobs", "run", f"id = '{hers}'")[0]))
        self.assertEqual(worker.claimed(), [theirs])
        with self.refused("TW404", "there are d"):
            self.ann.hold("e", 60)
        for bad in (0, -1, 601, "NaN", None):
            with self.refused("TW400"):
                self.ann.hold("d", bad)
        self.keeper.member_set("default", "bob", "submit", None)
        with self.refused("TW403"):
            self.bob.hold("d", 60)
        self.keeper.hold("d", 86400)
        self.keeper.release_hold("d")

    def test_devices(self):
        self.submitted(3)
        worker = self.worker("a", tags=["lab"])
        worker.claim()
        self.ann.hold("a", 60)
        seen = self.ann.devices()[0]
        self.assertTrue(0 < seen.pop("ends_s") <= 30 and 0 < seen.pop("held_s") <= 60 and 0 <= seen.pop("seen_s") < 5)
        self.assertEqual(seen, {"name": "a", "key": "a", "pool": "default", "class": CLASS, "target": TARGET, "tags": ["lab"],
                                "facts": {}, "emulated": False, "state": "leased", "reason": "", "worker": worker.id, "host": "host",
                                "program": "tilewright 0.1", "compiler": "cc 1", "draining": False, "login_of_lease": "ann",
                                "held_by": "ann", "waiting": 2})  # fmt: skip
        worker.give_back()
        self.change("UPDATE fleet.workers SET seen = seen - interval '90 s'")
        seen = self.mon.devices()[0]
        self.assertEqual(seen["state"], "off", "its worker is silent")
        self.assertIn("seen 9", seen["reason"])
        worker.claim()
        self.assertLess(self.ann.devices()[0]["seen_s"], 5, "a call says that it is there")
        self.keeper.member_set("default", "bob", "submit", None)
        self.assertEqual(self.bob.devices(), [])

    def test_devices_of_two_workers(self):
        """A device shows the worker that has it, else the one that was heard of last."""
        first, second = self.worker("a"), self.worker("a", login="wil")
        self.change("UPDATE fleet.workers SET seen = seen - interval '20 s' WHERE id = %s", first.id)
        self.assertEqual([d["worker"] for d in self.ann.devices()], [second.id])
        self.submitted()
        self.assertIsNotNone(first.claim())
        self.change("UPDATE fleet.workers SET seen = seen - interval '20 s' WHERE id = %s", first.id)
        self.assertEqual([d["worker"] for d in self.ann.devices()], [first.id])
        second.leave()
        first.give_back()
        first.leave()
        seen = self.ann.devices()[0]
        self.assertEqual((seen["worker"], seen["seen_s"], seen["state"], seen["waiting"]), (None, None, "off", 1))

    def test_devices_reads_each_row_once(self):
        """However many there are: 100 workers with a device each, and 50 jobs that all of them could take."""
        for i in range(100):
            self.worker(f"d{i}")
        self.submitted(50)
        rows = ("SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0)::int "
                "FROM pg_stat_xact_user_tables WHERE schemaname = 'fleet'")  # fmt: skip
        caller = self.another("keeper")
        caller.connection.autocommit = False
        before = caller.one(rows)
        seen = caller.devices()
        read = caller.one(rows) - before
        self.assertEqual((len(seen), {d["waiting"] for d in seen}), (100, {50}))
        # Devices twice, workers, what they reach, what serves, jobs; and a few of the caller's.
        self.assertLess(read, 2 * 100 + 3 * 100 + 50 + 20)

    def test_who(self):
        jobs = self.submitted(2)
        self.submitted(login="bob")
        worker = self.worker()
        worker.claim()
        who = self.ann.who("d")
        self.assertEqual((who["login_of_lease"], [j["id"] for j in who["jobs"]]), ("ann", jobs[:1]))
        self.assertEqual([(line["login"], line["ready"]) for line in who["line"]], [("ann", 1), ("bob", 1)])
        with self.refused("TW404"):
            self.mon.who("x")

    def test_status(self):
        run = self.run_of()
        jobs = self.submitted(2, run=run)
        self.submitted(1, run=run, after=[jobs[0]])
        worker = self.worker()
        worker.claim()
        self.expire(worker)
        worker.post(jobs[0], 0, [ok()], token=1)
        worker.claim()
        status = self.mon.status()
        self.assertEqual({**status["queues"][0], "oldest_s": 0},
                         {"pool": "default", "class": CLASS, "ready": 1, "waiting": 1, "leased": 1, "oldest_s": 0})  # fmt: skip
        self.assertEqual((status["lost"], status["late"], len(status["devices"])), (1, 1, 1))
        shown = status["runs"][0]
        self.assertEqual((shown["id"], shown["command"], shown["ready"], shown["leased"]), (run, None, 1, 1), "a monitor sees no commands")
        self.assertEqual(self.ann.status()["runs"][0]["command"], "tune")
        self.assertEqual(self.bob.status()["runs"], [])

    def test_log(self):
        job = self.submitted(n=1)[0]
        worker = self.worker()
        worker.claim()
        worker.post(job, 0, [ok()])
        rows = self.mon.rows("SELECT seq, what, device, note FROM fleet.log(0, 1000)")
        self.assertEqual([r[1:] for r in rows if r[1] not in ("login", "enrolled")],
                         [("submitted", None, ""), ("claimed", "d", ""), ("posted", "d", "0 to 0"), ("ended", "d", "done"),
                          ("freed", "d", "done")])  # fmt: skip
        self.assertEqual(self.mon.rows("SELECT seq FROM fleet.log(%s, 1)", (rows[-2][0],)), [(rows[-1][0],)])

    def test_metrics(self):
        self.submitted(2)
        self.worker().claim()
        text = self.mon.metrics()
        for line in ('tilewright_jobs{state="ready"} 1', 'tilewright_jobs{state="leased"} 1', 'tilewright_devices{state="leased"} 1',
                     "tilewright_lost_leases_hour 0", "tilewright_blob_bytes 0", "tilewright_epoch 1",
                     "# TYPE tilewright_clock_steps_total counter"):  # fmt: skip
            self.assertIn(line + "\n", text)
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) tilewright_\w+ .+|tilewright_\w+(\{\w+="[^"]*"\})? [0-9.e+-]+)$')

    def test_a_server_that_forgets_is_refused(self):
        run = self.run_of()
        worker = self.worker()
        with contextlib.closing(case.server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("ALTER SYSTEM SET fsync = off")
            cursor.execute("SELECT pg_reload_conf()")
        try:
            for _ in range(500):
                if self.another("owner").one("SELECT current_setting('fsync')") == "off":
                    break
            for call in (lambda: self.another("ann").submit(run, [self.job()]), lambda: self.another("ann").check_server(),
                         lambda: self.another("wes").claim(worker.id, worker.secret, worker.device, 1, ["x"])):  # fmt: skip
                with self.refused("TW409", "fsync = off"):
                    call()
        finally:
            with contextlib.closing(case.server.connect()) as connection, connection.cursor() as cursor:
                cursor.execute("ALTER SYSTEM RESET fsync")
                cursor.execute("SELECT pg_reload_conf()")
            for _ in range(500):
                if self.another("owner").one("SELECT current_setting('fsync')") == "on":
                    break


class Old(FleetCase):
    """gc(): what goes, and what stays."""

    def blob(self, data):
        sha = hashlib.sha256(data).hexdigest()
        self.ann.blob_begin(sha, len(data), 1)
        self.ann.blob_put(sha, 0, data)
        self.ann.blob_finish(sha)
        return sha

    def test_gc(self):
        self.assertEqual(set(self.keeper.gc().values()), {0})
        named, free, recent = self.blob(b"named"), self.blob(b"free"), self.blob(b"recent")
        job = self.submitted(n=1, blobs=[{"sha256": named, "name": "w"}])[0]
        live = self.submitted(n=2)[0]
        worker = self.worker()
        worker.claim()
        worker.post(job, 0, [ok()])
        worker.claim()
        worker.post(live, 0, [ok()])
        self.assertEqual(worker.answer(live, 0, [ok()], token=1), "stale")
        self.change("UPDATE fleet.blobs SET used = used - interval '15 days' WHERE sha256 <> %s", recent)
        for table, column, days in (("results", "at", 8), ("late", "at", 8), ("ended", "ended", 13)):
            self.change(f"UPDATE fleet.{table} SET {column} = {column} - interval '{days} days'")
        counts = self.keeper.gc()
        self.assertEqual({k: v for k, v in counts.items() if v}, {"results": 1, "late": 1, "blobs": 1})
        self.assertEqual([str(j) for j in self.column("results", "job")], [live], "of a job that is not over")
        self.assertEqual(set(self.column("blobs", "sha256")), {named, recent})
        self.assertNotIn(free, self.column("blob_parts", "sha256"))
        for table, column in (("ended", "ended"), ("events", "at"), ("usage", "at"), ("runs", "seen"), ("queues", "used")):
            self.change(f"UPDATE fleet.{table} SET {column} = {column} - interval '31 days'")
        self.change("UPDATE fleet.usage SET folded = true")
        counts = self.keeper.gc()
        self.assertEqual((counts["ended"], counts["usage"], counts["blobs"], counts["queues"]), (1, 1, 1, 0))
        self.assertEqual(self.column("events", "seq"), [])
        self.assertEqual(len(self.column("runs", "id")), 2 - self.keeper.gc()["runs"] - counts["runs"])
        self.assertEqual(self.state(live), "leased")

    def test_gc_of_queues_and_workers(self):
        job = self.submitted(n=1)[0]
        worker = self.worker()
        worker.claim()
        worker.post(job, 0, [ok()])
        self.tick()
        self.change("UPDATE fleet.queues SET used = used - interval '31 days'")
        self.change("UPDATE fleet.workers SET seen = seen - interval '2 days'")
        self.assertEqual(self.keeper.gc()["queues"], 1)
        self.assertEqual(self.column("workers", "state"), ["gone"])
        self.assertEqual(self.column("devices", "state"), ["off"])
        self.change("UPDATE fleet.workers SET seen = seen - interval '30 days'")
        self.assertEqual(self.keeper.gc()["workers"], 1)
        job = self.submitted()
        self.assertEqual(self.worker().claimed(), job)

    def test_gc_of_records(self):
        base = {"workload": "w", "target": "t", "compiler": "c", "outcome": "ok", "kind": "schedule"}
        self.ann.records_add([{**base, "cost": 100 + i, "schedule": str(i)} for i in range(60)] +
                             [{**base, "cost": 500, "kind": "race"}, {**base, "outcome": "timeout"}], {})  # fmt: skip
        self.assertEqual(self.keeper.gc()["records"], 0)
        self.change("UPDATE fleet.records SET made = made - interval '7 months'")
        self.assertEqual(self.keeper.gc()["records"], 11)
        self.assertEqual(max(self.column("records", "cost", "kind = 'schedule'")), 149)
        self.assertEqual(len(self.column("records", "id", "kind = 'race'")), 1)


class Server(FleetCase):
    def test_kill_and_restart(self):
        """What was acknowledged is there after kill -9, and a token is not drawn again."""
        job = self.submitted(n=2)[0]
        worker = self.worker()
        worker.claim()
        token = worker.token
        self.assertEqual(worker.answer(job, 0, [ok()]), "ok")
        case.server.kill()
        self.assertFalse(case.server.running())
        case.server.start()
        for caller in self.callers.values():
            caller.connection.close()
        self.callers.clear()
        worker.caller = self.wes
        self.assertEqual(worker.answer(job, 0, [ok()]), "known")
        self.assertTrue(worker.renew()["ok"])
        worker.give_back()
        worker.claim()
        self.assertGreater(worker.token, token)
        self.check_invariants()

    def test_migrations(self):
        files = sorted(p.name for p in pathlib.Path(case.FOLDER.parents[1], "src/tilewright/fleet/schema").glob("[0-9]*.sql"))
        self.assertEqual([f"{v:04}" for v in self.column("migrations", "version", "true ORDER BY version")], [f[:4] for f in files])
        before = len(self.column("migrations", "version"))
        case.server.apply_schema(self.database, "keeper")
        self.assertEqual(len(self.column("migrations", "version")), before)
        self.assertEqual(set(self.column("migrations", "by")), {"keeper"})
        owners = {row[0] for row in self.keeper.rows("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = "
                                                     "'fleet'::regnamespace")}  # fmt: skip
        self.assertEqual(owners, {"keeper"})
