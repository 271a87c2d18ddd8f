"""Tests of every function of the schema `fleet`, against a PostgreSQL server of their own.

queue_test.py [-v] [NAME ...]      e.g. queue_test.py Leases.test_stale
queue_test.py --roles              prints what roles.txt should say

Each test gets a database that is a copy of one with the schema and the logins of queue/case.py.
"""

import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "queue"))

from blobs import *  # noqa: E402, F403
from case import print_roles  # noqa: E402
from fairness import *  # noqa: E402, F403
from jobs import *  # noqa: E402, F403
from leases import *  # noqa: E402, F403
from operators import *  # noqa: E402, F403
from posts import *  # noqa: E402, F403
from records import *  # noqa: E402, F403
from rights import *  # noqa: E402, F403
from suspects import *  # noqa: E402, F403
from times import *  # noqa: E402, F403


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # else the server would stay
    if "--roles" in sys.argv:
        print_roles()
    else:
        unittest.main()
