#!/usr/bin/env bash
# The command line: exit codes and messages for bad input, what is left on disk, JSON, small models.
# cli.sh PROGRAM
source "$(dirname "$0")/lib.sh"
mounted=
trap '[ -z "$mounted" ] || umount "$mounted"; rm -rf "$work"' EXIT

"$python" "$here/cli_files.py" write || exit 1
"$program" -q zoo lenet5 -o lenet5.onnx || exit 1

# Models that cannot be read, or contradict themselves.
exits 2 "empty model" empty.onnx "empty" -- check empty.onnx
exits 2 "truncated model" truncated.onnx "cut" -- check truncated.onnx
exits 2 "corrupt model" corrupt.onnx -- check corrupt.onnx
exits 2 "text instead of a model" text.onnx -- compile text.onnx
exits 2 "missing model" none.onnx "No such file" -- verify none.onnx
exits 6 "huge dimensions" "'x'" 1099511627776 -- check huge.onnx
exits 3 "cycle" "circle" first second -- check cycle.onnx
exits 3 "unknown operator" "Frobnicate  odd" -- check operator.onnx
exits 3 "unknown opset" 999 26 --allow-newer-opset -- check opset.onnx
exits 3 "unknown element type" 77 "'x'" -- check dtype.onnx
exits 3 "shapes that do not fit" "'product'" "[2, 3]" "[5, 4]" -- compile shapes.onnx -o shapes.twm
holds "no package of a model with an error" test ! -e shapes.twm
exits 3 "all problems at once" Frobnicate unknown_one misfit Gronk unknown_two \
  "'nowhere'" dangling -- check several.onnx
exits 2 "missing external data" nowhere.bin "'w'" -- check external.onnx
exits 0 "NaN weights are a warning" "warning: " "'w'" "1 NaN of 6" -- check nan.onnx
exits 0 "NaN results equal the interpreter's" ok -- verify nan.onnx --against interp,ort
exits 2 "tensor expression that reads outside" "bad.tw: 2:" "extent 4" -- run bad.tw

# Inputs.
exits 2 "unknown input" "'q'" "'x'" -- run good.onnx --input q=random
exits 2 "unknown value" "'twos'" -- run good.onnx --input x=twos
exits 3 "input of another dtype" i32 f32 -- run good.onnx --input x=@wrong_dtype.npy
exits 3 "input of another shape" "[3, 2]" "[2, 3]" -- run good.onnx --input x=@wrong_shape.npy
exits 2 "truncated input file" cut.npy 24 19 -- run good.onnx --input x=@cut.npy
exits 2 "missing input file" gone.npy -- run good.onnx --input x=@gone.npy
exits 3 "unbound dimension" "dimension 0 is called batch" "--dim batch=1" -- verify batch.onnx
exits 0 "bound dimension" ok -- verify batch.onnx --dim batch=3 --against interp,ort
exits 0 "unused --dim is a warning" "warning: " foo -- check batch.onnx --dim batch=3 --dim foo=2
exits 2 "--dim without extent" "'batch'" -- check batch.onnx --dim batch
exits 3 "value needed at compile time" "'n'" "'fold'" -- verify symbolic.onnx --dim batch=3
exits 0 "--const" ok -- verify symbolic.onnx --dim batch=3 --const n=@target.npy --against interp,ort

# Words that do not exist.
exits 2 "unknown verb" "did you mean 'check'?" -- chek good.onnx
exits 2 "unknown option" "did you mean '--math'?" -- run good.onnx --mathh fast
exits 2 "unknown value of an option" quick -- run good.onnx --math quick
exits 2 "no verb" -- --json
exits 2 "no model" -- run
exits 2 "unknown network" "did you mean 'resnet18'?" -- zoo resnt18
exits 2 "network too small" 19 20 -- zoo lenet5 --size 19
exits 2 "unknown reference" "did you mean 'interp'?" -- verify good.onnx --against interpp
exits 2 "unknown pass" "'frob'" simplify -- opt gemm.tw --passes frob
exits 2 "unknown node" "did you mean 'act'?" -- explain good.onnx akt
exits 4 "unknown device" "'npu'" -- run good.onnx --device npu
exits 2 "broken workload file" "'a'" -- bench --workload workload_bad.json
exits 2 "unknown case" "did you mean 'tiny/gemm/n16'?" -- bench --workload workload.json --id n16

