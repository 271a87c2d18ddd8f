#!/usr/bin/env bash
# Hardware of other sizes: `check` decides what `compile` decides, and what does not fit runs on the
# CPU. Dumps, what quantisation costs, and what reports say of a package for an accelerator.
# vta_hw.sh PROGRAM
source "$(dirname "$0")/lib.sh"

files() { "$python" "$here/vta_hw_files.py" "$@"; }
code_of() { timeout "$limit" "$program" -q "$@" >>"$log" 2>&1; echo $?; }

# agree MODEL HW: `check` and `compile` end alike, with and without --fallback cpu; the latter gives
# the integer graph's bits.
agree() {
  local vta=(--target vta --hw "$2" --quantize "$1.npz")
  : >"$log"
  local check compile
  check=$(code_of check "$1.onnx" "${vta[@]}")
  compile=$(code_of compile "$1.onnx" "${vta[@]}" -o agree.twm)
  [ "$check" -eq "$compile" ] ||
    { bad "check is compile: $1 $2" "exit codes $check and $compile" && return; }
  check=$(code_of check "$1.onnx" "${vta[@]}" --fallback cpu)
  compile=$(code_of verify "$1.onnx" "${vta[@]}" --fallback cpu --against cpu)
  [ "$check" -eq "$compile" ] ||
    { bad "check is compile: $1 $2, --fallback cpu" "exit codes $check and $compile" && return; }
  [ "$check" -eq "$3" ] ||
    { bad "--fallback cpu: $1 $2" "exit code $check instead of $3" && return; }
  ok "check is compile: $1 $2"
}

hw() { exits 0 "hw new $1" -- hw new vta "${@:2}" -o "$1.toml"; }

files write || exit 1
hw e14w4 --set log_wgt_width=2 --set log_wgt_buff=16
hw e18o16 --set log_out_width=4
hw in8out16 --set log_block_in=3 --set log_inp_buff=14 --set log_wgt_buff=16
hw in16out8 --set log_block_out=3 --set log_wgt_buff=16 --set log_acc_buff=16
hw tiny --set log_inp_buff=6 --set log_wgt_buff=10 --set log_acc_buff=8 --set log_uop_buff=4
hw small --set log_inp_buff=10 --set log_wgt_buff=14 --set log_acc_buff=13 --set log_uop_buff=8
hw block1 --set log_block_in=0 --set log_block_out=0 --set log_inp_buff=11 --set log_wgt_buff=10 \
  --set log_acc_buff=13
for model in residual depthwise average; do
  agree $model tiny.toml 0
  agree $model small.toml 0
  agree $model block1.toml 0
done
agree residual in8out16.toml 0
agree residual in16out8.toml 0
agree residual e14w4.toml 3
exits 3 "widths are named" "8-bit" "log_wgt_width is 2 (4 bits)" -- \
  check residual.onnx --target vta --hw e14w4.toml
exits 0 "hw check says so too" "log_out_width is 4 (16 bits)" -- hw check e18o16.toml
exits 0 "a mean over more places than weights fit" supported -- \
  check average.onnx --target vta --hw small.toml --quantize average.npz
hw taps --set log_wgt_buff=10
exits 0 "windows that weights do not fit are cut into taps" "0.00e+00" -- \
  verify residual.onnx --target vta --hw taps.toml --quantize residual.npz --against cpu
exits 6 "A4 a layer that does not fit, with sizes" "no tile" "--fallback cpu" -- \
  compile residual.onnx --target vta --hw tiny.toml --quantize residual.npz

