#!/usr/bin/env bash
# Programs as C++ for FPGAs: the files, whole or not at all, and what bad input gets.
# fpga.sh PROGRAM
source "$(dirname "$0")/lib.sh"
export TILEWRIGHT_BOARD_ROOT=/nowhere  # not this machine's

cat >twice.tw <<'EOF'
func twice(X: f32[64], out Y: f32[64]) {
  for t in 4 @(pipeline=dataflow) {
    alloc T: f32[16] fpga.bram @(slots=2)
    for i in 16 { block T(a: space 64 = t * 16 + i, b: space 16 = i) { T[b] = X[a] } }
    for j in 16 { block Y(a: space 64 = t * 16 + j, b: space 16 = j) { Y[a] = T[b] * 2.0 } }
  }
}
EOF

exits 0 "C++ for Vitis" "twice for vu9p, 2 processes, 1 channels" -- hls twice.tw --hw vu9p -o out
for file in kernel.cpp kernel.h tw_arithmetic.h host.cpp link.cfg build.sh README.md; do
  holds "$file is there" test -s "out/$file"
done
holds "a function per process" grep -q "TW_PROCESS(write_Y, Y, T_blocks);" out/kernel.cpp
holds "nothing else is left" test "$(ls -A out | wc -l)" = 7
exits 0 "plain C++" "twice for zynq7020" -- hls twice.tw --hw zynq7020 --dialect plain -o plain
holds "a compiler takes it" g++ -std=c++17 -Wall -Werror -c plain/kernel.cpp -o plain.o
holds "no vendor in it" bash -c '! grep -q "hls::\|ap_uint" plain/kernel.cpp plain/tw_arithmetic.h'

# build.sh without the vendor's compiler.
env PATH=/usr/bin:/bin sh out/build.sh platform >"$log" 2>&1
[ $? -eq 7 ] && grep -q "no v++" "$log" && ok "build.sh says what is missing" ||
  bad "build.sh says what is missing" "another exit code or text"

# XRT's own headers take the host program (-l:... is how Debian's library is named).
if [ -d /usr/include/xrt ]; then
  holds "a host program for XRT" g++ -std=c++17 -I/usr/include/xrt out/host.cpp -l:libxrt_coreutil.so.2 -o out/host
  out/host none.xclbin >"$log" 2>&1
  [ $? -eq 4 ] && ok "which needs a card" || bad "which needs a card" "another exit code"
else
  echo "skipped: no headers of XRT (libxrt-dev)"
  skipped=$((skipped + 2))
fi

exits 2 "an unknown FPGA" "vu9p" -- hls twice.tw --hw vu9 -o none
exits 2 "an unknown dialect" "plain" -- hls twice.tw --dialect c -o none
sed 's/fpga.bram @(slots=2)/fpga.bram @(slots=2, partition=x3)/' twice.tw >bad.tw
exits 3 "a partition that is none" "partition" -- hls bad.tw -o none
holds "nothing was made" test ! -e none

# Run here, against the interpreter: processes side by side, and a program without any.
cat >gemm.tw <<'EOF'
func gemm(A: f32[5,7], B: f32[7,3], out Y: f32[5,3]) {
  for i in 5, j in 3 { block Y.init(m: space 5 = i, n: space 3 = j) { Y[m, n] = 0.0 } }
  for i2 in 5, j2 in 3, k in 7 {
    block Y(m: space 5 = i2, n: space 3 = j2, l: reduce 7 = k) { Y[m, n] += A[m, l] * B[l, n] }
  }
}
EOF
for file in twice gemm; do
  exits 0 "$file.tw on the C++" "" -- verify $file.tw --target fpga --hw zcu104 --against interp
done

# The same schedule as a design: values and cycles of the simulator and of the Verilog.
for device in tsim rtl; do
  exits 0 "twice.tw on fpga:$device" "" -- verify twice.tw --target fpga --hw zcu104 \
    --device fpga:$device --against interp
  exits 0 "its cycles on fpga:$device" "" -- bench twice.tw --target fpga --hw zcu104 --device fpga:$device
  grep -o "takes [0-9]* cycles" "$log" >"cycles.$device"
