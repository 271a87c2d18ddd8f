"""Times of the server as times of the test's own clock, though the server's clock was stepped by hours.

The log has the offset of the server's clock before and after each step. A server time `at` is true time plus one of
these offsets, and only one of them gives a time at which that offset was in force, because steps are far larger than
what lies between them. Example: steps of +3600 at 10 s and -3600 at 20 s; the server's 3615 s is our 15 s.
"""

SLACK = 1.5  # seconds that the ends of an interval are unsure: a call may read the clock before and write after a step
AROUND = 60  # seconds before the first and after the last line in which the server may have worked


class ServerClock:
    def __init__(self, history, base):
        """`base`: wall clock minus monotonic clock, in seconds."""
        self.base, self.spans = base, []
        begin, offset = history.begin - AROUND, 0
        for note in history.noted("step"):
            self.spans.append((begin, note["t"], note["a"]["before"]))
            begin, offset = note["t"], note["a"]["after"]
        self.spans.append((begin, history.end + AROUND, offset))

    def true(self, at):
        """Our time of the server's `at` (seconds since 1970); None if no step explains it."""
        for begin, end, offset in self.spans:
            time = at - offset - self.base
            if begin - SLACK <= time <= end + SLACK:
                return time
        return None

    def stepped_between(self, begin, end):
        """Whether the clock may have been stepped in that time of ours."""
        return any(begin - SLACK <= start <= end + SLACK for start, _, _ in self.spans[1:])
