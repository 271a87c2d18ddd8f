#!/usr/bin/env bash
# Packages for AArch64, run by the runtime's C interface under an emulator.
source "$(dirname "$0")/lib.sh"
root=$(realpath "$here/../..")

cxx=$(command -v aarch64-linux-gnu-g++-12 || command -v aarch64-linux-gnu-g++)
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static)
sysroot=/usr/aarch64-linux-gnu
for need in "AArch64 C++ compiler (g++-12-aarch64-linux-gnu)=$cxx" "emulator (qemu-user)=$emulator"; do
  if [ -z "${need#*=}" ]; then
    echo "skipped: there is no ${need%%=*}"
    exit 77
  fi
done

# As a user cross-builds it: the preset, an installation, and a program compiled against that.
installed=$work/installed
build_runtime() {
  cmake -S "$root" --preset aarch64-runtime -B "$work/build" && cmake --build "$work/build" -j 2 &&
    cmake --install "$work/build" --prefix "$installed"
}
build_runner() {
  "${cxx/g++/gcc}" -std=c99 "-I$installed/include" -o run_package "$here/run_package.c" \
    -rdynamic "-L$installed/lib" -ltilewright_runtime -Wl,--no-as-needed -lm
}
emulated() { "$emulator" -cpu max -L "$sysroot" -E "LD_LIBRARY_PATH=$installed/lib" "$@"; }
holds "the runtime and the C example are cross-built for AArch64" build_runtime
holds "a program is built against the installed runtime" build_runner
small_enough() { cmake "-DPROGRAM=$work/build/tilewright-runner" -P "$root/src/tilewright/runner/check_runner.cmake"; }
holds "the runner is built too, one small file" small_enough
example_explains() {
  ! emulated "$work/build/01_run_package" none.twm 2>error.txt && grep -q none.twm error.txt
}
holds "the C example says what is wrong" example_explains

# compare MODEL TARGET TOLERANCE: the package for TARGET gives what this machine's code gives, and
# that agrees with the interpreter.
compare() {
  local model=$1 target=$2 tolerance=$3 threads given
  rm -f got*.raw want.npy
  given=$(cat "$model.name")=@$model.npy
  exits 0 "$model for $target" -- compile "$model.onnx" --target "$target" -o "$target.twm"
  exits 0 "$model agrees with the interpreter" ok -- verify "$model.onnx" --against interp \
    --input "$given"
  exits 0 "$model on this machine" -- run "$model.onnx" --input "$given" -o want.npy
  for threads in 1 2; do
    holds "$model runs, $target, $threads threads" \
      emulated ./run_package "$target.twm" "$threads" "got$threads.raw" "$model.raw"
    holds "$model gives the same numbers, $target, $threads threads" \
      "$python" "$here/aarch64_files.py" compare want.npy "got$threads.raw" "$tolerance"
  done
  holds "$model gives the same bits with 1 and 2 threads, $target" cmp got1.raw got2.raw
  rm -rf job
  lay_out job "$target.twm" '{"threads": 2, "warmup": 1, "runs": 2}' "$model.npy"
  holds "tilewright-runner runs $model, $target" emulated "$work/build/tilewright-runner" job
  tail -c "$(stat -c %s got2.raw)" job/outputs/0.npy >job.raw
  holds "with the same bits as through the library, $target" cmp got2.raw job.raw
}

"$python" "$here/aarch64_files.py" write || exit 1
for network in lenet5:32 resnet18:64; do
  "$program" -q zoo "${network%:*}" --size "${network#*:}" -o "${network%:*}.onnx" || exit 1
  "$python" "$here/aarch64_files.py" input "${network%:*}.onnx" "${network%:*}" || exit 1
  compare "${network%:*}" aarch64 1e-4
done
# Bytes: without, with signed and with mixed dot products, and by matrix instructions.
for target in aarch64 aarch64-v8.2 aarch64-v8.6; do compare bytes "$target" 1e-6; done
for target in aarch64-v8.2 aarch64-v8.6; do compare rows "$target" 1e-6; done
multiplies_matrices() {
  tar -xf aarch64-v8.6.twm -C code &&
    find code -name '*.so' -exec aarch64-linux-gnu-objdump -d {} + >code.txt &&
    grep -qw smmla code.txt && grep -qw usmmla code.txt
}
mkdir code
holds "rows of bytes are multiplied by matrix instructions" multiplies_matrices

runner_explains() {
  ! emulated "$work/build/tilewright-runner" job && grep -q '"kind":"package"' job/result.json
}
truncate -s 2000 job/model.twm
holds "tilewright-runner says what is wrong" runner_explains

# A package for another processor is refused here.
exits 8 "not for this machine" aarch64 -- run aarch64.twm
finish