done
holds "there are cycles" test -s cycles.tsim
holds "the same on both" cmp cycles.tsim cycles.rtl
# The model's best design is the default; a schedule of one's own has the last word.
cat >mm.tw <<'EOF'
tensor mm(A: i8[m, k], B: i8[k, n]) where m = 12, n = 10, k = 9 {
  C[i in m, j in n] = sum(l in k) i32(A[i, l]) * i32(B[l, j])
  return C
}
EOF
cat >conv.tw <<'EOF'
tensor conv(X: f32[c, h, w], W: f32[k, c, r, s], bias: f32[k]) where c = 4, h = 9, w = 8, k = 6, r = 3, s = 3 {
  C[o in k, y in h - 2, x in w - 2] = sum(i in c, p in r, q in s) X[i, y + p, x + q] * W[o, i, p, q]
  Y[o in k, y in h - 2, x in w - 2] = max(C[o, y, x] + bias[o], 0)
  return Y
}
EOF
for file in mm conv; do
  for device in csim tsim; do
    exits 0 "$file.tw by itself on fpga:$device" "by the model, bound by" -- verify $file.tw \
      --target fpga --hw zynq7020 --device fpga:$device --against interp
  done
done
exits 0 "its steps are written" "by the model" -- hls mm.tw --hw zcu104 -o mm
holds "as a file" grep -q "dataflow(loop=" mm/schedule.steps
exits 0 "and can be taken again" "4 processes" -- hls mm.tw --hw zcu104 --trace mm/schedule.steps -o again
holds "for the same C++" cmp mm/kernel.cpp again/kernel.cpp
exits 0 "why" "cycles by the model, bound by" "II 1" "cells by the model" -- explain mm.tw --target fpga --hw zcu104
exits 0 "designs are searched by their cycles" "tried 20 ways" -- \
  tune mm.tw --target fpga --hw zcu104 --trials 20 --records tuned.sqlite -o tuned.twm
exits 0 "and what is found is taken" "of tuning" -- \
  verify mm.tw --target fpga --hw zcu104 --records tuned.sqlite --device fpga:tsim --against interp
# One whose best design by the model is not the best in the simulator: of mm.tw it is.
sed 's/m = 12, n = 10, k = 9/m = 64, n = 48, k = 9/' mm.tw >larger.tw
"$program" --json tune larger.tw --target fpga --hw zcu104 --trials 60 --records larger.sqlite >tuned.json 2>>"$log"
holds "it is faster" grep -q '"better": *true' tuned.json
exits 0 "the optimum by the model, in two types" "the optimum by the model is" "conv f32: " "conv i8: " -- \
  tune conv.tw --target fpga --hw vu9p --dtypes f32,i8 --method exhaustive --trials 8 --records types.sqlite
exits 2 "a type that is none" "did you mean 'i8'" -- tune conv.tw --target fpga --dtypes f32,i9
exits 2 "types where they are part of the program" "--target fpga" -- tune conv.tw --dtypes f32
exits 2 "every schedule of a processor" "ours, random" -- tune conv.tw --method exhaustive
exits 2 "a package of two programs" "-o names one package" -- \
  tune conv.tw --target fpga --dtypes f32,i8 --trials 1 --records types.sqlite -o types.twm
exits 0 "Verilog" "lint: clean" "fpga_top.v, schedule.steps, fpga_axi.v, vivado.tcl, build.sh, host.cpp" -- rtl mm.tw --target fpga --hw zcu104 -o rtl --lint
sh rtl/build.sh >"$log" 2>&1
[ $? -eq 7 ] && grep -q "no vivado" "$log" && ok "it needs the vendor's tool" ||
  bad "it needs the vendor's tool" "another exit code or text"
