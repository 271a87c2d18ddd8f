#!/usr/bin/env bash
# Published models: the onnx package's light models against their stored outputs, and models inside
# other installed Python packages against ONNX Runtime on structured inputs. Also a rounded product
# whose correct results differ.
# models.sh PROGRAM
set -uo pipefail
program=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
python=${TILEWRIGHT_PYTHON:-$here/../../.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
skipped=0

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

files() { "$python" "$here/model_files.py" "$@"; }

# light MODEL: one run on the formula's input against the stored output.
light() {
  local folder=$work/light
  rm -rf "$folder" && mkdir "$folder"
  local input
  input=$(files formula "$1" "$folder") || return
  "$program" run "$1" --input "$input" -o "$folder/out.npy" &&
    files compare "$folder/out.npy" "${1%.onnx}_output_0.pb"
}

# published PACKAGE FILE OPTIONS...: verifies the model of a package, if it is installed.
published() {
  local package=$1 file=$2 path
  shift 2
  path=$(files package "$package" "$file")
  if [ -z "$path" ]; then
    skipped=$((skipped + 1))
    echo "skip $file: the Python package $package is not installed"
    return
  fi
  case_ "$file against ONNX Runtime" "$program" verify "$path" --against ort "$@"
}

mapfile -t models < <(files light)
if [ "${#models[@]}" -ne 9 ]; then
  echo "FAIL the onnx package of $python has ${#models[@]} light models, 9 are expected"
  exit 1
fi
for model in "${models[@]}"; do
  case_ "$(basename "$model") against its stored output" light "$model"
done

cd "$work" || exit 1
files image 3x64x96 page.npy
published rapidocr_onnxruntime models/ch_PP-OCRv4_det_infer.onnx --shape x:1x3x64x96 \
  --input x=@page.npy
files image 3x48x192 label.npy
published rapidocr_onnxruntime models/ch_ppocr_mobile_v2.0_cls_infer.onnx --shape x:1x3x48x192 \
  --input x=@label.npy
files image 3x48x160 line.npy
published rapidocr_onnxruntime models/ch_PP-OCRv4_rec_infer.onnx --shape x:1x3x48x160 \
  --input x=@line.npy
files image 3x320x320 picture.npy
published nudenet 320n.onnx --shape images:1x3x320x320 --input images=@picture.npy
files audio 576 tone.npy
files state 2x1x128 state.npy
published silero_vad data/silero_vad_openvino_16k.onnx --input input=@tone.npy \
  --input state=@state.npy
files bytes 2048 text.npy
published magika models/standard_v3_3/model.onnx --shape bytes:1x2048 --input bytes=@text.npy

# differs COMMAND...: it must find a difference.
differs() {
  "$@"
  local code=$?
  [ "$code" -eq 5 ] || { echo "exit code $code instead of 5" && return 1; }
}
# one_step: `verify` must allow results one step apart, and they must be that.
one_step() {
  "$program" --json verify near.onnx --input x=@near.npy >steps.json && files steps steps.json
}
files borders near.onnx far.onnx
case_ "sums rounded to either side" one_step
case_ "results many steps apart" differs "$program" verify far.onnx --input x=@near.npy

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
