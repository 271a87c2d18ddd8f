#!/usr/bin/env python3
"""Checks that a name means one type.

  scripts/check_names.py              the tree
  scripts/check_names.py --self-test  that it finds what it is for

Two types of one name in one namespace are undefined behaviour by the one-definition rule, wherever they are in the
program; two types of one name in two headers make a reader ask which is meant. The first must not exist. The second
must be in SHARED_NAMES with a reason, unless the namespaces belong to devices (DEVICES), which describe themselves in
the same words.
"""
import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEVICES = ("tilewright::accel", "tilewright::vta", "tilewright::dpu", "tilewright::spatial", "tilewright::gemmini",
           "tilewright::fpga")
# Headers that generated code includes: no part of the program.
SHIPPED = "codegen/hls/include"
# Name: why it stands for several types in headers.
SHARED_NAMES = {
    "Options": "what the main function of a layer can be asked for; always written with its namespace",
    "Pass": "graph and lower each have one table of passes, run in the same way",
    "Pipeline": "a step of schedules has the name that users write; a pipeline of passes is the field's term",
    "Store": "a statement of the IR, and what keeps records: the field's word for both",
}
TOKEN = re.compile(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|'
                   r"#[^\n]*(?:\\\n[^\n]*)*|[A-Za-z_]\w*|::|[{};()<>=,:\[\]]", re.S)


def tokens(text):
    for match in TOKEN.finditer(text):
        token = match.group()
        if token[0] not in "#\"'" and not token.startswith(("//", "/*", 'R"')):
            yield token


def types(text):
    """Yields (namespace, name) of every type that is defined at the level of a namespace. What is in an anonymous
    namespace, or is only declared, does not count."""
    scopes = []  # a namespace's name, or None for any other braces
    words = list(tokens(text))
    i = 0
    while i < len(words):
        word = words[i]
        at_namespace = all(scope is not None for scope in scopes)
        if word == "namespace" and at_namespace:
            j = i + 1
            name = ""
            while words[j] not in ("{", ";", "="):
                name += words[j]
                j += 1
            if words[j] == "{":
                scopes.append(name or "<anonymous>")
            i = j + 1
            continue
        if word in ("struct", "class", "enum", "union") and at_namespace and words[i - 1:i] not in (["<"], [","]):
            j = i + 1
            while words[j] in ("class", "struct", "alignas"):
                j += 1
            name = words[j]
            elsewhere = words[j + 1] in ("::", "<")  # of another type, or a specialisation of a template
            j += 1
            bases = False
            while words[j] not in ("{", ";", "(", "=") and (bases or words[j] not in (">", ",")):
                bases = bases or words[j] == ":"
                j += 1
            if words[j] == "{" and not elsewhere and re.match(r"[A-Za-z_]\w*$", name) and "<anonymous>" not in scopes:
                yield "::".join(scopes), name
            i = j
            continue
        if word == "{":
            scopes.append(None)
        elif word == "}" and scopes:
            scopes.pop()
        i += 1


def problems(files):
    """files: path to text. Returns sentences."""
    where = collections.defaultdict(list)
    for path, text in sorted(files.items()):
        for namespace, name in set(types(text)):
            where[(namespace, name)].append(path)
    found = [f"{namespace}::{name} is defined in {' and '.join(paths)}"
             for (namespace, name), paths in sorted(where.items()) if len(paths) > 1]
    headers = collections.defaultdict(list)
    for (namespace, name), paths in sorted(where.items()):
        if not namespace.startswith(DEVICES) and paths[0].endswith(".h"):
            headers[name].append(f"{namespace} ({paths[0]})")
    for name, places in sorted(headers.items()):
        if len(places) > 1 and name not in SHARED_NAMES:
            found.append(f"{name} is a type of {', '.join(places)}: rename one, or give a reason in SHARED_NAMES")
    for name in SHARED_NAMES:
        if len(headers.get(name, [])) < 2:
            found.append(f"{name} is in SHARED_NAMES of scripts/check_names.py and needs no reason any more")
    return found


def tree():
    files = {}
    for folder in ("src", "include", "examples"):
        for parent, _, names in os.walk(os.path.join(ROOT, folder)):
            if os.path.basename(parent) == "testing" or "/testing/" in parent:
                continue
            if parent.endswith(SHIPPED):  # other programs' headers, which ours never include
                continue
            for name in names:
                if name.endswith((".h", ".cc")) and not name.endswith(("_test.cc", "_testing.h", "test_util.h")):
                    path = os.path.join(parent, name)
                    with open(path) as file:
                        files[os.path.relpath(path, ROOT)] = file.read()
    return files


def self_test():
    a = "namespace t { struct A { struct In {}; }; struct Only; namespace { struct Mine {}; } enum class E : int { x }; }"
    assert sorted(types(a)) == [("t", "A"), ("t", "E")], sorted(types(a))
    assert list(types('namespace t { /* struct X {} */ const char* s = "struct Y {}"; template <class T> void f() {} }')) == []
    assert list(types("namespace a::b { class C final : public D<E> { int x; }; struct F f(struct G g); }")) == [("a::b", "C")]
    assert list(types("namespace t { struct A::State { int x; }; template <> struct B<int> { }; }")) == []
    assert "t::A is defined in x.h and y.cc" in problems({"x.h": a, "y.cc": "namespace t { struct A {}; }"})[0]
    two = problems({"x.h": "namespace t { struct A {}; }", "y.h": "namespace u { struct A {}; }"})
    assert any("A is a type of t (x.h), u (y.h)" in text for text in two), two


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        self_test()
    else:
        found = problems(tree())
        print("\n".join(found))
        sys.exit(1 if found else 0)
