#!/usr/bin/env bash
# The DPU from a model to results: every node of small networks against the integer graph on the CPU,
# small memories, several images and kernels, dumps, pictures, and what bad input gets.
# dpu.sh PROGRAM
source "$(dirname "$0")/lib.sh"
limit=200
quantized=(--target dpu --quantize random:2)

model() { holds "zoo $1" "$program" -q zoo "$1" "${@:3}" -o "$2.onnx"; }

model resnet18 resnet --size 64
model squeezenet1.1 squeezenet --size 64
model inception_v3 inception --size 139
model yolov3_voc yolo --size 64
model mobilenet_v2 mobilenet --size 64
model dcgan dcgan
for hw in dpu dpu-paper; do
  for name in resnet squeezenet inception yolo mobilenet dcgan; do
    exits 0 "every node of $name on $hw" "every node agrees" -- \
      verify $name.onnx "${quantized[@]}" --hw $hw --fallback cpu --against cpu --per-node
  done
done
exits 0 "against the interpreter and ONNX Runtime" "every node agrees" -- \
  verify squeezenet.onnx "${quantized[@]}" --fallback cpu --against interp,ort --per-node

# Memories of an eighth: splits and swap, the same results.
holds "hw new" "$program" -q hw new dpu --set "fm_depth=[1024,1024,512]" --set pm_depth=1024 -o eighth.toml
for name in resnet inception mobilenet; do
  exits 0 "$name in an eighth of the memory" " ok" -- \
    verify $name.onnx "${quantized[@]}" --hw eighth.toml --fallback cpu --against cpu
done

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
exits 0 "what was tried" "cycles" "tiles of" -- explain squeezenet.onnx "${quantized[@]}" --fallback cpu
exits 0 "inspect" "target dpu" -- inspect one.twm
exits 0 "its own samples" " ok" -- verify one.twm

# What bad input gets.
exits 2 "f32 without samples" "--quantize" -- compile squeezenet.onnx --target dpu -o x.twm
exits 2 "--hw of another accelerator" -- compile squeezenet.onnx --target vta --quantize random:1 --hw dpu -o x.twm
exits 2 "scales per channel" "--per-channel" -- \
  compile squeezenet.onnx "${quantized[@]}" --per-channel -o x.twm
printf 'kind = "dpu"\npe = 9\nfm_depth = [1, 2]\nfoo = 3\n' > bad.toml
exits 2 "all problems of a file" "\`pe\` is 9" "fm_depth" "unknown key \`foo\`" -- \
  compile squeezenet.onnx "${quantized[@]}" --hw bad.toml -o x.twm
exits 4 "no such device" "dpu:tsim" -- run one.twm --device dpu:rtl
model lenet5 lenet
exits 3 "operators that are no layers, with reasons" "Tanh" "--fallback cpu" -- \
  compile lenet.onnx "${quantized[@]}" -o x.twm
exits 0 "the rest on the CPU" " ok" -- \
  verify lenet.onnx "${quantized[@]}" --fallback cpu --against cpu
exits 3 "nothing to tune" "compile itself tries" -- tune squeezenet.onnx --target dpu --for 5s
head -c 3000 one.twm > cut.twm
exits 8 "a package cut off" "at byte" -- sim cut.twm
holds "nothing is left half written" test ! -e x.twm
finish
