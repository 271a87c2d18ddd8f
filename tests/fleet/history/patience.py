"""Limits of time that hold even where somebody stops all of this test for a while, in order to measure something else.

The clock goes on while a process is stopped, so a plain limit would be over as soon as it is continued.
"""

import time

MOST = 6.0  # seconds between two looks that count: a call of the test's own has up to 5


class Patience:
    """So many seconds, if `over` is asked at least every MOST seconds. `spent`: so far."""

    def __init__(self, seconds, clock=time.monotonic):
        self.seconds, self.clock = seconds, clock
        self.spent, self.last = 0.0, clock()

    def over(self):
        now = self.clock()
        self.spent += min(now - self.last, MOST)
        self.last = now
        return self.spent > self.seconds
