"""Every promise of checks.txt has a test that carries its number, and every such number is a promise.

checks.py ROOT

Numbers stand at the front of a description in tests/*/*.sh (`exits 0 "A1 A8 it is ..." ...`), or of
the name of a unit test (`TEST(Tuner, A10_ProposesTheSame)`).
"""

import collections
import pathlib
import re
import sys

NUMBER = r"[A-Z][0-9]{1,2}"
IN_SCRIPT = re.compile(rf'^[^#\n]*"((?:{NUMBER} )+)', re.MULTILINE)
IN_UNIT_TEST = re.compile(rf"^TEST(?:_F|_P)?\(\w+,\s*((?:{NUMBER}_)+)", re.MULTILINE)


def promises(text):
    """The numbers of the list, each with its sentence."""
    found = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        number, _, sentence = line.partition(" ")
        if not re.fullmatch(NUMBER, number) or not sentence.endswith("."):
            sys.exit(f"checks.txt: '{line}' is no number and one sentence")
        if number in found:
            sys.exit(f"checks.txt: {number} stands there twice")
        found[number] = sentence
    return found


def tests(root):
    """Files by the numbers that their tests carry."""
    places = collections.defaultdict(set)
    for pattern, folder, suffix in ((IN_SCRIPT, "tests", "*.sh"), (IN_UNIT_TEST, "src", "*_test.cc"),
                                    (IN_UNIT_TEST, "tests", "*_test.cc")):  # fmt: skip
        for path in (root / folder).rglob(suffix):
            for group in pattern.findall(path.read_text()):
                for number in re.findall(NUMBER, group):
                    places[number].add(path.relative_to(root).as_posix())
    return places


def main():
    root = pathlib.Path(sys.argv[1])
    listed = promises((root / "tests/e2e/checks.txt").read_text())
    shown = tests(root)
    problems = [f"{n} has no test: {s}" for n, s in listed.items() if n not in shown]
    problems += [f"{n} is no promise of checks.txt: {', '.join(sorted(p))}" for n, p in sorted(shown.items()) if n not in listed]
    for number, sentence in listed.items():
        print(f"{number:4}{len(shown[number]) if number in shown else 0:2} files  {sentence}")
    for problem in problems:
        print(f"FAIL {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
