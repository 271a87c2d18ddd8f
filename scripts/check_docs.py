#!/usr/bin/env python3
"""Checks what the manuals point to: links and their headings, and source files named in backquotes.

check_docs.py    exit code 1 and one line per problem if a target does not exist. Also: no line of
                 prose is longer than 120 characters.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))
PAGES += sorted(page for page in (ROOT / "bench").glob("**/*.md") if ".venv" not in page.parts)
# Folders of which a page may name a file: `tune/records.h`, `tests/e2e/cli.sh`, `fsim.h`.
FOLDERS = [ROOT, ROOT / "src" / "tilewright"]
FILE = re.compile(r"`([a-z][\w.-]*(?:/[\w.-]+)+\.(?:h|cc|py|sh|tw|toml|txt|cmake|c))`")
# Names that stand for a file of the reader's.
INVENTED = re.compile(r"(?:^|/)(?:new|new_\w+|verb_NAME|NAME)\.|^rates/|^conv3/")
WIDTH = 120


def outside_code(text):
    """Lines that are not in a fenced block, with their numbers."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            code = not code
        elif not code:
            yield number, line


def slug(heading):
    """The anchor that a heading gets."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower().replace("`", "")
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page):
    lines = outside_code(page.read_text())
    return {slug(line.lstrip("#")) for _, line in lines if re.match(r"#+ ", line)}


def problem_of_link(page, link):
    if "://" in link:
        return ""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return f"no such file: {link}"
    if anchor and anchor not in anchors(target):
        return f"no such heading: {link}"
    return ""


def problems_of(page):
    for number, line in outside_code(page.read_text()):
        for link in re.findall(r"\]\(([^)\s]+)\)", line):
            if problem := problem_of_link(page, link):
                yield number, problem
        for name in FILE.findall(line):
            if not INVENTED.search(name) and not any((f / name).exists() for f in FOLDERS):
                yield number, f"no such source file: {name}"
        if len(line) > WIDTH and not line.startswith(("|", "- `test_")):
            yield number, f"{len(line)} characters"


def main():
    found = [(page, *problem) for page in PAGES for problem in problems_of(page)]
    for page, number, problem in found:
        print(f"{page.relative_to(ROOT)}:{number}: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
