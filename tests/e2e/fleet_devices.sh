#!/usr/bin/env bash
# Networks on devices of a fleet that are not this processor: AArch64 under an emulator, a simulated
# accelerator, OpenCL. Each agrees with its reference, and has the bits that the same package gives
# on the same device without the fleet.
# fleet_devices.sh PROGRAM [RUNNER [NETWORK:SIZE...]]
# RUNNER: tilewright-runner for AArch64; without it, it is built. NETWORK: on all devices; without
# any, eight on AArch64 and four on each of the others.
source "$(dirname "$0")/fleet_lib.sh"
root=$(realpath "$here/../..")
limit=600
networks=${*:3}

# agrees KIND NETWORK SIZE REFERENCE OPTION...: on a device of the fleet as without it.
# without_fleet: runs net.twm on net.npy, leaves here.npy.
agrees() {
  local kind=$1 network=$2 size=$3 reference=$4
  shift 4
  rm -f there.npy here.npy
  "$program" -q zoo "$network" --size "$size" -o net.onnx || exit 1
  "$python" "$here/aarch64_files.py" input net.onnx net || exit 1
  given=$(cat net.name)=@net.npy
  exits 0 "$network on $kind agrees with $reference" ok -- \
    verify net.onnx --worker "$kind" --against "$reference" --input "$given" "$@"
  exits 0 "$network compiled for $kind" "" -- compile net.onnx "$@" -o net.twm
  exits 0 "$network runs there" "on " -- run net.twm --worker "$kind" --input "$given" -o there.npy
  without_fleet || bad "$network" "it does not run without the fleet"
  holds "with the bits that $kind gives without the fleet" cmp here.npy there.npy
}

emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static)
if [ -z "$emulator" ]; then
  echo "skipped: there is no emulator (qemu-user)"
  exit 77
fi
exits 0 "a private server" "postgresql://" -- fleet init --private pool
runner=${2:-$work/build/tilewright-runner}
build_runner() {
  cmake -S "$root" --preset aarch64-runtime -B "$work/build" &&
    cmake --build "$work/build" -j 2 --target tilewright-runner
}
[ -x "$runner" ] || holds "the runner is cross-built" build_runner
emulated=("$emulator" -cpu max -L /usr/aarch64-linux-gnu "$(realpath "$runner")")
worker --device "runner:${emulated[*]}"
worker --device vta:tsim
worker --device opencl:0
holds "three devices" within 60 has free 3

without_fleet() {
  rm -rf job
  lay_out job net.twm '{"runs": 1}' net.npy
  "${emulated[@]}" job && cp job/outputs/0.npy here.npy
}
for network in ${networks:-lenet5:28 resnet18:32 mobilenet_v1:32 mobilenet_v2:32 squeezenet1.1:32
  densenet121:32 dqn:84 inception_v1:64}; do
  agrees aarch64 "${network%:*}" "${network#*:}" ort --target aarch64
done
"$program" -q zoo lenet5 -o net.onnx || exit 1
tuned() { "$program" --json -q tune net.onnx --worker aarch64 --threads 1 --trials 24 --for 300s -o net.twm >tuned.json; }
holds "candidates are compiled here and run by the emulator" tuned
holds "and most of them run" "$python" -c "
import json
t = json.load(open('tuned.json'))
assert t['trials'] == 24 and sum(k.get('outcomes', {}).get('ok', 0) for k in t['tasks']) >= 16, t['tasks']"
holds "the same command goes on" tuned
holds "from what is in the store" "$python" -c "
import json
assert sum(k['resumed'] for k in json.load(open('tuned.json'))['tasks']) > 0"
exits 0 "a package for a processor that is not here" "on " -- run net.twm --worker aarch64
without_fleet() { "$program" -q run net.twm --input "$given" -o here.npy; }
for network in ${networks:-lenet5:28 resnet18:32 mobilenet_v2:32 squeezenet1.1:32}; do
  agrees vta:tsim "${network%:*}" "${network#*:}" cpu --target vta --quantize random --fallback cpu
done
"$program" -q zoo lenet5 -o net.onnx || exit 1
tuned_on_gpu() { "$program" --json -q tune net.onnx --worker opencl --trials 16 --for 300s -o net.twm >gpu.json; }
holds "candidates are measured by a GPU of the fleet" tuned_on_gpu
holds "most of them" "$python" -c "
import json
t = json.load(open('gpu.json'))
assert t['trials'] == 16 and sum(k.get('outcomes', {}).get('ok', 0) for k in t['tasks']) >= 10, t['tasks']
assert t['worker']['class'].startswith('opencl:')"
holds "the same command goes on" tuned_on_gpu
holds "from what is in the store" "$python" -c "
import json
assert sum(k['resumed'] for k in json.load(open('gpu.json'))['tasks']) > 0"
exits 0 "the package runs there" "on " -- run net.twm --worker opencl
without_fleet() { "$program" -q run net.twm --device opencl:0 --input "$given" -o here.npy; }
for network in ${networks:-lenet5:28 resnet18:32 mobilenet_v2:32 squeezenet1.1:32}; do
  agrees opencl "${network%:*}" "${network#*:}" ort --target opencl
done
finish
