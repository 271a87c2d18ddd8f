#!/usr/bin/env python3
"""What running on a worker adds to a command's own time, and how long weights travel.

  latency.py --times 50                   direct connections: workers are told of jobs
  latency.py --times 50 --pooled          through pgbouncer: they find out by asking
  latency.py --direct                     without transformed filters: resnet18 has 45 MB then instead of 97

`tilewright run M.twm` and the same with `--worker cpu` take turns; the worker is on this machine and has the package.
What is added is the difference of the two medians. `first`: the upload of a package to an empty store. `again`: of
another package with the same weights.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import time

import simulation
from load import Pooler
from simulation import milliseconds


class Program:
    """`tilewright` with folders of its own."""

    def __init__(self, path, folder, store):
        self.path, self.folder = path, folder
        self.environment = {**os.environ, "XDG_CONFIG_HOME": f"{folder}/config", "XDG_CACHE_HOME": f"{folder}/cache", "TILEWRIGHT_STORE": store}

    def run(self, *words):
        """Seconds that it took, and its document. errors: RuntimeError with what it said."""
        begin = time.monotonic()
        done = subprocess.run([self.path, "--json", "-q", *words], env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - begin
        if done.returncode != 0:
            raise RuntimeError(f"tilewright {' '.join(words)}: {done.stderr}")
        return seconds, json.loads(done.stdout) if done.stdout else {}

    def worker(self, *offers, free=1, name="worker", before=(), environment=None):
        """A worker of these devices, once so many of the fleet are free. `before`: words of a command that starts it."""
        command = [*before, self.path, "worker", *(word for offer in offers for word in ("--device", offer))]
        log = pathlib.Path(self.folder, f"{name}.log")
        with log.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(command, env={**self.environment, **(environment or {})}, cwd=self.folder, stdout=file, stderr=file)
        end = time.monotonic() + 120
        while sum(d["state"] == "free" for d in self.run("fleet", "status")[1]["status"]["devices"]) < free:
            if time.monotonic() > end or process.poll() is not None:
                raise RuntimeError("no worker: " + log.read_text(encoding="utf-8"))
            time.sleep(0.2)
        return process


def measure(program, model, times, options):
    program.run("zoo", model, "-o", "net.onnx")
    program.run("compile", "net.onnx", *options, "-o", "net.twm")
    program.run("compile", "net.onnx", *options, "--threads", "1", "-o", "other.twm")
    worker = program.worker("cpu")
    try:
        first, again = program.run("run", "net.twm", "--worker", "cpu")[1], program.run("run", "other.twm", "--worker", "cpu")[1]
        here, there, documents = [], [], []
        for _ in range(times):
            here.append(program.run("run", "net.twm")[0])
            seconds, document = program.run("run", "net.twm", "--worker", "cpu")
            there.append(seconds)
            documents.append(document)
        assert not any(d["uploaded_bytes"] for d in documents)
    finally:
        worker.terminate()
        worker.wait()
    inside = {key: milliseconds([d[key] / 1e3 for d in documents])["p50"] for key in ("wait_ms", "upload_ms", "open_ms")}
    return {"model": model, "times": times, "here_ms": milliseconds(here), "there_ms": milliseconds(there),
            "added_ms": round(milliseconds(there)["p50"] - milliseconds(here)["p50"], 1), **inside,
            "first": {"bytes": first["uploaded_bytes"], "ms": round(first["upload_ms"])},
            "again": {"bytes": again["uploaded_bytes"], "ms": round(again["upload_ms"])}}  # fmt: skip


def main():
    parser = simulation.parser_of(__doc__, program=True)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--pooled", action="store_true")
    parser.add_argument("--direct", action="store_true")
    chosen = parser.parse_args()
    with simulation.server_for(20) as server, tempfile.TemporaryDirectory(prefix="tw-latency-") as folder:
        pooler = Pooler(server) if chosen.pooled else None
        url = (pooler or server).url(server.owner)
        try:
            result = {"pooled": chosen.pooled, **measure(Program(chosen.program, folder, url), chosen.model, chosen.times, ["--direct"] * chosen.direct)}
        finally:
            if pooler:
                pooler.stop()
    text = (f"{result['model']}: {result['here_ms']['p50']} ms here, {result['there_ms']['p50']} ms on a worker: {result['added_ms']} ms "
            f"added (median of {result['times']}); first upload {result['first']['bytes'] / 1e6:.1f} MB in {result['first']['ms']} ms, "
            f"another package {result['again']['bytes'] / 1e6:.2f} MB in {result['again']['ms']} ms")  # fmt: skip
    simulation.report(chosen, result, [text])


if __name__ == "__main__":
    main()
