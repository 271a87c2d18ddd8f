#!/usr/bin/env bash
# Packages are checked by themselves, against their model, and profiled like it.
# packages.sh PROGRAM
source "$(dirname "$0")/lib.sh"
"$program" -q zoo lenet5 -o lenet5.onnx || exit 1
"$program" -q zoo squeezenet1.1 --size 64 -o net.onnx || exit 1
exits 0 "a package" "" -- compile lenet5.onnx -o lenet5.twm
exits 0 "a larger one" "" -- compile net.onnx --threads 1 -o net.twm
exits 0 "by the interpreter" "" -- compile lenet5.onnx --samples interp -o judged.twm
exits 0 "D2 graph passes are listed with their nodes" "fold_constants" "nodes" -- \
  compile net.onnx --threads 1 --explain -o net2.twm
steps_of() {
  "$program" --json -q compile net.onnx --threads 1 -O "$1" -o "level$1.twm" 2>"$log" |
    "$python" -c 'import json,sys; print(json.load(sys.stdin)["steps"])'
}
holds "D2 the level has an effect" [ "$(steps_of 0)" -gt "$(steps_of 2)" ]
exits 0 "without samples" "" -- compile lenet5.onnx --samples none -o bare.twm
exits 0 "of another machine" "" -- compile lenet5.onnx --target aarch64 -o arm.twm

exits 0 "verify PACKAGE" samples ok -- verify lenet5.twm net.twm
exits 0 "expected outputs of the interpreter" "samples (interpreter)" ok -- verify judged.twm
exits 0 "verify PACKAGE --model" interp ort ok -- verify lenet5.twm --model lenet5.onnx --against interp,ort
exits 2 "no samples, no model" "has no samples" "--model" -- verify bare.twm
exits 0 "no samples but a model" ok -- verify bare.twm --model lenet5.onnx
exits 2 "a reference without the model" "--model MODEL.onnx" -- verify lenet5.twm --against ort
exits 8 "another model" "is not made from" -- verify lenet5.twm --model net.onnx
exits 2 "--model of a model" "is for packages" -- verify lenet5.onnx --model lenet5.onnx

# change.py PACKAGE MEMBER NEW [right]: a copy with a member changed; `right`: with hashes that fit.
cat > change.py <<'PY'
import hashlib, json, sys, tarfile

package, name, new = sys.argv[1:4]
with tarfile.open(package) as tar:
    members = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
data = bytearray(members[name])
for at in range(len(data) // 4, len(data) // 2, 4):
    data[at + 3] = 0x42
members[name] = bytes(data)
if len(sys.argv) > 4:
    manifest = members["manifest.json"].decode()
    for entry in json.loads(manifest)["members"]:
        if entry["name"] == name:
            manifest = manifest.replace(entry["sha256"], hashlib.sha256(data).hexdigest())
    members["manifest.json"] = manifest.encode()
    digest = hashlib.sha256(members["manifest.json"]).hexdigest()
    members["manifest.sha256"] = (digest + "  manifest.json\n").encode()
with open(package, "rb") as file, tarfile.open(package) as tar:
    whole = bytearray(file.read())
    for m in tar.getmembers():
        assert len(members[m.name]) == m.size
        whole[m.offset_data : m.offset_data + m.size] = members[m.name]
with open(new, "wb") as file:
    file.write(whole)
PY
holds "damage weights" "$python" change.py lenet5.twm weights.bin damaged.twm
exits 8 "run --verify-weights" weights.bin -- run damaged.twm --verify-weights
exits 0 "without it nobody looks" "" -- run damaged.twm
exits 8 "verify always does" weights.bin -- verify damaged.twm
holds "other weights under right hashes" "$python" change.py lenet5.twm weights.bin other.twm right
holds "numbers that differ are exit 5" bash -c '"$0" verify other.twm; [ $? -eq 5 ]' "$program"

# A profile adds up, and a package has the limits of its model.
cat > adds.py <<'PY'
import json, sys
model, package = (json.load(open(f))["rows"][0] for f in sys.argv[1:3])
for row in model, package:
    profile = row["profile"]
    whole, kernels = profile["latency_us"], profile["kernels"]["us"]
    assert abs(kernels + profile["between_us"] - whole) < 1e-6 * whole, profile
    assert 0.9 * whole < kernels < 1.1 * whole, (kernels, whole)
    assert 0 < row["compute"] and 0 < row["load"] and 0 < row["first_run"]
    assert row["h2d"] >= 0 and row["d2h"] >= 0
assert package["load"] < 50, package["load"]  # ms
keys = "operations", "bound", "limit_us", "bytes"
for a, b in zip(model["profile"]["steps"], package["profile"]["steps"], strict=True):
    assert [a[k] for k in keys] == [b[k] for k in keys], (a, b)
assert model["profile"]["kernels"]["operations"] > 1e6
PY
# Other work between two readings pulls them apart: of five attempts one must agree.
adds_up() {
  local attempt what
  for attempt in 1 2 3 4 5; do
    for what in onnx twm; do
      "$program" bench net.$what --duration 0.6 --threads 1 --profile --json > $what.json
    done
    "$python" adds.py onnx.json twm.json && return
  done
  return 1
}
holds "E3 E4 the profile adds up, and a package is ready in 50 ms" adds_up
exits 0 "E1 bench --profile" "median us" "between kernels" latency -- \
  bench net.twm --duration 0.2 --profile

# Compiling a network talks little.
"$program" compile net.onnx --threads 1 -o quiet.twm >/dev/null 2>talk.txt
holds "A9 compiling prints at most five lines" [ "$(wc -l <talk.txt)" -le 5 ]
finish
