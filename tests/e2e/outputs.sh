#!/usr/bin/env bash
# What is written: nothing of the user's is destroyed, nothing fails silently.
# outputs.sh PROGRAM
source "$(dirname "$0")/lib.sh"

cat > gemm.tw <<'TW'
tensor gemm(A: f32[8, 8], B: f32[8, 8]) {
  C[i in 8, j in 8] = sum(k in 8) A[i, k] * B[k, j]
  return C
}
TW
"$program" -q zoo lenet5 -o lenet5.onnx || exit 1
"$program" -q compile lenet5.onnx -o lenet5.twm || exit 1
cp lenet5.onnx lenet5.kept

# An output that is an input.
exits 2 "output over the model" "is an input" -- compile lenet5.onnx -o lenet5.onnx
ln -s lenet5.onnx link.onnx
ln lenet5.onnx hard.onnx
exits 2 "output over the model by a link" "is an input" -- compile lenet5.onnx -o link.onnx
exits 2 "output over the model by another name" "is an input" -- compile lenet5.onnx -o hard.onnx
exits 2 "trace over the package" "is an input" -- run lenet5.twm --trace lenet5.twm
"$program" hw new vta -o my.toml >/dev/null 2>&1
cp my.toml my.kept
exits 2 "package over the hardware" "is an input" -- \
  compile lenet5.onnx --target vta --quantize random --hw my.toml -o my.toml
exits 2 "package over the record store" "is an input" -- \
  tune gemm.tw --trials 1 --records lenet5.onnx -o lenet5.onnx
exits 2 "one file for two options" "two options" -- tune gemm.tw --trials 1 -o a --report a
holds "inputs are as they were" cmp lenet5.onnx lenet5.kept
holds "hardware is as it was" cmp my.toml my.kept

# What is no regular file stays what it is.
exits 0 "package into /dev/null" "" -- compile lenet5.onnx -o /dev/null
holds "/dev/null stays a device" test -c /dev/null
mkfifo pipe
cat pipe > through.twm &
exits 0 "package into a pipe" "" -- compile lenet5.onnx -o pipe
wait $!
holds "the pipe stays a pipe" test -p pipe
exits 0 "all of it went through" "" -- inspect through.twm --verify
touch target.twm
chmod 640 target.twm
ln -s target.twm link.twm
exits 0 "package through a link" "" -- compile lenet5.onnx -o link.twm
holds "the link stays a link" test -L link.twm
exits 0 "its target is the package" "" -- inspect target.twm --verify
holds "with its permissions" test "$(stat -c %a target.twm)" = 640
printf 'first\n' > appended
"$program" -q compile lenet5.onnx -o /dev/stdout >> appended 2>"$log"
tail -c +7 appended > behind.twm
holds "/dev/stdout goes on where it is" grep -qxa first appended
exits 0 "with the whole package" "" -- inspect behind.twm --verify

# `-` is stdout.
"$program" -q compile lenet5.onnx -o - > dash.twm 2>"$log"
exits 0 "compile -o -" "" -- inspect dash.twm --verify
for verb in "zoo lenet5" "hw check vta" "run lenet5.onnx"; do
  # shellcheck disable=SC2086
  "$program" $verb -o - > dash 2>"$log"
  # shellcheck disable=SC2086
  "$program" -q $verb -o file.npy > /dev/null 2>&1
  holds "$verb -o -" cmp dash file.npy
done
holds "no file is called -" test ! -e -
exits 2 "file and document on stdout" "--json" -- --json compile lenet5.onnx -o -

# Folders are looked at before the work.
"$program" -q zoo resnet18 -o resnet18.onnx || exit 1
# A second of a processor, however long that takes: the work would need more.
real=$program program=$work/at_once
printf '#!/bin/sh\nulimit -t 1\nexec "%s" "$@"\n' "$real" >at_once
chmod +x at_once
exits 2 "missing folder, at once" "mkdir -p none" -- compile resnet18.onnx -o none/x.twm
exits 2 "missing folder of a trace, at once" none -- run resnet18.onnx --trace none/x
exits 2 "missing folder of a package, at once" none -- tune resnet18.onnx -o none/x.twm
exits 2 "missing folder of a network, at once" none -- zoo vgg16 -o none/x.onnx
exits 2 "a folder as output" "it is a folder" -- compile resnet18.onnx -o .
exits 2 "a file as folder" "is no folder" -- run resnet18.onnx --output-dir gemm.tw/out
program=$real
holds "missing folders stay missing" test ! -e none

# A reader that goes ends the program silently, as SIGPIPE ends others; a full disk is an error.
ends_silently() {
  local what=$1
  shift
  "$program" "$@" 2>"$log" | true
  local code=${PIPESTATUS[0]}
  if [ "$code" -eq 141 ] && [ ! -s "$log" ]; then ok "$what"; else bad "$what" "code $code"; fi
}
"$program" -q compile lenet5.onnx --target vta --quantize random --fallback cpu -o vta.twm || exit 1
ends_silently "closed pipe behind sim --asm" -q sim vta.twm --asm
ends_silently "closed pipe behind explain" -q explain lenet5.onnx
ends_silently "closed pipe behind bench" -q bench lenet5.onnx --duration 0.05
ends_silently "closed pipe behind --help" --help
ends_silently "closed pipe behind compile -o -" -q compile lenet5.onnx -o -
holds "no bug is reported" test ! -e tilewright-bug.txt
full() {
  local what=$1
  shift
  "$program" "$@" 2>"$log" >/dev/full
  local code=$?
  if [ "$code" -eq 2 ] && grep -q '^error: cannot write' "$log"; then
    ok "$what"
  else
    bad "$what" "code $code"
  fi
}
full "full stdout of doctor --json" doctor --json
full "full stdout of opt" opt gemm.tw
full "full stdout of targets" targets
full "full stdout of --help" --help
full "full stdout of run" run gemm.tw
full "full stdout of inspect" inspect lenet5.twm
full "full stdout of verify" verify gemm.tw
full "full stdout of compile -o -" compile gemm.tw -o -
full "full device as output" compile gemm.tw -o /dev/full
"$program" targets >&- 2>"$log"
holds "closed stdout" test $? -eq 2

finish
