# tw_library(NAME [HOT] [FOLDERS folder...] DEPS layer... [LINK target...] [TEST_DEPS layer...])
#
# Declares one layer: every *.cc of the current folder, and of its FOLDERS, except the tests becomes
# the static library tilewright_NAME, optimised for size unless users wait for it (HOT). DEPS are the only
# layers its sources may include (scripts/check_layers.py reads them back from here). *_test.cc become the
# program NAME_test (label unit), *_slow_test.cc become NAME_slow_test (label slow), of which sanitizers see
# nothing (see tw_test for single suites); tests may use any layer named in DEPS or TEST_DEPS. The target
# `unit_tests` builds all programs with the label unit.
add_custom_target(unit_tests)
set(TILEWRIGHT_UNTESTED "" CACHE STRING "Layers whose tests this build leaves out")
add_library(tilewright_flags INTERFACE)
target_include_directories(tilewright_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(tilewright_flags INTERFACE -Wall -Wextra -Wshadow -Werror
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-missing-field-initializers>
                       $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-missing-field-initializers
                       -Wno-gnu-statement-expression-from-macro-expansion
                       -Wno-deprecated-declarations>)
# clang 19 finds std::stable_sort of libstdc++ 12 deprecated inside.
# g++ 12 at -O2 reports reads and writes that cannot happen in std::variant, std::string and initializer lists
# (GCC PR 105651 and relatives); the same code is checked by clang and by g++ without optimisation.
foreach(warning array-bounds restrict maybe-uninitialized stringop-overflow)
  target_compile_options(tilewright_flags INTERFACE $<${gnu_release}:-Wno-${warning}>)
endforeach()
# g++ looks for memory to free at 128 MB and whenever that has doubled: 5 to 8 % of the time of sources that
# are compiled together (-ftime-report). Later, it takes up to half as much memory again, 1.9 GB at most.
target_compile_options(tilewright_flags INTERFACE
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>)
if(TILEWRIGHT_VERIFY_EACH)
  target_compile_definitions(tilewright_flags INTERFACE TILEWRIGHT_VERIFY_EACH=1)
endif()

function(tw_library name)
  cmake_parse_arguments(ARG "HOT" "" "DEPS;LINK;TEST_DEPS;FOLDERS" ${ARGN})
  list(TRANSFORM ARG_FOLDERS APPEND /*.cc)
  file(GLOB sources CONFIGURE_DEPENDS *.cc ${ARG_FOLDERS})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(sources)
    tw_grouped(sources ${name} ${sources})
    add_library(tilewright_${name} STATIC ${sources})
    if(name IN_LIST TILEWRIGHT_OPTIMISED)
      tw_code(tilewright_${name} optimised)
    elseif(ARG_HOT AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      tw_code(tilewright_${name} hot)
    else()
      tw_code(tilewright_${name} library)
    endif()
    set(scope PUBLIC)
  else()
    add_library(tilewright_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  list(TRANSFORM ARG_DEPS PREPEND tilewright_)
  target_link_libraries(tilewright_${name} ${scope} tilewright_flags ${ARG_DEPS} ${ARG_LINK})
  if(NOT TILEWRIGHT_TESTS OR NOT tests OR name IN_LIST TILEWRIGHT_UNTESTED)
    return()
  endif()
  list(TRANSFORM ARG_TEST_DEPS PREPEND tilewright_)
  set(slow ${tests})
  list(FILTER slow INCLUDE REGEX "_slow_test\\.cc$")
  list(FILTER tests EXCLUDE REGEX "_slow_test\\.cc$")
  foreach(kind test slow_test)
    set(files ${tests})
    set(label unit)
    if(kind STREQUAL slow_test)
      set(files ${slow})
      set(label slow)
    endif()
    if(files)
      set(of_kind ${files})
      tw_grouped(files ${name}_${kind} ${files})
      add_executable(${name}_${kind} ${files})
      target_link_libraries(${name}_${kind} PRIVATE tilewright_${name} ${ARG_TEST_DEPS} GTest::gmock
                            GTest::gtest GTest::gtest_main)
      target_compile_definitions(${name}_${kind} PRIVATE
                                 TILEWRIGHT_SOURCE_DIR="${CMAKE_CURRENT_SOURCE_DIR}"
                                 TILEWRIGHT_ROOT_DIR="${CMAKE_SOURCE_DIR}")
      tw_code(${name}_${kind} test)
      if(label STREQUAL unit)
        add_dependencies(unit_tests ${name}_${kind})
      endif()
      tw_test(${name}_${kind} ${label} ${of_kind})
    endif()
  endforeach()
endfunction()