exits 2 "an accelerator is no program" "--target fpga" -- rtl mm.tw mm.tw
cat >dot.tw <<'EOF'
tensor dot(A: i8[m, k], B: i8[k, n]) where m = 2, n = 3, k = 4 {
  C[i in m, j in n] = sum(l in k) i32(A[i, l]) * i32(B[l, j])
  return C
}
EOF
exits 0 "cells" "Yosys" "model (fpga)" -- synth dot.tw --target fpga --hw zynq7020
sed 's/T\[b\] \* 2.0/exp(T[b])/' twice.tw >exp.tw
exits 3 "what the Verilog lacks" "has no function" -- verify exp.tw --target fpga --hw zcu104 \
  --device fpga:tsim --against interp
exits 0 "a package" "" -- compile twice.tw --target fpga --hw zcu104 -o twice.twm
# Hardware, which is not there.
exits 4 "no board" "no device of UIO is called 'tilewright'" "/nowhere/sys/class/uio" -- \
  run twice.twm --device fpga:uio
board=$work/board
mkdir -p "$board"/sys/class/uio/uio0/maps/map0 "$board"/sys/class/u-dma-buf/udmabuf0 "$board"/dev
echo tilewright >"$board"/sys/class/uio/uio0/name
echo 0x10000 >"$board"/sys/class/uio/uio0/maps/map0/size
echo 65536 >"$board"/sys/class/u-dma-buf/udmabuf0/size
echo 0x30000000 >"$board"/sys/class/u-dma-buf/udmabuf0/phys_addr
truncate -s 65536 "$board"/dev/uio0 "$board"/dev/udmabuf0
export TILEWRIGHT_BOARD_ROOT=$board
exits 8 "another design on the board" "/dev/uio0 has another design" "there is 0x00000000" -- \
  run twice.twm --device fpga:uio
needed=$(grep -o "needed is 0x[0-9a-f]*" "$log" | tail -c 9)
exits 0 "its Verilog" "" -- rtl twice.tw --target fpga --hw zcu104 -o twice
holds "answers with that number" grep -q "IDENTITY(32'h$needed)" twice/fpga_axi.v
exits 0 "the same of the package" "tilewright-$needed.bin" -- --json rtl twice.twm -o packed
holds "and the same Verilog" cmp twice/fpga_top.v packed/design_0/fpga_top.v
exits 4 "no card" "error: there is no" -- run twice.twm --device fpga:xrt
exits 0 "who waits for what" "" -- run twice.twm --device fpga:tsim --trace waits.json
holds "a row for each process" grep -q read_X waits.json
exits 0 "the same beside its cycles" "takes" -- \
  bench twice.tw --target fpga --hw zcu104 --device fpga:tsim --trace bench.json
holds "the trace of the same run" cmp waits.json bench.json
exits 2 "no trace without cycles" "fpga:tsim" -- \
  bench twice.twm --device fpga:csim --trace none.json
exits 2 "no trace of a processor" "nothing ran on a device that counts cycles" -- \
  bench twice.tw --trace none.json
holds "no file either" test ! -e none.json

# Networks: products on the FPGA, the rest on the processor.
network=(--target fpga --hw zcu104)
"$program" -q zoo lenet5 -o lenet5.onnx
exits 0 "a network" "5 layers on 3 designs" "cycles by the model" \
  "the largest design takes LUT" -- compile lenet5.onnx "${network[@]}" -o lenet5.twm
exits 0 "it runs as C++" "" -- run lenet5.twm --device fpga:csim
exits 0 "a Verilog for each design" "design 2 for zcu104: Gemm, Gemm_2, Gemm_3" "lint: clean" \
  "layers/design_2: fpga_top.v" -- rtl lenet5.twm -o layers --lint
exits 8 "all of which a board needs" "/lib/firmware/tilewright-" -- \
  run lenet5.twm --device fpga:uio
