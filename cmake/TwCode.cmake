# tw_code(TARGET hot|library|optimised|test): how much a target's code is optimised, and its precompiled headers.
#
# A portable program is to be small, and code for size compiles in four fifths of the time: a release (g++)
# spends -O2 on layers alone that users wait for. What most sources include is read once for all targets of a
# kind; builds that look at single sources (preset `dev`, scripts/tidy) leave that out, so that a source
# includes what it uses.
set(TILEWRIGHT_PRECOMPILE "" CACHE STRING "Kinds of targets with precompiled headers")
set(TILEWRIGHT_OPTIMISED "" CACHE STRING "Layers compiled with -O1 in a build that optimises nothing else")
set(gnu_release $<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<CONFIG:Release>>)
set(options_of_hot "")
set(options_of_library $<${gnu_release}:-Os>)
set(options_of_optimised -O1)
set(options_of_test ${TILEWRIGHT_TEST_FLAGS})
set(headers_of_library
    <algorithm> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <optional> <set> <string>
    <variant> <vector> <fmt/format.h> <fmt/ranges.h>
    <tilewright/base/check.h> <tilewright/base/result.h> <tilewright/ir/text.h> <tilewright/ir/walk.h>)
set(headers_of_hot ${headers_of_library})
set(headers_of_optimised ${headers_of_library})
set(headers_of_test ${headers_of_library} <gmock/gmock.h> <gtest/gtest.h>)

function(tw_code target kind)
  target_compile_options(${target} PRIVATE ${options_of_${kind}})
  if(NOT kind IN_LIST TILEWRIGHT_PRECOMPILE)
    return()
  endif()
  set(owner tilewright_headers_of_${kind})
  if(NOT TARGET ${owner})
    set(source ${CMAKE_BINARY_DIR}/headers_of_${kind}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
    if(kind STREQUAL test)
      add_executable(${owner} EXCLUDE_FROM_ALL ${source})
      target_link_libraries(${owner} PRIVATE GTest::gmock GTest::gtest)
    else()
      add_library(${owner} STATIC EXCLUDE_FROM_ALL ${source})
    endif()
    target_compile_options(${owner} PRIVATE ${options_of_${kind}})
    target_link_libraries(${owner} PRIVATE tilewright_flags tilewright_fmt)
    list(TRANSFORM headers_of_${kind} REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
    target_precompile_headers(${owner} PRIVATE ${headers_of_${kind}})
    # With the time of each build inside, ccache would know no object again.
    target_compile_options(
      ${owner} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()
