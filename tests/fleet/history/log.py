"""The history: what each process asked for and was told, a JSON line per event.

Each process appends to a file of its own, one write() per line, so that a process killed at any point leaves at
most its last line torn. A call is a line `invoke` and later one of
  ok       the server answered
  fail     the server refused: nothing has changed
  unknown  the connection ended or the time was over: it happened, or happens later, or never
A killed process leaves an `invoke` without an end, which counts as unknown. Example of a call and its answer:

  {"p": "agent:d3:1", "n": 17, "t": 81.2, "e": "invoke", "f": "post", "a": {"job": "...", "token": 9, "first": 2}}
  {"p": "agent:d3:1", "n": 17, "t": 81.3, "e": "ok", "f": "post", "r": {"answer": "known"}}

`t` is CLOCK_MONOTONIC: one clock for all processes of the machine, which no fault steps.
"""

import json
import os
import time


class Log:
    """Appends events of one process to FOLDER/PROCESS.jsonl."""

    def __init__(self, folder, process):
        self.process, self.number = process, 0
        path = os.path.join(folder, process.replace(":", "-") + ".jsonl")
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def _write(self, line):
        line["t"] = time.monotonic()
        os.write(self.file, (json.dumps(line) + "\n").encode())

    def invoke(self, function, arguments):
        """Number of the call, for `end`."""
        self.number += 1
        self._write({"p": self.process, "n": self.number, "e": "invoke", "f": function, "a": arguments})
        return self.number

    def end(self, number, event, function, result):
        self._write({"p": self.process, "n": number, "e": event, "f": function, "r": result})

    def note(self, what, **fields):
        """Something that is no call: a fault, a step of the clock, what a submitter intends."""
        self._write({"p": self.process, "n": 0, "e": "note", "f": what, "a": fields})

    def close(self):
        os.close(self.file)


class Call:
    """A call of the history: from `start` to `end`; `end` is infinite and `event` unknown if no answer came."""

    __slots__ = ("process", "function", "arguments", "start", "end", "event", "result")

    def __init__(self, process, function, arguments, start):
        self.process, self.function, self.arguments, self.start = process, function, arguments, start
        self.end, self.event, self.result = float("inf"), "unknown", None

    @property
    def ok(self):
        return self.event == "ok"

    def __repr__(self):
        end = "never" if self.end == float("inf") else f"{self.end:.3f}"
        return f"{self.process} {self.function} [{self.start:.3f}, {end}] {self.event}"


class History:
    """`calls` in the order of their invocations, `notes` in the order of time, from `begin` to `end`."""

    def __init__(self, lines=()):
        self.calls, self.notes, open_calls = [], [], {}
        lines = sorted(lines, key=lambda line: line["t"])
        self.begin, self.end = (lines[0]["t"], lines[-1]["t"]) if lines else (0, 0)
        for line in lines:
            if line["e"] == "note":
                self.notes.append(line)
            elif line["e"] == "invoke":
                call = Call(line["p"], line["f"], line["a"], line["t"])
                open_calls[line["p"], line["n"]] = call
                self.calls.append(call)
            else:
                call = open_calls.pop((line["p"], line["n"]))
                call.event, call.result = line["e"], line["r"]
                if line["e"] != "unknown":  # of an unknown one nobody knows when it ends
                    call.end = line["t"]

    def of(self, *functions):
        return [call for call in self.calls if call.function in functions]

    def noted(self, *names):
        return [note for note in self.notes if note["f"] in names]


def lines_of(path):
    """The lines of one file; a torn last one is left out."""
    lines = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                lines.append(json.loads(text))
            except ValueError:
                continue
    return lines


def read(folder):
    """The history of all files of a folder."""
    lines = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".jsonl"):
            lines += lines_of(os.path.join(folder, name))
    return History(lines)
