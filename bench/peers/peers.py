#!/usr/bin/env python3
"""Tilewright against other libraries: one process per peer, readings in turn. See README.md."""

import argparse
import contextlib
import json
import os
import platform
import select
import signal
import subprocess
import sys
import time

import environment

# Seconds before a burst: after a pause, and until the threads of a pool have stopped spinning.
SETTLE = (0.02, 0.12)
BURST = 0.006


def peer_table(options):
    """{peer: settings of its process}; `why` says that it cannot be started."""
    def dnnl(prefix, algorithm, row_major=False):
        library, why = environment.build_dnnl(prefix)
        setup = {"adapter": "dnnl", "library": library, "algorithm": algorithm,
                 "row_major": row_major, "why": why}
        if prefix == "onednn-sycl":
            root = os.path.join(environment.VENV, prefix)
            setup["env"] = {"LD_LIBRARY_PATH": os.path.join(root, "lib"),
                            "OCL_ICD_FILENAMES": os.path.join(root, "lib", "libintelocl.so"),
                            "ONEAPI_DEVICE_SELECTOR": "opencl:cpu"}
        return setup

    def tilewright(math, program=options.tilewright):
        why = None if os.path.exists(options.runtime) else "no runtime library: " + options.runtime
        if not program:
            why = "--before names no program"
        return {"adapter": "tilewright", "tilewright": program, "math": math,
                "runtime": options.runtime, "why": why}

    makers = {
        "tilewright": lambda: tilewright("fast"),
        "tilewright-exact": lambda: tilewright("exact"),
        "tilewright-before": lambda: tilewright("fast", options.before),
        "onnxruntime": lambda: {"adapter": "ort"},
        "openvino": lambda: {"adapter": "ov"},
        "ncnn": lambda: {"adapter": "ncnn_net"},
        "onednn2": lambda: dnnl("", "direct"),
        "onednn2-winograd": lambda: dnnl("", "winograd"),
        "onednn2-best": lambda: dnnl("", "best"),
        "onednn2-rows": lambda: dnnl("", "best", row_major=True),
        "onednn3": lambda: dnnl("onednn-omp", "direct"),
        "onednn3-rows": lambda: dnnl("onednn-omp", "direct", row_major=True),
        "onednn-newest": lambda: dnnl("onednn-sycl", "direct"),
        "tvm": lambda: {"adapter": "tvm_vm", "trials": options.tvm_trials},
    }
    if not options.peers:
        return {name: make() for name, make in makers.items()}
    unknown = [name for name in options.peers if name not in makers]
    if unknown:
        sys.exit(f"peers: no peer {unknown[0]}; there are {', '.join(makers)}")
    return {name: makers[name]() for name in options.peers}


class PeerFailed(Exception):
    """Why there is no answer; `applicable` is false where the peer has no such operators at all."""

    def __init__(self, why, applicable=True):
        super().__init__(why)
        self.applicable = applicable


class Process:
    """A peer's process, stopped whenever it is not being asked: pools that spin would otherwise
    slow the peer that is measured."""

    def __init__(self, name, setup, options):
        self.name, self.pending = name, b""
        threads = str(options.threads)
        self.environment = dict(os.environ, OMP_NUM_THREADS=threads, TVM_NUM_THREADS=threads,
                                DPCPP_CPU_NUM_CUS=threads, TILEWRIGHT_THREADS=threads,
                                PYTHONPATH=environment.HERE, PYTHONDONTWRITEBYTECODE="1",
                                **setup.get("env", {}))
        self.setup = dict(setup, threads=options.threads, cpus=options.cpus, settle=SETTLE,
                          burst=options.burst)
        self.log = os.path.join(environment.WORK, f"{name}.log")
        self.child = None

    def start(self):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                [environment.RELATIVE_PYTHON, "worker.py"], cwd=environment.HERE,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=self.environment)
        self.pending = b""
        self.send(self.setup)

    def send(self, message):
        self.child.stdin.write((json.dumps(message) + "\n").encode())
        self.child.stdin.flush()

    def ask(self, timeout=60.0, **request):
        """The reply to a request. errors: PeerFailed with what the peer said, or how it ended."""
        if self.child is None:
            self.start()
        self.child.send_signal(signal.SIGCONT)
        try:
            self.send(request)
            reply = json.loads(self.line(time.monotonic() + timeout))
        except (BrokenPipeError, TimeoutError) as error:
            self.kill()
            raise PeerFailed(str(error) or "the process ended") from None
        self.child.send_signal(signal.SIGSTOP)
        if not reply.pop("ok"):
            raise PeerFailed(reply["error"], reply["applicable"])
        return reply

    def line(self, deadline):
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.child.stdout], [], [], left)[0]:
                raise TimeoutError(f"no answer within the time limit; see {self.name}.log")
            data = os.read(self.child.stdout.fileno(), 65536)
            if not data:
                code = self.child.wait()
                raise BrokenPipeError(f"the process ended with {code}; see {self.name}.log")
            self.pending += data
        text, _, self.pending = self.pending.partition(b"\n")
        return text

    def kill(self):
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child.stdin.close()
            self.child.stdout.close()
            self.child = None


