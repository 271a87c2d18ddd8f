# tw_precompile(TARGET library|optimised|test): what most sources include is read once for all targets of a
# kind. For builds from nothing; libraries must include what they use, so one build leaves them out.
set(TILEWRIGHT_PRECOMPILE "" CACHE STRING "Kinds of targets with precompiled headers: library, optimised, test")
set(TILEWRIGHT_OPTIMISED "" CACHE STRING "Layers compiled with -O1 in a build that optimises nothing else")
set(headers_of_library
    <algorithm> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <optional> <set> <string>
    <variant> <vector> <fmt/format.h> <fmt/ranges.h>
    "${CMAKE_SOURCE_DIR}/src/tilewright/base/check.h"
    "${CMAKE_SOURCE_DIR}/src/tilewright/base/result.h"
    "${CMAKE_SOURCE_DIR}/src/tilewright/ir/text.h"
    "${CMAKE_SOURCE_DIR}/src/tilewright/ir/walk.h")
set(headers_of_optimised ${headers_of_library})
set(headers_of_test ${headers_of_library} <gmock/gmock.h> <gtest/gtest.h>)

function(tw_precompile target kind)
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
      target_compile_options(${owner} PRIVATE ${TILEWRIGHT_TEST_FLAGS})
    else()
      add_library(${owner} STATIC EXCLUDE_FROM_ALL ${source})
    endif()
    if(kind STREQUAL optimised)
      target_compile_options(${owner} PRIVATE -O1)
    endif()
    target_link_libraries(${owner} PRIVATE tilewright_flags tilewright_fmt)
    list(TRANSFORM headers_of_${kind} REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
    target_precompile_headers(${owner} PRIVATE ${headers_of_${kind}})
    # With the time of each build inside, ccache would know no object again.
    target_compile_options(
      ${owner} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()
