#!/usr/bin/env bash
# Every command in a code block of the README and of the recipes, and every example of `--help`, word
# by word, in the order of the page: docs.sh PROGRAM PAGE... A line that stands twice in one folder
# runs once. Only the time of searches is shortened, and PoCL compiles without optimising.
source "$(dirname "$0")/lib.sh" "$1"
shift
root=$(realpath "$here/../..")
mkdir bin
ln -s "$program" bin/tilewright
PATH=$work/bin:$PATH
export POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable

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
    if grep -qxF "${line#"${line%%[! ]*}"}" ran.txt 2>/dev/null; then
      ok "$1, as above: $line"
    elif timeout "$limit" bash -c "$(sed -E 's/(--for) [0-9]+s/\1 3s/' <<<"$line")" </dev/null >"$log" 2>&1; then
      ok "$1: $line"
      echo "${line#"${line%%[! ]*}"}" >>ran.txt
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

# `--help` of every verb has examples. Those of rtl, synth and calibrate take long, a fleet wants a server, workers do
# not end by themselves: other tests run these verbs.
# In the folder of the recipes, where many of them ran.
if [ -d "$work/recipes" ]; then
  cd "$work/recipes" || exit 1
else
  mkdir "$work/help" && cd "$work/help" || exit 1
  reader_files 64
fi
mkdir examples_of
for verb in $(tilewright --help | awk '/^Verbs:/ { verbs = 1; next } verbs && NF > 1 && $1 !~ /^(help|version)$/ { print $1 }'); do
  tilewright "$verb" --help | awk '/^Examples:/ { found = 1; next } found && NF' >"examples_of/$verb.txt"
  holds "$verb --help has examples" [ -s "examples_of/$verb.txt" ]
done
first=(zoo compile tune) longer=(rtl synth calibrate fleet worker)
rest=$(cd examples_of && ls | sed 's/\.txt$//' | grep -vxF "$(printf '%s\n' "${first[@]}" "${longer[@]}")")
for verb in "${first[@]}" $rest; do runs "--help" <"examples_of/$verb.txt"; done
finish