def cpu_name():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def prepare(case, options):
    """Writes the case's model and inputs; fills in flops and bytes."""
    import cases
    folder = os.path.join(environment.WORK, "case")
    os.makedirs(folder, exist_ok=True)
    model, inputs = os.path.join(folder, "model.onnx"), os.path.join(folder, "inputs.npz")
    cases.write_model(case, model, options.tilewright)
    flops, case["bytes"] = cases.describe_model(model)
    if case["flops"] is None:
        case["flops"] = flops
    cases.write_inputs(model, inputs)
    return {"model": model, "inputs": inputs, "work": folder, "case": case, "mcpu": options.mcpu}


def error_of(path, reference):
    """Largest difference over all outputs, in units of the largest value of the reference."""
    import numpy as np
    worst = 0.0
    with np.load(path) as ours, np.load(reference) as theirs:
        if len(ours.files) != len(theirs.files):
            return float("inf")
        for name in theirs.files:
            a, b = ours[name].astype(np.float64).ravel(), theirs[name].astype(np.float64).ravel()
            if a.size != b.size or not np.isfinite(a).all():
                return float("inf")
            worst = max(worst, float(abs(a - b).max(initial=0) / (abs(b).max(initial=0) or 1)))
    return worst


def load_all(processes, request, options):
    """{peer: outcome} after loading the case and one checked run each."""
    outcomes, reference = {}, None
    order = sorted(processes, key=lambda name: name != "onnxruntime")  # it is what others equal
    for name in order:
        process = processes[name]
        if process.setup.get("why"):
            outcomes[name] = {"status": "not available", "why": process.setup["why"]}
            continue
        output = os.path.join(environment.WORK, "case", name + ".npz")
        try:
            loaded = process.ask(options.load_limit, op="load", **request)
            process.ask(options.load_limit, op="check", output=output)
        except PeerFailed as failure:
            status = "not available" if failure.applicable else "not applicable"
            outcomes[name] = {"status": status, "why": str(failure)}
            continue
        reference = reference or output
        error = error_of(output, reference)
        outcome = {"status": "ok", "error": error, "version": loaded["version"],
                   "detail": loaded["detail"], "load_seconds": loaded["seconds"]}
        if not error <= options.tolerance:
            outcome.update(status="wrong", why=f"differs from the reference by {error:.1e}")
        outcomes[name] = outcome
    return outcomes


