#!/usr/bin/env bash
# Gemmini from a model to results: every node of small networks against the integer graph on the CPU,
# programs as dumps and text that a simulator of its own runs, other hardware, and what bad input gets.
source "$(dirname "$0")/lib.sh"
quantized=(--target gemmini --quantize random:1 --fallback cpu)

"$program" -q zoo lenet5 -o lenet.onnx
"$program" -q zoo resnet18 --size 32 -o resnet.onnx
"$program" -q zoo mobilenet_v2 --size 32 -o mobilenet.onnx

exits 0 "every node of lenet" "every node agrees" "against cpu" "against interp" "against ort" -- \
  verify lenet.onnx "${quantized[@]}" --against cpu,interp,ort --per-node
exits 0 "every node of resnet" "every node agrees" -- \
  verify resnet.onnx "${quantized[@]}" --against cpu,ort --per-node
holds "hw new" "$program" -q hw new gemmini --set dim=4 --set spad_kb=8 --set acc_kb=2 --set banks=2 -o tiny.toml
exits 0 "relu6 of mobilenet" "every node agrees" -- verify mobilenet.onnx "${quantized[@]}" --against cpu --per-node
exits 0 "takes a second run" " to clip, " -- explain mobilenet.onnx "${quantized[@]}"
exits 0 "on a tiny array" "every node agrees" -- \
  verify lenet.onnx "${quantized[@]}" --hw tiny.toml --against cpu --per-node

exits 3 "what runs where" "convolutions of 1 channels each" "MaxPool is no product" -- \
  check resnet.onnx --target gemmini --quantize random:1
exits 3 "without --fallback" "does not run on gemmini" "--fallback cpu runs them on this machine" -- \
  compile resnet.onnx --target gemmini --quantize random:1 -o none.twm
exits 0 "compile" -- compile resnet.onnx "${quantized[@]}" -o r.twm
exits 0 "inspect" "target gemmini, hardware gemmini (16x16, 256 + 64 KiB)" -- inspect r.twm
exits 0 "explain" "tiles of" "bytes of DRAM" -- explain resnet.onnx "${quantized[@]}"
exits 0 "the checker" "no problems" -- sim r.twm --check
exits 0 "its own samples" " ok" -- verify r.twm
exits 0 "counters" "macs" -- run r.twm --device gemmini:fsim --json --dump-program dumps
exits 0 "a dump is as it expects" -- sim dumps
for dump in dumps/*; do
  holds "another simulator on $(basename "$dump")" "$python" "$here/gemmini_files.py" replay "$dump"
done
# A byte of the expected result that is off is found.
"$python" - dumps/* <<'END'
import json, sys
folder = sys.argv[1]
manifest = json.load(open(folder + "/manifest.json"))
data = bytearray(open(folder + "/final.bin", "rb").read())
data[manifest["outputs"][0]["address"] - manifest["image"]["address"]] ^= 1
open(folder + "/final.bin", "wb").write(data)
END
exits 5 "a dump that expects something else" -- sim "$(ls -d dumps/* | head -1)"

# Programs as text: what is printed is read and prints the same again.
grep -v '^#' dumps/gemmini_1/commands.txt >one.asm
"$program" sim one.asm --target gemmini --asm >again.asm
holds "it has several runs" grep -q '^fence$' one.asm
holds "text is read as it is printed" cmp one.asm again.asm
"$program" sim r.twm --asm >all.asm
holds "several programs have their names" test "$(grep -c '^# program gemmini_' all.asm)" -gt 1
exits 0 "and are read one by one" "gemmini_1: no problems" -- sim all.asm --target gemmini --check
echo "3 0x1000 0x0010001080000000" >bad.asm
exits 5 "the checker on text" "mvout before its config_mvout" -- sim bad.asm --target gemmini --check
printf '0 0x3f80000000000001 16\n0 2 16\n2 0x1000 0x0010001000000000\n3 0x1000 0x0010001000000000\n' >same.asm
exits 5 "bytes that are loaded and stored in one run" "without a fence between" -- sim same.asm --target gemmini --check
echo "9 0 0" >loop.asm
exits 2 "loop commands" "loop.asm:1" "loop commands are not supported" -- sim loop.asm --target gemmini

exits 8 "a program for other hardware" "dim is 16 in the program, 4 in tiny.toml" -- \
  run r.twm --hw tiny.toml
exits 2 "scales per channel" "one scale for all channels" -- \
  compile lenet.onnx "${quantized[@]}" --per-channel -o none.twm
exits 4 "another device" "did you mean 'gemmini:fsim'?" -- run r.twm --device gemmini:tsim
finish
