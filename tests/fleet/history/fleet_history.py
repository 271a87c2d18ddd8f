#!/usr/bin/env python3
"""Kills, stops, cuts and steps clocks while a fleet works, then checks that nothing was lost or done twice.

  fleet_history.py --kills 60 --seconds 30 --seed 1         the usual run; exit code 1 on a violation
  fleet_history.py --kills 500 --seconds 150 --promote 1    the long one, with a standby that takes over per 100 kills
  fleet_history.py --defect no_token_check                  plants a defect; exit code 1 if it is NOT found
  fleet_history.py --defect all --kills 200                 all of them, one after the other
  fleet_history.py --ci                                     60 kills, and beside that three defects that show quickly

A run is a private PostgreSQL with the fleet's schema, seven agents on six devices, three submitters, a canceller, a
pauser and a proxy between them and the server; see the opening comments of the other files. --seed fixes who is hit
by what and in which order, not the exact moment: the processes are real.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import checker  # noqa: E402
import defects  # noqa: E402
import install  # noqa: E402
import log  # noqa: E402
import tables  # noqa: E402
from cluster import Cluster, dies_with_parent  # noqa: E402
from evidence import Violation  # noqa: E402
from supervisor import Supervisor  # noqa: E402

CI_DEFECTS = ("no_token_check", "records_outside", "token_per_worker")
CI_PACE, CI_ROUND = 0.25, 6
DEFECT_ROUND, DEFECT_KILLS = 12, 200
DEFECT_DRAIN = 8  # seconds: a defect may leave jobs that never end


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, help="processes to kill (60; with a defect at most 200)")
    parser.add_argument("--seconds", type=float, help="time over which they are spread (0.4 s for each)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, help="kills until everything is healed, drained and checked (all)")
    parser.add_argument("--defect", help=f"all, or some of {', '.join(defects.DEFECTS)}, with commas")
    parser.add_argument("--ci", action="store_true", help="the run of continuous integration")
    parser.add_argument("--json", dest="report", help="file for the report")
    parser.add_argument("--promote", type=int, default=0, help="standbys that take over, per round")
    parser.add_argument("--schema", default=install.SCHEMA, help="folder with the schema's files")
    parser.add_argument("--keep", action="store_true", help="leave the folder with the histories")
    chosen = parser.parse_args()
    chosen.defects = list(defects.DEFECTS) if chosen.defect == "all" else chosen.defect.split(",") if chosen.defect else []
    for name in chosen.defects:
        if name not in defects.DEFECTS:
            parser.error(f"there is no defect '{name}'")
    return chosen


class Run:
    """One server and what happens to it. `chosen`: the arguments. `defect`: a name, or None."""

    def __init__(self, chosen, defect=None):
        self.seed, self.defect, self.keep, self.schema = chosen.seed, defect, chosen.keep, chosen.schema
        self.promotions = 0 if defect else chosen.promote
        self.folder = tempfile.mkdtemp(prefix="fleet_history_")
        self.history = os.path.join(self.folder, "history")
        os.chmod(self.folder, 0o755)
        os.mkdir(self.history)
        self.cluster = self.supervisor = None
        self.times = {}
        self.base = time.time() - time.monotonic()

    def start(self):
        self.cluster = Cluster(self.folder, log.Log(self.history, "cluster"))
        files = install.sources(self.schema)
        install.install(self.cluster.socket, defects.planted(self.defect, files) if self.defect else files)
        self.supervisor = Supervisor(self.folder, self.cluster, self.seed)

    def round(self, number, kills, seconds, drain):
        """Kills that happened, violations, and a summary of what was checked."""
        supervisor, times = self.supervisor, [time.monotonic()]
        supervisor.start_all()
        pace = seconds / max(1, kills)
        done = supervisor.faults(kills, pace, f"{self.seed} {number}", 3 * seconds + 20, self.promotions)
        times.append(time.monotonic())
        supervisor.heal()
        supervisor.drain(drain)
        times.append(time.monotonic())
        history, found = log.read(self.history), tables.read(self.cluster.socket)
        violations = checker.check(history, found, self.base)
        errors = os.path.join(self.folder, "errors")
        if os.path.exists(errors):
            with open(errors, encoding="utf-8") as file:
                violations.append(Violation("test", "a process of the test failed:\n" + file.read()[-3000:]))
        summary = checker.summary(history, found)
        if self.defect is None and summary["posts"]["ok"] < kills:
            violations.append(Violation("test", "hardly anything was done: nothing was tested"))
        times.append(time.monotonic())
        for name, begin, end in zip(("faults_s", "drain_s", "check_s"), times, times[1:]):
            self.times[name] = round(self.times.get(name, 0) + end - begin, 1)
        return done, violations, summary

    def end(self):
        handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
        if self.supervisor:
            self.supervisor.end_all()
        if self.cluster:
            if self.keep:
                shutil.copy(self.cluster.log, os.path.join(self.folder, "server.log"))
            self.cluster.remove()
        if self.keep:
            print(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def ended(violations, defect):
    """Whether there is nothing more to find: with a defect, its sign."""
    return any(defects.DEFECTS[defect].shows_in(v) or v["rule"] == "test" for v in violations) if defect else violations


def execute(chosen, kills, seconds, size, defect=None, drain=40):
    """Rounds of `size` kills until `kills` are done or something is found. A report."""
    begin, run = time.monotonic(), Run(chosen, defect)
    report = {"defect": defect, "seed": chosen.seed, "kills": 0, "rounds": 0, "violations": [], "summary": {}}
    try:
        run.start()
        run.times["setup_s"] = round(time.monotonic() - begin, 1)
        while report["kills"] < kills and not ended(report["violations"], defect):
            now = min(size, kills - report["kills"])
            done, violations, report["summary"] = run.round(report["rounds"], now, seconds * now / kills, drain)
            report["kills"] += done
            report["rounds"] += 1
            report["violations"] = [{"rule": str(v.rule), "text": v.text} for v in violations]
            if done == 0:
                break
        report["faults"] = dict(run.supervisor.counts)
        report["times"] = run.times
    finally:
        run.end()
    report["seconds"] = round(time.monotonic() - begin, 1)
    return report


def tell(report):
    name = f"defect {report['defect']}" if report["defect"] else "history"
    rules = ", ".join(sorted({v["rule"] for v in report["violations"]}))
    print(f"{name}: seed {report['seed']}, {report['kills']} kills in {report['rounds']} rounds, "
          f"{report['seconds']} s, {len(report['violations'])} violations" + (f" of {rules}" if rules else ""))
    print(f"  faults {report.get('faults')}\n  {report['summary']}\n  {report.get('times')}")
    for violation in report["violations"][:3 if report["defect"] else 20]:
        print(f"  [{violation['rule']}] {violation['text'][:600]}")
    sys.stdout.flush()


def plant(name, chosen):
    """A defect must be found. The report says after how many kills."""
    kills = chosen.kills or DEFECT_KILLS
    size = chosen.round or (CI_ROUND if chosen.ci else DEFECT_ROUND)
    report = execute(chosen, kills, chosen.seconds or 0.25 * kills, size, name, DEFECT_DRAIN)
    signs = [v for v in report["violations"] if defects.DEFECTS[name].shows_in(v)]
    report["found"], report["violations"] = bool(signs), signs or report["violations"]
    tell(report)
    if not report["found"]:
        print(f"  NOT FOUND: expected a violation of {', '.join(defects.DEFECTS[name].rules)}")
    return report


class Beside:
    """The defects of --ci in a process of their own: a history waits most of its time. Ended with this one."""

    def __init__(self):
        words = [sys.executable, os.path.abspath(__file__), "--ci", "--defect", ",".join(CI_DEFECTS)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=dies_with_parent)

    def good(self):
        """Whether all were found, after what was printed of them."""
        print(self.process.communicate()[0], end="")
        return self.process.returncode == 0

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


def main():
    chosen = arguments()
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell had SIGINT ignored
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    reports, good = [], True
    if not chosen.defects:
        beside = Beside() if chosen.ci else None
        try:
            kills = chosen.kills or 60
            seconds = chosen.seconds or (CI_PACE if chosen.ci else 0.4) * kills
            report = execute(chosen, kills, seconds, chosen.round or min(kills, 100))
            tell(report)
            reports.append(report)
            good = not report["violations"]
            good = (beside is None or beside.good()) and good
        finally:
            if beside:
                beside.end()
    for name in chosen.defects:
        reports.append(plant(name, chosen))
        good = good and reports[-1]["found"]
    if chosen.report:
        with open(chosen.report, "w", encoding="utf-8") as file:
            json.dump(reports, file, indent=1)
    print("ok" if good else "FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