# Dumps: their own timing, the results they expect, several in a folder.
vta=(--target vta --quantize residual.npz)
hw slow --set timing.preset=custom --set timing.read_latency=200
exits 0 "dump" -- run residual.onnx "${vta[@]}" --hw slow.toml --device vta:tsim --dump-program dump
"$program" --json -q run residual.onnx "${vta[@]}" --hw slow.toml --device vta:tsim >run.json
"$program" --json -q sim dump >sim.json
holds "a dump keeps its timing" "$python" -c 'import json
a, b = (json.load(open(f))["launches"][0]["cycles"] for f in ("run.json", "sim.json"))
assert a == b > 0, (a, b)'
exits 0 "sim of the folder of a dump" "results as expected" -- sim dump/vta_0
exits 0 "sim --check says what it found" "no problems in" -- sim dump --check
"$program" --json -q sim dump --hw vta >sim_vta.json
holds "--hw gives another timing" "$python" -c 'import json
a, b = (json.load(open(f))["launches"][0]["cycles"] for f in ("sim.json", "sim_vta.json"))
assert a > b > 0, (a, b)'
exits 8 "F5 --hw of another size, setting by setting" "other hardware" \
  "log_wgt_buff is 18 in the program, 15 in vdla" "--target vta --hw vdla" -- sim dump --hw vdla
size=$(stat -c %s dump/vta_0/final.bin)
holds "change one byte" files flip dump/vta_0/final.bin $((size - 1))
exits 5 "results that are not as expected" "does not compute what its dump expects" "(1 of" -- sim dump --device vta:fsim
mkdir empty
exits 2 "a folder without dumps" "holds no program dump" -- sim empty

# Reports.
"$program" --json -q verify average.onnx --target vta --quantize average.npz --against f32 >loss.json
holds "what quantisation costs" files loss loss.json
exits 0 "close classes in f32" -- compile close.onnx -o f32.twm
exits 0 "close classes in integers" -- \
  compile close.onnx --target vta --quantize close.npz -o i8.twm
for i in {0..11}; do
  "$program" -q run f32.twm --input x=@close$i.npy -o f32_$i.npy >>"$log" 2>&1
  "$program" -q run i8.twm --device vta:fsim --input x=@close$i.npy -o i8_$i.npy >>"$log" 2>&1
done
"$program" --json -q verify close.onnx --target vta --quantize close.npz --against f32 >close.json
holds "equal first classes are those of single runs" files top1 close.json
exits 0 "as a table" "SQNR" "6 of 6" -- \
  verify average.onnx --target vta --quantize average.npz --against f32 --test-inputs average.npz
exits 2 "no f32 without quantisation" "--target vta --quantize" -- verify average.onnx --against f32
exits 0 "random calibration is named" "warning: the model is calibrated with random inputs" -- \
  compile residual.onnx --target vta --quantize random -o random.twm
exits 0 "calibration with zeros is named" "warning: input 'x' is 0 in all 2" -- \
  compile residual.onnx --target vta --quantize zeros.npz -o zeros.twm
exits 0 "inspect names target and hardware" "target vta, hardware vta (vta_1x16_i8w8a32_15_15_18_17)" -- \
  inspect random.twm
exits 8 "F5 a package on other hardware" "extensions.pipeline4 is false in the program, true in vta-extended" -- \
  run random.twm --device vta:tsim --hw vta-extended
exits 2 "a package on another clock" "sim PACKAGE --hw" -- run random.twm --device vta:tsim --hw slow.toml
exits 0 "E1 a profile of layers, by cycles" "GEMM use" "bound by" -- \
  bench random.twm --device vta:tsim --profile --duration 0.05
exits 0 "E1 a profile on the functional simulator" "median us" "between kernels" -- \
  bench random.twm --device vta:fsim --profile --duration 0.05
exits 0 "trace" "" -- run random.twm --device vta:tsim --trace trace.json
holds "E2 transfers and computation overlap in the trace" files overlap trace.json
exits 0 "E2 the trace as protobuf" "" -- run random.twm --device vta:tsim --trace trace.pftrace
holds "E2 in fewer bytes" [ "$(stat -c %s trace.pftrace)" -lt "$(stat -c %s trace.json)" ]
exits 0 "hardware with MUL" -- hw new vta --set has_mul=true -o mul.toml
exits 0 "multipliers beside ONNX Runtime" -- verify depthwise.onnx --target vta --hw mul.toml \
  --quantize depthwise.npz --per-channel --against ort
"$program" --json -q run residual.onnx "${vta[@]}" --device vta:tsim >run.json
holds "no layer is faster than its bound" files ratios run.json
finish
