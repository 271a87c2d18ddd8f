#!/usr/bin/env bash
# Where there is a GPU with CUDA: expressions, products by matrix instructions and small networks run
# on it, against the interpreter and ONNX Runtime; as a package, through records and profiles.
# device.sh PROGRAM; exit 77: there is none.
source "$(dirname "$0")/lib.sh" "$1"
limit=600
if ! "$program" devices | grep -q "^cuda:[0-9].* yes"; then
  echo "skipped: no CUDA device"
  "$program" devices | sed -n 's/^cuda/  cuda/p'
  exit 77
fi

cat >product.tw <<'TW'
tensor product(A: f32[m, k], const B: f32[k, n], bias: f32[n]) where m = 270, n = 390, k = 150 {
  C[i in m, j in n] = sum(l in k) A[i, l] * B[l, j]
  D[i in m, j in n] = max(C[i, j] + bias[j], 0)
  return D
}
TW
cat >operators.json <<'JSON'
{"cases": [
  {"id": "f16", "suite": "gemm", "operator": "gemm", "dtype": "float16", "macs": 8388608,
   "params": {"m": 256, "n": 256, "k": 128}, "output_shape": [256, 256]},
  {"id": "bf16", "suite": "gemm", "operator": "gemm", "dtype": "bfloat16", "macs": 1996800,
   "params": {"m": 100, "n": 96, "k": 208}, "output_shape": [100, 96]},
  {"id": "parts", "suite": "gemm", "operator": "gemm", "dtype": "float16", "macs": 4194304,
   "params": {"m": 16, "n": 32, "k": 8192}, "output_shape": [16, 32]},
  {"id": "long", "suite": "gemm", "operator": "gemm", "dtype": "float32", "macs": 4194304,
   "params": {"m": 16, "n": 32, "k": 8192}, "output_shape": [16, 32]}
]}
JSON
exits 0 "an expression" " ok" -- verify product.tw --target cuda --against interp
exits 0 "products" " ok" -- verify --workload operators.json --target cuda --against interp
exits 0 "compile" -- compile product.tw --target cuda -o product.twm
exits 0 "run a package" -- run product.twm --output gpu.npy
exits 0 "E1 a profile of kernels on CUDA" "step on the GPU" "product" -- \
  bench product.tw --target cuda --duration 0.2 --profile

network() {  # NAME REFERENCE OPTIONS...
  local name=$1 reference=$2
  shift 2
  "$program" -q zoo "$name" "$@" -o net.onnx
  local inputs=()
  [ "$name" != bert_base ] || inputs=(--input attention_mask=ones)
  exits 0 "D1 $name on CUDA" " ok" -- verify net.onnx --target cuda --against "$reference" "${inputs[@]}"
}
network lenet5 interp
network dqn ort
network dcgan ort
network squeezenet1.1 ort --size 64
network mobilenet_v2 ort --size 64
network resnet50 ort
network vgg16 ort --size 64
network densenet121 ort --size 64
network inception_v1 ort --size 64
network yolov3_tiny ort --size 96
network lstm_lm ort --size 5
network bert_base ort --size 16

finish
