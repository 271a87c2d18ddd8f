#!/usr/bin/env python3
"""Shares of two logins on one device, of which one has a thousand times the jobs waiting.

  shares.py --seconds 60                 weights 1:1, then 3:1
  shares.py --seconds 60 --weights 3

ann has 16 000 jobs waiting all the time, bob 16: enough never to run out of them while submits take their time, since
who wants nothing for a moment loses what is due to him. Each lease takes 0.1 s. Device seconds are those of the table
`usage`.
"""

import sys
import time

import simulation
from simulation import Device, Loop, Submitter, Ticker

NEAR = 0.05  # of the share that is due


def measure(weight, seconds, period):
    """Seconds of ann and bob, where bob's weight is `weight`."""
    with simulation.server_for(10) as server:
        with server.connect() as owner, owner.cursor() as cursor:
            cursor.execute("SELECT fleet.login_set('bob', NULL, %s)", (weight,))
        loop = Loop()
        submitters = [Submitter(loop, server.url(login), wanted, 1, kind="run", batch=batch)
                      for login, wanted, batch in (("ann", 16000, 1000), ("bob", 16, 4))]  # fmt: skip

        def told(lease, _):
            for submitter in submitters:
                submitter.taken(lease["jobs"][0]["id"])

        Ticker(loop, server.url("ann"))
        device = Device(loop, server.url("wes"), *simulation.enrol(server, 1)[0], period, 1, told)
        loop.run(lambda: len(submitters[0].times) >= 16 and submitters[1].times)
        device.claim()
        end = time.monotonic() + seconds
        loop.run(lambda: time.monotonic() > end)
        with server.connect() as owner, owner.cursor() as cursor:
            cursor.execute("SELECT login, sum(seconds) FROM fleet.usage GROUP BY login")
            used = dict(cursor.fetchall())
    ann, bob = used.get("ann", 0.0), used.get("bob", 0.0)
    due = weight / (1 + weight)
    share = bob / max(1e-9, ann + bob)
    return {"weights": f"{weight:g}:1", "ann_s": round(ann, 2), "bob_s": round(bob, 2), "ratio": round(bob / max(1e-9, ann), 3),
            "share": round(share, 4), "due": due, "off": round(share / due - 1, 4), "leases": len(device.posts),
            "errors": device.errors[:1]}  # fmt: skip


def main():
    parser = simulation.parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--period", type=float, default=0.1, help="seconds of a lease")
    parser.add_argument("--weights", type=float, action="append", help="bob's, to ann's 1 (1 and 3)")
    chosen = parser.parse_args()
    results = [measure(weight, chosen.seconds, chosen.period) for weight in chosen.weights or (1, 3)]
    lines = (f"bob:ann {r['weights']}: {r['bob_s']} s and {r['ann_s']} s in {r['leases']} leases, ratio {r['ratio']}, share off by "
             f"{100 * r['off']:.1f} % {r['errors'] or ''}" for r in results)  # fmt: skip
    simulation.report(chosen, {"runs": results}, lines)
    sys.exit(0 if all(abs(r["off"]) <= NEAR for r in results) else 1)


if __name__ == "__main__":
    main()
