#!/usr/bin/env bash
# What is typed wrongly, set wrongly or installed wrongly is said in plain words.
# usage.sh PROGRAM
source "$(dirname "$0")/lib.sh"

cat > gemm.tw <<'TW'
tensor gemm(A: f32[8, 8], B: f32[8, 8]) {
  C[i in 8, j in 8] = sum(k in 8) A[i, k] * B[k, j]
  return C
}
TW
"$program" -q zoo lenet5 -o lenet5.onnx || exit 1
"$program" -q compile lenet5.onnx -o lenet5.twm || exit 1

# Verbs and options.
exits 0 "the name alone prints help" Verbs --
exits 0 "help" Verbs -- help
exits 0 "help of a verb" --against -- help verify
exits 0 "help of an action" "Usage: tilewright fleet keygen" -- help fleet keygen
exits 0 "help of all actions" "Usage: tilewright fleet keygen" -- help fleet --all
exits 0 "help of all verbs" "Writes a program as C++" --samples --until-stall -- help --all
exits 0 "version" "tilewright 0." -- version
exits 2 "unknown verb" "there is no verb 'frobnicate'" "the verbs are" -- frobnicate
exits 2 "mistyped verb" "did you mean 'compile'?" -- compil lenet5.onnx
exits 2 "mistyped option" "run has no option '--thread'" "did you mean '--threads'?" -- \
  run lenet5.onnx --thread 2
exits 2 "option of another verb" "check has no option '--device'" "it is for" -- \
  check lenet5.onnx --device cpu
exits 2 "option without its value" "needs a value" -- run lenet5.onnx --dim
exits 2 "number that is none" "'abc'" number -- run lenet5.onnx --threads abc
exits 2 "number out of range" "between 1 and 1024" -- run lenet5.onnx --threads 0
exits 2 "number below zero" "--seed -1 is negative" -- run lenet5.onnx --seed -1
exits 2 "a value that is empty" "the value of -o is empty" -- compile lenet5.onnx -o ""
exits 2 "a size of no dimension" "NAME=" -- run lenet5.onnx --dim =3
exits 2 "missing model" "run needs model.onnx" -- run
exits 2 "word too many" "'two.onnx'" -- run lenet5.onnx two.onnx
exits 2 "missing action" "the actions are ls" -- records
exits 0 "an option takes one value" "" -- compile --dim N=1 lenet5.onnx -o one.twm

# Targets and devices.
exits 4 "F3 an unknown target is refused with the nearest" "did you mean 'vta'?" opencl cuda-sm_89 -- compile lenet5.onnx --target vat
exits 4 "target of old GPUs" "reached by opencl" -- compile lenet5.onnx --target cuda-sm_75
exits 4 "package on another device" "'lenet5' does not run on vta:tsim" -- \
  run lenet5.twm --device vta:tsim
exits 0 "a package cannot follow options of compiling" "'lenet5.twm' is compiled already: --target, --math change nothing" -- \
  run lenet5.twm --target opencl --math exact
exits 4 "model on another device" "--target vta" -- run lenet5.onnx --device vta:tsim
exits 4 "mistyped device" "did you mean 'vta:tsim'?" -- run lenet5.twm --device vta:tsmi

# Devices: what is not usable is listed with the reason.
no_gpu=(env OCL_ICD_VENDORS="$work/none/" TILEWRIGHT_CUDA_DRIVER="$work/none.so")
without_gpu() {
  "${no_gpu[@]}" "$program" --json devices >devices.json && "$python" -c "
import json
devices = {d['id']: d for d in json.load(open('devices.json'))['devices']}
for name in 'opencl', 'cuda':
    assert not devices[name]['usable'] and devices[name]['reason'], devices
    assert '\n' not in devices[name]['reason'], devices
assert devices['cpu']['usable'] and not devices['cpu']['reason'], devices"
}
holds "C2 without a GPU devices say why" without_gpu

exits 4 "compiling for another device" "'lenet5' does not run on vta:tsim" "--target vta" -- \
  compile lenet5.onnx --device vta:tsim -o none.twm
exits 2 "an accelerator's option for the processor" "--fallback cpu is for accelerators" "--target vta" -- \
  compile lenet5.onnx --fallback cpu -o none.twm
holds "nothing was compiled" test ! -e none.twm

