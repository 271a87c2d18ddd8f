# What the end-to-end scripts share; sourced by them with the program as $1. They run in a folder of
# their own ($work), which is removed at the end; $limit is the time a run may take, in seconds.
set -uo pipefail
program=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${TILEWRIGHT_PYTHON:-$here/../../.venv/bin/python}
# A machine that only runs a copied program (device.sh) may have the packages in its own Python.
[ -x "$python" ] || python=$(command -v python3)
python=$(realpath -s "$python")
export TILEWRIGHT_PYTHON=$python
export TILEWRIGHT_CALIBRATE=off  # the same schedules everywhere
limit=300  # ten times what the slowest needs: a machine may be busy
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export TILEWRIGHT_RECORDS=$work/records.sqlite  # not the user's
passed=0
failed=0
skipped=0
since=$SECONDS  # when the last result was printed
log=$work/.log

ok() {
  passed=$((passed + 1))
  echo "ok $((passed + failed)) $1 ($((SECONDS - since)) s)"
  since=$SECONDS
}
bad() {
  failed=$((failed + 1))
  echo "FAIL $1: $2"
  sed 's/^/  | /' "$log" | tail -n 12
}

# exits CODE WHAT TEXT... -- ARGUMENTS...: runs the program; every TEXT must be in what it prints,
# and a failure must start with `error:`.
exits() {
  local want=$1 what=$2 texts=()
  shift 2
  while [ "$1" != -- ]; do
    texts+=("$1")
    shift
  done
  shift
  timeout "$limit" "$program" "$@" >"$log" 2>&1
  local code=$?
  [ "$code" -eq "$want" ] || { bad "$what" "exit code $code instead of $want" && return; }
  if [ "$want" -ne 0 ] && ! grep -q '^error: ' "$log"; then
    bad "$what" "no line starts with 'error: '" && return
  fi
  local text
  for text in "${texts[@]}"; do
    grep -qF -e "$text" "$log" || { bad "$what" "'$text' is not in the output" && return; }
  done
  ok "$what"
}

# holds WHAT COMMAND...: the command must succeed.
holds() {
  local what=$1
  shift
  if "$@" >"$log" 2>&1; then ok "$what"; else bad "$what" "'$*' failed"; fi
}

# lay_out FOLDER PACKAGE JOB INPUT.npy...: a folder as tilewright-runner reads it; JOB is job.json.
lay_out() {
  local folder=$1 package=$2 job=$3 index=0 input
  shift 3
  mkdir -p "$folder/inputs" && cp "$package" "$folder/model.twm" && echo "$job" >"$folder/job.json"
  for input in "$@"; do
    cp "$input" "$folder/inputs/$index.npy"
    index=$((index + 1))
  done
}

# within SECONDS COMMAND...: waits until the command succeeds; fails if it does not in that time.
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}

# Prints the counts; fails if anything did, or nothing ran.
finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
