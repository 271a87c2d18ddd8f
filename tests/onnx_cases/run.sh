#!/usr/bin/env bash
# Runs the ONNX backend cases: Debian's set and the one the installed `onnx` package generates.
# run.sh ONNX_CASES [OUTPUT.md]: the second argument also writes the table of operators; without it
# the table of the manual must be that of this run.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${TILEWRIGHT_PYTHON:-.venv/bin/python}
data=build/onnx_cases
[ -f "$data/written" ] || { "$python" scripts/make_onnx_cases.py "$data/node" && touch "$data/written"; }
table=${2:-$data/operators.md}
"$1" --floor 95 --table "$table" /usr/share/libonnx-testdata/data/node "$data/node"
[ $# -eq 1 ] || exit 0
what="B6 the manual's table of operators is what was measured"
if diff docs/operators.md "$table" >"$data/operators.diff"; then
  echo "ok $what"
else
  echo "FAIL $what: tests/onnx_cases/run.sh $1 docs/operators.md writes it anew"
  head -n 20 "$data/operators.diff"
  exit 1
fi
