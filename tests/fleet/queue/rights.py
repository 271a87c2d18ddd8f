"""Who may do what: roles.txt, what a login does not see of another, and what workers cannot reach."""

import contextlib
import hashlib

import case
from case import CLASS, FOLDER, MIB, FleetCase, Worker, matrix, new_id, ok
from psycopg2 import errors


class Rights(FleetCase):
    def test_matrix(self):
        """roles.txt is what the catalogue says; queue_test.py --roles prints it."""
        self.assertEqual(matrix(), (FOLDER / "roles.txt").read_text())

    def test_no_table_is_readable(self):
        names = self.column("migrations", "1") and [
            row[0] for row in self.keeper.rows("SELECT relname FROM pg_class WHERE relnamespace = 'fleet'::regnamespace AND relkind = 'r'")]
        self.assertGreater(len(names), 25)
        for login in ("ann", "wes", "mon", "nobody"):
            for name in names:
                with self.assertRaises(errors.InsufficientPrivilege, msg=f"{login} {name}"):
                    getattr(self, login).rows(f"SELECT FROM fleet.{name}")

    def test_functions_have_a_fixed_search_path(self):
        """SECURITY DEFINER without one would run a table of the caller's."""
        loose = self.keeper.rows("SELECT proname FROM pg_proc WHERE pronamespace = 'fleet'::regnamespace AND prosecdef "
                                 "AND NOT 'search_path=fleet, pg_temp' = ANY (coalesce(proconfig, '{}'))")
        self.assertEqual(loose, [])
        # What a group may call without SECURITY DEFINER could do nothing.
        weak = self.keeper.rows("SELECT proname FROM pg_proc WHERE pronamespace = 'fleet'::regnamespace AND NOT prosecdef "
                                "AND (has_function_privilege('ann', oid, 'EXECUTE') OR has_function_privilege('wes', oid, 'EXECUTE'))")
        self.assertEqual(weak, [])

    def test_a_callers_tables_do_not_hide_ours(self):
        self.ann.rows("CREATE TEMP TABLE runs (id uuid, login text)")
        self.ann.rows("CREATE TEMP TABLE logins (login text, kind text, off boolean)")
        run = self.run_of()
        self.assertEqual(self.column("runs", "login", f"id = '{run}'"), ["ann"])

    def test_logins(self):
        with self.assertRaises(errors.InsufficientPrivilege):
            self.nobody.version()
        with self.refused("TW403", "it is a user"):
            self.change("GRANT tw_worker TO ann")  # a member of the group, but no login of that kind
            try:
                self.worker(login="ann")
            finally:
                self.change("REVOKE tw_worker FROM ann")
        self.keeper.login_set("ann", None, None, None, None, True)
        with self.refused("TW403", "switched off"):
            self.ann.version()
        self.change("DELETE FROM fleet.members WHERE login = 'bob'")
        self.change("DELETE FROM fleet.logins WHERE login = 'bob'")
        with self.refused("TW403", "does not know the login bob"):
            self.bob.version()

    def test_the_owner_is_all_of_it(self):
        for login in ("keeper", "owner"):  # the owner of the schema; a superuser
            caller = getattr(self, login)
            self.assertEqual(caller.version()["version"], 1)
            run = new_id()
            caller.new_run(run, "run", False)
            caller.submit(run, [self.job(n=1)])
            worker = Worker(caller, [self.device(login)])
            lease = worker.claim()
            self.assertEqual(worker.answer(lease["jobs"][0]["id"], 0, [ok()]), "ok")
            self.assertIn("tilewright_jobs", caller.metrics())

    def test_pools(self):
        self.keeper.pool_set("lab", 5)
        with self.refused("TW403", "ann may not submit to the pool lab"):
            self.submitted(pool="lab", limit_s=1)
        with self.refused("TW403", "may not serve the pool lab"):
            self.worker(pool="lab")
        self.keeper.member_set("lab", "wes", "serve", "vta:*")
        with self.refused("TW403"):
            self.worker(pool="lab")
        self.keeper.member_set("lab", "wes", "serve", "cpu:*")
        self.worker("lab1", pool="lab")
        self.keeper.member_set("lab", "ann", "submit", "vta:*")
        with self.refused("TW403", "for " + CLASS):
            self.submitted(pool="lab", limit_s=1)
        self.keeper.member_set("lab", "ann", "submit", "*")
        with self.refused("TW400", "at most 5 s"):
            self.submitted(pool="lab", limit_s=6)
        self.submitted(pool="lab", limit_s=5)
        self.keeper.member_set("lab", "ann", "submit", None)
        with self.refused("TW403"):
            self.submitted(pool="lab", limit_s=1)
        with self.refused("TW404", "no pool attic"):
            self.submitted(pool="attic")

    def test_patterns_are_no_wildcards_of_sql(self):
        self.keeper.member_set("default", "wes", "serve", "cpu:znver4_8f3a")
        with self.refused("TW403"):
            self.worker()
        self.keeper.member_set("default", "wes", "serve", "%")
        with self.refused("TW403"):
            self.worker()

    def test_runs_are_ones_own(self):
        run = self.run_of("ann")
        job = self.submitted(run=run)[0]
        for call in (lambda: self.bob.look(run, {}), lambda: self.bob.cancel(run), lambda: self.bob.close_run(run),
                     lambda: self.bob.submit(run, [self.job()])):  # fmt: skip
            with self.refused("TW404"):
                call()
        with self.refused("TW409", "is taken"):
            self.bob.new_run(run, "x", False)
        other = self.run_of("bob")
        with self.refused("TW409", "is taken"):
            self.bob.submit(other, [self.job(id=job)])
        self.assertEqual(self.bob.look(other, {job: 0})["jobs"], [])
        self.assertEqual(len(self.keeper.look(run, {})["jobs"]), 1, "the owner sees all")

    def test_views(self):
        run = self.run_of("ann")
        jobs = self.submitted(2, run=run, n=1)
        worker = self.worker()
        self.assertEqual(worker.answer(worker.claimed()[0], 0, [ok(7)]), "ok")
        self.assertEqual({str(r[0]) for r in self.ann.rows("SELECT id FROM fleet.my_jobs")}, set(jobs))
        self.assertEqual(self.ann.rows("SELECT cost FROM fleet.my_results"), [(7,)])
        self.assertEqual(self.ann.rows("SELECT command FROM fleet.my_runs"), [("tune",)])
        for view in ("my_jobs", "my_results", "my_runs"):
            self.assertEqual(self.bob.rows(f"SELECT * FROM fleet.{view}"), [])
            with self.assertRaises(errors.InsufficientPrivilege):
                self.mon.rows(f"SELECT * FROM fleet.{view}")
        self.assertEqual(self.mon.rows("SELECT ready, leased FROM fleet.queue_counts"), [(1, 0)])
        self.assertTrue(all("security_barrier=true" in (row[0] or []) for row in self.keeper.rows(
            "SELECT reloptions FROM pg_class WHERE relnamespace = 'fleet'::regnamespace AND relkind = 'v'")))

    def test_a_worker_is_known_by_its_secret(self):
        worker = self.worker("a")
        other = self.worker("b")  # of the same login
        with self.refused("TW403"):
            self.wes.claim(worker.id, other.secret, worker.device, 1, ["x"])
        with self.refused("TW403"):
            self.wil.claim(worker.id, worker.secret, worker.device, 1, ["x"])
        with self.refused("TW403"):
            self.wes.rows("SELECT fleet.claim(%s, NULL, %s, 1, '{}')", (worker.id, worker.device))
        with self.refused("TW404", "does not reach"):
            worker.claim(device=other.device)
        self.submitted()
        lease = other.claim()
        self.assertFalse(worker.renew(lease["token"], other.device)["ok"], "somebody else's lease")
        self.assertFalse(worker.give_back(lease["token"], other.device)["ok"])
        self.assertEqual(worker.answer(lease["jobs"][0]["id"], 0, [ok()], token=lease["token"], device=other.device), "stale")
        self.assertEqual(self.state(lease["jobs"][0]["id"]), "leased")

    def test_a_worker_reads_only_what_its_job_names(self):
        """Others' blobs, payloads and targets."""
        data = {login: login.encode() * 10 for login in ("ann", "bob")}
        shas = {login: hashlib.sha256(d).hexdigest() for login, d in data.items()}
        for login in data:
            caller = getattr(self, login)
            caller.blob_begin(shas[login], len(data[login]), 1)
            caller.blob_put(shas[login], 0, data[login])
            self.assertTrue(caller.blob_finish(shas[login]))
        hers = self.submitted(kind="run", blobs=[{"sha256": shas["ann"], "name": "w"}], payload={"secret": 1})[0]
        worker = self.worker()
        with self.refused("TW403"):
            self.wes.worker_blob_get(worker.id, worker.secret, worker.device, 1, hers, shas["ann"], 0)
        self.assertEqual(worker.claimed(), [hers])
        get = lambda sha, token=None: self.wes.worker_blob_get(  # noqa: E731
            worker.id, worker.secret, worker.device, token or worker.token, hers, sha, 0)
        self.assertEqual(bytes(get(shas["ann"])), data["ann"])
        with self.refused("TW403", "does not name"):
            get(shas["bob"])
        with self.refused("TW403", "not leased"):
            get(shas["ann"], worker.token + 1)
        for call in (lambda: self.wes.look(new_id(), {}), lambda: self.wes.blob_get(shas["ann"], 0)):
            with self.assertRaises(errors.InsufficientPrivilege):
                call()
        worker.give_back()
        with self.refused("TW403", "not leased"):
            get(shas["ann"])
        with self.refused("TW404"):
            self.bob.blob_get(shas["ann"], 0)
        self.assertEqual(self.bob.blob_state(shas["ann"]), {"whole": False, "have": []}, "a hash tells nothing")
        self.assertLess(len(data["ann"]), MIB)

    def test_timeouts_of_logins(self):
        # They are of the database in which login_set() was called.
        self.keeper.login_set("ann", "user")
        with contextlib.closing(case.server.connect("ann", self.database)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout'), current_setting('lock_timeout'), "
                           "current_setting('idle_in_transaction_session_timeout')")
            self.assertEqual(cursor.fetchall(), [("30s", "5s", "15s")])