# Small models at every level, by both back-ends.
for level in 0 1 2; do
  exits 0 "lenet5 at -O$level" ok -- verify lenet5.onnx "-O$level" --against interp
done
exits 0 "lenet5 by the C back-end" ok -- verify lenet5.onnx --backend c --against interp
exits 0 "lenet5 with exact arithmetic" ok -- verify lenet5.onnx --math exact --against interp
exits 0 "expression against the interpreter" ok -- verify gemm.tw
exits 0 "expression by the C back-end" ok -- verify gemm.tw --backend c
exits 0 "workload case" "tiny/gemm/n16" ort ok -- verify --workload workload.json --against interp,ort

# Results on disk are those of NumPy; a package gives the bits of its model.
exits 0 "expression run" D.npy -- run gemm.tw --input A=@a.npy --input B=@b.npy --output-dir out
holds "expression equals NumPy" "$python" "$here/cli_files.py" product a.npy b.npy out/D.npy
cat > loops.tw <<'TW'
func loops(A: i32[96,80], B: i32[80,112], out C: i32[96,112], out D: i32[96,112]) {
  for i in 96, j in 112 {
    block begin(i: space 96 = i, j: space 112 = j) { C[i, j] = 0i32 }
    for k in 80 {
      block mm(i: space 96 = i, j: space 112 = j, k: reduce 80 = k) { C[i, j] += A[i, k] * B[k, j] }
    }
    block end(i: space 96 = i, j: space 112 = j) { D[i, j] = max(C[i, j], 0i32) }
  }
}
TW
exits 0 "program of one nest" "" -- run loops.tw --seed 4 --output-dir nests
exits 0 "the same as written" "" -- run loops.tw -O0 --seed 4 --output-dir written
holds "equal results" diff -r nests written
exits 0 "its sum is tiled" "reorder(" "block=mm.init" -- explain loops.tw
exits 0 "the rule and those before it" "rule register-tile, for the sum" "the kernel's sums of products are 1, not two" -- explain loops.tw
unruled() { "$program" explain loops.tw -O0 >unruled.txt && ! grep -q "^rule" unruled.txt; }
holds "loops as written have no rule" unruled
exits 0 "rules of this machine" "register-tile" "element-wise" -- explain --rules
exits 0 "rules of an accelerator" "pooling" "convolution" -- explain --rules --target vta
exits 2 "explain of nothing" "explain needs" -- explain
exits 0 "example of loops" ok -- verify "$here/../../examples/05_gemm_loops.tw"
exits 0 "package" "" -- compile lenet5.onnx -o lenet5.twm
exits 0 "model run" "" -- run lenet5.onnx --seed 5 -o model.npy
exits 0 "package run" "" -- run lenet5.twm --seed 5 -o package.npy
holds "package and model give the same bits" cmp model.npy package.npy
exits 0 "another seed" "" -- run lenet5.twm --seed 6 -o other.npy
holds "other inputs give other results" bash -c '! cmp -s package.npy other.npy'
exits 0 "model that reshapes its input" "" -- compile view.onnx -o view.twm
exits 0 "its package" "" -- run view.twm --seed 3 -o view_package.npy
exits 0 "its model" "" -- run view.onnx --seed 3 -o view_model.npy
holds "a view of an input survives packaging" cmp view_model.npy view_package.npy

# Packages that do not fit or are damaged.
exits 0 "package for another processor" "" -- compile lenet5.onnx --target aarch64 -o arm.twm
exits 8 "it does not run here" aarch64 "--target" -- run arm.twm
exits 4 "unknown target" "'mips'" -- compile good.onnx --target mips -o mips.twm
holds "damage a package" "$python" "$here/cli_files.py" damage lenet5.twm
exits 8 "flipped byte in the code" flipped.twm -- run flipped.twm
exits 8 "flipped byte in the manifest" -- run manifest.twm
exits 8 "flipped byte in the weights" weights -- inspect weights.twm --verify
exits 8 "truncated package" -- run cut.twm
exits 8 "package cut inside its first header" -- inspect head.twm
exits 8 "model named as a package" -- inspect model.twm

