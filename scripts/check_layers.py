#!/usr/bin/env python3
"""Checks that the layers form a DAG and that every include has a direct edge.

Edges are read from `tw_library(NAME DEPS ... TEST_DEPS ...)` in src/tilewright/**/CMakeLists.txt. A
file belongs to the nearest folder above it that declares a library. Sources and headers may include
their own layer and its DEPS; tests and their helpers (`*_test.cc`, `*_testing.h`, `test_*.h`, files
in a `testing` folder) also its TEST_DEPS, and nothing else may include such a helper. Headers of
include/tilewright are the runtime's interface. LLVM headers belong to codegen_llvm alone, SQLite's to
records_sqlite and codesign_sqlite, libpq's to postgres. A folder has 60 sources and headers at most,
tests apart, so that a newcomer finds the right file in it.

usage: check_layers.py [ROOT]      exit status 1 and one line per violation, `file:line: ...`
       check_layers.py --self-test
"""

import collections
import pathlib
import re
import sys
import tempfile

COMMAND = re.compile(r"\b(tw_library|set|list)\s*\(([^)]*)\)")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
LINK_WORDS = {"DEPS", "TEST_DEPS", "LINK", "FOLDERS"}
PUBLIC_LAYER = "runtime"
MOST_IN_A_FOLDER = 60
# Headers of libraries that few layers may include.
LIBRARIES = [(("llvm/", "llvm-c/"), "LLVM", {"codegen_llvm"}),
             (("sqlite3",), "SQLite", {"records_sqlite", "codesign_sqlite"}),
             (("libpq",), "libpq", {"postgres"})]


class Layer:
    def __init__(self, name, folder, place):
        self.name, self.folder, self.place = name, folder, place
        self.deps, self.test_deps = set(), set()


def expand(words, variables):
    out = []
    for word in words:
        match = re.fullmatch(r"\$\{(\w+)\}", word)
        out += variables.get(match.group(1), []) if match else [word]
    return out


def read_layers(root):
    """Layers by folder, and the problems of the declarations themselves."""
    layers, problems = {}, []
    for path in sorted((root / "src/tilewright").rglob("CMakeLists.txt")):
        text = re.sub(r"#[^\n]*", lambda m: " " * len(m.group()), path.read_text())
        variables = {}
        for command in COMMAND.finditer(text):
            words = command.group(2).split()
            if not words:
                continue
            if command.group(1) == "set":
                variables[words[0]] = expand(words[1:], variables)
            elif command.group(1) == "list":
                if words[0] == "APPEND":
                    variables.setdefault(words[1], []).extend(expand(words[2:], variables))
            else:
                line = text.count("\n", 0, command.start()) + 1
                place = f"{path.relative_to(root)}:{line}"
                layer = Layer(words[0], path.parent, place)
                into = None
                for word in expand(words[1:], variables):
                    if word in LINK_WORDS:
                        into = {"DEPS": layer.deps, "TEST_DEPS": layer.test_deps}.get(word)
                    elif into is not None:
                        into.add(word)
                if path.parent in layers:
                    problems.append(f"{place}: second layer in one folder")
                layers[path.parent] = layer
    names = {layer.name for layer in layers.values()}
    for layer in layers.values():
        for dep in sorted((layer.deps | layer.test_deps) - names):
            problems.append(f"{layer.place}: layer {layer.name} depends on unknown layer {dep}")
    return layers, problems


def find_cycle(layers):
    edges = {layer.name: sorted(layer.deps) for layer in layers.values()}
    done, path = set(), []

    def visit(name):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return None
        path.append(name)
        for dep in edges.get(name, []):
            cycle = visit(dep)
            if cycle:
                return cycle
        path.pop()
        done.add(name)
        return None

    for name in sorted(edges):
        cycle = visit(name)
        if cycle:
            return cycle
    return None


def owner(path, layers, stop):
    for folder in path.parents:
        if folder in layers:
            return layers[folder]
        if folder == stop:
            return None
    return None


def is_test(path, layer):
    inner = path.relative_to(layer.folder)
    return (path.name.endswith(("_test.cc", "_testing.h")) or path.name.startswith("test_")
            or "testing" in (layer.folder.name, *inner.parts[:-1]))


def crowded_folders(root, layers):
    counts = collections.Counter()
    source = root / "src/tilewright"
    for path in source.rglob("*"):
        layer = owner(path, layers, source)
        if path.suffix in {".cc", ".h"} and layer and not is_test(path, layer):
            counts[path.parent] += 1
    return [f"{folder.relative_to(root)}: {count} files, at most {MOST_IN_A_FOLDER} are wanted: give a part a folder "
            "(FOLDERS of tw_library)"
            for folder, count in sorted(counts.items()) if count > MOST_IN_A_FOLDER]


