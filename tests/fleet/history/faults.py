"""Faults: which, when and on whom, drawn from a seeded generator; and the pauser, which stops agents for a while.

`Nemesis.next()` names the next fault: kills (agents, submitters, server processes, the postmaster; these count as
`kills`) and others (a step of the clock by an hour, a full disk, a server process stopped in the middle of what it
does). Example: seed 1 begins: kill agent d2, 0.4 s later kill -9 of a backend while it claims, then a step of -1 h.
"""

import heapq
import os
import random
import signal
import time

from log import Log
from world import LEASE

KILLS = (("agent", 40), ("submitter", 14), ("backend", 22), ("server_process", 4), ("postmaster", 14))
OTHERS = (("step", 10), ("disk", 4), ("stall", 16))


class Nemesis:
    """Draws faults. `pace`: mean seconds from one kill to the next."""

    def __init__(self, seed, pace):
        self.random, self.pace = random.Random(f"{seed} nemesis"), pace

    def next(self):
        """Seconds to wait, and the name of the fault."""
        names = KILLS + OTHERS
        weights = [weight for _, weight in names]
        share = sum(weight for _, weight in KILLS) / sum(weights)
        wait = min(self.random.expovariate(1 / (self.pace * share)), 4 * self.pace)
        return wait, self.random.choices([name for name, _ in names], weights)[0]

    def chosen(self, things):
        return self.random.choice(sorted(things)) if things else None

    def agent_away(self):
        """Seconds until a killed agent is started again: before or after its lease is over."""
        return self.random.choice((0.0, 0.3, 1.5)) * LEASE

    def server_away(self):
        """Seconds without a server; more than 5 now and then: then lease ends are moved."""
        return self.random.choices((0.0, 0.5, 1.5, 6.0), (60, 25, 12, 3))[0]

    def hour(self, offset):
        """A step that keeps the clock within hours of the true one."""
        return -3600 if offset >= 7200 else 3600 if offset <= -7200 else self.random.choice((-3600, 3600))


def started(pid):
    """When a process was started, in ticks: with the pid it names a process for good. None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[19]
    except OSError:
        return None


class Pauser:
    """Stops agents (SIGSTOP) for 0.5 to 5 leases. Reads who they are from files FOLDER/NAME: "pid start"."""

    def __init__(self, folder, pids, seed):
        self.pids, self.random = pids, random.Random(f"{seed} pauser")
        self.log, self.stopped = Log(folder, f"pauser:{time.monotonic_ns()}"), []

    def run(self):
        signal.signal(signal.SIGTERM, lambda *_: self.end())
        after = time.monotonic() + 0.5
        while True:
            now = time.monotonic()
            while self.stopped and self.stopped[0][0] <= now:
                self.resume(heapq.heappop(self.stopped))
            if now >= after:
                after = now + self.random.uniform(0.5, 2.5) * LEASE
                self.stop()
            time.sleep(0.02)

    def stop(self):
        name = self.random.choice(sorted(os.listdir(self.pids)) or [None])
        seconds = self.random.uniform(0.5, 5) * LEASE
        if name is None:
            return
        try:
            with open(os.path.join(self.pids, name), encoding="ascii") as file:
                pid, start = file.read().split()
            handle = os.pidfd_open(int(pid))
        except (OSError, ValueError):
            return
        if started(pid) != start:  # the process is gone and its number is another's
            os.close(handle)
            return
        self.log.note("stop", agent=name, seconds=seconds)
        self.send(handle, signal.SIGSTOP)
        heapq.heappush(self.stopped, (time.monotonic() + seconds, handle, name))

    def send(self, handle, number):
        try:
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            pass

    def resume(self, stopped):
        _, handle, name = stopped
        self.send(handle, signal.SIGCONT)
        self.log.note("go", agent=name)
        os.close(handle)

    def end(self):
        for stopped in self.stopped:
            self.send(stopped[1], signal.SIGCONT)
        os._exit(0)
