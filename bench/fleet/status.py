#!/usr/bin/env python3
"""How long the status of many devices takes: of the function, each time on a new connection, and of the command.

  status.py --devices 10,100,1000              two devices per worker, half of all leased
  status.py --devices 1000 --jobs 1000         and so many jobs wait for any of them

FLEET_SCHEMA names the folder of another schema; the program refuses an older one, so then --times-command 0.
"""

import contextlib
import json
import statistics
import tempfile
import time
import uuid

import simulation
from latency import Program


def fill(server, devices, jobs):
    """Enrols the devices, leases half of them, and submits what waits."""
    with contextlib.closing(server.connect("wes")) as site, contextlib.closing(server.connect("ann")) as user, \
            site.cursor() as work, user.cursor() as submit:  # fmt: skip
        enrolled = []
        for begin in range(0, devices, 2):
            offers = [{"key": f"d{i}", "name": f"d{i}", "class": simulation.CLASS, "target": "cpu", "tags": [], "emulated": False,
                       "facts": {}, "rates": {}} for i in range(begin, min(begin + 2, devices))]  # fmt: skip
            work.execute("SELECT fleet.enroll('host', 'status', 'tilewright 0.1', 'none', %s, %s)", (simulation.POOL, json.dumps(offers)))
            made = work.fetchone()[0]
            enrolled += [(made["worker"], made["secret"], d["id"]) for d in made["devices"]]
        run = str(uuid.uuid4())
        submit.execute("SELECT fleet.new_run(%s, 'status', true)", (run,))
        for count in (devices // 2, jobs):
            wanted = [{"id": str(uuid.uuid4()), "kind": "run", "class": simulation.CLASS, "n": 1, "limit_s": 60} for _ in range(count)]
            submit.execute("SELECT fleet.submit(%s, %s)", (run, json.dumps(wanted)))
            if count == devices // 2:
                submit.execute("SELECT fleet.tick()")
                for ident in enrolled[:count]:
                    work.execute("SELECT fleet.claim(%s, %s, %s, 1, '{}')", ident)


def asked(server):
    """Seconds of one look, and the bytes of the answer."""
    with contextlib.closing(server.connect("ann")) as user, user.cursor() as cursor:
        begin = time.monotonic()
        cursor.execute("SELECT fleet.status()::text")
        text = cursor.fetchone()[0]
        return time.monotonic() - begin, len(text)


def measure(chosen, devices):
    with simulation.server_for(20) as server, tempfile.TemporaryDirectory(prefix="tw-status-") as folder:
        fill(server, devices, chosen.jobs)
        looks = [asked(server) for _ in range(chosen.times)]
        found = {"devices": devices, "jobs": chosen.jobs, "bytes": looks[0][1], "function_ms": told([s for s, _ in looks])}
        if chosen.times_command:
            program = Program(chosen.program, folder, server.url("ann"))
            found["command_ms"] = told([program.run("fleet", "status")[0] for _ in range(chosen.times_command)])
        return found


def told(seconds):
    return {"median": round(1e3 * statistics.median(seconds), 1), "least": round(1e3 * min(seconds), 1)}


def main():
    parser = simulation.parser_of(__doc__, program=True)
    parser.add_argument("--devices", default="10,100,1000")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--times-command", type=int, default=15)
    chosen = parser.parse_args()
    results = [measure(chosen, int(count)) for count in chosen.devices.split(",")]
    simulation.report(chosen, {"results": results}, map(str, results))


if __name__ == "__main__":
    main()