# Nothing half written.
exits 2 "missing folder of a package" none/x.twm -- compile good.onnx -o none/x.twm
exits 2 "missing folder of a model" none/l.onnx -- zoo lenet5 -o none/l.onnx
exits 2 "missing folder of an array" none/y.npy -- run good.onnx -o none/y.npy
holds "missing folders stay missing" test ! -e none
mkdir full
if mount -t tmpfs -o size=64k none full 2>/dev/null; then
  mounted=$work/full
  exits 2 "package on a full disk" full/x.twm -- compile lenet5.onnx -o full/x.twm
  exits 2 "model on a full disk" full/l.onnx -- zoo lenet5 -o full/l.onnx
  holds "a full disk keeps no half file" test -z "$(ls -A full)"
else
  skipped=$((skipped + 1))
  echo "skip full disk: a tmpfs cannot be mounted without root"
fi

# A process that waits for Ctrl-C: until then a shell in the background has it ignored.
listens() { [ $((0x$(awk '/^SigCgt:/ { print $2 }' "/proc/$1/status") & 2)) -ne 0 ]; }
# interrupted WHAT SECONDS ARGUMENTS...: Ctrl-C after so long; exit code 130 and no new file.
interrupted() {
  local what=$1 pause=$2
  shift 2
  rm -rf quiet tmp && mkdir quiet tmp
  (cd quiet && TMPDIR=$work/tmp exec "$program" "$@") >"$log" 2>&1 &
  local child=$!
  within 30 listens "$child"
  sleep "$pause"
  kill -INT "$child"
  local start=$SECONDS
  wait "$child"
  local code=$?
  if [ "$code" -ne 130 ]; then
    bad "$what" "exit code $code instead of 130"
  elif [ $((SECONDS - start)) -gt 10 ]; then
    bad "$what" "it took $((SECONDS - start)) s to stop"
  elif [ -n "$(ls -A quiet tmp | grep -v -e :$ -e '^$')" ]; then
    bad "$what" "it left $(ls -A quiet tmp | tr '\n' ' ')"
  else
    ok "$what"
  fi
}
"$program" -q zoo squeezenet1.1 --size 96 -o squeezenet.onnx
interrupted "Ctrl-C early in verify" 0.3 verify "$work/squeezenet.onnx" --against interp
"$program" -q zoo densenet121 --size 64 -o densenet.onnx
interrupted "Ctrl-C in compile" 0.3 compile "$work/densenet.onnx" -o s.twm
interrupted "Ctrl-C in zoo" 0.1 zoo vgg16 -o v.onnx
interrupted "Ctrl-C in bench" 0.5 bench "$work/gemm.tw" --duration 60

# JSON: one document that names its schema, for every verb that reports.
mkdir json
json() {
  local verb=$1 name=$2
  shift 2
  if ! "$program" --json "$verb" "$@" >"json/$verb.$name" 2>"$log"; then
    bad "$verb --json" "exit code $?"
  fi
}
json help a compile
json doctor a
json devices a
json targets a
json zoo list list
json zoo write lenet5 -o again.onnx
json check a lenet5.onnx
json compile a lenet5.onnx -o again.twm --explain
json run a lenet5.onnx
json bench model lenet5.onnx --duration 0.05 --profile --against ort
json bench case --workload workload.json --duration 0.05
json bench expression gemm.tw --duration 0.05
json verify a lenet5.onnx --against interp,ort
json verify nodes nan.onnx --per-node
json inspect a again.twm
json explain a good.onnx
json explain analysis good.onnx --analysis
json explain rules --rules --target opencl
holds "JSON of every verb" "$python" "$here/cli_files.py" json json/*
holds "no internal error was reported" test ! -e tilewright-bug.txt

finish
