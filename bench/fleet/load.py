#!/usr/bin/env python3
"""How many leases a fleet's server carries: simulated devices that each hold a lease of 16 candidates for 2 s.

  load.py --devices 1000 --minutes 5                   direct connections
  load.py --devices 1000 --minutes 5 --pooled          through pgbouncer, with 32 connections to the server
  load.py --devices 200 --minutes 10 --snapshot        beside a snapshot that is held open all the time
  load.py --devices 200 --period 0.4 --minutes 0.5     five times as many leases per device
  load.py --limit                                      more and more leases, until p99 of claim or post passes 250 ms

Devices, submitter and server share this machine. CPU of the server counts all that it does: submits, looks, ticks,
writing, cleaning up. --json prints a document, else a table.
"""

import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import time

import simulation
from simulation import Device, Loop, Submitter, Ticker, milliseconds

LIMIT_MS = 250


POOLED = 32  # connections of pgbouncer to the server


def warm_up(connections):
    """Seconds until all connections have made their plans twice, some 0.1 s of CPU for each: not counted."""
    return max(10, 0.2 * connections)


class Pooler:
    """pgbouncer before the server, in transaction mode. errors: RuntimeError without it."""

    def __init__(self, server):
        program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        if not os.access(program, os.X_OK):
            raise RuntimeError("pgbouncer is not installed")
        self.folder = server.folder / "pgbouncer"
        self.folder.mkdir()
        (self.folder / "users").write_text("".join(f'"{login}" ""\n' for login in ("ann", "bob", "wes", server.owner)))
        (self.folder / "ini").write_text(
            f"[databases]\npostgres = host={server.folder} dbname=postgres\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = {self.folder}\n"
            f"listen_port = 6432\nauth_type = trust\nauth_file = {self.folder}/users\npool_mode = transaction\nmax_client_conn = 5000\n"
            f"default_pool_size = {POOLED}\nlogfile = {self.folder}/log\n")  # fmt: skip
        owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        for path in (self.folder, *self.folder.iterdir()) if owner else ():
            os.chown(path, owner.pw_uid, owner.pw_gid)
        options = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner else {}
        self.process = subprocess.Popen([program, "-q", str(self.folder / "ini")], stdin=subprocess.DEVNULL, **options)
        socket = self.folder / ".s.PGSQL.6432"
        end = time.monotonic() + 20
        while not socket.exists():
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError("pgbouncer does not start")
            time.sleep(0.05)

    def url(self, login):
        return f"postgresql:///postgres?host={self.folder}&port=6432&user={login}"

    def cpu(self):
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def measure(devices, period, candidates, minutes, pooled=False, snapshot=False, window=10.0, batch=50, say=print, folder="/var/tmp"):
    """One run; what it found. `batch`: jobs that a submitter sends at a time."""
    with simulation.server_for(8 if pooled else devices, folder) as server:
        pooler = Pooler(server) if pooled else None
        url = pooler.url if pooler else server.url
        try:
            return drive(server, url, pooler, devices, period, candidates, minutes, snapshot, window, batch, say)
        finally:
            if pooler:
                pooler.stop()


