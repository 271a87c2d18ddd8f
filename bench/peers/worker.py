"""One peer in a process of its own: is told its setup, then answers requests, one JSON line each,
on stdin and stdout.

load  {model, inputs, threads, case, work}  -> {version, detail, seconds}
check {output}                              writes the outputs of one run as .npz
time  {slice, most}                         -> {median, least, runs, burst}
burst {seconds}, read {seconds}             -> {rate}
quit
"""

import ctypes
import importlib
import json
import os
import signal
import statistics
import sys
import time


class Burst:
    """The peak of this moment: multiply-adds on registers, by as many threads as the peer has."""

    def __init__(self, library, threads):
        self.library, self.threads = ctypes.CDLL(library), threads
        self.library.burst_fma.restype = self.library.burst_read.restype = ctypes.c_double
        self.library.burst_fma.argtypes = [ctypes.c_int, ctypes.c_double]
        self.library.burst_read.argtypes = [ctypes.c_int, ctypes.c_double, ctypes.c_int64]

    def fma(self, seconds):
        return self.library.burst_fma(self.threads, seconds)

    def read(self, seconds):
        return self.library.burst_read(self.threads, seconds, 128 << 20)


def run_times(run, slice_seconds, most):
    """Seconds of each run, for about `slice_seconds`; the first run, which warms caches, is left
    out unless it is as long as the whole slice."""
    clock = time.perf_counter
    start = clock()
    run()
    times = [clock() - start]
    if times[0] >= slice_seconds:
        return times
    times, end = [], clock() + slice_seconds
    while len(times) < most:
        start = clock()
        run()
        stop = clock()
        times.append(stop - start)
        if stop >= end:
            break
    return times


class Worker:
    def __init__(self, setup):
        self.setup = setup
        self.burst = Burst(setup["burst"], setup["threads"])
        module = importlib.import_module("adapters." + setup["adapter"])
        self.peer = module.Peer(setup)

    def load(self, request):
        start = time.perf_counter()
        self.peer.load(request)
        self.peer.run()
        return {"version": self.peer.version(), "detail": self.peer.detail(),
                "seconds": time.perf_counter() - start}

    def check(self, request):
        import numpy
        self.peer.run()
        numpy.savez(request["output"], *self.peer.outputs())
        return {}

    def time(self, request):
        time.sleep(self.setup["settle"][0])
        before = self.burst.fma(request["burst"])
        times = run_times(self.peer.run, request["slice"], request["most"])
        time.sleep(self.setup["settle"][1])
        after = self.burst.fma(request["burst"])
        return {"median": statistics.median(times), "least": min(times), "runs": len(times),
                "burst": min(before, after)}

    def answer(self, request):
        op = request["op"]
        if op == "burst":
            return {"rate": self.burst.fma(request["seconds"])}
        if op == "read":
            return {"rate": self.burst.read(request["seconds"])}
        return {"load": self.load, "check": self.check, "time": self.time}[op](request)


def main():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # do not outlive the parent, even when stopped
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print goes to the log
    setup = json.loads(sys.stdin.readline())
    os.sched_setaffinity(0, setup["cpus"])
    worker = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "quit":
            break
        try:
            worker = worker or Worker(setup)
            reply = dict(worker.answer(request), ok=True)
        except BaseException as error:  # the peer's failure is a result
            text = " ".join(f"{type(error).__name__}: {error}".split())
            reply = {"ok": False, "error": text[:400],
                     "applicable": not isinstance(error, NotImplementedError)}
        channel.write(json.dumps(reply) + "\n")
    channel.flush()
    os._exit(0)  # some libraries hang or crash in their destructors


if __name__ == "__main__":
    main()
