#!/usr/bin/env python3
"""Checks that nobody but the back-ends themselves knows which targets there are.

What differs between targets is answered by compile::Backend and its DeviceRuntime. A name of a target
or device as a literal ("vta", "cuda", "opencl", "vta:tsim"), or the description of one kind of target
as an optional (std::optional<vta::Config>, std::optional<GpuTarget>), outside the code that is for
that target alone means that the next target must be added there too.

Code for one target: the folders in OWN and the table of back-ends. Tests, test helpers and comments
are not looked at. EXCEPTIONS lists what may stay, each with its reason.

usage: check_targets.py [ROOT]     exit status 1 and one line per finding, `file:line: ...`
       check_targets.py --self-test
"""

import pathlib
import re
import sys
import tempfile

SOURCE = "src/tilewright"
# Code that is for one kind of target, below src/tilewright.
OWN = ("accel/", "codegen/", "runtime/gpu/", "rules/gpu/", "rules/vta/", "hw/", "compile/cpu/",
       "compile/gpu/", "compile/vta/", "compile/dpu/", "compile/gemmini/", "compile/spatial/",
       "compile/fpga/", "compile/backends.cc")
# File, text of the line, and why it may stay.
EXCEPTIONS = [
    ("records/record.cc", 'target.starts_with("vta:")',
     "records in people's stores carry this prefix; their unit and their machine follow from it"),
    ("tune/vta/space.cc", 'unnamed.name = "vta"',
     "the key of records: a hash over a configuration with this name"),
    ("tune/vta/space.cc", 'return "vta:"', "the key of records"),
    ("tune/dpu/space.cc", 'unnamed.name = "dpu"', "the key of records: a hash over a configuration with this name"),
    ("tune/dpu/space.cc", 'return "dpu:"', "the key of records"),
    ("tune/spatial/space.cc", 'unnamed.name = "spatial"', "the key of records, likewise"),
    ("tune/spatial/space.cc", '"spatial:"', "the key of records"),
    ("codesign/vta_generator.cc", 'return "vta"', "what space files call VTA"),
    ("codesign/gemmini_generator.cc", 'return "gemmini"', "what space files call Gemmini"),
    ("codesign/generator.cc", 'return "spatial"', "what space files call the family of designs"),
    ("lower/lower.cc", '{"fpga",', "a pipeline's name"),
    ("schedule/dataflow.cc", 'run_pipeline(func, "fpga")', "a pipeline's name"),
    ("graph/onnx/opset.cc", '"spatial"', "an attribute of ONNX"),
    ("driver/tuning/tuning_target.cc", '{.backend = "', "the table of what can be tuned"),
]

NAMES = "vta|cuda|opencl|dpu|gemmini|spatial|fpga|toy"  # toy: of compile/testing/toy
NAME = re.compile(rf'"(?:{NAMES})(?::\w*)?"')
OPTIONAL = re.compile(r"\boptional<\s*(?:const\s+)?(?:\w+::)*(?:vta::Config|GpuTarget)\b")
COMMENT = re.compile(r"//.*")


def is_test(path):
    return path.name.endswith("_test.cc") or "testing" in path.parts


def findings(text):
    """Numbers of lines, and what was found there."""
    for number, line in enumerate(text.splitlines(), 1):
        code = COMMENT.sub("", line)
        for match in NAME.finditer(code):
            yield number, line, f"names a target: {match.group()}"
        for match in OPTIONAL.finditer(code):
            yield number, line, f"is for one kind of target: {match.group()}>"


def check(root, exceptions):
    """Findings, and exceptions that nothing needs any more."""
    source = pathlib.Path(root).resolve() / SOURCE
    if not source.is_dir():
        return [f"{source}: no such folder"]
    problems, needed = [], set()
    for path in sorted(source.rglob("*")):
        if path.suffix not in {".cc", ".h"}:
            continue
        inner = path.relative_to(source)
        name = inner.as_posix()
        if name.startswith(OWN) or is_test(inner):
            continue
        for number, line, what in findings(path.read_text()):
            covering = {e for e in exceptions if name == e[0] and e[1] in line}
            needed |= covering
            if not covering:
                problems.append(f"{SOURCE}/{name}:{number}: {what}")
    for file, text, _ in sorted(set(exceptions) - needed):
        problems.append(f"{SOURCE}/{file}:1: has no `{text}`: the exception is not needed")
    return problems


def self_test():
    """Builds small trees and expects exactly the findings planted in them."""
    exceptions = [("records/record.cc", 'target.starts_with("vta:")', "a reason")]
    good = {
        "accel/vta/a.cc": 'x == "vta";',
        "compile/backends.cc": 'x == "cuda";',
        "compile/vta/b.cc": "std::optional<vta::Config> c;",
        "driver/run_test.cc": 'x == "opencl";',
        "driver/testing/t.h": 'x == "opencl";',
        "driver/run.cc": '// "vta" is one of them\nsay("--target vta, \\"cuda\\" is none");\nhw::GpuTarget g;',
        "records/record.cc": '  return target.starts_with("vta:") ? 1 : 2;',
    }
    cases = [
        ({}, []),
        ({"driver/run.cc": '\nif (x == "vta")'}, ['driver/run.cc:2: names a target: "vta"']),
        ({"driver/run.cc": 'x == "vta:tsim"'}, ['driver/run.cc:1: names a target: "vta:tsim"']),
        ({"driver/run.h": '{"opencl", "cuda"}'},
         ['driver/run.h:1: names a target: "opencl"', 'driver/run.h:1: names a target: "cuda"']),
        ({"tune/t.h": "std::optional<hw::GpuTarget> gpu;"},
         ["tune/t.h:1: is for one kind of target: optional<hw::GpuTarget>"]),
        ({"tune/t.h": "std::optional<vta::Config> config;"},
         ["tune/t.h:1: is for one kind of target: optional<vta::Config>"]),
        ({"compile/devices.cc": 'x == "vta";'},
         ['compile/devices.cc:1: names a target: "vta"']),
        ({"records/record.cc": 'target.starts_with("vta:");\nif (target == "vta:") {'},
         ['records/record.cc:2: names a target: "vta:"']),
        ({"records/record.cc": "return 1;"},
         ['records/record.cc:1: has no `target.starts_with("vta:")`: the exception is not needed']),
    ]
    failures = 0
    for change, want in cases:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**good, **change}.items():
                path = pathlib.Path(folder) / SOURCE / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            got = check(folder, exceptions)
        if got != [f"{SOURCE}/{line}" for line in want]:
            failures += 1
            print(f"self-test: {change}\n  wanted {want}\n  got    {got}")
    return failures


def main():
    if self_test() > 0:
        return 1
    if "--self-test" in sys.argv[1:]:
        print("check_targets: self-test passed")
        return 0
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent
    problems = check(root, EXCEPTIONS)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
