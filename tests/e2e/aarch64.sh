#!/usr/bin/env bash
# Packages for AArch64, run by the runtime's C interface under an emulator.
# aarch64.sh PROGRAM SOURCES      SOURCES: of the runtime's library, separated by ';'
source "$(dirname "$0")/lib.sh"
root=$(realpath "$here/../..")
limit=300
sources=$2

cxx=$(command -v aarch64-linux-gnu-g++-12 || command -v aarch64-linux-gnu-g++)
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static)
sysroot=/usr/aarch64-linux-gnu
for need in "AArch64 C++ compiler (g++-12-aarch64-linux-gnu)=$cxx" "emulator (qemu-user)=$emulator"; do
  if [ -z "${need#*=}" ]; then
    echo "skipped: there is no ${need%%=*}"
    exit 77
  fi
done

# The runtime needs nothing but headers beside the C and C++ libraries.
mkdir include
for headers in fmt nlohmann tl; do ln -s "/usr/include/$headers" "include/$headers"; done
build_runner() {
  local flags=(-std=gnu++20 -O1 -w -DFMT_HEADER_ONLY=1 "-DTILEWRIGHT_VERSION=\"0\"" "-I$root/src"
    "-I$root/include" -isystem include)
  printf '%s' "$sources" | tr ';' '\n' |
    xargs -P 2 -I{} sh -c 'source=$1; shift; exec "$@" -c "$source" -o "$(echo "$source" | tr / _).o"' \
      _ {} "$cxx" "${flags[@]}" &&
    "$cxx" "${flags[@]}" -x c++ -c "$here/run_package.c" -o run_package.o &&
    "$cxx" -o run_package ./*.o -rdynamic -ldl -lpthread -Wl,--no-as-needed -lm
}
emulated() { "$emulator" -cpu max -L "$sysroot" "$@"; }
holds "the runtime compiles for AArch64" build_runner

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

# A package for another processor is refused here.
exits 8 "not for this machine" aarch64 -- run aarch64.twm
finish
