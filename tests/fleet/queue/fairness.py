"""Who goes first: bands, virtual time, the order of a line, waiting, what a device has loaded."""

from case import CLASS, FleetCase, ok


class Fairness(FleetCase):
    def age(self, job, seconds):
        """As if the job had waited for so long, and its login had got nothing meanwhile."""
        self.change("UPDATE fleet.jobs SET ready_at = clock_timestamp() - %s * interval '1 s' WHERE id = %s", seconds, job)
        self.change("UPDATE fleet.shares SET at = clock_timestamp() - %s * interval '1 s' WHERE login = (SELECT login FROM fleet.jobs "
                    "WHERE id = %s)", seconds, job)

    def order(self, worker, count):
        """Whose jobs a device gets, each done at once."""
        logins = []
        for _ in range(count):
            lease = worker.claim()
            job = lease["jobs"][0]
            logins.append(job["login"])
            worker.post(job["id"], 0, [ok()] * job["n"])
        return logins

    def share(self, login, vtime, urgent=0):
        self.change("INSERT INTO fleet.shares (class, login, vtime, urgent, at) VALUES (%s, %s, %s, %s, clock_timestamp()) ON CONFLICT "
                    "(class, login) DO UPDATE SET vtime = excluded.vtime, urgent = excluded.urgent, at = excluded.at",
                    CLASS, login, vtime, urgent)  # fmt: skip

    def test_bands(self):
        batch, normal, urgent = (self.submitted(band=band, n=1)[0] for band in (2, 1, 0))
        worker = self.worker()
        for job in (urgent, normal, batch):
            self.assertEqual(worker.claimed(8), [job])
            worker.post(job, 0, [ok()])

    def test_waiting_raises(self):
        batch, normal = self.submitted(band=2)[0], self.submitted(band=1)[0]
        worker = self.worker()
        for seconds, first in ((59, normal), (61, batch)):
            self.age(batch, seconds)
            self.assertEqual(worker.claimed(), [first])
            worker.give_back()
        urgent = self.submitted(band=0, login="bob")[0]
        self.share("bob", 100)
        self.age(batch, 61)
        self.assertEqual(worker.claimed(), [urgent], "it rose by one only")
        worker.give_back()
        self.share("ann", 1)
        self.age(batch, 121)
        self.assertEqual(worker.claimed(), [batch])
        worker.give_back()
        self.age(batch, -1000)  # the clock was set back
        self.assertEqual(worker.claimed(), [urgent])

    def test_many_old_jobs_do_not_raise_those_who_are_served(self):
        old, new = self.submitted(2, band=2)[0], self.submitted(band=2, login="bob")[0]
        self.age(old, 300)
        self.share("ann", 20)  # got something just now
        self.share("bob", 10)
        self.assertEqual(self.worker().claimed(), [new])

    def test_the_least_virtual_time_goes_first(self):
        self.submitted(3, n=1)
        self.submitted(3, login="bob", n=1)
        self.share("ann", 20)
        self.share("bob", 10)
        worker = self.worker()
        self.assertEqual(worker.claim()["jobs"][0]["login"], "bob")
        self.change("UPDATE fleet.devices SET since = since - interval '15 s'")
        worker.give_back()
        self.fold()
        self.assertEqual(worker.claim()["jobs"][0]["login"], "ann", "bob had 15 s more")

    def test_half_an_hour_ago_is_half_forgotten(self):
        self.submitted(1)
        self.submitted(1, login="bob")
        self.share("ann", 100)
        self.share("bob", 60)
        self.change("UPDATE fleet.shares SET at = at - interval '1 hour' WHERE login = 'ann'")
        worker = self.worker()
        self.assertEqual(worker.claim()["jobs"][0]["login"], "ann")

    def test_seq_among_equals(self):
        jobs = self.submitted(3, n=1)
        self.submitted(1, login="bob", n=1)
        self.share("ann", 0)
        self.share("bob", 0)
        worker = self.worker()
        self.assertEqual(worker.claimed(3), jobs)

    def test_seq_in_several_queues(self):
        """One login is equal to itself in all of them, also when it has had something."""
        jobs = [self.submitted(1, n=1, needs=needs)[0] for needs in ([], ["a"], ["b"], ["a", "b"], ["c"])]
        self.share("ann", 1000)
        worker, got = self.worker(tags=["a", "b", "c"]), []
        for _ in jobs:
            got += worker.claimed()
            worker.post(got[-1], 0, [ok()])
        self.assertEqual(got, jobs)

    def test_weights(self):
        """Two logins on one device, 40 leases of 1 s: weights 3 to 1."""
        self.keeper.login_set("bob", None, 3)
        self.submitted(60, n=1)
        self.submitted(60, login="bob", n=1)
        worker, counts = self.worker(), {"ann": 0, "bob": 0}
        for _ in range(40):
            lease = worker.claim()
            counts[lease["jobs"][0]["login"]] += 1
            self.change("UPDATE fleet.devices SET since = since - interval '1 s'")
            worker.post(lease["jobs"][0]["id"], 0, [ok()])
            self.fold()
        self.assertAlmostEqual(counts["bob"], 30, delta=1)
        self.assertEqual(self.column("usage", "folded", "NOT folded"), [])
        self.check_invariants()

    def test_shares_follow_without_a_tick(self):
        """Each lease counts at once, if nobody else has the share; else at the next tick."""
        self.submitted(4, n=1)
        worker = self.worker()
        worker.claim()
        self.change("UPDATE fleet.devices SET since = since - interval '9 s'")
        self.change("UPDATE fleet.shares SET at = at - interval '1 s'")
        worker.give_back()
        self.assertAlmostEqual(self.column("shares", "vtime")[0], 9, delta=0.5)
        worker.claim()
        self.change("UPDATE fleet.shares SET at = at - interval '1 s'")
        self.owner.connection.autocommit = False
        self.owner.rows("SELECT FROM fleet.shares FOR UPDATE")
        worker.give_back()  # does not wait
        self.owner.connection.rollback()
        self.assertEqual(self.column("usage", "folded", "true ORDER BY token"), [True, False])
        self.tick()
        self.assertEqual(self.column("usage", "folded", "true ORDER BY token"), [True, True])

    def test_newcomers(self):
        """Who comes, or comes back, starts at the least active one's: nothing is owed."""
        self.submitted(1)
        self.share("ann", 50)
        self.submitted(1, login="bob")
        self.assertAlmostEqual(self.column("shares", "vtime", "login = 'bob'")[0], 50, delta=1)
        self.share("bob", 5)
        self.change("UPDATE fleet.lines SET idle = true WHERE login = 'bob'")
        self.submitted(1, login="bob")
        self.assertAlmostEqual(self.column("shares", "vtime", "login = 'bob'")[0], 50, delta=1)
        self.share("bob", 70)
        self.change("UPDATE fleet.lines SET idle = true WHERE login = 'bob'")
        self.submitted(1, login="bob")
        self.assertAlmostEqual(self.column("shares", "vtime", "login = 'bob'")[0], 70, delta=1)

    def test_a_class_that_the_job_does_not_name(self):
        self.submitted(2, **{"class": None}, n=1)
        self.submitted(2, login="bob", **{"class": None}, n=1)
        worker, got = self.worker(), []
        for _ in range(4):
            lease = worker.claim()
            got.append(lease["jobs"][0]["login"])
            self.change("UPDATE fleet.devices SET since = since - interval '1 s'")
            worker.post(lease["jobs"][0]["id"], 0, [ok()])
            self.fold()
        self.assertEqual(sorted(got[:2]), ["ann", "bob"])

    def test_one_urgent_job_of_a_login_at_a_time(self):
        a, b = self.submitted(2, band=0)
        normal = self.submitted(login="bob", band=1)[0]
        self.share("ann", 10)
        self.share("bob", 0)
        first, second = self.worker("a"), self.worker("b")
        self.assertEqual(first.claimed(8), [a], "no second one in the lease")
        self.assertEqual(second.claimed(), [normal], "ann's second counts as normal now")
        second.give_back()
        first.give_back()
        self.assertEqual(second.claimed(), [a])

    def test_a_tenth_of_a_device_hour(self):
        urgent = self.submitted(band=0)[0]
        normal = self.submitted(login="bob", band=1)[0]
        self.share("bob", 0)
        worker = self.worker()
        for used, first in ((355, urgent), (365, normal)):
            self.share("ann", 10, used)
            self.assertEqual(worker.claimed(), [first])
            worker.give_back()
        self.share("ann", 10, 300)
        self.ann.cancel(str(self.column("jobs", "run", f"id = '{urgent}'")[0]))
        self.submitted(band=0)
        worker.claim()
        self.change("UPDATE fleet.devices SET since = since - interval '20 s'")
        worker.give_back()
        self.tick()
        self.assertAlmostEqual(self.column("shares", "urgent", "login = 'ann'")[0], 320, delta=2)

    def test_yield(self):
        jobs = self.submitted(3, band=2)
        worker = self.worker()
        worker.claim(3)
        self.assertFalse(worker.renew()["yield"])
        urgent = self.submitted(login="bob", band=0)[0]
        self.assertTrue(worker.renew()["yield"])
        self.assertTrue(worker.post(jobs[0], 0, [ok()])["yield"])
        worker.give_back()
        self.assertEqual(worker.claimed(), [urgent])
        self.assertFalse(worker.renew()["yield"], "it is urgent itself")
        self.submitted(login="bob", band=0)
        other = self.worker("e")
        other.claim()
        self.assertFalse(other.renew()["yield"], "bob's other one runs")

    def test_warm(self):
        """What the device has loaded goes first in its line, if the oldest has not waited long."""
        a, b, c = (self.submitted(key=key, n=1)[0] for key in ("x", "y", "x"))
        worker = self.worker()
        for warm, waited, jobs in ((["y"], 0, [b]), (["x"], 0, [a, c]), (["z"], 0, [a, b]), ([], 0, [a, b]), (["y"], 31, [a, b])):
            self.age(a, waited)
            self.assertEqual(worker.claimed(2, warm), jobs, (warm, waited))
            worker.give_back()

    def test_a_lease_is_of_one_login(self):
        self.submitted(1)
        self.submitted(1, login="bob")
        self.assertEqual(len(self.worker().claimed(8)), 1)
