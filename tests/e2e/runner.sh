#!/usr/bin/env bash
# A package run by tilewright-runner gives what `tilewright run` gives: runner.sh PROGRAM RUNNER
runner=$(realpath "$2")
source "$(dirname "$0")/lib.sh"
"$program" -q zoo lenet5 -o lenet5.onnx || exit 1
"$python" "$here/aarch64_files.py" input lenet5.onnx lenet5 || exit 1
exits 0 "a package" -- compile lenet5.onnx -o lenet5.twm
exits 0 "one for another processor" -- compile lenet5.onnx --target aarch64 -o arm.twm
exits 0 "the program runs it" -- run lenet5.twm --input "$(cat lenet5.name)=@lenet5.npy" -o want.npy

cat >result.py <<'PY'
"""result.py FOLDER RUNS: its result.json describes lenet5 and so many runs."""
import json, sys
import numpy as np

result = json.load(open(sys.argv[1] + "/result.json"))
output = np.load(sys.argv[1] + "/outputs/0.npy")
assert result["ok"] is True and len(result["outputs"]) == 1
assert result["outputs"][0]["shape"] == list(output.shape) and result["outputs"][0]["dtype"] == "f32"
assert len(result["run_ns"]) == int(sys.argv[2]) and min(result["run_ns"]) > 0
assert 0 < result["open_ms"] < 10000
steps = result.get("steps", [])
assert sum(step["total_ns"] for step in steps) > 0
assert sum(step["total_ns"] for step in steps) < result["first_ns"] + 1.5 * sum(result["run_ns"])
PY
for threads in 1 2; do
  lay_out "job$threads" lenet5.twm "{\"threads\": $threads, \"warmup\": 1, \"runs\": 5, \"profile\": true}" lenet5.npy
  holds "the runner runs it, $threads threads" "$runner" "job$threads"
  holds "with the same output, $threads threads" cmp want.npy "job$threads/outputs/0.npy"
  holds "and says how long that took, $threads threads" "$python" result.py "job$threads" 5
done

# refused CODE KIND TEXT WHAT FOLDER
refused() {
  "$runner" "$5" >"$log" 2>&1
  [ $? -eq "$1" ] && grep -qF "\"kind\":\"$2\"" "$5/result.json" && grep -qF -e "$3" "$5/result.json" "$log"
  if [ $? -eq 0 ]; then ok "$4"; else bad "$4" "$(cat "$5/result.json")"; fi
}
lay_out other arm.twm '{}' lenet5.npy
refused 8 package aarch64 "a package for another processor" other
lay_out cut lenet5.twm '{}' lenet5.npy
truncate -s 3000 cut/model.twm
refused 8 package model.twm "a package that is cut off" cut
lay_out none lenet5.twm '{}' lenet5.npy
rm none/model.twm
refused 20 io "No such file" "no package" none
lay_out shape lenet5.twm '{}' lenet5.npy
"$python" -c 'import numpy as np; np.save("shape/inputs/0.npy", np.zeros((1, 1, 3, 3), np.float32))'
refused 2 invalid "is expected, [1, 1, 3, 3] was given" "an input of another shape" shape
lay_out few lenet5.twm '{}'
refused 2 invalid "is missing" "no input" few
lay_out more lenet5.twm '{}' lenet5.npy lenet5.npy
refused 2 invalid "is for no input" "one too many" more
finish
