#!/usr/bin/env bash
# Networks and expressions on OpenCL (PoCL without a GPU) against the interpreter and ONNX Runtime;
# code for CUDA without a GPU; what users can get wrong.
# gpu.sh PROGRAM [full]: `full` adds networks of the same kinds of layers.
source "$(dirname "$0")/lib.sh" "$1"
limit=600
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$work/pocl}

cat >product.tw <<'TW'
tensor product(A: f32[m, k], const B: f32[k, n], bias: f32[n]) where m = 70, n = 90, k = 50 {
  C[i in m, j in n] = sum(l in k) A[i, l] * B[l, j]
  D[i in m, j in n] = max(C[i, j] + bias[j], 0)
  return D
}
TW
has() { "$program" devices | grep -q "^$1:[0-9].* yes"; }

exits 0 "targets" "opencl-mali" "cuda-sm_80" -- targets
exits 4 "no such target" "there is no target 'opencl-nope'" "opencl-mali" -- \
  compile product.tw --target opencl-nope
exits 0 "the schedule" "axis=thread.x" "scope=shared" -- explain product.tw --target opencl

# CUDA: compiled without a GPU.
TILEWRIGHT_CUDA_DRIVER=$work/none.so exits 0 "C5 compile for CUDA without a GPU" "1 kernel," -- \
  compile product.tw --target cuda-sm_90 -o cuda.twm
exits 0 "for an older one" "1 kernel," -- compile product.tw --target cuda-sm_80 -o sm80.twm
"$python" "$here/gpu_files.py"
exits 0 "convolutions for CUDA" "2 kernels" -- compile residual.onnx --target cuda -o plain.twm
exits 0 "in TF32, with weights laid out and rounded ahead" "4 kernels" -- \
  compile residual.onnx --target cuda --tf32 -o tf32.twm
if [ -n "${TILEWRIGHT_NVDISASM:-}" ]; then
  exits 0 "machine code" "HMMA" -- --json explain residual.onnx --target cuda --tf32 --sass
  exits 0 "of bytes with zero points" "IMMA" -- --json explain bytes.onnx --target cuda --sass
fi
if ! has cuda; then
  exits 4 "no CUDA driver" "libcuda.so.1" "install NVIDIA's driver" -- run cuda.twm
fi

if ! has opencl; then
  echo "skipped: no OpenCL device"
  skipped=$((skipped + 1))
  finish
fi
exits 4 "code for CUDA is not OpenCL" "compile with --target opencl" -- run cuda.twm --device opencl
exits 4 "no such device" "no device is '17'" -- run product.tw --device opencl:17

# Two drivers: a part of the name chooses, and it must be enough.
if [ -e /usr/lib/oclgrind/liboclgrind-rt-icd.so ]; then
  mkdir drivers
  cp /etc/OpenCL/vendors/*.icd drivers
  echo /usr/lib/oclgrind/liboclgrind-rt-icd.so >drivers/oclgrind.icd
  export OCL_ICD_VENDORS=$work/drivers
  exits 0 "C4 a device by a part of its name" "" -- run product.tw --device opencl:oclgrind
  TILEWRIGHT_OPENCL_DEVICE=oclgrind exits 0 "C4 by the environment" "" -- run product.tw --device opencl
  exits 4 "C4 a name of several devices" "more than one device is 'r'" Oclgrind opencl:1 -- \
    run product.tw --device opencl:r
  unset OCL_ICD_VENDORS
else
  echo "skipped: no second OpenCL driver"
  skipped=$((skipped + 3))
fi

# A package computes what the processor does.
exits 0 "an expression" " ok" -- verify product.tw --target opencl --against interp
"$program" -q run product.tw --output cpu.npy 2>"$log"
exits 0 "compile" -- compile product.tw --target opencl -o product.twm
exits 0 "run a package" -- run product.twm --output gpu.npy
exits 0 "a device names the target" -- run product.tw --device opencl --output device.npy
holds "model and package agree" cmp gpu.npy device.npy
exits 0 "tensors without elements" " ok" -- verify empty.onnx --target opencl --against interp
exits 0 "E1 a profile of kernels on OpenCL" "step on the GPU" "product" -- \
  bench product.tw --target opencl --duration 0.2 --profile

# oclgrind simulates a device, thread by thread, and reports races and accesses outside of buffers.
simulator=$(readlink -f "$(command -v oclgrind || echo none)")
simulator=${simulator%/bin/oclgrind}/lib/oclgrind/liboclgrind-rt.so
simulated() {  # SUBJECT
  TILEWRIGHT_OPENCL=$simulator OCLGRIND_DATA_RACES=1 timeout 300 \
    "$program" verify "$1" --target opencl --against interp >simulated.log 2>&1
  local code=$?
  cat simulated.log
  [ $code -eq 0 ] && ! grep -qiE 'race|invalid|error' <(grep -v '^subject' simulated.log)
}
if [ -e "$simulator" ]; then
  holds "no race in an expression" simulated product.tw
  "$program" -q zoo lenet5 -o lenet5.onnx
  holds "none in a network" simulated lenet5.onnx
else
  echo "skipped: no oclgrind"
  skipped=$((skipped + 2))
fi

network() {  # NAME REFERENCE OPTIONS...
  local name=$1 reference=$2
  shift 2
  "$program" -q zoo "$name" "$@" -o net.onnx
  local inputs=()
  [ "$name" != bert_base ] || inputs=(--input attention_mask=ones)
  exits 0 "D1 $name on OpenCL" " ok" -- verify net.onnx --target opencl --against "$reference" "${inputs[@]}"
}
for form in residual turned choice; do
  exits 0 "$form" " ok" -- verify $form.onnx --target opencl --against ort
done
# ONNX Runtime saturates sums of byte products on processors without VNNI.
exits 0 "bytes" " ok" -- verify bytes.onnx --target opencl --against interp
network lenet5 interp
# PoCL's optimiser would take most of the time; what it makes of kernels shows above.
export POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable
network dqn ort
network dcgan ort --size 32
network squeezenet1.1 ort --size 64
network mobilenet_v2 ort --size 64
network resnet18 ort --size 64
network lstm_lm ort --size 5
network bert_base ort --size 8
if [ "${2:-}" = full ]; then
  network dcgan ort
  network densenet121 ort --size 64
  network inception_v1 ort --size 64
  network yolov3_tiny ort --size 96
  network bert_base ort --size 16
fi

finish
