"""What the tests of the queue share: a server, logins, and calls that read like the functions.

ann and bob submit, wes and wil serve, mon looks; keeper owns the schema and is no superuser; nobody has a login of
PostgreSQL and no more.
"""

import contextlib
import datetime
import hashlib
import itertools
import pathlib
import sys
import unittest
import uuid

import psycopg2
from psycopg2.extras import Json

FOLDER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(FOLDER))

from server import PrivateServer  # noqa: E402

TARGET, CLASS = "cpu", "cpu:znver4@8f3a"
RECORD_TARGET = "cpu:znver4@8f3a:2"  # of records that a device of that class makes, on two threads
FUNC = "func f(x: f32[8]) -> y"
RECORD = {"workload": "sha256:" + hashlib.sha256(FUNC.encode()).hexdigest(), "name": "conv", "kind": "schedule", "machine": "8f3a",
          "compiler": "cc 1", "unit": "ns", "searcher": "ours", "seed": -3}  # fmt: skip
MIB = 1 << 20
LOGINS = {"ann": "user", "bob": "user", "wes": "worker", "wil": "worker", "mon": "monitor"}
server = None
numbers = itertools.count(1)


def open_server():
    """The server, with the database `made` that tests copy."""
    global server
    if server is not None:
        return server
    server = PrivateServer()
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE ROLE keeper LOGIN CREATEROLE; CREATE ROLE nobody LOGIN;")
        for login in LOGINS:
            cursor.execute(f"CREATE ROLE {login} LOGIN")
        cursor.execute("CREATE DATABASE made")
        cursor.execute("GRANT CREATE ON DATABASE made TO keeper")
    server.apply_schema("made", "keeper")
    with Caller("keeper", "made") as keeper:
        for login, kind in LOGINS.items():
            keeper.login_set(login, kind)
        for login in ("ann", "bob"):
            keeper.member_set("default", login, "submit", "*")
        for login in ("wes", "wil"):
            keeper.member_set("default", login, "serve", "*")
    return server


class Caller:
    """A connection; `caller.submit(run, [...])` is SELECT fleet.submit(...). Dictionaries, and lists of them, are JSON."""

    def __init__(self, login, database):
        # A call that waits for a lock of another connection of the same test would wait for ever.
        self.connection = server.connect(login, database, options="-c lock_timeout=10s")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def __getattr__(self, name):
        return lambda *values: self.rows(f"SELECT fleet.{name}({', '.join(['%s'] * len(values))})",
                                         [adapted(v) for v in values])[0][0]  # fmt: skip

    def rows(self, sql, values=()):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return cursor.fetchall() if cursor.description else []

    def one(self, sql, values=()):
        return self.rows(sql, values)[0][0]


def adapted(value):
    is_json = isinstance(value, dict) or isinstance(value, list) and (not value or not isinstance(value[0], str))
    return Json(value) if is_json else value


def new_id():
    return str(uuid.uuid4())


def measuring(n, name="s", **more):
    """The payload of a job of kind `measure` with the candidates s0, s1, ...: their points are p0, p1, ..."""
    candidates = [{"schedule": f"{name}{i}", "point": f"p{i}", "prior": 1.5} for i in range(n)]
    return {"func": FUNC, "target": "cpu", "threads": 2, "anchor": "", "anchor_cost": 0, "best_cost": 0, "limit_s": 5,
            "record": RECORD, "candidates": candidates, **more}  # fmt: skip


def ok(cost=100.0, **more):
    least = cost if isinstance(cost, str) else cost * 0.9
    return {"outcome": "ok", "cost": cost, "least": least, "spread": 0.01, "readings": 7, **more}


class Worker:
    """An enrolled worker with the ids of its devices by key."""

    def __init__(self, caller, devices, compiler="cc 1", pool="default"):
        self.caller = caller
        made = caller.enroll("host", "tilewright 0.1", compiler, "bwrap", pool, devices)
        self.id, self.secret = made["worker"], made["secret"]
        self.devices = {d["key"]: d["id"] for d in made["devices"]}
        self.names = {d["key"]: d["name"] for d in made["devices"]}
        self.device = next(iter(self.devices.values()), None)
        self.token = None

    def claim(self, most=1, warm=(), device=None):
        lease = self.caller.rows("SELECT fleet.claim(%s, %s, %s, %s, %s::text[])",
                                 (self.id, self.secret, device or self.device, most, list(warm)))[0][0]  # fmt: skip
        self.token = lease.get("token") if lease else None
        return lease

    def claimed(self, most=1, warm=(), device=None):
        """The ids of the jobs of a new lease."""
        return [job["id"] for job in (self.claim(most, warm, device) or {"jobs": []})["jobs"]]

    def renew(self, token=None, device=None):
        return self.caller.renew(self.id, self.secret, device or self.device, token or self.token)

    def post(self, job, first, results, failed=None, token=None, device=None):
        return self.caller.post(self.id, self.secret, device or self.device, job, token or self.token, first,
                                Json(results), failed)  # fmt: skip

    def answer(self, *values, **more):
        return self.post(*values, **more)["answer"]

    def give_back(self, token=None, device=None):
        return self.caller.give_back(self.id, self.secret, device or self.device, token or self.token)

    def leave(self):
        self.caller.leave(self.id, self.secret)


class FleetCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        open_server()
        self.database = f"test{next(numbers)}"
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            # Through the log, a copy would have sequences that a crash sets back: what was drawn ahead in `made` is not
            # written down again. Files are quicker, too.
            cursor.execute(f"CREATE DATABASE {self.database} TEMPLATE made STRATEGY FILE_COPY")
        self.callers = {}
        self.addCleanup(self.close)
        self.change("UPDATE fleet.ticks SET last = clock_timestamp()")  # `made` is older

    def close(self):
        for caller in self.callers.values():
            caller.connection.close()
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {self.database} WITH (FORCE)")

    def __getattr__(self, name):
        """self.ann: her connection."""
        if name not in (*LOGINS, "keeper", "nobody", "owner"):
            raise AttributeError(name)
        if name not in self.callers:
            self.callers[name] = Caller(name, self.database)
        return self.callers[name]

    def another(self, login):
        """A second connection of a login."""
        caller = self.callers[f"{login}{next(numbers)}"] = Caller(login, self.database)
        return caller

    @contextlib.contextmanager
    def refused(self, code, text=""):
        with self.assertRaises(psycopg2.Error) as caught:
            yield
        problem = caught.exception
        self.assertEqual(problem.pgcode, code, str(problem))
        said = " ".join(filter(None, (problem.diag.message_primary, problem.diag.message_detail, problem.diag.message_hint)))
        self.assertIn(text, said)

    def device(self, key="d", **more):
        return {"key": key, "name": key, "class": CLASS, "target": TARGET, "tags": [], "emulated": False, "facts": {},
                "rates": {}, **more}  # fmt: skip

    def worker(self, *keys, login="wes", compiler="cc 1", pool="default", **more):
        return Worker(getattr(self, login), [self.device(key, **more) for key in keys or ("d",)], compiler, pool)

    def run_of(self, login="ann", keep=False):
        run = new_id()
        getattr(self, login).new_run(run, "tune", keep)
        return run

    def job(self, **more):
        job = {"id": new_id(), "kind": "measure", "pool": "default", "class": CLASS, "device": None, "compiler": None,
               "needs": [], "band": 1, "after": [], "payload": {}, "limit_s": 10, "n": 2, "blobs": [], "key": None,
               "signature": None, **more}  # fmt: skip
        # Those of all jobs are different, so that no device is compared with another by chance.
        if job["kind"] == "measure" and "payload" not in more and isinstance(job["n"], int):
            job["payload"] = measuring(job["n"], f"{job['id']} ")
        return job

    def submitted(self, count=1, run=None, login="ann", **more):
        """Ids of new jobs."""
        jobs = [self.job(**more) for _ in range(count)]
        getattr(self, login).submit(run or self.run_of(login), jobs)
        return [job["id"] for job in jobs]

    def state(self, job):
        rows = self.keeper.rows("SELECT state FROM fleet.jobs WHERE id = %s UNION ALL "
                                "SELECT state FROM fleet.ended WHERE id = %s", (job, job))  # fmt: skip
        self.assertEqual(len(rows), 1, "a job is in exactly one of jobs and ended")
        return rows[0][0]

    def column(self, table, column, where="true"):
        return [row[0] for row in self.keeper.rows(f"SELECT {column} FROM fleet.{table} WHERE {where}")]

    def change(self, sql, *values):
        self.keeper.rows(sql, values)

    def tick(self, after=1.5, login="keeper"):
        """A tick `after` seconds behind the last one."""
        self.change("UPDATE fleet.ticks SET last = clock_timestamp() - %s * interval '1 s'", after)
        return getattr(self, login).tick()

    def expire(self, worker, device=None):
        """The end of a lease passes, and tick() sees it."""
        self.change("UPDATE fleet.devices SET ends = clock_timestamp() - interval '1 s' WHERE id = %s",
                    device or worker.device)  # fmt: skip
        return self.tick()

    def fold(self):
        """What tick() does with usage, at once."""
        self.change("SET search_path = fleet, pg_temp; SELECT fold_usage(); RESET search_path")

    def check_invariants(self):
        """Those that the tables show."""
        nothing = {
            "a job is in jobs or in ended": "SELECT id FROM fleet.jobs INTERSECT SELECT id FROM fleet.ended",
            "a leased job has its device's token":
                "SELECT j.id FROM fleet.jobs j LEFT JOIN fleet.devices d ON d.id = j.device AND d.token = j.token "
                "WHERE j.state = 'leased' AND d.id IS NULL",
            "a leased device has jobs":
                "SELECT d.id FROM fleet.devices d WHERE d.state = 'leased' AND NOT EXISTS "
                "(SELECT FROM fleet.jobs j WHERE j.device = d.id AND j.token = d.token)",
            "items are 0 to next-1":
                "SELECT j.id FROM (SELECT id, next, run FROM fleet.jobs UNION ALL SELECT id, next, run FROM fleet.ended) j "
                "JOIN fleet.runs r ON r.id = j.run WHERE r.closed IS NULL AND j.next <> (SELECT count(*) FROM fleet.results s "
                "WHERE s.job = j.id AND s.item < j.next)",
            "no ready job is before its line's low":
                "SELECT j.id FROM fleet.jobs j JOIN fleet.lines l USING (queue, login) "
                "WHERE j.state = 'ready' AND (l.idle OR j.seq < l.low)",
            "usage is the seconds of ended leases":
                "SELECT token, login, seconds FROM fleet.usage EXCEPT "
                "SELECT token, login, seconds FROM fleet.events WHERE what = 'freed'",
            "each ended lease has usage":
                "SELECT token FROM fleet.events WHERE what = 'freed' EXCEPT ALL SELECT token FROM fleet.usage",
            "tokens began once":
                "SELECT token FROM fleet.events WHERE what = 'claimed' GROUP BY token HAVING count(DISTINCT device) > 1",
            "a record has its device's class as target and its job's login":
                "SELECT r.id FROM fleet.records r JOIN fleet.devices d ON d.id = r.device JOIN (SELECT id, login FROM fleet.jobs "
                "UNION ALL SELECT id, login FROM fleet.ended) j ON j.id = r.job WHERE r.target <> d.class || ':2' OR r.login <> j.login",
        }  # fmt: skip
        for what, sql in nothing.items():
            self.assertEqual(self.keeper.rows(sql), [], what)
        holders = {}
        for device, token, what in self.keeper.rows(
                "SELECT device, token, what FROM fleet.events WHERE what IN ('claimed', 'freed') ORDER BY seq"):
            if what == "claimed":
                self.assertIn(holders.get(device), (None, token), "leases of a device do not overlap")
                holders[device] = token
            else:
                self.assertEqual(holders.pop(device, None), token, "a lease ends once")


