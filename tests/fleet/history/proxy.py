"""A proxy between clients and the server on Unix sockets, that spoils connections.

What comes from a client in one piece is, but for pipelining, one request. Each draws a fate:
  pass     handed on
  ask_cut  the connection is cut before the request reaches the server
  tear     half of the request reaches the server, then the connection is cut
  deaf     the request reaches the server, the connection is cut before the answer: "reply lost after commit"
  mute     the same, but the client is left waiting: the connection stays open and says nothing
  half     handed on, then the server is told that nothing more comes (the client's side is shut)
  slow     handed on after 5 ms to 0.4 s
  late     the client's side is cut at once; the request reaches the server 0.2 to 3 s later, when the client has
           asked again or somebody else has the lease
  ghost    handed on; when the client goes, the server does not hear of it for 1 to 6 s

Now and then the network parts, for half a lease to four leases: all connections of one login, a site's, those that
are there and new ones, pass nothing in one direction or in both. Nobody is told. Then what was sent meanwhile
arrives, as a network sends again what was lost; or all these connections are reset. Example: the answers to site1
stop for 2 s; its agents ask again on connections that say nothing; another agent gets the jobs; then all of it
arrives at once.

SIGUSR1 heals: from then on everything passes.
"""

import os
import random
import selectors
import signal
import socket
import time

from world import LEASE, USERS, WORKERS

FATES = (("ask_cut", 0.004), ("tear", 0.003), ("deaf", 0.012), ("mute", 0.004), ("half", 0.003), ("slow", 0.02),
         ("late", 0.008), ("ghost", 0.01))
PARTED_EVERY = 6 * LEASE  # mean time from one partition to the next
SIDES = {"asks": (True,), "answers": (False,), "both": (True, False)}  # whose data stays: the client's, the server's


class Pair:
    """A client's connection and the server's for it; either may be gone."""

    def __init__(self, client, server):
        self.client, self.server, self.silent = client, server, False
        self.login, self.ghost = None, False

    def end(self, of_client):
        return self.client if of_client else self.server


def login_of(first):
    """Who wants to log in, by the first bytes of a connection: the pairs after length and version."""
    words = first[8:].split(b"\0")
    return dict(zip(words[::2], words[1::2])).get(b"user", b"").decode()


