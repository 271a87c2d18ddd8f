"""A private PostgreSQL whose clock can be stepped, whose disk can be filled, and which can be killed at any point.

The data lie on a small tmpfs where that may be mounted (else in the folder, and the disk is never full). The server
preloads libfaketime, which reads the offset of its clock from a file: cluster.step(3600) moves a running server by an
hour. It ends with this process, however that ends.
"""

import ctypes
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import client  # noqa: E402
from patience import Patience  # noqa: E402
from server import PrivateServer  # noqa: E402

SETTINGS = {
    "max_connections": 120, "superuser_reserved_connections": 10, "max_wal_size": "96MB", "min_wal_size": "32MB",
    "wal_writer_delay": "10s", "wal_writer_flush_after": 0,  # what is committed asynchronously stays at risk for long
    "jit": "off"}  # fmt: skip
DISK = "400m"
PR_SET_PDEATHSIG = 1


def faketime_library():
    found = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    return found[0] if found else None


def dies_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def signal_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Cluster(PrivateServer):
    """`folder`: where others may read; it gets the file with the clock's offset, and `current`, a link to the folder
    with the socket. `history`: where steps of the clock are told."""

    owner = "postgres"

    def __init__(self, folder, history):
        self.clock, self.socket = os.path.join(folder, "clock"), os.path.join(folder, "current")
        self.history, self.offset, self.standby, self.old_folders = history, 0, None, []
        self.own_disk, self.ballast, self.fakes = False, None, faketime_library()
        self.write_clock()
        prefix = ["setpriv", "--pdeathsig", "QUIT"] if shutil.which("setpriv") else []
        if self.fakes:
            # Stat is not faked: that takes a semaphore, which a killed process may hold for ever.
            prefix += ["env", f"LD_PRELOAD={self.fakes}", f"FAKETIME_TIMESTAMP_FILE={self.clock}",
                       "FAKETIME_NO_CACHE=1", "FAKETIME_DISABLE_SHM=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
                       "NO_FAKE_STAT=1"]  # fmt: skip
        self.pids = []  # of all servers that were started
        super().__init__(SETTINGS, prefix=prefix)
        self.point()

    def point(self):
        """Who connects by `current` comes to this server."""
        os.symlink(self.folder, self.socket + ".new")
        os.replace(self.socket + ".new", self.socket)

    def _initialise(self):
        self.make_disk()
        super()._initialise()

    def make_disk(self):
        self.data.mkdir()
        if os.geteuid() == 0:
            mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "fleet_history", str(self.data)]
            self.own_disk = subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode == 0
        if self.user:
            os.chown(self.data, self.user.pw_uid, self.user.pw_gid)
        self.data.chmod(0o700)

    def start(self, limit=60):
        """Tries again while something of the last server is left."""
        patience = Patience(limit)
        while True:
            try:
                self.process = None
                super().start(limit)
                self.pids.append(self.process.pid)
                return
            except RuntimeError:
                if patience.over():
                    raise
                time.sleep(0.05)

    def answers(self):
        return client.answers(self.socket)

    def children(self):
        """Process ids of the server, by what they are: "alice fleet [local] SELECT", "walwriter", ..."""
        found = {}
        for pid in self.processes() if self.running() else ():
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                    found[pid] = file.read().replace("\0", " ").removeprefix("postgres: ").strip()
            except OSError:
                pass
        return found

    def backends(self):
        """Those that serve a client of the test, and what they do."""
        return {pid: text for pid, text in self.children().items()
                if " fleet " in text and not text.startswith("postgres ")}

    def kill_postmaster(self):
        """kill -9 of the server alone: its processes see that, finish what they do, and end."""
        self.process.kill()
        self.process.wait()
        self.process = None
        begin = time.monotonic()
        while left := self.left_over():
            # Those that a fault has stopped go on; and none is waited for without end.
            signal_all(left, signal.SIGCONT if time.monotonic() < begin + 3 else signal.SIGKILL)
            time.sleep(0.01)

    def left_over(self):
        """Processes of a server that work in the data folder."""
        found = []
        for link in pathlib.Path("/proc").glob("[0-9]*/cwd"):
            try:
                if os.readlink(link) == str(self.data):
                    found.append(int(link.parent.name))
            except OSError:
                pass
        return found

    def write_clock(self):
        """In one step: the server reads the file at every look at its clock."""
        with open(self.clock + ".new", "w", encoding="ascii") as file:
            file.write(f"{self.offset:+d}\n")
        os.chmod(self.clock + ".new", 0o644)
        os.replace(self.clock + ".new", self.clock)

    def step(self, seconds):
        """Moves the server's clock. The log tells the offset before and after."""
        before, self.offset = self.offset, self.offset + seconds
        self.history.note("step", before=before, after=self.offset)
        self.write_clock()
        self.history.note("stepped", offset=self.offset)

    def fill(self):
        """Takes all that is left of the disk."""
        self.ballast = self.data / "ballast"
        room = os.statvfs(self.data)
        with open(self.ballast, "wb") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, max(1, room.f_bavail * room.f_frsize))
            except OSError:
                pass

    def empty(self):
        if self.ballast is not None:
            self.ballast.unlink(missing_ok=True)
            self.ballast = None

    def remove(self):
        if self.standby:
            self.standby.kill()
            self.standby = None
        try:
            self.stop(10)  # gives back the shared memory, which a kill would not
            self.kill()
        finally:
            for pid in self.pids:  # of a libfaketime that does not know FAKETIME_DISABLE_SHM
                for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
                    pathlib.Path("/dev/shm", name).unlink(missing_ok=True)
            for folder in (self.folder, *self.old_folders):
                self.unmount(folder / "data")
                shutil.rmtree(folder, ignore_errors=True)

    def unmount(self, disk):
        for _ in range(50 if os.path.ismount(disk) else 0):
            if subprocess.run(["umount", str(disk)], check=False, stderr=subprocess.DEVNULL).returncode == 0:
                return
            time.sleep(0.1)
