#!/usr/bin/env bash
# Networks on the VTA simulator, bit for bit against the integer graph on the CPU; QDQ models of
# onnxruntime.quantization against ONNX Runtime; what users can get wrong.
# vta.sh PROGRAM
source "$(dirname "$0")/lib.sh"

files() { "$python" "$here/vta_files.py" "$@"; }

# exact WHAT ARGUMENTS...: `verify` must report no difference at all.
exact() {
  local what=$1
  shift
  timeout 600 "$program" --json verify "$@" >verify.json 2>"$log"
  local code=$?
  [ "$code" -eq 0 ] || { bad "$what" "exit code $code" && return; }
  holds "$what" files exact verify.json
}

files write || exit 1
vta=(--target vta)

# Calibration and hardware that cannot be used.
exits 2 "no --quantize" "error: " "--quantize" f32 -- compile good.onnx "${vta[@]}"
exits 2 "no samples asked for" random:0 -- compile good.onnx "${vta[@]}" --quantize random:0
exits 2 "missing calibration" gone.npz -- compile good.onnx "${vta[@]}" --quantize gone.npz
exits 2 "text as calibration" text.npz -- compile good.onnx "${vta[@]}" --quantize text.npz
exits 2 "truncated calibration" cut.npz -- compile good.onnx "${vta[@]}" --quantize cut.npz
exits 3 "array of another name" "input 'x'" "did you mean 'x'?" -- \
  compile good.onnx "${vta[@]}" --quantize name.npz
exits 3 "samples of another shape" "[4, 8, 9, 10]" "[1, 8, 10, 10]" -- \
  compile good.onnx "${vta[@]}" --quantize shape.npz
exits 3 "samples of another type" f64 f32 -- compile good.onnx "${vta[@]}" --quantize dtype.npz
exits 3 "empty calibration" "no samples" -- compile good.onnx "${vta[@]}" --quantize none.npz
exits 3 "as many samples of each input" "'b'" -- compile two.onnx "${vta[@]}" --quantize counts.npz
exits 2 "--quantize without a target" "--target vta" -- compile good.onnx --quantize calib.npz
exits 2 "hardware that does not fit its encoding" wgt_inner huge.toml -- \
  compile good.onnx "${vta[@]}" --quantize calib.npz --hw huge.toml
holds "no package of a model with an error" test ! -e good.twm

# Operators that the accelerator lacks.
exits 3 "C1 operators it lacks are an error, all of them" "error: wave (Sin)" "error: bell (Erf)" "--fallback cpu" -- \
  compile odd.onnx "${vta[@]}" --quantize random:2
exits 3 "check says the same" Sin Erf "--fallback cpu" -- check odd.onnx "${vta[@]}"
reasons() {
  "$program" --json check odd.onnx "${vta[@]}" --fallback cpu >placed.json && "$python" -c "
import json
cpu = [n for n in json.load(open('placed.json'))['nodes'] if n['device'] == 'cpu']
assert {'Sin', 'Erf'} <= {n['operator'] for n in cpu}, cpu
assert all(n['reason'] for n in cpu), cpu"
}
holds "C3 every operator on the processor has its reason" reasons
exact "--fallback cpu" odd.onnx "${vta[@]}" --quantize random:2 --fallback cpu --against cpu,interp

# Calibration from files, with and without an axis of its own; a package gives the model's bits.
exact "calibration from a file" good.onnx "${vta[@]}" --quantize calib.npz --against cpu,interp,ort
exact "compressed file, batch axis kept" good.onnx "${vta[@]}" --quantize packed.npz --against cpu
exact "two inputs" two.onnx "${vta[@]}" --quantize pair.npz --against cpu,interp,ort
exits 0 "compile" -- compile good.onnx "${vta[@]}" --quantize calib.npz -o good.twm
exits 0 "run a package on tsim" cycles -- run good.twm --device vta:tsim --input x=@x.npy -o t.npy
exits 0 "on fsim" -- run good.twm --device vta:fsim --input x=@x.npy -o f.npy
exits 0 "another calibration" -- run good.onnx "${vta[@]}" --quantize random --input x=@x.npy -o r.npy
holds "tsim = fsim" cmp t.npy f.npy
holds "calibration matters" files differs f.npy r.npy
exits 0 "its program is clean" -- sim good.twm --check

# Whole networks.
"$program" -q zoo resnet18 --size 64 -o resnet18.onnx
"$program" -q zoo mobilenet_v2 --size 64 -o mobilenet_v2.onnx
"$program" -q zoo squeezenet1.1 --size 64 -o squeezenet.onnx
for network in resnet18 mobilenet_v2 squeezenet; do
  exact "D1 $network on VTA, bit for bit" \
    "$network.onnx" "${vta[@]}" --quantize random:2 --against cpu
done
exact "resnet18, every layer" resnet18.onnx "${vta[@]}" --quantize random:2 --against cpu --per-node
exact "squeezenet with concatenations on the CPU" \
  squeezenet.onnx "${vta[@]}" --quantize random:2 --fallback cpu --against cpu

# Multipliers instead of shifts need the ALU's multiplication.
exits 0 "hardware with MUL" -- hw new vta --set has_mul=true -o mul.toml
mul=("${vta[@]}" --hw mul.toml)
exact "multipliers" good.onnx "${mul[@]}" --quantize calib.npz --per-channel --against cpu,interp
exits 3 "residuals beside multipliers" "adds its residual" "--fallback cpu" -- \
  compile resnet18.onnx "${mul[@]}" --quantize random:2 --per-channel
exact "resnet18 with multipliers, residuals on the CPU" resnet18.onnx "${mul[@]}" \
  --quantize random:2 --per-channel --fallback cpu --against cpu

# The user's own scales.
for form in tensor channel; do
  holds "quantise per $form" files qdq "$form.onnx" ${form/tensor/}
  exits 3 "scales per $form without MUL" "no MUL" "--fallback cpu" -- \
    run "$form.onnx" "${vta[@]}" --input x=@picture.npy
  for hw in vta mul.toml; do
    exact "QDQ model per $form on $hw" "$form.onnx" "${vta[@]}" --hw $hw --fallback cpu --against cpu,interp
  done
  # Two layers: later ones see what earlier ones round otherwise.
  holds "first layers per $form" files cut "$form.onnx" c1_DequantizeLinear_Output part.onnx
  holds "ONNX Runtime, first layers" files reference part.onnx picture.npy want.npy
  exits 0 "first layers per $form on VTA" -- run part.onnx "${mul[@]}" --input x=@picture.npy -o got.npy
  holds "at most 1 unit on 1 %, per $form" files near part.onnx got.npy want.npy
done
holds "no internal error was reported" test ! -e tilewright-bug.txt

finish