def seconds(value):
    return datetime.timedelta(seconds=value)


def matrix():
    """What roles.txt says: a line per object, and who may use it."""
    open_server()
    asked = (("user", "ann"), ("worker", "wes"), ("monitor", "mon"), ("PUBLIC", "nobody"))
    rows = []
    with Caller("owner", "made") as caller:
        for kind, name, check in caller.rows(
                "SELECT CASE c.relkind WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' ELSE 'table' END, c.relname::text, "
                "format(CASE c.relkind WHEN 'S' THEN 'has_sequence_privilege(%%L, %s, ''USAGE, SELECT, UPDATE'')' "
                "ELSE 'has_table_privilege(%%L, %s, ''SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER'') "
                "OR has_any_column_privilege(%%L, %s, ''SELECT, INSERT, UPDATE, REFERENCES'')' END, c.oid, c.oid) "
                "FROM pg_class c WHERE c.relnamespace = 'fleet'::regnamespace AND c.relkind IN ('r', 'v', 'S', 'm', 'p') "
                "UNION ALL SELECT 'function', p.proname::text || '(' || pg_get_function_identity_arguments(p.oid) || ')', "
                "format('has_function_privilege(%%L, %s, ''EXECUTE'')', p.oid) FROM pg_proc p "
                "WHERE p.pronamespace = 'fleet'::regnamespace ORDER BY 1, 2"):
            allowed = [role for role, login in asked if caller.one("SELECT " + check.replace("%L", f"'{login}'"))]
            rows.append(f"{kind} {name}: {', '.join(allowed) or '-'}\n")
        for role, login in asked:
            usage = caller.one(f"SELECT has_schema_privilege('{login}', 'fleet', 'USAGE')")
            create = caller.one(f"SELECT has_schema_privilege('{login}', 'fleet', 'CREATE')")
            rows.append(f"schema fleet for {role}: {'usage' if usage else '-'}{', create' if create else ''}\n")
    return "".join(rows)


def print_roles():
    print(matrix(), end="")
