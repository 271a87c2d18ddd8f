#!/usr/bin/env python3
"""What a claim and a post of 16 records cost the server: CPU of its process, and of which functions.

  statements.py --times 300               one connection, no other work
  statements.py --times 300 --batch 50    jobs submitted 50 at a time; what one of them costs
  statements.py --times 300 --functions   also the time that each function took itself

CPU is that of the process that serves the connection (/proc/PID/schedstat); the first tenth is not counted. The time of
functions is the clock's, and the counting of it takes time, too.
"""

import json
import random
import time
import uuid

import simulation


def cpu(pid):
    """Seconds that a process has computed."""
    return int(open(f"/proc/{pid}/schedstat", encoding="ascii").read().split()[0]) / 1e9


class Clock:
    """Sums up what calls of some kinds cost one server process."""

    def __init__(self, connection, warm):
        self.connection, self.warm, self.sums, self.counts = connection, warm, {}, {}
        self.pid = connection.info.backend_pid

    def call(self, kind, sql, values, parts=1):
        """`parts`: of so many equal ones the call consists."""
        begin = cpu(self.pid)
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values)
            found = cursor.fetchone()[0]
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.counts[kind] > self.warm:
            self.sums[kind] = self.sums.get(kind, 0) + (cpu(self.pid) - begin) / parts
        return found

    def milliseconds(self, kind):
        return round(1e3 * self.sums.get(kind, 0) / max(1, self.counts.get(kind, 0) - self.warm), 3)


def measured(cost):
    return {"outcome": "ok", "reason": "", "cost": cost, "least": cost - 9, "spread": 0.01, "fastest": cost - 9, "readings": 7}


def measure(server, times, batch, functions):
    worker, secret, device = simulation.enrol(server, 1)[0]
    user, site = server.connect("ann"), server.connect("wes")
    user.autocommit = site.autocommit = True
    if functions:
        owner = server.connect()
        owner.autocommit = True
        with owner.cursor() as cursor:
            cursor.execute("ALTER SYSTEM SET track_functions = 'all'")
            cursor.execute("SELECT pg_reload_conf()")
        time.sleep(0.5)
    jobs, leases = Clock(user, times // batch // 10), Clock(site, times // 10)
    run = str(uuid.uuid4())
    jobs.call("new_run", "SELECT fleet.new_run(%s, 'x', true)::text", (run,))
    text = simulation.payload(16)
    waiting = []
    for _ in range(times // batch * batch):
        if not waiting:
            waiting = [str(uuid.uuid4()) for _ in range(batch)]
            submitted = [{"id": job, "kind": "measure", "class": simulation.CLASS, "band": 2, "n": 16, "limit_s": 60,
                          "payload": json.loads(text.replace("~~", job))} for job in waiting]  # fmt: skip
            jobs.call("submit", "SELECT fleet.submit(%s, %s)", (run, json.dumps(submitted)), batch)
        job = waiting.pop(0)
        lease = leases.call("claim", "SELECT fleet.claim(%s, %s, %s, 1, '{}')", (worker, secret, device))
        results = json.dumps([measured(random.randint(100_000, 1_000_000_000)) for _ in range(16)])
        answer = leases.call("post", "SELECT fleet.post(%s, %s, %s, %s, %s, 0, %s, NULL)",
                             (worker, secret, device, job, lease["token"], results))  # fmt: skip
        assert answer["answer"] == "ok", answer
        if not waiting:
            assert leases.call("empty", "SELECT fleet.claim(%s, %s, %s, 1, '{}')", (worker, secret, device)) is None
        jobs.call("look", "SELECT fleet.look(%s, %s)", (run, json.dumps({job: 0})))
    found = {kind: clock.milliseconds(kind) for clock, kinds in ((leases, ("claim", "post", "empty")), (jobs, ("submit", "look"))) for kind in kinds}
    found["claim_and_post"] = round(found["claim"] + found["post"], 3)
    if functions:
        time.sleep(1.5)  # until the server has written its counts
        with server.connect() as owner, owner.cursor() as cursor:
            cursor.execute("SELECT funcname, calls, self_time FROM pg_stat_user_functions ORDER BY self_time DESC LIMIT 25")
            found["functions"] = {name: {"calls": calls, "ms_per_lease": round(took / times, 4)} for name, calls, took in cursor.fetchall()}
    return found


def main():
    parser = simulation.parser_of(__doc__)
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--batch", type=int, default=1, help="jobs in a submit")
    parser.add_argument("--functions", action="store_true")
    chosen = parser.parse_args()
    with simulation.server_for(8) as server:
        found = measure(server, chosen.times, chosen.batch, chosen.functions)
    functions = found.pop("functions", {})
    lines = ["ms of CPU: " + ", ".join(f"{kind} {value}" for kind, value in found.items())]
    lines += [f"  {name:20} {row['calls']:7} calls  {row['ms_per_lease']:8.4f} ms per lease" for name, row in functions.items()]
    simulation.report(chosen, {**found, "functions": functions}, lines)


if __name__ == "__main__":
    main()
