#!/usr/bin/env bash
# The DPU from a model to results: every node of small networks against the integer graph on the CPU,
# small memories, several images and kernels, dumps, pictures, and what bad input gets.
# dpu.sh PROGRAM [full]      full: the networks and memories that take long
source "$(dirname "$0")/lib.sh"
quantized=(--target dpu --quantize random:1)

model() { holds "zoo $1" "$program" -q zoo "$1" "${@:3}" -o "$2.onnx"; }

# every_node HW NAME...: each value of a network against the integer graph on the CPU.
every_node() {
  for name in "${@:2}"; do
    exits 0 "every node of $name on $1" "every node agrees" -- \
      verify $name.onnx "${quantized[@]}" --hw $1 --fallback cpu --against cpu --per-node
  done
}
# in_memory PART NAME...: memories of a part of the usual ones: splits and swap, the same results.
in_memory() {
  local fm=$((8192 / $1))
  holds "hw new" "$program" -q hw new dpu --set "fm_depth=[$fm,$fm,$((fm / 2))]" --set pm_depth=$fm -o part$1.toml
  for name in "${@:2}"; do
    exits 0 "$name in 1/$1 of the memory" " ok" -- \
      verify $name.onnx "${quantized[@]}" --hw part$1.toml --fallback cpu --against cpu
  done
}

model resnet18 resnet --size 64
model inception_v3 inception --size 75
model mobilenet_v2 mobilenet --size 64
if [ "${2:-}" = full ]; then
  model yolov3_voc yolo --size 64
  model unet unet --size 188
  model squeezenet1.1 squeezenet --size 64
  model dcgan dcgan
  every_node dpu yolo unet squeezenet mobilenet
  every_node dpu-paper yolo mobilenet unet resnet squeezenet dcgan inception
  for part in 2 4 8; do in_memory $part resnet inception mobilenet yolo; done
  finish
  exit
fi
model squeezenet1.1 squeezenet --size 64
model dcgan dcgan
model yolov3_tiny tiny --size 64
every_node dpu resnet inception dcgan tiny
every_node dpu-paper tiny
exits 0 "against the interpreter" "every node agrees: " " against interp" -- \
  verify squeezenet.onnx "${quantized[@]}" --fallback cpu --against interp --per-node

# ONNX Runtime computes each layer from the integers that the device made.
qdq_files() { "$python" "$here/dpu_qdq_files.py" "$@"; }
judge() {  # NAME OPERATOR...
  "$program" --json -q verify "$1.onnx" "${quantized[@]}" --fallback cpu --against ort --per-node >"$1.json"
  holds "ONNX Runtime on $1" qdq_files judged "$1.json" RequantizeFixed "${@:2}"
}
judge resnet EltwiseFixed AveragePoolFixed MaxPool
judge inception AveragePoolFixed MaxPool Concat
judge tiny MaxPool Resize Concat  # LeakyRelu everywhere

# Models in QDQ form: both operands of an addition need scales.
holds "a QDQ model" qdq_files residual qdq.onnx
holds "a QDQ model that rounds late" qdq_files residual late.onnx unrounded
exits 0 "an addition of a QDQ model" "every node agrees: " "against cpu" "against interp" "against ort" -- \
  verify qdq.onnx --target dpu --against cpu,interp,ort --per-node
exits 3 "a sum that is added to before it is rounded" "'long' has no scale of its own: 'sum' adds to" \
  "QuantizeLinear and DequantizeLinear between them" -- check late.onnx --target dpu
exits 0 "which then runs here" " ok" -- verify late.onnx --target dpu --fallback cpu --against ort

in_memory 8 resnet mobilenet

# Images: three leave an element idle, nine take three rounds, which two kernels share.
model squeezenet1.1 three --size 64 --batch 3
model squeezenet1.1 nine --size 64 --batch 9
for name in three nine; do
  exits 0 "batch of $name" " ok" -- verify $name.onnx "${quantized[@]}" --fallback cpu --against cpu
done
holds "hw new, two kernels" "$program" -q hw new dpu --set kernels=2 -o two.toml
cycles() { "$program" -q run "$1" --device dpu:tsim --json | grep -m1 '"cycles"' | tr -dc 0-9; }
exits 0 "compile one image" -- compile squeezenet.onnx "${quantized[@]}" --fallback cpu -o one.twm
exits 0 "compile nine images" -- compile nine.onnx "${quantized[@]}" --fallback cpu -o nine.twm
exits 0 "compile for two kernels" -- \
  compile nine.onnx "${quantized[@]}" --hw two.toml --fallback cpu -o two.twm
