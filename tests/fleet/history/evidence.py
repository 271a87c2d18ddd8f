"""What the checks work on: the history and the tables, arranged by job, lease and run.

A `Lease` is what the events tell of one token: which device and jobs, when it began and ended. Example: events
claimed(J, 9, d3), claimed(K, 9, d3), freed(9, d3, 0.8 s) make Lease(token 9, device 3, jobs {J, K}).
"""

import collections

from clock import ServerClock


class Violation:
    """`rule`: number of the invariant, or a word for what is no invariant of the tables."""

    def __init__(self, rule, text):
        self.rule, self.text = rule, text

    def __str__(self):
        return f"[{self.rule}] {self.text}"


class Lease:
    def __init__(self, event, clock):
        self.token, self.device, self.worker, self.login = (event[k] for k in ("token", "device", "worker", "login"))
        self.jobs, self.begin = set(), event["seq"]
        self.begin_at = clock.true(event["at"].timestamp())
        self.end = self.end_at = self.how = self.seconds = None


class Evidence:
    """`history`: log.History; `tables`: tables.Tables; `base`: wall clock minus monotonic clock."""

    def __init__(self, history, tables, base):
        self.history, self.tables = history, tables
        self.clock = ServerClock(history, base)
        self.events = sorted(tables.events, key=lambda event: event["seq"])
        self.leases, self.twice = self._leases()
        self.specs, self.run_of = {}, {}
        for note in history.noted("batch"):
            for job in note["a"]["jobs"]:
                self.specs[job["id"]], self.run_of[job["id"]] = job, note["a"]["run"]
        self.login_of_run = {note["a"]["run"]: note["a"]["login"] for note in history.noted("run")}
        self.rows = collections.defaultdict(list)  # of jobs and ended, by id
        for row in tables.jobs + tables.ended:
            self.rows[str(row["id"])].append(row)
        self.results = collections.defaultdict(list)  # by job, in the order of items
        for row in sorted(tables.results, key=lambda row: row["item"]):
            self.results[str(row["job"])].append(row)
        self.closed = {call.arguments["v"][0] for call in history.of("close_run")}  # their results may be gone
        self.posts = collections.defaultdict(list)  # by job, in the order of their beginnings
        for call in history.of("post"):
            self.posts[call.arguments["job"]].append(call)
        self.claims = [call for call in history.of("claim") if call.ok and call.result and "token" in call.result]

    def is_closed(self, job):
        return self.run_of.get(job) in self.closed

    def is_repeated(self, claim):
        """Whether the lease had begun before this call: it tells a worker again what he did not hear."""
        lease = self.leases.get(claim.result["token"])
        return lease is not None and lease.begin_at is not None and lease.begin_at < claim.start

    def _leases(self):
        """Leases by token; and tokens that began twice, with the device of the second time."""
        leases, twice = {}, []
        for event in self.events:
            token = event["token"]
            if event["what"] == "claimed":
                lease = leases.get(token)
                if lease is None:
                    lease = leases[token] = Lease(event, self.clock)
                elif lease.device != event["device"] or lease.end is not None:
                    twice.append((token, event["device"]))
                lease.jobs.add(str(event["job"]))
            elif event["what"] == "freed" and token in leases:
                lease = leases[token]
                if lease.end is None:
                    lease.end, lease.seconds, lease.how = event["seq"], event["seconds"], event["note"]
                    lease.end_at = self.clock.true(event["at"].timestamp())
                    lease.ends_by = event
        return leases, twice

    def attempts(self, job, token, item):
        """Posts that may have brought this result."""
        return [call for call in self.posts[job]
                if call.arguments["token"] == token
                and call.arguments["first"] <= item < call.arguments["first"] + call.arguments["count"]]