@contextlib.contextmanager
def keeping_quiet(command):
    """Runs `command sh -c ...` meanwhile: something that holds other work of the machine back for
    as long as its child runs."""
    if not command:
        yield
        return
    child = subprocess.Popen([*command.split(), "sh", "-c", "echo ready; cat"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        yield
    finally:
        child.stdin.close()
        child.wait()
        child.stdout.close()


def measure(processes, outcomes, options):
    """Adds readings, one per round, the peers taking turns in an order that rotates."""
    running = [name for name in processes if outcomes[name]["status"] in ("ok", "wrong")]
    spent = dict.fromkeys(running, 0.0)
    for name in running:
        outcomes[name]["readings"] = []
    for turn in range(options.rounds):
        shift = turn % max(1, len(running))
        for name in running[shift:] + running[:shift]:
            try:
                reading = processes[name].ask(options.load_limit, op="time", slice=options.slice,
                                              most=10000, burst=BURST)
            except PeerFailed as failure:
                outcomes[name]["why"] = str(failure)
                reading = None
                if processes[name].child is None:  # a fresh process has no model loaded
                    outcomes[name]["status"] = "failed"
            else:
                spent[name] += reading["median"] * reading["runs"]
            outcomes[name]["readings"].append(reading)
        running = [name for name in running if outcomes[name]["status"] != "failed"
                   and spent[name] < options.most]


def roofs(options):
    """Best of a few bursts and reads, in a process with no peer's threads."""
    import worker
    burst = worker.Burst(options.burst, options.threads)
    os.sched_setaffinity(0, options.cpus)
    fma = max(burst.fma(0.02) for _ in range(5))
    read = max(burst.read(0.1) for _ in range(3))
    os.sched_setaffinity(0, options.all_cpus)
    return fma, read


def resume(result, path):
    """Takes over the cases of an earlier run on as many threads, and the better of both roofs."""
    if not os.path.exists(path):
        return
    with open(path) as file:
        earlier = json.load(file)
    if (earlier["machine"], earlier["threads"]) != (result["machine"], result["threads"]):
        sys.exit(f"peers: {path} is of another machine or number of threads")
    result["cases"] = earlier["cases"]
    result["burst_floor"] = max(result["burst_floor"], earlier["burst_floor"])
    for name, rate in earlier["roofs"].items():
        result["roofs"][name] = max(result["roofs"][name], rate)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--tilewright", default=os.path.join(environment.ROOT, "build/release/tilewright"))
    add("--before", help="another tilewright binary, the peer tilewright-before")
    add("--runtime", help="libtilewright_runtime.so (default: beside the tilewright binary)")
    add("--operators", help="operators.json with the single operators")
    add("--cases", nargs="+", default=["*"], metavar="GLOB", help="default: all")
    add("--peers", nargs="+", metavar="NAME", help="default: all")
    add("--threads", type=int, default=1)
    add("--rounds", type=int, default=15)
    add("--slice", type=float, default=0.05, help="seconds of one reading")
    add("--most", type=float, default=30, metavar="SECONDS",
        help="a peer that has used this many on one case takes no further readings")
    add("--tolerance", type=float, default=1e-3, help="of results, relative to the largest value")
    add("--load-limit", type=float, default=900, help="seconds for loading and for one reading")
    add("--tvm-trials", type=int, default=0, help="MetaSchedule trials per model")
    add("--burst-floor", type=float, default=0, help="GFLOP/s known to be this machine's peak")
    add("--weak", type=float, default=0.95, metavar="PART",
        help="discard readings beside a burst below this part of the best; 0 only to try things")
    add("--output", default="peers", help="writes OUTPUT.json and OUTPUT.html")
    add("--resume", action="store_true",
        help="keep the cases that OUTPUT.json has already, and measure the others")
    add("--around", metavar="COMMAND",
        help="put before a command, it keeps the machine quiet while that runs; used around the "
        "readings of each case, not while models are compiled and loaded")
    add("--list", action="store_true", help="list the cases and stop")
    options = parser.parse_args(arguments)
    options.tilewright = os.path.abspath(options.tilewright)
    if options.before:
        options.before = os.path.abspath(options.before)
    folder = os.path.dirname(options.tilewright)
    options.runtime = os.path.abspath(options.runtime or
                                      os.path.join(folder, "libtilewright_runtime.so"))
    options.all_cpus = sorted(os.sched_getaffinity(0))
    if options.threads > len(options.all_cpus):
        parser.error(f"--threads {options.threads}: there are {len(options.all_cpus)} CPUs")
    options.cpus = options.all_cpus[-options.threads:]
    return options


def run(options, failed):
    import cases
    import report
    import stats
    chosen = cases.select(cases.all_cases(options.operators), options.cases)
    if options.list:
        for case in chosen:
            print(case["id"])
        return
    options.burst = environment.build_burst()
    options.mcpu = "x86-64-v4" if "avx512f" in environment.cpu_flags() else "x86-64-v3"
    with keeping_quiet(options.around):
        fma, read = roofs(options)
    result = {"machine": cpu_name(), "threads": options.threads, "rounds": options.rounds,
              "slice": options.slice, "weak": options.weak, "not_installed": failed,
              "roofs": {"fma": fma, "read": read}, "cases": [],
              "burst_floor": max(fma, options.burst_floor * 1e9)}
    if options.resume:
        resume(result, options.output + ".json")
        known = {case["id"] for case in result["cases"]}
        chosen = [case for case in chosen if case["id"] not in known]
    processes = {name: Process(name, setup, options)
                 for name, setup in peer_table(options).items()}
    try:
        for number, case in enumerate(chosen):
            print(f"[{number + 1}/{len(chosen)}] {case['id']}", file=sys.stderr, flush=True)
            case = dict(case)
            request = prepare(case, options)
            case["peers"] = load_all(processes, request, options)
            with keeping_quiet(options.around):
                measure(processes, case["peers"], options)
            case.pop("layers", None)
            result["cases"] = [c for c in result["cases"] if c["id"] != case["id"]] + [case]
            stats.evaluate(result)  # files are whole after each case
            with open(options.output + ".json", "w") as file:
                json.dump(result, file, indent=1)
            with open(options.output + ".html", "w") as file:
                file.write(report.page(result))
    finally:
        for process in processes.values():
            process.kill()
    print(report.text(result))


if __name__ == "__main__":
    parsed = parse(sys.argv[1:])
    not_installed = environment.install(lambda line: print(line, file=sys.stderr))
    environment.reexec()
    run(parsed, not_installed)
