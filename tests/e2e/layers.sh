#!/usr/bin/env bash
# Activations of every network of the zoo keep their scale, see layers.py.
# layers.sh PROGRAM [NETWORK...]
set -uo pipefail
program=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
python=${TILEWRIGHT_PYTHON:-$here/../../.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# Sizes where every layer still sees several positions, yet all networks together take minutes.
declare -A size=([resnet152]=96 [resnet152_slim]=96 [resnet101]=96 [resnet101_slim]=96 [vgg16]=96
  [vgg19]=96 [inception_v3]=139 [inception_v4]=139 [xception]=139 [overfeat]=96 [yolov1]=128
  [yolov3]=128 [yolov3_voc]=128 [yolov3_tiny]=128 [unet]=188 [lstm_lm]=8 [bert_base]=16)
fixed=" alexnet dcgan dqn lenet5 shift_net "

if [ $# -gt 0 ]; then
  networks=("$@")
else
  mapfile -t networks < <("$program" zoo list | tail -n +3 | cut -d' ' -f1)
fi
for network in "${networks[@]}"; do
  options=(--size "${size[$network]:-112}")
  [[ $fixed != *" $network "* ]] || options=()
  if "$program" -q zoo "$network" "${options[@]}" -o "$work/$network.onnx" &&
    "$python" "$here/layers.py" "$work/$network.onnx"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL $network"
  fi
  rm -f "$work/$network.onnx"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
