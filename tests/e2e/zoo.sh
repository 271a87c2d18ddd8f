#!/usr/bin/env bash
# Every network of the zoo against ONNX Runtime at its usual size; small ones against the
# interpreter.
# zoo.sh PROGRAM [full | NETWORK...]: `full` takes the deep ones of each family too, and repeats the
# comparison at batch 4; names pick networks.
set -uo pipefail
program=$(realpath "$1")
shift
full=
[ "${1:-}" = full ] && full=1 && shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# case_ WHAT COMMAND...: passes if the command exits with 0.
case_() {
  local what=$1 start=$SECONDS
  shift
  if "$@" >"$work/log" 2>&1; then
    passed=$((passed + 1))
    echo "ok $((passed + failed)) $what ($((SECONDS - start)) s)"
  else
    local code=$?
    failed=$((failed + 1))
    echo "FAIL $what (exit $code)"
    sed 's/^/  | /' "$work/log" | tail -n 20
  fi
}

# compare REFERENCE NETWORK OPTIONS...: writes the network, verifies it, deletes the file.
compare() {
  local reference=$1 network=$2
  shift 2
  local file=$work/$network.onnx inputs=()
  # A mask of ones: every token is attended, so that attention is a real average.
  [ "$network" != bert_base ] || inputs=(--input attention_mask=ones)
  "$program" zoo "$network" "$@" -o "$file" &&
    "$program" verify "$file" --against "$reference" "${inputs[@]}"
  local code=$?
  rm -f "$file"
  return "$code"
}

if [ $# -gt 0 ]; then
  networks=("$@")
else
  mapfile -t networks < <("$program" zoo list | tail -n +3 | cut -d' ' -f1)
  if [ "${#networks[@]}" -lt 33 ]; then
    echo "FAIL zoo list names ${#networks[@]} networks, 33 are expected"
    exit 1
  fi
fi
# Others of the family have the same layers.
deep=" vgg19 resnet101 resnet101_slim resnet152 resnet152_slim "
for network in "${networks[@]}"; do
  if [ $# -eq 0 ] && [ -z "$full" ] && [[ $deep == *" $network "* ]]; then continue; fi
  case_ "D1 $network against ONNX Runtime" compare ort "$network"
  [ -z "$full" ] || case_ "$network, batch 4, against ONNX Runtime" compare ort "$network" --batch 4
done

# The interpreter executes every operation of every loop: only small sizes end in seconds.
small=(lenet5:32 squeezenet1.1:32 mobilenet_v2:32 resnet18:32 dcgan:16 dqn:36 lstm_lm:2)
for entry in "${small[@]}"; do
  network=${entry%:*}
  size=${entry##*:}
  [[ " ${networks[*]} " == *" $network "* ]] || continue
  case_ "$network, size $size, against the interpreter" compare interp "$network" --size "$size"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