"$program" -q compile twice.tw -o cpu.twm
exits 2 "a package says for which device it is" "leave them out" -- \
  rtl lenet5.twm --target fpga --hw vu9p
exits 2 "a package for processors" "compile it with --target fpga" -- rtl cpu.twm
exits 0 "its kernels as C++" "for zcu104, 4 processes" -- hls lenet5.twm -o kernels
holds "every layer is in one table" bash -c \
  '[ "$(tail -q -n +2 kernels/*/table.csv | cut -d, -f1 | sort | uniq | wc -l)" = 5 ]'
exits 2 "a package and a device" "--hw and --trace are for programs" -- hls lenet5.twm --hw vu9p -o none
exits 2 "C++ of a package for processors" "compile it with --target fpga" -- hls cpu.twm -o none
exits 0 "its layers" "1 layer on 1 design" "1 layer on 1 design, which other launches share" "cycles by the model" -- inspect lenet5.twm
exits 0 "why" "design 0" "II 1" -- explain lenet5.onnx "${network[@]}"
exits 0 "node by node" "every node agrees" -- \
  verify lenet5.onnx "${network[@]}" --against interp,ort --per-node
exits 0 "its cycles" "takes" "cycles" -- bench lenet5.onnx "${network[@]}" --device fpga:tsim
exits 0 "in integers" "" -- \
  verify lenet5.onnx "${network[@]}" --quantize random:2 --fallback cpu --against cpu,ort
exits 0 "what goes where" "Tanh" "supported" -- check lenet5.onnx "${network[@]}"
exits 8 "a package for another device" "dsps is 1728 in the program, 220 in zynq7020" -- \
  run lenet5.twm --hw zynq7020 --device fpga:csim
"$program" -q zoo mobilenet_v2 --size 32 -o mobile.onnx
exits 3 "channels one by one" "does not run on fpga" "--fallback cpu" -- \
  compile mobile.onnx "${network[@]}" -o mobile.twm
"$program" -q zoo alexnet --size 67 -o alexnet.onnx
exits 0 "groups of channels, and layers that share designs" "8 layers on 5 designs" -- \
  verify alexnet.onnx --target fpga --hw zynq7020 --against ort
exits 0 "a design for each layer" "8 layers, each a design of its own" -- \
  check alexnet.onnx --target fpga --hw zynq7020 --designs own
exits 2 "designs are of FPGAs" "--designs is for networks on FPGAs" -- check alexnet.onnx --designs own

# Cells of operators, by Yosys: of one row here, the others are like it.
"$program" -q hw new zynq7020 -o all.toml >"$log"
awk '/^\[/ { row = /operator/ && !/operator\.mac\.i16\.rtl/ } !row' all.toml | sed 's/^luts = 32$/luts = 99/' >one.toml
exits 0 "cells of operators" "i16  99   32" "measured.toml" -- \
  calibrate --target fpga --hw one.toml -o measured.toml
holds "are in the device's file" grep -q "synth_xilinx -family xc7" measured.toml
exits 0 "which is a device" "" -- hw check measured.toml
exits 2 "operators of what" "--target fpga needs a device" -- calibrate --target fpga
exits 2 "no device that runs" "--device is not for --target fpga" -- \
  calibrate --target fpga --hw vu9p --device opencl
exits 3 "operators of an iCE40" "routes a whole design" -- calibrate --target fpga --hw ice40up5k
exits 2 "a device of a processor" "--hw is for --target fpga" -- \
  calibrate --target opencl --device opencl --hw vu9p

"$program" -q hw new zynq7020 --set bram18=1 -o small.toml >"$log"
small=(alexnet.onnx --target fpga --hw small.toml)
exits 6 "a device that is too small" "needs BRAM18 2 of 0" -- compile "${small[@]}" -o small.twm
holds "nothing is half made" test ! -e small.twm
exits 0 "the processor can do that" "needs BRAM18 2 of 0" "supported" -- check "${small[@]}" --fallback cpu

finish
