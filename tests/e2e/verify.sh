#!/usr/bin/env bash
# verify: what it compares, the inputs it makes up, and what it says of known differences.
source "$(dirname "$0")/lib.sh" "$1"
"$python" "$here/verify_files.py" . || exit 1

exits 0 "outputs of rank 0" "ort      y" "ort      z" -- verify scalar.onnx --against interp,ort
# What takes long comes after it, reading the inputs included.
echo "no array" >broken.npy
TILEWRIGHT_PYTHON=/bin/false exits 7 "ONNX Runtime is looked for first" "ONNX Runtime did not start" -- \
  verify lengths.onnx --against interp,ort --input n=@broken.npy
for seed in 1 2 3; do
  exits 0 "made-up lengths and indices keep their limits, seed $seed" ok \
    -- verify lengths.onnx --against interp,ort --seed $seed
done
exits 0 "a computed scale" "1e-04  ok" -- verify dynamic.onnx --against ort
names_it() {  # names_it MODEL TEXT
  "$program" verify "$1.onnx" --against ort >note.txt 2>&1
  [ $? -eq 5 ] && grep -q "note: y depends on $2" note.txt
}
holds "a known difference is named" names_it whole "Resize.*cuts off"
holds "that of a Pad behind which is a MaxPool" names_it padded "MaxPool.*behind a Pad by zeros"
holds "that of a node on constants" names_it constant "Resize.*fractional length"
holds "that of a node that ends ONNX Runtime" names_it nothing "MaxPool.*ignores the dilation"
for model in whole padded constant nothing; do
  exits 0 "the interpreter agrees about $model" ok -- verify $model.onnx --against interp
done

every_value() {  # every node's result is there on both sides
  "$program" --json verify scalar.onnx --against ort --per-node >values.json &&
    "$python" -c "import json; rows = json.load(open('values.json'))['rows']; assert len(rows) == 2, rows"
}
holds "values of nodes against ONNX Runtime" every_value

# The first node that rounds otherwise is named, not the output that depends on it.
first_off() {
  "$program" --json verify whole.onnx --against ort --per-node >off.json
  [ $? -eq 5 ] || return 1
  "$python" -c "
import json
rows = [r for r in json.load(open('off.json'))['rows'] if not r['ok']]
assert [(r['output'], r['node']) for r in rows] == [('r', \"node 'Resize_0' (Resize)\")], rows"
}
holds "D3 the first node that is off is named" first_off
finish
