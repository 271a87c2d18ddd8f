#!/usr/bin/env bash
# Legal models that few people have, and what is said of models that are refused.
# strange.sh PROGRAM
source "$(dirname "$0")/lib.sh"

"$python" "$here/strange_files.py" || exit 1

# Maps of one channel behind blocked convolutions.
exits 0 "U-Net with a mask" ok -- verify unet.onnx --against ort
for options in "" "--math exact" "--target x86-64-v2" "-O 0"; do
  # shellcheck disable=SC2086
  exits 0 "heads of one channel $options" ok -- verify heads.onnx --against ort $options
done

# Groups of 16-bit floats.
for model in bf16_*.onnx; do
  exits 0 "groups of ${model%.onnx}" ok -- verify "$model" --against interp
done
exits 0 "padded convolution of bf16 by the C back-end" ok -- \
  verify bf16_16_2.onnx --against interp --backend c

# Names of outputs.
for model in if function optional; do
  exits 0 "outputs of $model.onnx" ok -- verify "$model.onnx" --against ort
done
exits 0 "the output of an If is called as in the model" '"name": "y"' -- \
  --json run if.onnx --input x=random
exits 0 "outputs of a function are called as in the model" '"name": "y"' '"name": "negative"' -- \
  --json run function.onnx --input x=random

exits 0 "pools larger than their input" ok -- verify ceil.onnx --against ort

# What is refused, and why.
exits 3 "B1 check names every defect in one pass" "operator   node" random_one random_two "results differ" fused_one \
  "Conv and its activation" misfit "'nowhere'" dangling "5 problems" -- check several.onnx
exits 3 "B3 an opset not tested" "opset 27" "--allow-newer-opset" -- check opset.onnx
exits 0 "B3 an opset not tested, if asked" supported -- check opset.onnx --allow-newer-opset
exits 3 "B1 attributes that an operator does not have" "no attribute 'alhpa'" "did you mean 'alpha'?" misspelt \
  "'perm' of Transpose is an integer instead of a list" turned "a float instead of an integer" halved -- check attributes.onnx
exits 7 "ONNX Runtime's own rules are named as such" "does not read the model" "two nodes with same node name" \
  "--against interp" -- verify names.onnx --against ort
exits 0 "which the interpreter does not have" ok -- verify names.onnx --against interp
exits 3 "no fixed size" "input 'x' has no fixed size: its dimension 0 is called N" \
  "--dim N=1, or --shape x:1x3x32x32" -- check unbound.onnx
exits 0 "memory of a huge model" "inputs and outputs 305175.78 MiB" "warning: a run needs 298.0 GiB" \
  -- check huge.onnx

finish