def drive(server, url, pooler, devices, period, candidates, minutes, snapshot, window, batch, say):
    loop, seconds, warm = Loop(), 60 * minutes, warm_up(POOLED if pooler else devices)
    submitters = [Submitter(loop, url(login), devices + 50, candidates, batch=batch) for login in ("ann", "bob")]

    def taken(lease, _):
        for submitter in submitters:
            submitter.taken(lease["jobs"][0]["id"])

    ticker = Ticker(loop, url("ann"))
    ids = simulation.enrol(server, devices)
    fleet = [Device(loop, url("wes"), *ident, period, candidates, taken) for ident in ids]
    for number, device in enumerate(fleet):
        loop.after(1 + 0.8 * warm * number / devices, device.claim)
    holder = None
    if snapshot:
        holder = server.connect(autocommit=False)
        holder.cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM fleet.jobs")
    begin = time.monotonic() + warm
    # Plans that were made while tables were empty are bad ones, until autovacuum has counted rows: in a fleet of some
    # minutes it has.
    counted = begin - 0.4 * warm
    loop.run(lambda: time.monotonic() > counted)
    with contextlib.closing(server.connect()) as owner, owner.cursor() as cursor:
        cursor.execute("ANALYZE")
    loop.run(lambda: time.monotonic() > begin)
    before, pool_before, own = simulation.server_usage(server)[0], pooler.cpu() if pooler else 0, time.process_time()
    done = [begin]

    def reported():
        now = time.monotonic()
        if now > done[0] + window:
            lately = lambda lists: [s for one in lists for t, s in one if t > done[0]]  # noqa: E731
            claims, posts = lately([d.claims[-50:] for d in fleet]), lately([d.posts[-50:] for d in fleet])
            windows.append({"at_s": round(now - begin), "leases_s": round(len(posts) / (now - done[0]), 1),
                            "claim_ms": milliseconds(claims), "post_ms": milliseconds(posts)})  # fmt: skip
            say(f"  {windows[-1]['at_s']:4} s: {windows[-1]['leases_s']:6} leases/s, claim p50 {windows[-1]['claim_ms']['p50']} p99 "
                f"{windows[-1]['claim_ms']['p99']} ms, post p50 {windows[-1]['post_ms']['p50']} p99 {windows[-1]['post_ms']['p99']} ms")
            done[0] = now
        return now > begin + seconds

    windows = []
    loop.run(reported)
    end = time.monotonic()
    after, memory = simulation.server_usage(server)
    inside = lambda lists: [s for one in lists for t, s in one if begin < t <= end]  # noqa: E731
    claims, posts, errors = inside([d.claims for d in fleet]), inside([d.posts for d in fleet]), [e for d in fleet for e in d.errors]
    result = {"devices": devices, "period_s": period, "candidates": candidates, "minutes": minutes, "pooled": pooler is not None,
              "snapshot": snapshot, "leases_s": round(len(posts) / (end - begin), 1),
              "records_s": round(candidates * len(posts) / (end - begin)), "claim_ms": milliseconds(claims),
              "post_ms": milliseconds(posts), "submit_ms": milliseconds([t for s in submitters for t in s.times]), "tick_ms": milliseconds(ticker.times),
              "server_cpu_ms_per_lease": round(1e3 * (after - before) / max(1, len(posts)), 2),
              "server_cores": round((after - before) / (end - begin), 2),
              "simulator_cores": round((time.process_time() - own) / (end - begin), 2),
              "pooler_cores": round((pooler.cpu() - pool_before) / (end - begin), 2) if pooler else 0,
              "server_memory_mib": memory >> 20, "idle_claims": sum(d.idle for d in fleet), "errors": len(errors),
              "first_error": errors[0] if errors else "", "load_average": os.getloadavg()[0], "windows": windows}  # fmt: skip
    if holder:
        holder.close()
    with server.connect() as owner, owner.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM fleet.records")
        result["records"] = cursor.fetchone()[0]
    return result


def told(result):
    return (f"{result['devices']} devices, {result['period_s']} s a lease{', pgbouncer' if result['pooled'] else ''}"
          f"{', beside a snapshot' if result['snapshot'] else ''}: {result['leases_s']} leases/s, {result['records_s']} records/s; claim p50 "
          f"{result['claim_ms']['p50']} p99 {result['claim_ms']['p99']} ms, post p50 {result['post_ms']['p50']} p99 {result['post_ms']['p99']} "
          f"ms; server {result['server_cpu_ms_per_lease']} ms CPU per lease, {result['server_cores']} cores, "
          f"{result['server_memory_mib']} MiB; simulator {result['simulator_cores']} cores; submit p50 {result['submit_ms']['p50']} ms, "
            f"{result['idle_claims']} claims found nothing; {result['errors']} errors "
          f"{result['first_error'][:200]}")  # fmt: skip


def limit(chosen, say):
    """Steps of a quarter more leases, until the p99 of claim or post is out of bounds."""
    steps, wanted = [], 100
    while True:
        devices = min(chosen.devices, wanted)
        steps.append(measure(devices, devices / wanted, chosen.candidates, chosen.minutes, chosen.pooled, batch=chosen.batch, say=say, folder=chosen.folder))
        say(f"asked for {wanted} leases/s: {steps[-1]['leases_s']}, claim p99 {steps[-1]['claim_ms']['p99']} ms, post p99 "
            f"{steps[-1]['post_ms']['p99']} ms")
        if max(steps[-1]["claim_ms"]["p99"], steps[-1]["post_ms"]["p99"]) > LIMIT_MS or steps[-1]["leases_s"] < 0.8 * wanted:
            return steps
        wanted = round(1.25 * wanted)


def main():
    parser = simulation.parser_of(__doc__)
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--period", type=float, default=2.0, help="seconds that a device holds a lease")
    parser.add_argument("--candidates", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--pooled", action="store_true")
    parser.add_argument("--snapshot", action="store_true")
    parser.add_argument("--batch", type=int, default=50, help="jobs that a submitter sends at a time")
    parser.add_argument("--limit", action="store_true")
    parser.add_argument("--folder", default="/var/tmp", help="where the server's files are; /dev/shm: what its disk does not cost")
    chosen = parser.parse_args()
    say = (lambda text: print(text, file=sys.stderr, flush=True)) if chosen.json else (lambda text: print(text, flush=True))
    if chosen.limit:
        results = limit(chosen, say)
    else:
        results = [measure(chosen.devices, chosen.period, chosen.candidates, chosen.minutes, chosen.pooled, chosen.snapshot, batch=chosen.batch, say=say, folder=chosen.folder)]
    simulation.report(chosen, {"runs": results}, map(told, results))


if __name__ == "__main__":
    main()
