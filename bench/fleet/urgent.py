#!/usr/bin/env python3
"""How soon an urgent job starts while a tune holds all devices: simulated devices, whose leases take 2 s each.

  urgent.py --devices 8 --times 100

An urgent job is submitted at a random moment, again and again; from then to the lease that has it is its wait.
"""

import json
import random
import sys
import time
import uuid

import simulation
from simulation import Device, Loop, Submitter, Ticker, milliseconds

LIMIT = 3.0  # seconds


class Urgent:
    """Submits one urgent job after the other, each a moment after the last one has ended."""

    def __init__(self, loop, url, times):
        self.loop, self.link, self.left, self.waits, self.begun = loop, simulation.Link(loop, url), times, [], {}
        self.run = str(uuid.uuid4())
        self.link.ask("SELECT fleet.new_run($1, 'run', true)", [self.run], lambda *_: self.later())

    def later(self):
        self.loop.after(random.uniform(0.1, 0.6), self.submit)

    def submit(self):
        job = str(uuid.uuid4())
        self.begun[job] = time.monotonic()
        jobs = [{"id": job, "kind": "run", "class": simulation.CLASS, "band": 0, "n": 1, "limit_s": 60}]
        self.link.ask("SELECT fleet.submit($1, $2)", [self.run, json.dumps(jobs)], lambda _, error, __: self.check(error))

    def check(self, error):
        assert error is None, error

    def taken(self, lease, at):
        """Heard by the devices. True: it was an urgent job."""
        begin = self.begun.pop(lease["jobs"][0]["id"], None)
        if begin is None:
            return False
        self.waits.append(at - begin)
        self.left -= 1
        if self.left:
            self.later()
        return True


def main():
    parser = simulation.parser_of(__doc__)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--period", type=float, default=2.0, help="seconds that a device holds a lease")
    chosen = parser.parse_args()
    with simulation.server_for(chosen.devices + 8) as server:
        loop = Loop()
        tune = Submitter(loop, server.url("ann"), 4 * chosen.devices)
        Ticker(loop, server.url("ann"))
        urgent = []

        def told(lease, at):
            if not (urgent and urgent[0].taken(lease, at)):
                tune.taken(lease["jobs"][0]["id"])

        fleet = [Device(loop, server.url("wes"), *ident, chosen.period, 16, told)
                 for ident in simulation.enrol(server, chosen.devices)]  # fmt: skip
        for number, device in enumerate(fleet):
            loop.after(1 + chosen.period * number / chosen.devices, device.claim)
        loop.after(2 * chosen.period + 2, lambda: urgent.append(Urgent(loop, server.url("bob"), chosen.times)))
        loop.run(lambda: urgent and not urgent[0].left)
        waits, errors = urgent[0].waits, [e for d in fleet for e in d.errors]
    result = {"devices": chosen.devices, "period_s": chosen.period, "wait_ms": milliseconds(waits), "most_ms": round(1e3 * max(waits), 1),
              "within_3_s": sum(w <= LIMIT for w in waits), "of": len(waits), "errors": len(errors)}  # fmt: skip
    text = (f"{result['within_3_s']} of {result['of']} within 3 s; median {result['wait_ms']['p50']} ms, longest {result['most_ms']} ms; "
            f"{result['errors']} errors")  # fmt: skip
    simulation.report(chosen, result, [text])
    sys.exit(0 if result["within_3_s"] == result["of"] else 1)


if __name__ == "__main__":
    main()
