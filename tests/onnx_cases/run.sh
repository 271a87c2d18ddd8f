#!/usr/bin/env bash
# Runs the ONNX backend cases: Debian's set and the one the installed `onnx` package generates.
# run.sh ONNX_CASES [OUTPUT.md]: the second argument also writes the table of operators.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${TILEWRIGHT_PYTHON:-.venv/bin/python}
data=build/onnx_cases
[ -f "$data/written" ] || { "$python" scripts/make_onnx_cases.py "$data/node" && touch "$data/written"; }
exec "$1" --floor 95 ${2:+--table "$2"} /usr/share/libonnx-testdata/data/node "$data/node"
