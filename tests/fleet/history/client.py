"""Calls of the fleet's functions over a connection that may break at any point, each logged.

Every call has a limit of time of its own, kept on this side: a proxy that swallows the answer, or a stopped server,
must not stop a client. After an unknown outcome the connection is gone and the next call makes a new one.
Example: client.call("cancel", run) -> 2, or raises Refused (with its SQLSTATE) or Unknown.
"""

import contextlib
import json
import select
import time

import psycopg2
import psycopg2.extensions

# Parameters' types: a plain %s would be text of unknown type, and then the choice of the function may be ambiguous.
SIGNATURES = {
    "version": [],
    "new_run": ["uuid", "text", "boolean"],
    "submit": ["uuid", "jsonb"],
    "look": ["uuid", "jsonb"],
    "cancel": ["uuid"],
    "close_run": ["uuid"],
    "devices": [],
    "blob_state": ["text"],
    "blob_begin": ["text", "bigint", "integer"],
    "blob_put": ["text", "integer", "bytea"],
    "blob_finish": ["text"],
    "blob_get": ["text", "integer"],
    "enroll": ["text", "text", "text", "text", "text", "jsonb"],
    "claim": ["uuid", "text", "bigint", "integer", "text[]"],
    "renew": ["uuid", "text", "bigint", "bigint"],
    "post": ["uuid", "text", "bigint", "uuid", "bigint", "integer", "jsonb", "text"],
    "give_back": ["uuid", "text", "bigint", "bigint"],
    "leave": ["uuid", "text"],
    "worker_blob_get": ["uuid", "text", "bigint", "bigint", "uuid", "text", "integer"],
    "worker_blob_put": ["uuid", "text", "bigint", "bigint", "uuid", "text", "bigint", "integer", "integer", "bytea"],
    "tick": [],
    "clear_device": ["text"],
    "login_set": ["text", "text", "real", "integer", "bigint"],
    "pool_set": ["text", "real"],
    "member_set": ["text", "text", "text", "text"],
}
# Both sides of a connection that ends, and a server that is going down or coming up. What ran may have been committed.
ENDING = ("57P01", "57P02", "57P03", "57P05", "25P03", "08000", "08003", "08006", "08P01")


class Refused(Exception):
    """The server said no: nothing has changed."""

    def __init__(self, code, message):
        super().__init__(f"{code} {message}")
        self.code = code

    @property
    def again(self):
        """Deadlock, serialization, lock not to be had, limit of time (which a step of the clock brings about at
        once), full disk: the same call may pass in a moment."""
        return self.code in ("40P01", "40001", "55P03", "57014", "53100", "53300")


class Unknown(Exception):
    """The connection ended: the call has happened, or will, or never."""


class Late(Exception):
    """The limit of time is over."""


_deadline = [float("inf")]


@contextlib.contextmanager
def limited(seconds):
    """What runs inside has so long for all its waits together. errors: Late."""
    psycopg2.extensions.set_wait_callback(_wait)  # others of this process may have switched it off
    _deadline[0] = time.monotonic() + seconds
    try:
        yield
    finally:
        _deadline[0] = float("inf")


def _wait(connection):
    """Waits for the connection as psycopg2 wants it, but no longer than the deadline."""
    while True:
        state = connection.poll()
        if state == psycopg2.extensions.POLL_OK:
            return
        left = _deadline[0] - time.monotonic()
        if left <= 0:
            raise Late("no answer in time")
        reading = state == psycopg2.extensions.POLL_READ
        sockets = [connection.fileno()]
        select.select(sockets if reading else [], [] if reading else sockets, [], min(left, 1.0))


def answers(folder, database="postgres"):
    """Whether a server takes connections at the socket in FOLDER."""
    try:
        with limited(2):
            psycopg2.connect(host=folder, user="postgres", dbname=database).close()
        return True
    except (psycopg2.Error, Late):
        return False


def plain(value):
    """An argument as it stands in the log."""
    return f"{len(value)} bytes" if isinstance(value, bytes) else value


class Client:
    """One login's connection to a server (or to the proxy before it) at the socket in FOLDER."""

    def __init__(self, folder, login, log, limit=2.0):
        self.folder, self.login, self.log, self.limit = folder, login, log, limit
        self.connection, self.ticked = None, 0.0

    def connect(self):
        if self.connection is not None and not self.connection.closed:
            return
        options = "-c search_path=fleet" if self.login == "postgres" else None
        with limited(self.limit):
            self.connection = psycopg2.connect(host=self.folder, user=self.login, dbname="fleet", options=options)
        self.connection.autocommit = True

    def drop(self):
        if self.connection is not None:
            try:
                self.connection.close()
            except psycopg2.Error:
                pass
            self.connection = None

    def select(self, sql, parameters=()):
        """Rows of a statement that is not logged (reads of the test itself)."""
        try:
            self.connect()
            with limited(self.limit), self.connection.cursor() as cursor:
                cursor.execute(sql, parameters)
                return cursor.fetchall()
        except (psycopg2.Error, Late):
            self.drop()
            raise

    def tick(self, every):
        """Calls tick() if this client has not for so long."""
        if time.monotonic() > self.ticked + every:
            self.ticked = time.monotonic()
            self.call("tick")

    def call(self, function, *values, shown=None):
        """What fleet.FUNCTION gives. `shown`: the arguments for the log, where they are not the values.

        errors: Refused, Unknown. Not logged if there is no connection: then nothing was asked.
        """
        types = SIGNATURES[function]
        assert len(values) == len(types), (function, values)
        try:
            self.connect()
        except (psycopg2.Error, Late) as error:
            self.drop()
            raise Unknown(str(error)) from None
        sql = f"SELECT fleet.{function}({', '.join('%s::' + t for t in types)})"
        sent = [json.dumps(v) if t == "jsonb" else psycopg2.Binary(v) if t == "bytea" else v
                for v, t in zip(values, types)]
        number = self.log.invoke(function, shown if shown is not None else {"v": [plain(v) for v in values]})
        try:
            with limited(self.limit), self.connection.cursor() as cursor:
                cursor.execute(sql, sent)
                result = cursor.fetchone()[0]
        except Late as error:
            self.drop()
            self.log.end(number, "unknown", function, str(error))
            raise Unknown(str(error)) from None
        except psycopg2.Error as error:
            code = error.pgcode
            if code is None or code in ENDING or isinstance(error, psycopg2.InterfaceError):
                self.drop()
                self.log.end(number, "unknown", function, str(error).strip()[:200])
                raise Unknown(str(error)) from None
            self.log.end(number, "fail", function, {"code": code, "text": str(error).strip()[:400]})
            raise Refused(code, str(error).strip()) from None
        if isinstance(result, memoryview):
            result = bytes(result)
        self.log.end(number, "ok", function, plain(result))
        return result
