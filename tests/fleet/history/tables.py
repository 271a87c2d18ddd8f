"""The fleet's tables as they are at the end: lists of rows, each a dictionary with the transaction that wrote it.

All are read in one transaction, so they fit each other. Example: tables.results[0] -> {"job": "...", "item": 0,
"token": 9, "cost": 1100.25, ..., "written_by": 4711}.
"""

import psycopg2
import psycopg2.extras

NAMES = ("meta", "logins", "workers", "devices", "queues", "runs", "jobs", "ended", "results", "late", "records",
         "blobs", "job_blobs", "usage", "events")


class Tables:
    def __init__(self, **tables):
        for name in NAMES:
            setattr(self, name, tables.get(name, []))

    def index(self, name, column):
        return {row[column]: row for row in getattr(self, name)}


def read(socket):
    """requires: nothing runs any more."""
    psycopg2.extensions.set_wait_callback(None)
    connection = psycopg2.connect(host=socket, user="postgres", dbname="fleet")
    connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
    tables = {}
    with connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
        for name in NAMES:
            cursor.execute(f"SELECT xmin::text::bigint AS written_by, t.* FROM fleet.{name} t")
            tables[name] = [dict(row) for row in cursor.fetchall()]
    connection.close()
    return Tables(**tables)
