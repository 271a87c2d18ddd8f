#!/usr/bin/env bash
# Networks on designs of the family `spatial`: every node against the integer graph on the CPU for each
# unit, packages, programs, a design that a search found, and what bad input gets.
# spatial.sh PROGRAM
source "$(dirname "$0")/lib.sh"
quantized=(--target spatial --quantize random:1 --fallback cpu)

# design NAME KEY=VALUE...: a design file; what is not named is as in hw/spatial.toml.
design() {
  local sets=()
  for set in "${@:2}"; do sets+=(--set "$set"); done
  holds "hw new $1" "$program" -q hw new spatial "${sets[@]}" -o "$1.toml"
}
design ws rows=8 cols=8
design os dataflow=os rows=8 cols=4 links=none banks=2 spad_kb=64
design gemv intrinsic=gemv links=full rows=8 cols=4 burst_bytes=128
design dot intrinsic=dot links=full rows=4 cols=8 banks=8
design conv intrinsic=conv2d links=full rows=8 cols=16 bus_bytes=16 local_kb=16

# agrees DESIGN MODEL: each value of a network is that of the integer graph.
agrees() {
  exits 0 "every node of $2 on $1" "every node agrees" -- \
    verify "$2.onnx" "${quantized[@]}" --hw "$1.toml" --against cpu --per-node
}
model() { holds "zoo $1" "$program" -q zoo "$1" "${@:3}" -o "$2.onnx"; }
model resnet18 resnet --size 32
for unit in ws os gemv dot conv; do agrees $unit resnet; done
exits 0 "the usual design" "every node agrees" -- \
  verify resnet.onnx "${quantized[@]}" --against cpu --per-node

# Strided, dilated, grouped and padded layers, several images.
holds "models of single layers" "$python" "$here/spatial_files.py"
for unit in ws os gemv dot conv; do agrees $unit layers; done

# Packages and programs.
exits 0 "compile" -- compile resnet.onnx "${quantized[@]}" --hw ws.toml -o one.twm
exits 0 "run" -- run one.twm --device spatial:fsim --output-dir out
exits 0 "its own samples" " ok" -- verify one.twm
exits 0 "inspect" "target spatial" "gemm 8x8" -- inspect one.twm
exits 0 "mappings" "first=" "tile=" "cycles by the model" "what binds" "NHWC" -- \
  explain resnet.onnx "${quantized[@]}" --hw ws.toml
design fast rows=8 cols=8 host.macs_per_cycle=64
exits 0 "what the host does faster" "by the model the host takes" -- \
  check layers.onnx "${quantized[@]}" --hw fast.toml
agrees fast layers

# What a search finds is hardware like any other.
holds "a search" "$program" -q codesign search resnet.onnx --space edge --evaluations 6 -o found
holds "its knee" "$program" -q codesign front found --pick knee -o picked
exits 0 "the design of a search" "every node agrees" -- \
  verify resnet.onnx "${quantized[@]}" --hw picked/hw.toml --against cpu --per-node

# What bad input gets.
exits 2 "f32 without samples" "--quantize" -- compile resnet.onnx --target spatial -o x.twm
exits 2 "scales per channel" "--per-channel" -- \
  compile resnet.onnx "${quantized[@]}" --per-channel -o x.twm
exits 3 "operators that no unit has, with reasons" "no unit computes MaxPool" "--fallback cpu" -- \
  compile resnet.onnx --target spatial --quantize random:1 -o x.twm
exits 2 "no such design" "no spatial accelerator is called 'spacial'" "did you mean 'spatial'" -- \
  compile resnet.onnx "${quantized[@]}" --hw spacial -o x.twm
printf 'kind = "spatial"\nrows = 16\ncolls = 4\n' >keys.toml
exits 2 "a key that is not there" "keys.toml:3" "colls" -- \
  compile resnet.onnx "${quantized[@]}" --hw keys.toml -o x.twm
printf 'kind = "spatial"\nrows = 64\ncols = 64\nlocal_kb = 4\n' >small.toml
exits 3 "a design that is too small" "small.toml:4" "gemm of 64 x 64 needs for sums and what stays 4.25 KiB" -- \
  compile resnet.onnx "${quantized[@]}" --hw small.toml -o x.twm
exits 8 "a package for another design" "rows is 8 in the program, 16 in spatial" -- run one.twm --hw spatial
exits 4 "no such device" "spatial:fsim" -- run one.twm --device spatial:rtl
head -c 3000 one.twm >cut.twm
exits 8 "a package cut off" "at byte" -- run cut.twm
holds "nothing is left half written" test ! -e x.twm
finish