def check(root):
    root = pathlib.Path(root).resolve()
    layers, problems = read_layers(root)
    if not layers:
        return [f"{root}/src/tilewright: no tw_library found"]
    cycle = find_cycle(layers)
    if cycle:
        place = next(l.place for l in layers.values() if l.name == cycle[0])
        problems.append(f"{place}: the layers have a cycle: {' -> '.join(cycle)}")
    source = root / "src/tilewright"
    by_name = {layer.name: layer for layer in layers.values()}
    for path in sorted(source.rglob("*")):
        if path.suffix not in {".cc", ".h"}:
            continue
        layer = owner(path, layers, source)
        if layer is None:
            problems.append(f"{path.relative_to(root)}:1: belongs to no layer")
            continue
        allowed = {layer.name} | layer.deps
        if is_test(path, layer):
            allowed |= layer.test_deps
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            place = f"{path.relative_to(root)}:{number}"
            target = match.group(1)
            for prefixes, library, only in LIBRARIES:
                if target.startswith(prefixes) and layer.name not in only:
                    problems.append(f"{place}: layer {layer.name} may not include {library}")
            if not target.startswith("tilewright/"):
                continue
            below = target.removeprefix("tilewright/")
            if (root / "include" / target).exists() and not (source / below).exists():
                used = by_name.get(PUBLIC_LAYER)
            else:
                used = owner(source / below, layers, source)
            if used is None:
                problems.append(f"{place}: {target} belongs to no layer")
            elif used.name not in allowed:
                problems.append(f"{place}: layer {layer.name} may not include {used.name}")
            elif (not is_test(path, layer) and (source / below).exists()
                  and is_test(source / below, used)):
                problems.append(f"{place}: only tests may include {target}")
    return problems + crowded_folders(root, layers)


def self_test():
    """Builds small trees and expects exactly the violations planted in them."""
    good = {
        "src/tilewright/base/CMakeLists.txt": "tw_library(base LINK fmt::fmt)",
        "src/tilewright/base/a.h": "",
        "src/tilewright/ir/CMakeLists.txt": "tw_library(ir DEPS base TEST_DEPS top)",
        "src/tilewright/ir/b.cc": '#include "tilewright/base/a.h"\n#include "tilewright/ir/b.h"\n',
        "src/tilewright/ir/b_test.cc": '#include "tilewright/top/sub/t.h"\n',
        "src/tilewright/ir/testing/t.h": '#include "tilewright/top/sub/t.h"\n',
        "src/tilewright/top/CMakeLists.txt":
            "# tw_library(no such)\nset(layers base)\nif(X)\n  list(APPEND layers ir)\nendif()\n"
            "tw_library(top DEPS ${layers})",
        "src/tilewright/top/sub/t.h": '#include "tilewright/ir/b.h"\n',
    }
    cases = [
        ({}, []),
        ({"src/tilewright/ir/b.cc": '\n#include "tilewright/top/sub/t.h"\n'},
         ["src/tilewright/ir/b.cc:2: layer ir may not include top"]),
        ({"src/tilewright/base/a.h": '  #  include "tilewright/ir/b.h"'},
         ["src/tilewright/base/a.h:1: layer base may not include ir"]),
        ({"src/tilewright/top/CMakeLists.txt": "tw_library(top DEPS base)"},
         ["src/tilewright/top/sub/t.h:1: layer top may not include ir"]),
        ({"src/tilewright/base/CMakeLists.txt": "tw_library(base DEPS top)"},
         ["src/tilewright/base/CMakeLists.txt:1: the layers have a cycle: base -> top -> base"]),
        ({"src/tilewright/base/CMakeLists.txt": "tw_library(base\n  DEPS gone)"},
         ["src/tilewright/base/CMakeLists.txt:1: layer base depends on unknown layer gone"]),
        ({"src/tilewright/top/v.cc": '#include "llvm/IR/Module.h"\n'},
         ["src/tilewright/top/v.cc:1: layer top may not include LLVM"]),
        ({"src/tilewright/top/v.cc": '#include <sqlite3.h>\n'},
         ["src/tilewright/top/v.cc:1: layer top may not include SQLite"]),
        ({"src/tilewright/top/v.cc": '#include <libpq-fe.h>\n'},
         ["src/tilewright/top/v.cc:1: layer top may not include libpq"]),
        ({"src/tilewright/top/v.cc": '#include "tilewright/nowhere/x.h"\n'},
         ["src/tilewright/top/v.cc:1: tilewright/nowhere/x.h belongs to no layer"]),
        ({"src/tilewright/ir/b.cc": '#include "tilewright/ir/testing/t.h"\n'},
         ["src/tilewright/ir/b.cc:1: only tests may include tilewright/ir/testing/t.h"]),
        ({"src/tilewright/stray.h": ""}, ["src/tilewright/stray.h:1: belongs to no layer"]),
        ({"include/tilewright/c.h": "", "src/tilewright/top/v.cc": '#include "tilewright/c.h"\n',
          "src/tilewright/runtime/CMakeLists.txt": "tw_library(runtime DEPS base)"},
         ["src/tilewright/top/v.cc:1: layer top may not include runtime"]),
        ({f"src/tilewright/top/sub/{name}": "" for i in range(61) for name in (f"f{i}.cc", f"f{i}_test.cc")},
         ["src/tilewright/top/sub: 62 files, at most 60 are wanted: give a part a folder (FOLDERS of tw_library)"]),
        ({f"src/tilewright/top/sub/f{i}.cc": "" for i in range(59)}, []),
    ]
    failures = 0
    for change, want in cases:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**good, **change}.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            got = check(folder)
        if got != want:
            failures += 1
            print(f"self-test: {list(change.items())[:3]}\n  wanted {want}\n  got    {got}")
    return failures


def main():
    if self_test() > 0:
        return 1
    if "--self-test" in sys.argv[1:]:
        print("check_layers: self-test passed")
        return 0
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent
    problems = check(root)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
