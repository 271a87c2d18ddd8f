"""Runs the world: starts all processes, injects faults, heals, waits until everything is over, ends all.

A round is: faults until so many kills have happened; then the connections are healed, stopped processes go on, dead
ones are started again, and no new runs are made; then the drain: every job must come to its end. Several rounds may
follow each other on the same server. Example of a round of 3 kills: kill agent d2; step the clock by an hour;
kill -9 the postmaster, start it 0.5 s later; kill a backend; heal; drain in 1.4 s.
"""

import heapq
import itertools
import os
import signal
import sys
import time
import traceback

import psycopg2

from agents import Agent
from client import Client, Late, Refused, Unknown
from cluster import dies_with_parent
from faults import Nemesis, Pauser, started
from log import Log
from patience import Patience
from proxy import Proxy
from standby import Standby
from submitters import Canceller, Submitter
from world import DEVICES, LEASE, SUBMITTERS

STUCK = 40  # seconds until a drain that does not end is a violation
IDLE_SQL = """
SELECT j.id::text, d.name FROM fleet.jobs j JOIN fleet.serves s ON s.queue = j.queue
JOIN fleet.devices d ON d.id = s.device WHERE j.state = 'ready' AND d.state = 'free'
AND (j.losses < 2 OR fleet.may_try(j.id, j.next, j.queue, d.id)) LIMIT 500"""


class Child:
    def __init__(self, name, pid):
        self.name, self.pid, self.start = name, pid, started(pid)


