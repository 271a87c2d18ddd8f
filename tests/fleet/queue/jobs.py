"""Submitting, looking, cancelling."""

import hashlib
import threading
import time

from case import CLASS, FleetCase, new_id, ok
from psycopg2.extras import Json


class Jobs(FleetCase):
    def test_submit_again_changes_nothing(self):
        run = self.run_of()
        jobs = [self.job(n=1), self.job(n=1)]
        self.worker()
        self.assertEqual(self.ann.submit(run, jobs), {"accepted": 2, "known": 0, "warnings": []})
        self.assertEqual(self.ann.submit(run, [*jobs, self.job()]), {"accepted": 1, "known": 2, "warnings": []})
        # Also after a job is over: it does not begin again.
        worker = self.worker()
        self.assertEqual(worker.answer(worker.claimed()[0], 0, [ok()]), "ok")
        self.assertEqual(self.ann.submit(run, jobs)["accepted"], 0)
        self.assertEqual(sorted(map(self.state, (j["id"] for j in jobs))), ["done", "ready"])
        self.assertEqual(self.ann.submit(run, [jobs[1], jobs[1]]), {"accepted": 0, "known": 2, "warnings": []})
        twice = self.job()
        self.assertEqual(self.ann.submit(run, [twice, twice])["accepted"], 1)
        self.check_invariants()

    def test_a_run_and_its_jobs_at_once(self):
        run, jobs = new_id(), [self.job(n=1)]
        self.worker()
        self.assertEqual(self.ann.submit_run(run, "run", jobs), {"accepted": 1, "known": 0, "warnings": []})
        self.assertEqual(self.ann.submit_run(run, "run", jobs), {"accepted": 0, "known": 1, "warnings": []})
        self.assertEqual(self.ann.rows("SELECT command FROM fleet.my_runs"), [("run",)])
        with self.refused("TW409", "is taken"):
            self.bob.submit_run(run, "run", [self.job()])
        none = new_id()
        with self.refused("TW400"):
            self.ann.submit_run(none, "run", [{"id": "x"}])
        self.assertEqual(self.keeper.rows("SELECT FROM fleet.runs WHERE id = %s", (none,)), [], "all of it or nothing")

    def test_submit_while_the_job_ends(self):
        """The job leaves `jobs` for `ended` while it is submitted again: it is never in both."""
        run, jobs = self.run_of(), [self.job(n=1)]
        self.ann.submit(run, jobs)
        worker = self.worker()
        worker.claim()
        self.wes.connection.autocommit = False
        self.assertEqual(worker.answer(jobs[0]["id"], 0, [ok()]), "ok")
        answers = []
        again = threading.Thread(target=lambda: answers.append(self.ann.submit(run, jobs)))
        again.start()
        self.wait_for("SELECT count(*) FROM pg_stat_activity WHERE usename = 'ann' AND wait_event_type = 'Lock'", 1)
        self.wes.connection.commit()
        again.join()
        self.assertEqual(answers[0]["accepted"], 0)
        self.assertEqual(self.state(jobs[0]["id"]), "done")

    def wait_for(self, sql, value):
        for _ in range(1000):
            if self.owner.one(sql) == value:
                return
            threading.Event().wait(0.005)
        self.fail(f"{sql} is not {value}")

    def test_all_or_none(self):
        run = self.run_of()
        with self.refused("TW400"):
            self.ann.submit(run, [self.job(), self.job(kind="dance")])
        self.assertEqual(self.ann.look(run, {})["jobs"], [])

    def test_bad_jobs(self):
        run = self.run_of()
        for bad, text in (({"kind": "dance"}, "of the kind dance"), ({"band": 3}, "band 3"), ({"band": -1}, "band -1"),
                          ({"n": -1}, "-1 items"), ({"n": 10001}, "items"), ({"limit_s": 0}, "0 s"),
                          ({"limit_s": 601}, "at most 600 s"), ({"limit_s": "NaN"}, "NaN"), ({"id": None}, "no id"),
                          ({"id": "x"}, "invalid input syntax"), ({"n": "two"}, "invalid input syntax"),
                          ({"needs": 3}, "cannot extract"), ({"needs": [str(i) for i in range(17)]}, "too large"),
                          ({"payload": {"x": "y" * (1 << 20)}}, "larger than 1 MiB"), ({"after": [new_id()]}, "has no such job"),
                          ({"key": "k" * 2000}, "too large")):  # fmt: skip
            with self.subTest(bad=str(bad)[:60]), self.refused("TW400", text):
                self.ann.submit(run, [self.job(**bad)])
        for jobs in ({}, 3, None):
            with self.refused("TW400", "a list"):
                self.ann.submit(run, Json(jobs))
        with self.refused("TW409", "blob that is not here"):
            self.ann.submit(run, [self.job(blobs=[{"sha256": "0" * 64, "name": "x"}])])
        with self.refused("TW404"):
            self.ann.submit(new_id(), [self.job()])
        self.assertEqual(self.column("jobs", "id"), [])

    def test_blobs_of_a_job_must_be_whole(self):
        sha = hashlib.sha256(b"x").hexdigest()
        self.ann.blob_begin(sha, 1, 1)
        with self.refused("TW409"):
            self.submitted(blobs=[{"sha256": sha, "name": "w"}])
        self.ann.blob_put(sha, 0, b"x")
        self.ann.blob_finish(sha)
        self.submitted(blobs=[{"sha256": sha, "name": "w"}])
        with self.refused("TW409"):
            self.submitted(login="bob", blobs=[{"sha256": sha, "name": "w"}])

    def test_max_ready(self):
        self.keeper.login_set("ann", None, None, 3)
        run = self.run_of()
        self.ann.submit(run, [self.job(), self.job()])
        with self.refused("TW429", "more than 3 jobs"):
            self.ann.submit(run, [self.job(), self.job()])
        self.assertEqual(len(self.column("jobs", "id")), 2, "nothing was accepted")
        waiting = self.job(n=1)
        self.ann.submit(run, [waiting])
        with self.refused("TW429"):
            self.ann.submit(run, [self.job()])
        self.ann.submit(run, [waiting])  # known: a repeated submit is no flood
        self.submitted(3, login="bob")
        self.worker().claim()  # a leased one does not wait
        self.ann.submit(run, [self.job()])

    def test_warnings(self):
        run = self.run_of()
        self.assertIn("no device fits yet (pool default, class " + CLASS, self.ann.submit(run, [self.job()])["warnings"][0])
        worker = self.worker(compiler="cc 1")
        self.assertEqual(self.ann.submit(run, [self.job()])["warnings"], [])
        self.assertIn("no worker has the compiler cc 2 (1 of cc 1)", self.ann.submit(run, [self.job(compiler="cc 2")])["warnings"][0])
        worker.leave()
        self.assertIn("is off", self.ann.submit(run, [self.job()])["warnings"][0])
        self.assertIn("tags lab", self.ann.submit(run, [self.job(needs=["lab"])])["warnings"][0])

    def test_needs_device_and_class(self):
        plain, tagged = self.submitted()[0], self.submitted(needs=["lab", "fan"])[0]
        named, any_class = self.submitted(device="b", **{"class": None})[0], self.submitted(**{"class": ""}, needs=["fan"])[0]
        a, b = self.worker("a", tags=["fan"]), self.worker("b", tags=["fan", "lab", "x"])
        self.assertEqual(a.claimed(8), [plain])
        a.give_back()
        self.assertEqual(b.claimed(8), [plain])
        self.assertEqual(b.answer(plain, 0, [ok(), ok()]), "ok")
        self.assertEqual(a.claimed(8), [any_class])
        self.assertEqual(b.claimed(8), [tagged])
        self.assertEqual(b.answer(tagged, 0, [ok(), ok()]), "ok")
        self.assertEqual(b.claimed(8), [named])
        self.assertIsNone(self.worker("c").claim(), "no tag, not the name")
        other = self.submitted(**{"class": "cpu:znver5/1"})[0]
        self.assertEqual(self.worker("e", **{"class": "cpu:znver5/1", "target": "cpu:znver5"}).claimed(8), [other])

    def test_a_device_that_comes_later_takes_what_waits(self):
        job = self.submitted()[0]
        self.assertEqual(self.worker().claimed(), [job])

    def test_after(self):
        run = self.run_of()
        a, b = self.job(n=1), self.job(n=1)
        c = self.job(n=1, after=[a["id"], b["id"]])
        d = self.job(n=1, after=[c["id"]])
        self.ann.submit(run, [c, d, b, a])
        worker = self.worker()
        self.assertEqual([self.state(j["id"]) for j in (a, b, c, d)], ["ready", "ready", "waiting", "waiting"])
        self.assertEqual(worker.claimed(1), [b["id"]])
        worker.post(b["id"], 0, [ok()])
        self.assertEqual(self.state(c["id"]), "waiting")
        self.assertEqual(worker.claimed(), [a["id"]])
        worker.post(a["id"], 0, [ok()])
        self.assertEqual(worker.claimed(), [c["id"]])
        self.assertEqual(worker.post(c["id"], 0, [], "no compiler")["answer"], "ok")
        self.assertEqual(self.state(d["id"]), "failed")
        reason = self.ann.look(run, {d["id"]: 0})["jobs"][0]["reason"]
        self.assertIn("no compiler", reason)
        late = self.job(after=[a["id"]])
        self.ann.submit(run, [late])  # what it waits for is done
        self.assertEqual(self.state(late["id"]), "ready")
        self.check_invariants()

    def test_after_is_looked_at_again(self):
        """A job that was not seen when the last one before it ended."""
        run = self.run_of()
        a = self.job(n=1)
        b = self.job(n=1, after=[a["id"]])
        self.ann.submit(run, [a, b])
        self.tick()
        self.assertEqual(self.state(b["id"]), "waiting")
        self.change("UPDATE fleet.jobs SET after = '{}' WHERE id = %s", b["id"])  # as if the end had passed it by
        self.tick()
        self.assertEqual(self.state(b["id"]), "ready")
        self.check_invariants()

    def test_look(self):
        run = self.run_of()
        jobs = self.submitted(2, run=run, n=3)
        worker = self.worker()
        worker.claim()
        worker.post(jobs[0], 0, [ok(1), {"outcome": "timeout", "reason": "10 s", "output": {"a": [1]}}])
        seen = self.ann.look(run, {jobs[0]: 1})["jobs"]
        self.assertEqual(seen, [{"id": jobs[0], "state": "leased", "reason": "", "device": "d", "worker": "host", "results": [
            {"item": 1, "outcome": "timeout", "reason": "10 s", "cost": None, "least": None, "spread": None, "fastest": None,
             "readings": None, "output": {"a": [1]}}]}])  # fmt: skip
        self.assertEqual([len(j["results"]) for j in self.ann.look(run, {})["jobs"]], [2, 0])
        self.assertEqual([len(j["results"]) for j in self.ann.look(run, {jobs[0]: 2, jobs[1]: 0})["jobs"]], [0, 0])
        self.assertEqual([j["id"] for j in self.ann.look(run, None)["jobs"]], jobs)
        other = self.submitted(run=self.run_of())[0]
        self.assertEqual([j["id"] for j in self.ann.look(run, {other: 0, new_id(): 0, jobs[1]: 0})["jobs"]], [jobs[1]])
        for bad in ([3], {jobs[0]: "x"}, {"x": 0}):
            with self.refused("TW400"):
                self.ann.look(run, Json(bad))
        worker.post(jobs[0], 2, [ok(3)])
        done = self.ann.look(run, {jobs[0]: 2})["jobs"][0]
        self.assertEqual((done["state"], done["device"], done["worker"], [r["item"] for r in done["results"]]),
                         ("done", "d", "host", [2]))  # fmt: skip

    def test_cancel(self):
        run = self.run_of()
        a, b = self.submitted(2, run=run)
        c = self.submitted(1, run=run, after=[b])[0]
        other = self.submitted(login="bob")[0]
        worker = self.worker()
        self.assertEqual(worker.claimed(1), [a])
        self.assertEqual(worker.answer(a, 0, [ok()]), "ok")
        self.assertEqual(self.ann.cancel(run), 2)
        self.assertEqual([self.state(j) for j in (a, b, c, other)], ["leased", "cancelled", "cancelled", "ready"])
        self.assertEqual(worker.renew()["cancel"], [a])
        with self.refused("TW409", "was cancelled"):
            self.ann.submit(run, [self.job()])
        answer = worker.post(a, 1, [ok()])
        self.assertEqual((answer["answer"], answer["cancel"]), ("stale", [a]))
        self.assertEqual(self.state(a), "cancelled")
        self.assertEqual(self.column("results", "item"), [0], "nothing is accepted after it")
        self.assertEqual(self.column("devices", "state"), ["free"])
        self.assertEqual(self.ann.cancel(run), 0)
        self.tick()
        self.assertEqual(self.column("runs", "settled", f"id = '{run}'"), [True])
        self.check_invariants()

    def test_cancel_one_job_of_a_lease(self):
        first, second = self.run_of(), self.run_of()
        a, b = self.submitted(run=first, n=1)[0], self.submitted(run=second, n=1)[0]
        worker = self.worker()
        self.assertEqual(worker.claimed(2), [a, b])
        self.ann.cancel(first)
        answer = worker.post(a, 0, [ok()])
        self.assertEqual((answer["answer"], answer["cancel"]), ("stale", [a]))
        self.assertEqual(worker.answer(b, 0, [ok()]), "ok", "the lease goes on")
        self.assertEqual([self.state(a), self.state(b)], ["cancelled", "done"])
        self.check_invariants()

    def test_a_cancelled_job_ends_with_its_lease(self):
        for end in ("give_back", "expire"):
            run = self.run_of()
            job = self.submitted(run=run)[0]
            worker = self.worker(end)
            worker.claim()
            self.ann.cancel(run)
            worker.give_back() if end == "give_back" else self.expire(worker)
            self.assertEqual(self.state(job), "cancelled")

    def test_what_came_back_during_a_cancel(self):
        """Its lease ended in the same moment, so it is ready in a run that is cancelled."""
        run = self.run_of()
        a, b = self.submitted(2, run=run)
        self.change("UPDATE fleet.runs SET cancelled = now() WHERE id = %s", run)
        worker = self.worker()
        self.assertIsNone(worker.claim(1))
        self.assertEqual(self.state(a), "cancelled")
        self.tick()
        self.assertEqual(self.state(b), "cancelled")

    def test_close(self):
        run, other = self.run_of(), self.run_of()
        a, b = self.submitted(1, run=run, n=1)[0], self.submitted(1, run=other, n=1)[0]
        c = self.submitted(1, run=run)[0]
        worker = self.worker()
        worker.claim(2)
        worker.post(a, 0, [ok()])
        worker.post(b, 0, [ok()])
        self.ann.close_run(run)
        self.assertEqual([str(j) for j in self.column("results", "job")], [b])
        self.assertEqual([self.state(j) for j in (a, b, c)], ["done", "done", "cancelled"])
        with self.refused("TW409"):
            self.ann.submit(run, [self.job()])
        self.ann.close_run(run)

    def test_new_run_again(self):
        run = self.run_of(keep=True)
        self.ann.new_run(run, "tune", True)
        self.assertEqual(self.column("runs", "keep"), [True])

    def heard(self):
        """Channels of what bob was told since the last time."""
        self.bob.rows("SELECT 1")
        self.bob.connection.poll()
        channels = [n.channel for n in self.bob.connection.notifies]
        self.bob.connection.notifies.clear()
        return channels

    def not_just_now(self):
        """As if nobody had been told anything for a second."""
        self.change("UPDATE fleet.queues SET notified = notified - interval '1 s'")

    def test_listeners_hear_of_work(self):
        worker = self.worker()
        enrolled = self.wes.enroll("h", "p", "cc 1", "none", "default", [self.device("e")])["devices"][0]
        own, any_class = enrolled["listen"]
        for channel in (own, any_class):
            self.bob.rows(f'LISTEN "{channel}"')
        self.submitted(n=1)
        self.assertEqual(self.heard(), [own])
        self.not_just_now()
        self.submitted(n=1)
        self.assertEqual(self.heard(), [], "there was work already")
        for _ in range(2):
            worker.post(worker.claimed()[0], 0, [ok()])
        begin = time.monotonic()
        self.submitted(n=1)
        self.assertEqual(self.heard(), [own], "all was taken, though no tick has seen it")
        self.submitted(n=1, login="bob")
        soon = time.monotonic() < begin + 0.1  # a busy machine may take longer for the two
        self.assertIn(self.heard(), [[]] if soon else [[], [own]], "ten times a second at most")
        self.submitted(n=1, **{"class": None})
        self.assertEqual(self.heard(), [any_class])
        self.submitted(n=1, **{"class": "vta:tsim"})
        self.assertEqual(self.heard(), [], "another class")

    def test_listeners_hear_of_what_waited(self):
        worker = self.worker()
        own = self.keeper.one("SELECT fleet.channel_of('default', %s)", (CLASS,))
        run = self.run_of()
        first = self.submitted(run=run, n=1)[0]
        self.submitted(run=run, n=1, after=[first])
        worker.claim()
        self.not_just_now()
        self.bob.rows(f'LISTEN "{own}"')
        worker.post(first, 0, [ok()])
        self.assertEqual(self.heard(), [own])

    def test_submitters_hear_of_the_end(self):
        run = self.run_of()
        self.bob.rows(f'LISTEN "fleet_{run}"')
        worker = self.worker()
        for band, told in ((0, [f"fleet_{run}"]), (1, []), (2, [])):
            job = self.submitted(run=run, n=1, band=band)[0]
            worker.claim()
            self.assertEqual(self.heard(), [])
            worker.post(job, 0, [ok()])
            self.assertEqual(self.heard(), told, "only urgent ones: NOTIFY has one lock for all")
