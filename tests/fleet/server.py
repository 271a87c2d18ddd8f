"""A PostgreSQL server of a test's own, on a Unix socket in a temporary folder.

    with PrivateServer() as server:
        server.apply_schema()
        connection = server.connect()

It runs as the user postgres where the caller is root, because PostgreSQL refuses to run as root, and
as a child of the caller: pg_ctl would leave a zombie after a kill, and with it the lock file.
"""

import atexit
import hashlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

import psycopg2

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = pathlib.Path(os.environ.get("FLEET_SCHEMA") or ROOT / "src/tilewright/fleet/schema")
MIGRATION_LOCK = 7022365335  # the same number as in the program that applies these files


def programs():
    """The folder with initdb and postgres: TILEWRIGHT_POSTGRES, else the newest that Debian has."""
    given = os.environ.get("TILEWRIGHT_POSTGRES")
    if given:
        return pathlib.Path(given)
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[4]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    if not on_path:
        raise RuntimeError("no PostgreSQL server is installed")
    return pathlib.Path(on_path).resolve().parent


class PrivateServer:
    """The folder and, while it runs, the server in it. `owner`: the superuser, who owns the schema."""

    owner = "owner"

    def __init__(self, settings=None, environment=None, prefix=(), base=None):
        """`settings`: more lines for postgresql.conf; `environment`: more variables of the server;
        `prefix`: words before the command of the server; `base`: where its folder is made, else in memory if it can."""
        self.settings = dict(settings or {})
        self.environment = dict(environment or {})
        # A test that is killed takes its server along.
        self.prefix = list(prefix or (["setpriv", "--pdeathsig", "QUIT"] if shutil.which("setpriv") else []))
        self.process = None
        self.maker = os.getpid()
        self.user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        base = base or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tw-pg-", dir=base))
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        atexit.register(self.remove)
        try:
            if self.user:
                os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
            self.folder.chmod(0o755)  # the socket is for whoever runs the test
            self._initialise()
            self.start()
        except BaseException:
            self.remove()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def _command(self, *words):
        return [str(programs() / words[0]), *words[1:]]

    def _popen_options(self):
        # The parent ignores and handles signals of its own; the server gets those of its own folder.
        options = {"env": {**os.environ, "LC_ALL": "C", **self.environment}, "cwd": "/", "stdin": subprocess.DEVNULL,
                   "start_new_session": True}  # fmt: skip
        if self.user:
            options.update(user=self.user.pw_uid, group=self.user.pw_gid, extra_groups=[])
        return options

    def _initialise(self):
        done = subprocess.run(
            self._command("initdb", "-D", str(self.data), "-U", self.owner, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"),
            capture_output=True, text=True, check=False, **self._popen_options())  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError("initdb failed: " + done.stderr)
        lines = {"listen_addresses": "''", "unix_socket_directories": f"'{self.folder}'", "max_connections": "100",
                 "shared_buffers": "32MB", "log_min_messages": "warning", "autovacuum_naptime": "5s",
                 # In the data folder: a server that is killed leaves nothing elsewhere.
                 "dynamic_shared_memory_type": "mmap",
                 **self.settings}  # fmt: skip
        with open(self.data / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in lines.items())

    def start(self, limit=60):
        """Starts the server and waits until it answers. errors: RuntimeError with its log."""
        assert not self.running()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.prefix + self._command("postgres", "-D", str(self.data)),
                                            stdout=log, stderr=log, **self._popen_options())  # fmt: skip
        end = time.monotonic() + limit
        while True:
            try:
                self.connect(dbname="postgres").close()
                return
            except psycopg2.OperationalError as problem:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the server does not start: {problem}\n{self.log.read_text()}") from problem
                time.sleep(0.02)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, limit=30):
        """Ends it as an administrator would: sessions are cut, all is written."""
        if self.running():
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(limit)
            except subprocess.TimeoutExpired:
                self.kill()
        self.process = None

    def kill(self):
        """kill -9 of the server and of all its processes, as in a power cut; it may start again."""
        if self.process is not None:
            try:
                # Each backend is in the server's session: the group is not enough, as they have groups of their own.
                for pid in self.processes():
                    os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.kill()
            self.process.wait()
            self.process = None
        self._wait_for_none()

    def processes(self):
        """The ids of the server's children."""
        found = []
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if self.process is not None and int(fields[1]) == self.process.pid:
                found.append(int(stat.parent.name))
        return found

    def _wait_for_none(self):
        """Shared memory stays in use until the last backend is gone; a new server would refuse it."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            busy = False
            for link in pathlib.Path("/proc").glob("[0-9]*/cwd"):
                try:
                    busy = busy or os.readlink(link) == str(self.data)
                except OSError:
                    pass
            if not busy:
                return
            time.sleep(0.01)

    def restart(self):
        self.stop()
        self.start()

    def remove(self):
        """Ends it and removes the folder. Also called when the program ends; a fork of it leaves it alone."""
        if os.getpid() != self.maker:
            return
        atexit.unregister(self.remove)
        try:
            self.kill()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, login=None, dbname="postgres"):
        return f"postgresql:///{dbname}?host={self.folder}&user={login or self.owner}"

    def connect(self, login=None, dbname="postgres", autocommit=True, **options):
        connection = psycopg2.connect(host=str(self.folder), user=login or self.owner, dbname=dbname, **options)
        connection.autocommit = autocommit
        return connection

    def apply_schema(self, dbname="postgres", login=None, files=None):
        """Applies the numbered files that were not yet, one transaction each. The connection is closed."""
        connection = self.connect(login, dbname, autocommit=False)
        try:
            for path in files or schema_files():
                apply_file(connection, path)
        finally:
            connection.close()


def schema_files():
    return sorted(SCHEMA.glob("[0-9][0-9][0-9][0-9]_*.sql"))


def apply_file(connection, path):
    text = path.read_text()
    version = int(path.name[:4])
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        cursor.execute("SELECT to_regclass('fleet.migrations') IS NOT NULL")
        if cursor.fetchone()[0]:
            cursor.execute("SELECT FROM fleet.migrations WHERE version = %s", (version,))
            if cursor.rowcount:
                return
        cursor.execute(text)
        cursor.execute("INSERT INTO fleet.migrations (version, sha256) VALUES (%s, %s)",
                       (version, hashlib.sha256(text.encode()).hexdigest()))  # fmt: skip