class Supervisor:
    def __init__(self, folder, cluster, seed):
        self.folder, self.cluster, self.seed = folder, cluster, seed
        self.history, self.pids = os.path.join(folder, "history"), os.path.join(folder, "pids")
        self.front, self.quiet = os.path.join(folder, "front"), os.path.join(folder, "quiet")
        for path in (self.pids, self.front):
            os.makedirs(path, exist_ok=True)
        self.log = Log(self.history, "supervisor")
        self.owner = Client(cluster.socket, "postgres", self.log, limit=5.0)
        self.children, self.lives, self.counts = {}, itertools.count(), {}
        self.later, self.order = [], itertools.count()
        self.healing, self.stepped = False, 0.0

    # --- processes

    def spawn(self, name, make):
        """A child that runs make().run(); it dies with this process and leaves Ctrl-C to it."""
        sys.stdout.flush()
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            code = 1
            try:
                dies_with_parent()
                if os.getppid() != parent:
                    os._exit(1)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                make().run()
                code = 0
            except BaseException:  # pylint: disable=broad-except
                with open(os.path.join(self.folder, "errors"), "a", encoding="utf-8") as file:
                    file.write(f"{name}\n{traceback.format_exc()}\n")
            os._exit(code)
        self.children[name] = Child(name, pid)
        return self.children[name]

    def end_child(self, name, number=signal.SIGKILL):
        child = self.children.pop(name)
        try:
            os.kill(child.pid, number)  # ours and not waited for yet: the number is its own
            if number != signal.SIGKILL:
                os.kill(child.pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
        os.waitpid(child.pid, 0)

    def reap(self):
        """Names of children that ended by themselves, with their exit codes."""
        over = []
        for name, child in list(self.children.items()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                del self.children[name]
                over.append((name, os.waitstatus_to_exitcode(status)))
        return over

    def agents(self):
        return [name for name in self.children if name.startswith("agent")]

    def submitters(self):
        return [name for name in self.children if name.startswith("submitter")]

    def start_agent(self, slot):
        """Slot 0 and 6 are two workers that reach one board."""
        name = f"agent{slot}"
        if name in self.children:
            return
        device, life = DEVICES[slot % len(DEVICES)], next(self.lives)
        child = self.spawn(name, lambda: Agent(self.history, self.front, device, life, self.seed))
        with open(os.path.join(self.pids, name), "w", encoding="ascii") as file:
            file.write(f"{child.pid} {child.start}")

    def start_submitter(self, name):
        if f"submitter {name}" in self.children:
            return
        life = next(self.lives)
        self.spawn(f"submitter {name}", lambda: Submitter(self.history, self.front, name, life, self.seed, self.quiet))

    def start_all(self):
        """All that is not running: a round begins."""
        self.healing = False
        if os.path.exists(self.quiet):
            os.remove(self.quiet)
        life = next(self.lives)
        listening = os.path.join(self.front, ".s.PGSQL.5432")
        if os.path.exists(listening):
            os.remove(listening)
        self.spawn("proxy", lambda: Proxy(self.front, self.cluster.socket, Log(self.history, f"proxy:{life}"),
                                          f"{self.seed} {life}"))
        while not os.path.exists(listening):
            time.sleep(0.005)
        for slot in range(len(DEVICES) + 1):
            self.start_agent(slot)
        for name in SUBMITTERS:
            self.start_submitter(name)
        self.spawn("canceller", lambda: Canceller(self.history, self.front, self.cluster.socket,
                                                  f"{self.seed} {life}"))
        self.spawn("pauser", lambda: Pauser(self.history, self.pids, f"{self.seed} {life}"))

    def end_all(self):
        for name in list(self.children):
            self.end_child(name)

    # --- faults

    def after(self, seconds, action):
        heapq.heappush(self.later, (time.monotonic() + seconds, next(self.order), action))

    def rest(self, until):
        """Waits, and does in between what is due."""
        while True:
            now = time.monotonic()
            while self.later and self.later[0][0] <= now:
                heapq.heappop(self.later)[2]()
            for name, code in self.reap():
                self.log.note("ended", name=name, code=code)
                if name.startswith("submitter") and (code != 0 or not self.healing):
                    self.start_submitter(name.split()[1])
                elif name.startswith("agent"):
                    self.start_agent(int(name[5:]))
            if now >= until:
                return
            time.sleep(min(0.02, max(0.0, until - now)))

    def faults(self, kills, pace, seed, limit, promotions=0):
        """Injects faults until so many kills have happened, at most for LIMIT seconds. Number of kills."""
        nemesis, done, patience = Nemesis(seed, pace), 0, Patience(limit)
        promotes = [kills * (i + 1) // (promotions + 1) for i in range(promotions)]
        self.after(2.0, self.clear_suspects)
        while done < kills and not patience.over():
            if not self.cluster.running():  # ended by itself, as on a full disk
                self.cluster.empty()
                self.cluster.start()
            if promotes and done >= promotes[0]:
                promotes.pop(0)
                self.promote(nemesis)
                done += 1
            wait, fault = nemesis.next()
            self.rest(time.monotonic() + wait)
            if getattr(self, f"do_{fault}")(nemesis):
                done += 1 if fault in ("agent", "submitter", "backend", "server_process", "postmaster") else 0
                self.counts[fault] = self.counts.get(fault, 0) + 1
        return done

    def do_agent(self, nemesis):
        name = nemesis.chosen(self.agents())
        if name is None:
            return False
        self.log.note("kill", kind="agent", who=name)
        self.end_child(name)
        self.after(nemesis.agent_away(), lambda: self.start_agent(int(name[5:])))
        return True

    def do_submitter(self, nemesis):
        name = nemesis.chosen(self.submitters())
        if name is None:
            return False
        self.log.note("kill", kind="submitter", who=name)
        self.end_child(name)
        self.after(nemesis.random.uniform(0, 0.3), lambda: self.start_submitter(name.split()[1]))
        return True

    def kill_process(self, pid, text):
        self.log.note("kill", kind="server", who=text)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def do_backend(self, nemesis):
        """One that is at work, if there is one."""
        backends = self.cluster.backends()
        pid = nemesis.chosen([pid for pid, text in backends.items() if not text.endswith("idle")] or backends)
        return pid is not None and self.kill_process(pid, backends[pid])

    def do_server_process(self, nemesis):
        others = {pid: text for pid, text in self.cluster.children().items() if " fleet " not in text}
        pid = nemesis.chosen(others)
        return pid is not None and self.kill_process(pid, others[pid])

    def do_postmaster(self, nemesis):
        self.log.note("kill", kind="postmaster", who="postmaster")
        self.cluster.kill_postmaster()
        self.rest(time.monotonic() + nemesis.server_away())
        self.cluster.empty()
        self.cluster.start()
        self.log.note("server_started")
        return True

    def promote(self, nemesis):
        """A standby takes over. Nothing else is killed while it follows: what a server that comes up again shows
        may not have reached the standby."""
        self.rest(time.monotonic() + 0.5)
        self.revive(60)
        standby = Standby(self.cluster)
        self.log.note("following")
        self.rest(time.monotonic() + nemesis.random.uniform(0.5, 1.5))
        cut_off = nemesis.chosen((0.2, 1.0, 2.5)) if nemesis.random.random() < 0.5 else None
        self.log.note("kill", kind="promote", who="server", cut_off=cut_off)
        standby.take_over(cut_off)
        self.log.note("server_started")
        kind = "promote" if cut_off is None else "promote_cut_off"
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def revive(self, seconds):
        """Waits until the server answers: one of whose processes was killed recovers first."""
        self.cluster.empty()
        patience = Patience(seconds)
        while not self.cluster.answers() and not patience.over():
            if not self.cluster.running():  # ended by itself, as on a full disk
                self.cluster.start()
            time.sleep(0.02)

    def do_step(self, nemesis):
        if not self.cluster.fakes or time.monotonic() < self.stepped + 2 * LEASE:
            return False
        try:  # so that no two steps fall between two ticks: they could undo each other, unseen
            self.owner.call("tick")
        except (Refused, Unknown):
            return False
        self.cluster.step(nemesis.hour(self.cluster.offset))
        self.stepped = time.monotonic()
        return True

    def do_disk(self, nemesis):
        if not self.cluster.own_disk:
            return False
        self.log.note("disk_full")
        self.cluster.fill()
        self.after(nemesis.random.uniform(0.2, 1.5), self.cluster.empty)
        return True

    def do_stall(self, nemesis):
        """A server process stops for a moment in the middle of what it does, maybe with locks held."""
        busy = {pid: text for pid, text in self.cluster.backends().items() if not text.endswith("idle")}
        pid = nemesis.chosen(busy)
        start = pid and started(pid)
        if start is None:
            return False
        self.log.note("stall", who=busy[pid])
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return False
        self.after(nemesis.random.uniform(0.02, 0.5), lambda: self.resume(pid, start))
        return True

    def resume(self, pid, start):
        try:
            if started(pid) == start:
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def clear_suspects(self):
        """What an operator does with devices that lost too many leases."""
        try:
            for (name,) in self.owner.select("SELECT name FROM fleet.devices WHERE state = 'suspect'"):
                self.owner.call("clear_device", name)
        except (psycopg2.Error, Late, Refused, Unknown):
            pass
        self.after(1.0, self.clear_suspects)

    # --- the end

    def heal(self):
        """Nothing is broken any more; what was held back is done now."""
        self.healing = True
        while self.later:
            _, _, action = heapq.heappop(self.later)
            if action != self.clear_suspects:
                action()
        for name in ("canceller", "pauser"):
            self.end_child(name, signal.SIGTERM)
        os.kill(self.children["proxy"].pid, signal.SIGUSR1)
        self.revive(15)
        for slot in range(len(DEVICES) + 1):
            self.start_agent(slot)
        for name in SUBMITTERS:
            self.start_submitter(name)
        self.log.note("healed")
        self.clear_suspects()
        with open(self.quiet, "w", encoding="ascii"):
            pass

    def drain(self, limit=STUCK):
        """Waits until all submitters have seen their runs end. True if they have; samples what is idle."""
        patience = Patience(limit)
        while self.submitters() and not patience.over():
            self.rest(time.monotonic() + 0.1)
            try:
                self.log.note("sample", pairs=self.owner.select(IDLE_SQL))
            except (psycopg2.Error, Late):
                pass
        over = not self.submitters()
        self.log.note("drained", over=over, seconds=patience.spent)
        self.later.clear()
        for name in self.agents() + self.submitters() + ["proxy"]:
            self.end_child(name)
        if not over:
            return False
        self.settle(3 * LEASE)
        return True

    def settle(self, limit):
        """Ticks until no lease is left: agents that ended held some."""
        patience = Patience(limit)
        while not patience.over():
            self.owner.call("tick")
            if not self.owner.select("SELECT FROM fleet.devices WHERE state = 'leased'"):
                return
            time.sleep(0.1)
