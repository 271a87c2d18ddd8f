#!/usr/bin/env bash
# A fleet on one machine, from nothing: a PostgreSQL of its own, a worker with two devices, a model
# that is run, verified and timed there.
#
#   examples/07_fleet.sh [TILEWRIGHT]      the program; default: build/release/tilewright
#
# Everything lies in a temporary folder, and is stopped and removed at the end.
set -euo pipefail
program=$(realpath "${1:-$(dirname "$0")/../build/release/tilewright}")
tilewright() { "$program" "$@"; }
work=$(mktemp -d)
chmod 711 "$work"  # root's server runs as the user postgres, who has to get through
export XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache TILEWRIGHT_RECORDS=$work/records.sqlite
worker=
leave() {
  [ -z "$worker" ] || { kill -TERM "$worker" && wait "$worker"; } 2>/dev/null || true
  tilewright -q fleet stop --private "$work/pool" 2>/dev/null || true
  rm -rf "$work"
}
trap leave EXIT
cd "$work"

tilewright fleet init --private pool
tilewright -q zoo lenet5 -o lenet5.onnx
# --sandbox auto, the default, asks for bubblewrap or Landlock.
"$program" worker --device cpu --device vta:tsim --tag desk &
worker=$!
until tilewright --json fleet status | grep '"free"' >/dev/null; do sleep 0.2; done
tilewright fleet status

tilewright run lenet5.onnx --worker cpu --output y.npy
tilewright verify lenet5.onnx --worker cpu --against interp
tilewright verify lenet5.onnx --worker vta:tsim --quantize random --fallback cpu --against cpu
tilewright bench lenet5.onnx --worker tag=desk --duration 0.2
tilewright fleet log --limit 5
echo "the fleet works"
