#!/usr/bin/env bash
# What values decide at run time: indices, lengths, how many elements there are; operators of the
# host behind other shapes of an input.
# values.sh PROGRAM RUNTIME_LIBRARY
library=$(realpath "$2")
source "$(dirname "$0")/lib.sh"
"$python" "$here/values_files.py" "$work" || exit 1

exits 0 "operators of the host see the shape they read" -- verify views.onnx --against interp,ort
exits 0 "boxes that were chosen are gathered" -- verify detector.onnx --against interp,ort
exits 0 "scattering behind a run-time extent" -- verify scatter.onnx --against ort \
  --input c=@scatter.c.npy --input i=@scatter.i.npy
exits 2 "an index beyond the real extent is refused" "index 3 of input 1 is outside axis 0 with 3" -- \
  run scatter.onnx --input c=@scatter.c.npy --input i=@scatter.bad.npy
exits 0 "an extent of the run inside a kernel" -- verify inside.onnx --against interp,ort
exits 0 "compiles" -- compile inside.onnx -o inside.twm
exits 0 "and agrees from its package" -- verify inside.twm --model inside.onnx
exits 0 "a detector in two stages" -- verify stages.onnx --against interp,ort --input scores=@stages.scores.npy \
  --input x=@stages.x.npy --input boxes=@stages.boxes.npy
exits 0 "compiles" -- compile stages.onnx -o stages.twm
exits 0 "and agrees from its package" -- verify stages.twm --model stages.onnx --input scores=@stages.scores.npy \
  --input x=@stages.x.npy --input boxes=@stages.boxes.npy
exits 0 "that finds nothing" -- verify stages.onnx --against interp,ort --input scores=@stages.none.npy \
  --input x=@stages.x.npy --input boxes=@stages.boxes.npy
exits 0 "an index of a branch that is not taken" -- verify branch.onnx --against interp,ort \
  --input c=@branch.c.npy --input taken=@branch.no.npy
exits 2 "and of one that is" "index 0 is out of range" -- run branch.onnx --input c=@branch.c.npy \
  --input taken=@branch.yes.npy
exits 3 "a loop as long as the run decides" "the number of iterations of this Loop is known only at run time" -- \
  check loop.onnx
exits 3 "two run-time extents are refused at check" "axis 1 is known only at run time" -- check unique.onnx
exits 3 "sums of two run-time extents are refused at check" "whether its inputs fit" -- check sum.onnx

for op in LSTM GRU RNN; do
  exits 0 "$op with lengths agrees with ONNX Runtime" -- verify $op.onnx --against interp,ort --input n=@$op.n.npy
  exits 0 "$op compiles" -- compile $op.onnx -o $op.twm
  exits 0 "$op runs from its package" -- run $op.twm --input n=@$op.n.npy
  for kind in huge negative; do
    exits 2 "$op refuses a $kind length" "length" "input 4 ('n') of $op" "must be in 0 to 6" -- \
      run $op.twm --input n=@$op.$kind.npy
  done
done

# Inputs that are made up keep the model's rules, also for its package.
for name in LSTM taken; do
  "$program" -q compile $name.onnx -o $name.twm || exit 1
  for seed in 1 2 3; do
    exits 0 "made-up inputs of the package $name, seed $seed" -- run $name.twm --seed $seed -o package.npz
    exits 0 "and of its model" -- run $name.onnx --seed $seed -o model.npz
    holds "are the same" cmp package.npz model.npz
  done
done
exits 0 "random samples for calibration do, too" -- \
  compile taken.onnx --target gemmini --quantize random:2 --fallback cpu -o quantised.twm

# Values that no operator can take, one after the other in one session.
holds "no value breaks a session" "$python" "$here/hostile_values.py" "$program" "$library"
holds "nor one without passes" "$python" "$here/hostile_values.py" "$program" "$library" -O 0

finish