# The environment.
TILEWRIGHT_THREADS=abc exits 2 "threads that are no number" TILEWRIGHT_THREADS "'abc'" -- run gemm.tw
TILEWRIGHT_CALIBRATE=never exits 2 "calibration that is neither on nor off" "on or off" -- run gemm.tw
TILEWRIGHT_CALIBRATE=OFF exits 0 "OFF is off" "" -- run gemm.tw
TILEWRIGHT_THREAD=2 exits 0 "misspelt variable" "did you mean TILEWRIGHT_THREADS?" -- run gemm.tw
TILEWRIGHT_RECORDS=/etc/passwd exits 0 "store that is none" "schedules by rule alone" -- run lenet5.onnx
holds "one warning of it" test "$(grep -c 'rule alone' "$log")" = 1

# Errors are JSON, too.
error_json() {
  local what=$1 code=$2
  shift 2
  "$program" --json "$@" >error.json 2>"$log"
  local got=$?
  if [ $got -ne "$code" ]; then
    bad "$what" "exit code $got"
  else
    holds "$what" "$python" -c "
import json
d = json.load(open('error.json'))
assert d['schema'] == 'tilewright.error' and d['version'] == 1 and d['code'] == $code, d
assert d['what'] and d['problems'][0]['what'] == d['what'] and 'node' in d, d"
  fi
}
error_json "JSON of a wrong option" 2 run lenet5.onnx --frob
error_json "JSON of a missing file" 2 check none.onnx
error_json "JSON of an unknown target" 4 compile lenet5.onnx --target vat
error_json "JSON of an unknown verb" 2 frobnicate
"$program" --json opt --list >passes.json 2>"$log"
holds "JSON of opt --list" "$python" -c "
import json
d = json.load(open('passes.json'))
assert {p['name']: p['pipelines'] for p in d['passes']}['simplify'] == ['cpu', 'gpu'], d
assert [p['name'] for p in d['pipelines']] == ['cpu', 'gpu', 'gpu-kernel', 'fpga'], d"

# Programs that run by themselves have inputs and outputs of known sizes.
echo 'func f(A: f32[4], inout B: f32[4]) { for i in 4 { block b(i: space 4 = i) { B[i] += A[i] } } }' >inout.tw
echo 'func f(n: int in 1..4, A: f32[n], out B: f32[n]) { for i in n { block b(i: space n = i) { B[i] = A[i] } } }' >sizes.tw
for verb in check run; do
  exits 3 "$verb of a parameter that is changed in place" "'B' is changed in place" -- $verb inout.tw
  exits 3 "$verb of a size that is an argument" "scalar parameters" -- $verb sizes.tw
done
exits 0 "passes take such programs" "inout B" -- opt inout.tw --passes simplify

# Passes on a program.
exits 0 "passes of a pipeline" "func gemm" -- opt gemm.tw --pipeline cpu --dump-ir-to new/cpu
holds "are dumped into a folder made for it" test "$(ls new/cpu | wc -l)" = 9
holds "by number and name" test -f new/cpu/00000.after_bind_iters.changed.tw
exits 0 "kernels of a GPU" "blocks of" -- opt gemm.tw --pipeline gpu --target opencl --dump-ir-to gpu
holds "with the passes on each" test -f gpu/00009.after_insert_syncs.*.tw
exits 0 "a pass for GPUs by itself" "func gemm" -- opt gemm.tw --passes bind_iters,privatize
exits 2 "a pass that needs another before it" "block 'C" "bind_iters" -- opt gemm.tw --passes privatize
exits 2 "unknown pipeline" "'gpus'" "gpu-kernel" -- opt gemm.tw --pipeline gpus
exits 2 "a target that no pass reads" "--pipeline gpu" -- opt gemm.tw --passes simplify --target cuda
exits 4 "a target that is no GPU" "'x86-64-v3'" -- opt gemm.tw --pipeline gpu --target x86-64-v3
exits 2 "passes and a pipeline" "exclude each other" -- opt gemm.tw --passes simplify --pipeline cpu

# Nests that share names of loops, which people write, are taken as `run` takes them.
cat >shared.tw <<'TW'
func shared(A: i32[9], out B: i32[9], out C: i32[9]) {
  for i in 9 { block b(k: space 9 = i) { B[k] = A[k] + 1i32 } }
  for i in 9 { block c(k: space 9 = i) { C[k] = B[k] * 2i32 } }
}
TW
exits 0 "loops of one name" "" -- run shared.tw
exits 0 "in a pipeline" "func shared" -- opt shared.tw --pipeline cpu
exits 0 "for a GPU" "blocks of" -- opt shared.tw --pipeline gpu
exits 0 "in a pass" "for c.i in 9" -- opt shared.tw --passes simplify

