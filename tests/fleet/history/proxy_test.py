#!/usr/bin/env python3
"""The proxy alone: what a partition keeps back and when it arrives, and a connection that the server thinks is there.
And that a client's limit of time holds in every round.
"""

import os
import select
import socket
import struct
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import psycopg2.extensions  # noqa: E402

import client  # noqa: E402
import proxy as proxies  # noqa: E402
from proxy import Proxy  # noqa: E402

SOCKET = ".s.PGSQL.5432"


class Silent:
    """A log that nobody reads."""

    def note(self, *_, **__):
        pass


def first_message(login):
    pairs = f"user\0{login}\0database\0fleet\0\0".encode()
    return struct.pack(">ii", 8 + len(pairs), 196608) + pairs


def data_of(end):
    """What has arrived; None: nothing yet; b"": it is closed."""
    if not select.select([end], [], [], 0)[0]:
        return None
    try:
        return end.recv(1 << 16)
    except ConnectionResetError:
        return b""


class ProxyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tw-proxy-")
        front, back = os.path.join(self.folder.name, "front"), os.path.join(self.folder.name, "back")
        os.mkdir(front)
        os.mkdir(back)
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(os.path.join(back, SOCKET))
        self.server.listen(8)
        self.front = os.path.join(front, SOCKET)
        self.proxy = Proxy(front, back, Silent(), 1)
        self.proxy.random.uniform = lambda least, _: least
        self.fates, proxies.FATES = proxies.FATES, ()

    def tearDown(self):
        proxies.FATES = self.fates
        self.server.close()
        self.folder.cleanup()

    def connected(self, login):
        """The two ends of a connection that has begun."""
        client = socket.socket(socket.AF_UNIX)
        client.connect(self.front)
        client.sendall(first_message(login))
        self.work(0.05)
        end, _ = self.server.accept()
        self.addCleanup(client.close)
        self.addCleanup(end.close)
        return client, end

    def work(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.proxy.step()

    def test_a_partition_keeps_back_one_login_and_delivers_later(self):
        site, at_server = self.connected("site1")
        other, others_end = self.connected("site2")
        self.assertEqual(data_of(at_server), first_message("site1"))
        self.assertEqual(data_of(others_end), first_message("site2"))
        self.proxy.cut_off("site1", "asks", 1.2, False)
        site.sendall(b"post")
        other.sendall(b"claim")
        at_server.sendall(b"answer")
        late = socket.socket(socket.AF_UNIX)
        self.addCleanup(late.close)
        late.connect(self.front)
        late.sendall(first_message("site1"))
        self.work(0.2)
        self.assertEqual(data_of(others_end), b"claim")
        self.assertEqual(data_of(site), b"answer", "answers pass")
        self.assertIsNone(data_of(at_server), "what site1 asks does not")
        lates_end, _ = self.server.accept()
        self.addCleanup(lates_end.close)
        self.assertIsNone(data_of(lates_end), "on no connection, old or new")
        site.close()  # it has given up; what it asked for arrives all the same
        self.work(1.4)
        self.assertEqual(data_of(at_server), b"post")
        self.assertEqual(data_of(at_server), b"", "then that it is gone")
        self.assertEqual(data_of(lates_end), first_message("site1"))

    def test_answers_that_stay_are_lost_where_it_resets(self):
        site, at_server = self.connected("site1")
        data_of(at_server)
        self.proxy.cut_off("site1", "answers", 1.2, True)
        site.sendall(b"post")
        self.work(0.1)
        self.assertEqual(data_of(at_server), b"post", "it is done")
        at_server.sendall(b"ok")
        self.work(0.1)
        self.assertIsNone(data_of(site), "and nobody hears of it")
        self.work(1.4)
        self.assertEqual(data_of(site), b"")
        self.assertEqual(data_of(at_server), b"")

    def test_a_ghost_stays_at_the_server(self):
        client, at_server = self.connected("alice")
        data_of(at_server)
        proxies.FATES = (("ghost", 1.0),)
        client.sendall(b"look")
        self.work(0.1)
        self.assertEqual(data_of(at_server), b"look")
        client.close()
        self.work(0.3)
        self.assertIsNone(data_of(at_server), "the server does not know that it is alone")
        self.work(1.2)
        self.assertEqual(data_of(at_server), b"")


class LimitTest(unittest.TestCase):
    def test_it_holds_after_tables_were_read(self):
        """Which switches it off: a server process that is stopped with a lock would stop the whole test."""
        psycopg2.extensions.set_wait_callback(None)
        with client.limited(1):
            self.assertIs(psycopg2.extensions.get_wait_callback(), client._wait)


if __name__ == "__main__":
    unittest.main()
