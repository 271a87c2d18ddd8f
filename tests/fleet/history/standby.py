"""A standby of the private server, and the moment when it takes over.

The standby is a copy made while the server works; from then on each commit waits for it, so nothing acknowledged is
lost when the first server dies. Who connects by the name `current` (a symbolic link to a folder with a socket) comes
to the new server next. Example: Standby(cluster) copies and follows; 1 s later take_over() kills the first server
and all its processes, promotes the copy, and `cluster` is the new one, on timeline 2. take_over(cut_off=1.5) promotes
first: the old server is cut off from its standby and lives on for 1.5 s, with all its connections. Whoever writes
there waits for a standby that does not answer, and is told nothing.
"""

import contextlib
import copy
import os
import pathlib
import subprocess
import tempfile
import time

from patience import Patience
from server import programs


class Standby:
    """errors: RuntimeError if it does not follow in time."""

    def __init__(self, cluster, limit=20):
        self.cluster = cluster
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tw-pg-", dir=cluster.folder.parent))
        cluster.old_folders.append(folder)
        if cluster.user:
            os.chown(folder, cluster.user.pw_uid, cluster.user.pw_gid)
        folder.chmod(0o755)
        self.server = copy.copy(cluster)
        self.server.folder, self.server.data, self.server.log = folder, folder / "data", folder / "log"
        self.server.process = None
        self.server.make_disk()
        self.copy_data()
        self.server.start(limit)
        cluster.standby = self.server  # whoever ends the cluster ends it, too
        self.follow(limit)

    def copy_data(self):
        done = subprocess.run(
            [str(programs() / "pg_basebackup"), "-h", str(self.cluster.folder), "-U", self.cluster.owner, "-D",
             str(self.server.data), "-R", "-X", "stream", "-c", "fast", "--no-sync"],
            capture_output=True, text=True, check=False, **self.cluster._popen_options())  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError("pg_basebackup: " + done.stderr)
        with open(self.server.data / "postgresql.auto.conf", "a", encoding="utf-8") as file:
            file.write(f"unix_socket_directories = '{self.server.folder}'\nwal_retrieve_retry_interval = 100ms\n")

    def follow(self, limit):
        """From now on commits wait for the standby."""
        patience = Patience(limit)
        with contextlib.closing(self.cluster.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            cursor.execute("SELECT pg_reload_conf()")
            state = None
            while state != "sync":
                if patience.over():
                    raise RuntimeError(f"the standby does not follow: {state}")
                time.sleep(0.02)
                cursor.execute("SELECT sync_state FROM pg_stat_replication")
                state = (cursor.fetchone() or [None])[0]

    def take_over(self, cut_off=None):
        """`cluster` is the standby from now on; the first server is dead with all its processes, or, cut off for so
        many seconds, dies then."""
        cluster, server = self.cluster, self.server
        if cut_off is None:
            cluster.kill()
        first = copy.copy(cluster)
        cluster.standby = None
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT pg_promote(true, 30)")
        cluster.old_folders.remove(server.folder)
        cluster.old_folders.append(cluster.folder)
        cluster.folder, cluster.data, cluster.log = server.folder, server.data, server.log
        cluster.process = server.process
        cluster.point()
        if cut_off is not None:
            try:
                time.sleep(cut_off)
            finally:
                first.kill()