one=$(cycles one.twm)
holds "nine images take three rounds" test "$(cycles nine.twm)" -eq $((3 * one))
holds "two kernels share them" test "$(cycles two.twm)" -eq $((2 * one))

# Programs by themselves.
exits 0 "the checker" "no problems" -- sim one.twm --check
exits 0 "results alike on both simulators" -- run one.twm --device dpu:fsim --output-dir fsim --dump-program dumps
exits 0 "run on tsim" -- run one.twm --device dpu:tsim --output-dir tsim --timeline time.html --trace trace.json
holds "the same results" cmp "fsim/$(ls fsim | head -1)" "tsim/$(ls tsim | head -1)"
holds "a timeline" grep -q '<svg' time.html
holds "a trace" grep -q traceEvents trace.json
exits 0 "a dump is as it expects" -- sim dumps
exits 0 "layers with busy units" "bound by" -- sim one.twm
"$program" --json sim one.twm >sim.json
holds "keys of the report" "$python" - sim.json <<'END'
import json, sys
launch = json.load(open(sys.argv[1]))["launches"][0]
assert launch["ms"] == launch["cycles"] / 300e3, launch
layer = launch["layers"][0]
assert {"begin", "end", "conv", "misc", "load", "save", "bound"} <= set(layer), layer
assert layer["bound"] == max(layer["conv"], layer["misc"], layer["load"] + layer["save"]), layer
END

# Programs as text: what is printed is read, prints the same again and takes the same time.
"$program" sim one.twm --asm >one.asm
"$program" sim one.asm --target dpu --asm >again.asm
holds "text is read as it is printed" cmp one.asm again.asm
"$program" --json sim one.asm --target dpu >asm.json
holds "and takes the same time" "$python" - sim.json asm.json <<'END'
import json, sys
a, b = (json.load(open(name))["launches"][0] for name in sys.argv[1:])
assert a["cycles"] == b["cycles"] and a["layers"] == b["layers"], (a["cycles"], b["cycles"])
END
holds "hw new, slow" "$program" -q hw new dpu --set timing.lat_conv=999 -o slow.toml
exits 0 "text for other hardware" "bound by" -- sim one.asm --target dpu --hw slow.toml
exits 0 "what was tried" "cycles" "tiles of" -- explain squeezenet.onnx "${quantized[@]}" --fallback cpu
exits 0 "inspect" "target dpu" -- inspect one.twm
exits 0 "its own samples" " ok" -- verify one.twm

# Tuning goes on from what compile tried: never worse, within its time, kept as records.
tuned=(squeezenet.onnx "${quantized[@]}" --fallback cpu --records plans.sqlite)
exits 0 "what would be tuned" "decisions" -- tune "${tuned[@]}" --dry-run
exits 0 "tune" "stopped because 60 trials were asked for" "of the compiler" -- \
  tune "${tuned[@]}" --trials 60 -o tuned.twm --report page.html
before=$SECONDS
exits 0 "a time" "stopped because the time is up" -- tune "${tuned[@]/plans/timed}" --for 3s
holds "it keeps its time" test $((SECONDS - before)) -le 60
holds "a page" grep -q '<svg' page.html
holds "no slower than compiled" test "$(cycles tuned.twm)" -le "$one"
exits 0 "results of tuned plans" " ok" -- verify tuned.twm
exits 0 "the checker on tuned plans" "no problems" -- sim tuned.twm --check
exits 0 "compile from records" "tuning records" -- compile "${tuned[@]}" -o again.twm
holds "the same plan" test "$(cycles again.twm)" -eq "$(cycles tuned.twm)"
exits 0 "records of plans are no kernels" "0 do not" -- records validate --records plans.sqlite
exits 2 "methods that need loops" "whole launches" -- tune "${tuned[@]}" --method xgb --for 5s
"$program" -q tune "${tuned[@]/plans/stopped}" --for 300s -o stopped.twm >stopped.txt 2>&1 &
tuning=$!
recorded() { "$program" records ls --store stopped.sqlite 2>/dev/null | grep -q dpu; }
holds "something is tried" within 60 recorded
kill -INT "$tuning"
wait "$tuning" && code=0 || code=$?
holds "Ctrl-C ends it with 130" test "$code" -eq 130
holds "and keeps the best" test "$(cycles stopped.twm)" -le "$one"

