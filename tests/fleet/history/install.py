"""Makes the fleet in a new server: roles, the schema's files (with a defect's patches, if one is asked for), logins.

The schema belongs to `tw_owner`, who is no superuser: what its functions may do is what they may in a real fleet.
"""

import contextlib
import glob
import os

import psycopg2

from world import LEASE, POOL, USERS, WORKERS

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = os.path.normpath(os.path.join(HERE, "../../../src/tilewright/fleet/schema"))


def sources(folder=SCHEMA):
    """The files in order: [(name, text)]."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "[0-9]*.sql"))):
        with open(path, encoding="utf-8") as file:
            found.append((os.path.basename(path), file.read()))
    return found


def connect(socket, database):
    psycopg2.extensions.set_wait_callback(None)
    connection = psycopg2.connect(host=socket, user="postgres", dbname=database)
    connection.autocommit = True
    return connection


def install(socket, files):
    """A database `fleet` with these files applied, and the world's logins in it."""
    with contextlib.closing(connect(socket, "postgres")) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE ROLE tw_owner NOLOGIN CREATEROLE")
        for role in ("tw_user", "tw_worker", "tw_monitor"):
            cursor.execute(f"CREATE ROLE {role} NOLOGIN")
        for group, logins in (("tw_user", USERS), ("tw_worker", WORKERS)):
            for login in logins:
                cursor.execute(f"CREATE ROLE {login} LOGIN IN ROLE {group}")
        cursor.execute("GRANT tw_user, tw_worker, tw_monitor TO tw_owner WITH ADMIN OPTION")
        cursor.execute("CREATE DATABASE fleet")
        cursor.execute("GRANT CREATE ON DATABASE fleet TO tw_owner")
    with contextlib.closing(connect(socket, "fleet")) as connection, connection.cursor() as cursor:
        for name, text in files:
            cursor.execute("BEGIN")
            cursor.execute("SET LOCAL ROLE tw_owner")
            try:
                cursor.execute(text)
            except psycopg2.Error as error:
                raise RuntimeError(f"{name}: {error}") from None
            cursor.execute("COMMIT")
        cursor.execute("UPDATE fleet.meta SET lease_s = %s", [LEASE])
        for kind, logins in (("user", USERS), ("worker", WORKERS)):
            for login in logins:
                cursor.execute("SELECT fleet.login_set(%s, %s)", [login, kind])
        cursor.execute("SELECT fleet.pool_set(%s)", [POOL])
        for may, logins in (("submit", USERS), ("serve", WORKERS)):
            for login in logins:
                cursor.execute("SELECT fleet.member_set(%s, %s, %s, '*')", [POOL, login, may])
