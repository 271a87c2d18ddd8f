#!/usr/bin/env bash
# What `cmake --install` puts down is complete and works from there: install.sh PROGRAM BUILD_FOLDER
source "$(dirname "$0")/lib.sh"
prefix=$work/prefix
root=$(realpath "$here/../..")
holds "cmake --install" cmake --install "$2" --prefix "$prefix"
documents=share/doc/tilewright
for file in bin/tilewright bin/tilewright-runner lib/libtilewright_runtime.so include/tilewright/runtime.h \
  include/tilewright/runtime.hpp lib/pkgconfig/tilewright-runtime.pc share/tilewright/hw/vta.toml \
  share/tilewright/sketches/gemm.sketch share/tilewright/spaces/edge.toml $documents/README.md $documents/LICENSE \
  $documents/docs/architecture.md $documents/bench/results/cpu.md $documents/examples/01_run_package.c \
  $documents/examples/02_gemm_relu.tw; do
  # The multiarch folder of a library depends on the prefix.
  holds "$file is installed" compgen -G "$prefix/${file/#lib\//lib*/}"
done
holds "every document of the project is installed" diff -r "$root/docs" "$prefix/$documents/docs"
library=$(realpath "$prefix"/lib*/libtilewright_runtime.so)
holds "the runtime has less than 1 MB as installed" test "$(stat -c %s "$library")" -lt 1000000

own_symbols_only() {
  nm -D --defined-only "$library" >symbols.txt && grep -q ' T tw_session_run' symbols.txt &&
    ! awk '$2 ~ /[TWVBDRui]/ && $3 !~ /^(tw_|TILEWRIGHT)/' symbols.txt | grep .
}
holds "B5 the runtime shows its own names only" own_symbols_only
no_other_runtimes() {
  ldd "$library" >libraries.txt && grep -q libc libraries.txt &&
    ! grep -E 'protobuf|LLVM|gomp|onnx' libraries.txt
}
holds "B5 and brings no other library that programs have" no_other_runtimes
program=$prefix/bin/tilewright
exits 0 "the installed program compiles" -- zoo lenet5 -o m.onnx
exits 0 "the installed program compiles a model" -- compile m.onnx -o m.twm

# As the users of the library build: find_package, pkg-config.
cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(Tilewright REQUIRED)
add_executable(user $prefix/$documents/examples/01_run_package.c)
target_link_libraries(user Tilewright::runtime)
END
by_cmake() {
  cmake -S . -B by_cmake "-DCMAKE_PREFIX_PATH=$prefix" && cmake --build by_cmake &&
    by_cmake/user m.twm | grep values
}
holds "find_package(Tilewright) builds the example, which runs" by_cmake
by_pkg_config() {
  local flags
  flags=$(PKG_CONFIG_PATH=$(echo "$prefix"/lib*/pkgconfig) pkg-config --cflags --libs tilewright-runtime) &&
    cc -o user "$prefix/$documents/examples/01_run_package.c" $flags &&
    LD_LIBRARY_PATH=$(dirname "$library") ./user m.twm | grep values
}
if command -v pkg-config >/dev/null; then
  holds "pkg-config builds the example, which runs" by_pkg_config
else
  skipped=$((skipped + 1))
fi

# A program that serves fifty shapes: 10000 runs, each with a package of its own shape.
for rows in $(seq 50); do
  echo "tensor t(A: f32[$((16 * rows)), 64]) { B[i in $((16 * rows)), j in 64] = exp(A[i, j]) return B }" >t.tw
  "$program" -q compile t.tw --samples none -o "t$rows.twm" || exit 1
done
cc -O1 -I"$prefix/include" -o many "$here/many.c" "$library" || exit 1
flat() {
  LD_LIBRARY_PATH=$(dirname "$library") ./many 200 t*.twm >resident.txt && cat resident.txt &&
    awk 'NR == 1 { first = $1 } END { exit !(NR == 2 && first > 0 && $1 - first <= 1024) }' resident.txt
}
holds "E5 memory is flat over 10000 runs of 50 shapes" flat

explains() {  # explains TEXT FILE: the example fails and says TEXT.
  ! by_cmake/user "$2" 2>error.txt && grep -qF "$1" error.txt
}
holds "the C example names a missing file" explains nofile.twm nofile.twm
holds "the C example says that a model is no package" explains "m.onnx" m.onnx
finish