# What bad input gets.
holds "models to refuse" "$python" "$here/dpu_files.py" write
exits 2 "f32 without samples" "--quantize" -- compile squeezenet.onnx --target dpu -o x.twm
exits 2 "--hw of another accelerator" -- compile squeezenet.onnx --target vta --quantize random:1 --hw dpu -o x.twm
exits 2 "scales per channel" "--per-channel" -- \
  compile squeezenet.onnx "${quantized[@]}" --per-channel -o x.twm
printf 'kind = "dpu"\npe = 9\nfm_depth = [1, 2]\nfoo = 3\npm_depth = 8193\n[timing]\nqueu = 1\n' >bad.toml
problems=("\`pe\` is 9, but must be in 1..8" "bad.toml:2" "\`fm_depth\` must be 3 integers" "bad.toml:3"
  "unknown key \`foo\`" "\`pm_depth\` is 8193" "\`bank_addr\` has 13 bits" "unknown key \`timing.queu\`"
  "did you mean 'queue'?")
exits 3 "all problems of a file" "${problems[@]}" -- \
  compile squeezenet.onnx "${quantized[@]}" --hw bad.toml -o x.twm
exits 3 "and to hw" "${problems[@]}" -- hw check bad.toml
printf 'kind = "dpu"\npe 9\n' >text.toml
exits 2 "a file that is no TOML" "text.toml:2" -- sim one.asm --target dpu --hw text.toml
limits=("kernel_h 17 is not 1 to 16" "stride_w 9 is not 1 to 8" "channels 5000 is not 1 to 4096"
  "both stride and dilation" "sums of channel 0 reach 1664615526, 1073741824 or more"
  "one layer with sums/Requantize")
exits 3 "operators beyond the limits" "${limits[@]}" "--fallback cpu" -- \
  compile limits.onnx "${quantized[@]}" -o x.twm
exits 3 "check lists them" "${limits[@]}" -- check limits.onnx "${quantized[@]}"
exits 0 "or the CPU has them" -- compile limits.onnx "${quantized[@]}" --fallback cpu -o limits.twm
exits 3 "scales that are no powers of two" "tensor 'x' has the scale 0.03" "--quantize" -- \
  compile others.onnx --target dpu -o x.twm
exits 0 "scales that are" " ok" -- verify powers.onnx --target dpu --fallback cpu --against cpu
holds "hw new, small" "$program" -q hw new dpu --set "fm_depth=[64,64,64]" -o small.toml
exits 6 "a layer that fits nowhere" "one pixel needs 32896 bytes of m_q" "there are 24576 bytes" "tried strips" -- \
  compile large.onnx "${quantized[@]}" --fallback cpu --hw small.toml -o x.twm
exits 4 "no such device" "dpu:tsim" -- run one.twm --device dpu:rtl
model lenet5 lenet
exits 3 "operators that are no layers, with reasons" "Tanh" "--fallback cpu" -- \
  compile lenet.onnx "${quantized[@]}" -o x.twm
exits 0 "the rest on the CPU" " ok" -- \
  verify lenet.onnx "${quantized[@]}" --fallback cpu --against cpu
sed '5s/channel=[0-9]*/channel=0/; 6s/length=/lenght=/; 7s/bank_addr=[0-9]*/bank_addr=8192/' one.asm >fields.asm
exits 2 "bad fields" "fields.asm:5" "\`channel\` is 0" "fields.asm:6" "did you mean 'length'?" "fields.asm:7" \
  "\`bank_addr\`" -- sim fields.asm --target dpu
exits 2 "text without a target" "--target dpu" -- sim one.asm
head -c 3000 one.twm >cut.twm
exits 8 "a package cut off" "at byte" -- sim cut.twm
cp -r dumps/dpu_0 cut && truncate -s -6 cut/insns.bin
exits 2 "a dump cut off" "is cut off" "at byte" -- sim cut
"$python" "$here/dpu_files.py" race one.asm race.asm
exits 5 "a race" "race at race run 0 instruction" "(LOAD) meet in" -- sim race.asm --target dpu
holds "nothing is left half written" test ! -e x.twm
finish
