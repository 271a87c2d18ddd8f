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
for unit in gemv conv; do agrees $unit resnet; done
exits 0 "the usual design" "every node agrees" -- \
  verify resnet.onnx "${quantized[@]}" --against cpu --per-node

# Strided, dilated, grouped and padded layers, several images.
holds "models of single layers" "$python" "$here/spatial_files.py"
for unit in ws os gemv dot conv; do agrees $unit layers; done

# Tensor expressions: whole sums of products.
cat >gemm.tw <<'END'
tensor gemm(A: i8[m, k], const B: i8[k, n]) where m = 37, n = 48, k = 65 {
  C[i in m, j in n] = sum(l in k) i32(A[i, l]) * i32(B[l, j])
  return C
}
END
cat >strided.tw <<'END'
tensor strided(x: i8[c, h, w], f: i8[o, c, 3, 3]) where c = 10, h = 20, w = 21, o = 18 {
  y[k in o, p in 9, q in 19] = sum(e in c, r in 3, s in 3) i32(x[e, 2 * p + r, q + s]) * i32(f[k, e, r, s])
  return y
}
END
for unit in ws os gemv dot conv; do
  for name in gemm strided; do
    [ $unit-$name = conv-gemm ] || exits 0 "$name on $unit" " ok" -- \
      verify $name.tw --target spatial --hw $unit.toml --against interp
  done
done
exits 3 "a product on an array of convolutions" "no loops of the layer are those of a conv2d" -- \
  compile gemm.tw --target spatial --hw conv.toml -o x.twm
exits 3 "an expression in f32" "'gemm_relu' is nothing that a spatial accelerator computes" "i32(a[i, l])" -- \
  compile "$here/../../examples/02_gemm_relu.tw" --target spatial -o x.twm

# Packages and programs.
exits 0 "compile" -- compile resnet.onnx "${quantized[@]}" --hw ws.toml -o one.twm
exits 0 "run" -- run one.twm --device spatial:fsim --output-dir out
exits 2 "no picture of its cycles" "there is no trace of spatial:tsim" "leave it out" -- \
  run one.twm --device spatial:tsim --trace one.json
exits 0 "its own samples" " ok" -- verify one.twm
exits 0 "inspect" "target spatial" "gemm 8x8" -- inspect one.twm
exits 0 "mappings" "first=" "tile=" "cycles by the model" "what binds" "NHWC" -- \
  explain resnet.onnx "${quantized[@]}" --hw ws.toml
design fast rows=8 cols=8 host.macs_per_cycle=64
exits 0 "what the host does faster" "by the model the host takes" -- \
  check layers.onnx "${quantized[@]}" --hw fast.toml
agrees fast layers

# Programs by themselves: what is printed is read, and dumps say what to expect.
exits 0 "the checker" "no problems" -- sim one.twm --check
"$program" sim one.twm --asm >one.asm
"$program" sim one.asm --target spatial --hw ws.toml --asm >again.asm
holds "text is read as it is printed" cmp one.asm again.asm
exits 0 "text on its hardware" -- sim one.asm --target spatial --hw ws.toml
exits 0 "dumps of a run" -- run one.twm --device spatial:fsim --dump-program dumps
exits 0 "a dump is as it expects" -- sim dumps
"$program" --json sim one.twm >sim.json
holds "multiply-adds of the first layer" "$python" - sim.json <<'END'
import json, sys
launch = json.load(open(sys.argv[1]))["launches"][0]
counters = launch["counters"]
assert counters["macs"] == 16 * 16 * 64 * 7 * 7 * 3, counters
assert counters["insns"] == counters["loads"] + counters["computes"] + counters["stores"], counters
END
sed '0,/gives=/s/ gives=[LCS]*//' one.asm >race.asm
exits 5 "a token that is missing" "deadlock at spatial_0 run 0 instruction" -- \
  sim race.asm --target spatial --hw ws.toml
sed '3s/dram=/dam=/' one.asm >fields.asm
exits 2 "a bad field" "fields.asm:3" "did you mean 'dram'?" -- \
  sim fields.asm --target spatial --hw ws.toml
dump=dumps/$(ls dumps | head -1)
cp -r "$dump" cut && truncate -s -6 cut/insns.bin
exits 3 "a dump cut off" "go beyond" -- sim cut
cp -r "$dump" other && printf 'x' | dd of=other/final.bin bs=1 conv=notrunc status=none \
  seek="$("$python" -c 'import json; print(json.load(open("other/manifest.json"))["outputs"][0]["offset"])')"
exits 5 "results that a dump does not expect" "does not compute what its dump expects" -- sim other

# What a search finds is hardware like any other.
holds "a search" "$program" -q codesign search resnet.onnx --space edge --evaluations 6 -o found
holds "its knee" "$program" -q codesign front found --pick knee -o picked
exits 0 "the design of a search" "every node agrees" -- \
  verify resnet.onnx "${quantized[@]}" --hw picked/hw.toml --against cpu --per-node

# Tuning: a task per distinct layer, the compiler's mapping first; records decide what is compiled.
tune=(tune resnet.onnx "${quantized[@]}" --hw ws.toml --records tuned.sqlite)
exits 0 "what would be tuned" "by the compiler" "points" -- "${tune[@]}" --dry-run
exits 0 "tune" "kcycles" "stopped because" -- "${tune[@]}" --trials 200 -o tuned.twm
exits 0 "a second run goes on" "of earlier runs" -- "${tune[@]}" --trials 200
exits 0 "the tuned package" " ok" -- verify tuned.twm
exits 2 "a method that needs loop programs" "does not search whole launches" -- "${tune[@]}" --method xgb
# Records that name another mapping: one buffer of each, wherever a layer has its own record.
other_mappings() {
  "$program" -q records export --records tuned.sqlite -o all.jsonl || return 1
  "$python" - <<'PY'
import json
lines = [json.loads(line) for line in open("all.jsonl")]
races = [line for line in lines if line.get("kind") == "race"]
assert races
for race in races:
    race["schedule"] = race["point"] = race["schedule"].rsplit("copies=", 1)[0] + "copies=1,1,1"
open("other.jsonl", "w").writelines(json.dumps(line) + "\n" for line in lines if line.get("kind") in (None, "race"))
PY
  "$program" -q records import other.jsonl --records other.sqlite
}
holds "records with other mappings" other_mappings
exits 0 "records decide mappings" "copies=1,1,1" -- \
  explain resnet.onnx "${quantized[@]}" --hw ws.toml --records other.sqlite
exits 0 "their program computes the same" "every node agrees" -- \
  verify resnet.onnx "${quantized[@]}" --hw ws.toml --records other.sqlite --against cpu --per-node

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
exits 4 "no such device" "spatial:fsim" -- run one.twm --device spatial:rlt
head -c 3000 one.twm >cut.twm
exits 8 "a package cut off" "at byte" -- run cut.twm
holds "nothing is left half written" test ! -e x.twm
finish