# Hardware files.
printf 'log_batch = 99\n' > bad.toml
exits 2 "value out of range, with its line" "bad.toml:1:13" "0..12" -- hw check bad.toml
printf '[timing]\nclock = 3\n' > bad.toml
exits 2 "unknown key, with those there are" "bad.toml:2" "the keys here are preset" -- hw check bad.toml
printf 'a b\n' > bad.toml
exits 2 "no TOML" "this is no TOML file" "bad.toml:1" -- hw check bad.toml
exits 0 "a configuration of one's own" "" -- hw new vta -o my.toml
holds "is called as its file" grep -q "name = 'my'" my.toml

# A caret stands under its column.
printf 'tensor t(A: f32[8]) {\n  B[i in 8] = A[i] + * 2\n  return B }\n' > caret.tw
exits 2 "caret" "caret.tw: 2:" -- run caret.tw
cp "$log" caret.txt
holds "its column" "$python" -c "
import re
lines = open('caret.txt').read().split('\n')
at = int(re.search(r'caret.tw: 2:(\d+)', '\n'.join(lines)).group(1))
why = next(i for i, line in enumerate(lines) if 'why: ' in line)
assert lines[why + 1].index('^') - 7 == at - 1, lines"

# Small things.
exits 0 "check of an expression" "one kernel" "[8, 8]" -- check gemm.tw
exits 2 "node that is none" "Conv" "kernel has the name of its main node" -- explain lenet5.onnx zz
exits 2 "explain of a package" "name the model" -- explain lenet5.twm
"$program" -q compile lenet5.onnx --target vta --quantize random --fallback cpu -o vta.twm || exit 1
exits 0 "check of accelerator programs" "no problems in" -- sim vta.twm --check

# Tools.
mkdir tools
printf '#!/bin/sh\necho Verilator 4.038 2020-07-11\n' > tools/verilator
chmod +x tools/verilator
PATH=$work/tools:$PATH exits 7 "F4 a tool that is too old" "4.038 is too old" "5.0 or newer" -- rtl vta --lint
PATH=$work/tools:$PATH exits 0 "F4 doctor says so" "4.038 is too old" -- doctor
env -i PATH=/nonexistent HOME="$work" "$program" doctor >doctor.txt 2>&1
holds "F6 doctor without any tool" grep -q "^verilator *--" doctor.txt
# A linker is all that compiling needs; running a package needs nothing.
mkdir linker
for name in cc ld as; do ln -s "$(command -v $name)" linker/$name; done
holds "F6 an accelerator without any vendor's tool" env PATH="$work/linker" "$program" \
  compile lenet5.onnx --target vta --quantize random --fallback cpu -o alone.twm
holds "F6 it runs on the cycle simulator" env PATH=/nonexistent "$program" run alone.twm --device vta:tsim
printf '#!/bin/sh\n[ "$1" = -V ] && echo Yosys 0.23 && exit\nkill -9 $$\n' > tools/yosys
chmod +x tools/yosys
PATH=$work/tools:$PATH exits 9 "F7 a tool that the system killed" "'yosys' was killed" "MiB of memory" -- synth vta
printf '#!/bin/sh\n[ "$1" = -V ] && echo Yosys 0.23 && exit\necho ERROR: no cell of that name; exit 3\n' > tools/yosys
PATH=$work/tools:$PATH exits 7 "G3 a tool that fails" "yosys failed with status 3" "no cell of that name" -- synth vta
holds "no internal error was reported" test ! -e tilewright-bug.txt

# A store that may only be read.
mkdir store
if mount -t tmpfs none store 2>/dev/null; then
  trap 'umount "$work/store"; rm -rf "$work"' EXIT
  "$program" -q tune gemm.tw --trials 2 --records store/r.sqlite >/dev/null 2>&1
  mount -o remount,ro "$work/store"
  exits 0 "store on a read-only disk" "" -- records validate --records store/r.sqlite
  exits 0 "compiling with it" "" -- compile gemm.tw --records store/r.sqlite -o ro.twm
else
  skipped=$((skipped + 1))
  echo "skip read-only store: a tmpfs cannot be mounted without root"
fi

cat >sum.tw <<'END'
func f(X: f32[8], out Y: f32[8]) {
  for i in 8 {
    block Y(k: space 8 = i) {
      Y[k] = X[k] + 1.0
    }
  }
}
END
exits 2 "sizes of an expression are its own" "are for models" -- compile sum.tw --dim N=4
exits 2 "help on a verb that is none" "the verbs are doctor" -- help nothing
finish
