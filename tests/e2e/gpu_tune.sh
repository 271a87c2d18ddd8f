#!/usr/bin/env bash
# Tuning for a GPU as a user meets it: a product and a convolution on OpenCL (PoCL without a GPU).
# gpu_tune.sh PROGRAM
source "$(dirname "$0")/lib.sh" "$1"
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$work/pocl}
export TILEWRIGHT_CACHE_DIR=$work/cache
unset TILEWRIGHT_CALIBRATE

cat >product.tw <<'TW'
tensor product(A: f32[m, k], const B: f32[k, n], bias: f32[n]) where m = 96, n = 128, k = 80 {
  C[i in m, j in n] = sum(l in k) A[i, l] * B[l, j]
  D[i in m, j in n] = max(C[i, j] + bias[j], 0)
  return D
}
TW
cat >relu.tw <<'TW'
tensor relu(A: f32[64]) {
  D[i in 64] = max(A[i], 0)
  return D
}
TW
value() { "$python" -c "import json,sys; d=json.load(open('$1')); print($2)"; }
has() { "$program" devices | grep -q "^$1:[0-9].* yes"; }

# Without a device: what would be tuned, and why it is not.
exits 0 "why this tile" "candidates (predicted us)" "second" -- explain product.tw --target cuda
exits 0 "by the model" "tuned us" -- tune product.tw --target cuda --measure model --trials 20
exits 0 "what there is to tune" "constructive" -- tune product.tw --target cuda-sm_80 --dry-run
exits 0 "FlexTensor's space" "tiling" -- tune product.tw --target opencl-mali --space tiling --dry-run
holds "neither leaves a store" [ ! -e "$TILEWRIGHT_RECORDS" ]
exits 4 "another device's code" "runs no code for opencl" -- tune product.tw --target opencl --device cuda
exits 4 "nothing to calibrate" "no GPU target 'tpu'" -- calibrate --device tpu
if ! has cuda; then
  exits 4 "no CUDA driver" "libcuda.so.1" "install NVIDIA's driver" -- tune product.tw --target cuda
  exits 4 "nor to calibrate" "libcuda.so.1" -- calibrate --device cuda
fi
if ! has opencl; then
  echo "skipped: no OpenCL device"
  skipped=$((skipped + 1))
  finish
  exit
fi

# One operator: measured on the device, recorded, used.
exits 0 "tune" "product: " "1     12" -- \
  tune product.tw --target opencl --trials 12 --seed 5 --report page.html -o tuned.twm
holds "report is one file" grep -q '<svg' page.html
"$program" --json records ls --limit 1000 >rows.json 2>>"$log"
holds "a record per trial, rule and race" [ "$(value rows.json 'd["count"]')" -ge 14 ]
holds "of this device" [ "$(value rows.json 'all(r["target"].startswith("opencl:") and len(r["target"]) > 8 for r in d["records"])')" = True ]
exits 0 "compile uses records" "of 1 kernel from tuning records" -- compile product.tw --target opencl -o again.twm
exits 0 "and can leave them" "" -- compile product.tw --target opencl --no-records -o plain.twm
holds "which shows" [ "$(grep -c "from tuning records" "$log")" -eq 0 ]
exits 0 "the processor has no records" "" -- compile product.tw -o cpu.twm
holds "which shows too" [ "$(grep -c "from tuning records" "$log")" -eq 0 ]
exits 0 "results are right" " ok" "of 1 kernel from tuning records" -- verify product.tw --target opencl --against interp
"$program" -q run product.tw --output cpu.npy 2>"$log"
exits 0 "the package runs" "" -- run tuned.twm --output gpu.npy
holds "and computes the same" "$python" -c 'import numpy; assert numpy.allclose(numpy.load("cpu.npy"), numpy.load("gpu.npy"), 1e-4)'
exits 0 "records replay" " 0 do not" -- records validate
key=$("$program" --json records best 2>/dev/null | "$python" -c 'import json,sys; print(json.load(sys.stdin)["records"][0]["workload"])')
exits 0 "to a program" "thread.x" -- records replay "$key"
exits 0 "and its text" "sha256:" -- records replay "$key" --code
exits 0 "a package has its records" "1 added" -- records --store packed.sqlite import tuned.twm
exits 6 "nothing to choose" "nothing to tune" -- tune relu.tw --target opencl --trials 4

# A second run goes on, and is not slower than the rules.
"$program" --json tune product.tw --target opencl --trials 6 >resumed.json 2>>"$log"
holds "it knows what was tried" [ "$(value resumed.json 'd["tasks"][0]["resumed"]')" -ge 12 ]
holds "no slower in the race" [ "$(value resumed.json 'd["models"][0]["tuned_ns"] <= d["models"][0]["untuned_ns"]')" = True ]

# The same run from replayed readings.
exits 0 "export" "" -- records export -o all.jsonl
exits 0 "replay" "" -- --json tune product.tw --target opencl --trials 6 --seed 5 --measure replay:all.jsonl

# A convolution, every axis on its own.
"$python" "$here/conv_file.py" 8 14
exits 0 "tune a convolution" "conv_relu" -- tune conv.onnx --target opencl --trials 12 --records conv.sqlite
exits 0 "which computes the same" " ok" -- verify conv.onnx --target opencl --records conv.sqlite --against interp
exits 0 "in FlexTensor's space" "conv" -- tune conv.onnx --target opencl --space tiling --method random --trials 8 --records tiling.sqlite

# A record that does not fit the kernel any more.
"$python" - "$TILEWRIGHT_RECORDS" broken.sqlite <<'PY'
import shutil, sqlite3, sys
store, broken = sys.argv[1:]
db = sqlite3.connect(store)
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
db.close()
shutil.copy(store, broken)
db = sqlite3.connect(broken)
db.execute("UPDATE records SET schedule = 'split(loop=gone, factor=2)' WHERE outcome = 'ok'")
db.commit()
PY
exits 0 "what does not replay is skipped" "records do not fit" -- compile product.tw --target opencl --records broken.sqlite -o b.twm

measured() {
  "$program" --json records ls --store stopped.sqlite >stopped.json 2>>"$log" &&
    [ "$(value stopped.json 'd["count"]')" -gt 0 ]
}
# Ctrl-C: soon (two seconds where nothing else runs), exit 130, everything measured is kept.
"$program" tune product.tw --target opencl --for 60s --records stopped.sqlite >"$log" 2>&1 &
pid=$!
holds "something is measured" within 120 measured
start=$(date +%s%N)
kill -INT $pid
wait $pid
code=$?
took=$((($(date +%s%N) - start) / 1000000))
holds "Ctrl-C exits 130" [ $code -eq 130 ]
holds "soon ($took ms)" [ $took -lt 10000 ]
holds "records are kept" measured

# Rates of the device: measured once, followed afterwards.
"$program" --json calibrate --device opencl >rates.json 2>>"$log"
holds "calibrated" [ "$(value rates.json 'd["measured_now"] and d["rates"]["f32"] > 0 and d["rates"]["dram"] > 0')" = True ]
exits 0 "once" "measured before" -- calibrate --device opencl
exits 0 "and followed" "candidates" -- explain product.tw --target opencl --no-records
finish