class Proxy:
    def __init__(self, front, back, log, seed):
        self.back, self.log, self.random = os.path.join(back, ".s.PGSQL.5432"), log, random.Random(f"{seed} proxy")
        self.selector, self.healed, self.waiting = selectors.DefaultSelector(), False, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(front, ".s.PGSQL.5432"))
        self.listener.listen(64)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.counts, self.parted, self.held = {}, None, []

    def run(self):
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "healed", True))
        self.part_later()
        while True:
            self.step()

    def step(self):
        """What came in, and what is due; waits for up to 0.2 s."""
        soonest = min((at for at, _ in self.waiting), default=time.monotonic() + 0.2)
        for key, _ in self.selector.select(max(0.0, min(0.2, soonest - time.monotonic()))):
            if key.fileobj is self.listener:
                self.accept()
            elif key.fileobj.fileno() >= 0:
                self.move(key.fileobj, *key.data)
        now = time.monotonic()
        due = [action for at, action in self.waiting if at <= now]
        self.waiting = [(at, action) for at, action in self.waiting if at > now]
        for action in due:
            action()

    def accept(self):
        client, _ = self.listener.accept()
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self.back)
        except OSError:
            client.close()
            server.close()
            return
        pair = Pair(client, server)
        self.selector.register(client, selectors.EVENT_READ, (pair, True))
        self.selector.register(server, selectors.EVENT_READ, (pair, False))

    def shut(self, end):
        if end.fileno() >= 0:
            try:
                self.selector.unregister(end)
            except KeyError:
                pass
            end.close()

    def cut(self, pair):
        self.shut(pair.client)
        self.shut(pair.server)

    def give(self, pair, end, data):
        try:
            end.settimeout(2.0)
            end.sendall(data)
        except OSError:
            self.cut(pair)

    def move(self, end, pair, from_client):
        try:
            data = end.recv(1 << 18)
        except OSError:
            data = b""
        if from_client and pair.login is None and data:
            pair.login = login_of(data)
        if self.stays(pair, from_client):
            self.selector.unregister(end)
            self.held.append((pair, from_client, data))
        else:
            self.arrive(pair, from_client, data)

    def arrive(self, pair, from_client, data):
        if not data and from_client and pair.ghost:
            self.shut(pair.client)
            pair.silent = True
            self.after(self.random.uniform(1.0, 6.0), lambda: self.cut(pair))
        elif not data:
            self.cut(pair)
        elif not from_client:
            if not pair.silent:
                self.give(pair, pair.client, data)
        else:
            self.ask(pair, data)

    # --- partitions

    def part_later(self):
        self.after(self.random.expovariate(1 / PARTED_EVERY), self.part)

    def stays(self, pair, from_client):
        return self.parted is not None and pair.login == self.parted[0] and from_client in self.parted[1]

    def part(self):
        if not self.healed:
            self.cut_off(self.random.choice(WORKERS * 2 + USERS), self.random.choice(sorted(SIDES)),
                         self.random.uniform(0.5, 4) * LEASE, self.random.random() < 0.5)

    def cut_off(self, login, side, seconds, resets):
        """From now on a login's data stays where it is."""
        self.parted = (login, SIDES[side])
        self.log.note("parted", login=login, side=side, seconds=seconds, resets=resets)
        self.counts["parted"] = self.counts.get("parted", 0) + 1
        self.after(seconds, lambda: self.join(resets))

    def join(self, resets):
        """What stayed arrives, or the connections are gone."""
        held, self.parted, self.held = self.held, None, []
        self.log.note("joined", held=len(held), resets=resets)
        for pair, from_client, data in held:
            end = pair.end(from_client)
            if resets:
                self.cut(pair)
            elif end.fileno() >= 0:
                self.selector.register(end, selectors.EVENT_READ, (pair, from_client))
                self.arrive(pair, from_client, data)
        self.part_later()

    # --- fates

    def fate(self):
        if self.healed:
            return "pass"
        drawn = self.random.random()
        for name, chance in FATES:
            drawn -= chance
            if drawn < 0:
                self.counts[name] = self.counts.get(name, 0) + 1
                self.log.note("cut", fate=name)
                return name
        return "pass"

    def ask(self, pair, data):
        """A request, and its fate."""
        fate = self.fate()
        if fate == "ask_cut":
            self.cut(pair)
        elif fate == "tear":
            self.give(pair, pair.server, data[:max(1, len(data) // 2)])
            self.cut(pair)
        elif fate == "deaf":
            pair.silent = True
            self.give(pair, pair.server, data)
            self.after(0.05, lambda: self.cut(pair))
        elif fate == "mute":
            pair.silent = True
            self.give(pair, pair.server, data)
        elif fate == "half":
            self.give(pair, pair.server, data)
            if pair.server.fileno() >= 0:
                pair.server.shutdown(socket.SHUT_WR)
        elif fate == "ghost":
            pair.ghost = True
            self.give(pair, pair.server, data)
        elif fate == "slow":
            self.hold(pair, pair.client)
            self.after(self.random.uniform(0.005, 0.4), lambda: self.resume(pair, data))
        elif fate == "late":
            self.shut(pair.client)
            pair.silent = True
            self.after(self.random.uniform(0.2, 3.0), lambda: self.give(pair, pair.server, data))
            self.after(4.0, lambda: self.cut(pair))
        else:
            self.give(pair, pair.server, data)

    def after(self, seconds, action):
        self.waiting.append((time.monotonic() + seconds, action))

    def hold(self, pair, end):
        """Nothing more is read from it until `resume`: what it sends must not overtake."""
        self.selector.unregister(end)

    def resume(self, pair, data):
        if pair.client.fileno() >= 0:
            self.selector.register(pair.client, selectors.EVENT_READ, (pair, True))
        if pair.server.fileno() >= 0:
            self.give(pair, pair.server, data)
