"""libpq for programs that hold a thousand connections in one thread.

    loop = Loop()
    link = Link(loop, url)
    link.ask("SELECT fleet.tick()", [], lambda value, error, seconds: ...)
    loop.run(until)

A link sends one statement at a time; what comes back is the first column of the first row, as bytes. Times are from
the moment of sending to the moment when the answer was read here.
"""

import collections
import ctypes
import ctypes.util
import heapq
import itertools
import os
import select
import time

_pq = ctypes.CDLL(os.environ.get("TILEWRIGHT_LIBPQ") or "libpq.so.5")


def _declare(name, result, *arguments):
    function = getattr(_pq, name)
    function.restype, function.argtypes = result, arguments
    return function


_pointer, _text, _int = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
_connect = _declare("PQconnectdb", _pointer, _text)
_status = _declare("PQstatus", _int, _pointer)
_message = _declare("PQerrorMessage", _text, _pointer)
_socket = _declare("PQsocket", _int, _pointer)
_blocking = _declare("PQsetnonblocking", _int, _pointer, _int)
_send = _declare("PQsendQueryParams", _int, _pointer, _text, _int, _pointer, ctypes.POINTER(_text), _pointer, _pointer, _int)
_flush = _declare("PQflush", _int, _pointer)
_consume = _declare("PQconsumeInput", _int, _pointer)
_busy = _declare("PQisBusy", _int, _pointer)
_result = _declare("PQgetResult", _pointer, _pointer)
_result_status = _declare("PQresultStatus", _int, _pointer)
_rows = _declare("PQntuples", _int, _pointer)
_value = _declare("PQgetvalue", _pointer, _pointer, _int, _int)
_length = _declare("PQgetlength", _int, _pointer, _int, _int)
_result_message = _declare("PQresultErrorMessage", _text, _pointer)
_clear = _declare("PQclear", None, _pointer)
_finish = _declare("PQfinish", None, _pointer)
_OK, _TUPLES = 0, 2


class Loop:
    """Sockets and timers of one thread."""

    def __init__(self):
        self.poll, self.links, self.timers, self.order = select.epoll(), {}, [], itertools.count()

    def after(self, seconds, action):
        heapq.heappush(self.timers, (time.monotonic() + seconds, next(self.order), action))

    def run(self, until):
        """`until`: a function that says when it is over."""
        while not until():
            now = time.monotonic()
            while self.timers and self.timers[0][0] <= now:
                heapq.heappop(self.timers)[2]()
            wait = min(0.1, self.timers[0][0] - time.monotonic()) if self.timers else 0.1
            for descriptor, events in self.poll.poll(max(0, wait)):
                self.links[descriptor].ready(events)


class Link:
    """One connection. errors: RuntimeError if it cannot be made."""

    def __init__(self, loop, url):
        self.loop, self.waiting, self.busy = loop, collections.deque(), None
        self.handle = _connect(url.encode())
        if _status(self.handle) != _OK:
            raise RuntimeError(_message(self.handle).decode())
        _blocking(self.handle, 1)
        self.descriptor = _socket(self.handle)
        loop.links[self.descriptor] = self
        loop.poll.register(self.descriptor, select.EPOLLIN)

    def ask(self, sql, values, done):
        """`done(value, error, seconds)`: later, in the loop; `error` is None or a text."""
        self.waiting.append((sql, values, done))
        if self.busy is None:
            self._next()

    def _next(self):
        sql, values, done = self.waiting.popleft()
        self.busy = (done, time.monotonic())
        texts = (_text * len(values))(*[None if v is None else v if isinstance(v, bytes) else str(v).encode() for v in values])
        if not _send(self.handle, sql.encode(), len(values), None, texts, None, None, 0):
            self._fail(_message(self.handle).decode())
        self._push()

    def _push(self):
        left = _flush(self.handle)
        self.loop.poll.modify(self.descriptor, select.EPOLLIN | (select.EPOLLOUT if left == 1 else 0))

    def _fail(self, text):
        done, begin = self.busy
        self.busy = None
        done(None, text, time.monotonic() - begin)

    def ready(self, events):
        if events & select.EPOLLOUT:
            self._push()
        if not _consume(self.handle):
            self.loop.poll.unregister(self.descriptor)
            if self.busy:
                self._fail(_message(self.handle).decode())
            return
        if self.busy is None or _busy(self.handle):
            return
        value = error = None
        while result := _result(self.handle):
            if _result_status(result) != _TUPLES:
                error = _result_message(result).decode() or "no rows"
            elif _rows(result):
                value = ctypes.string_at(_value(result, 0, 0), _length(result, 0, 0))
            _clear(result)
        done, begin = self.busy
        self.busy = None
        if self.waiting:
            self._next()
        done(value, error, time.monotonic() - begin)

    def close(self):
        _finish(self.handle)
