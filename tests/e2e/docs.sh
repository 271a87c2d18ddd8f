#!/usr/bin/env bash
# Every command in a code block of the README and of the recipes, and every example of `--help`, word
# by word, in the order of the page: docs.sh PROGRAM PAGE...
source "$(dirname "$0")/lib.sh" "$1"
shift
limit=300
root=$(realpath "$here/../..")
mkdir bin
ln -s "$program" bin/tilewright
PATH=$work/bin:$PATH

# commands PAGE: the lines of its code blocks that run the program.
commands() { awk '/^```/ { code = !code; next } code && /^tilewright /' "$1"; }

# reader_files SIZE: what the pages say that their reader has.
reader_files() {
  ln -s "$root/examples" examples
  "$python" - "$1" <<'PY'
import sys
import numpy
size = int(sys.argv[1])
images = numpy.random.default_rng(1).standard_normal((4, 3, size, size)).astype(numpy.float32)
numpy.save("image.npy", images[:1])
numpy.savez("calib.npz", data=images)
PY
}

# runs WHERE: every line of stdin as a command.
runs() {
  local line
  while IFS= read -r line; do
    if timeout "$limit" bash -c "$line" </dev/null >"$log" 2>&1; then
      ok "$1: $line"
    else
      bad "$1: $line" "exit code $?"
    fi
  done
}

for page in "$@"; do
  mkdir "$work/$(basename "$page" .md)"
  cd "$work/$(basename "$page" .md)" || exit 1
  reader_files "$(grep -q 'in a folder that has .*64x64' "$page" && echo 64 || echo 224)"
  runs "$(basename "$page")" < <(commands "$page")
done

# `--help` of every verb has examples. Those of rtl and synth take long: other tests run these verbs.
mkdir "$work/help" && cd "$work/help" || exit 1
reader_files 64
for verb in $(tilewright --help | awk '/^Verbs:/ { verbs = 1; next } verbs && NF > 1 && $1 !~ /^(help|version)$/ { print $1 }'); do
  tilewright "$verb" --help | awk '/^Examples:/ { found = 1; next } found && NF' >"$verb.txt"
  holds "$verb --help has examples" [ -s "$verb.txt" ]
done
runs "--help" < <(cat zoo.txt compile.txt tune.txt $(ls ./*.txt | grep -v -e zoo -e compile -e tune -e rtl -e synth -e calibrate))
finish
