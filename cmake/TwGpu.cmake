# tw_gpu_environment(TEST...)
#
# What tests that use GPUs find: PoCL's cache in the build folder, NVRTC and nvdisasm where
# scripts/setup installed them, and what the sanitizers are to overlook in drivers. They get the label
# `device` besides: what to run where there is a GPU.
file(GLOB TILEWRIGHT_VENV_NVRTC
     ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13)
file(GLOB TILEWRIGHT_VENV_NVDISASM
     ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13/bin/nvdisasm)
function(tw_gpu_environment)
  set(environment POCL_CACHE_DIR=${CMAKE_BINARY_DIR}/pocl
                  LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/driver_leaks.txt
                  TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/driver_races.txt)
  if(TILEWRIGHT_VENV_NVRTC)
    list(APPEND environment TILEWRIGHT_NVRTC=${TILEWRIGHT_VENV_NVRTC})
  endif()
  if(TILEWRIGHT_VENV_NVDISASM)
    list(APPEND environment TILEWRIGHT_NVDISASM=${TILEWRIGHT_VENV_NVDISASM})
  endif()
  set(tests ${ARGN})
  list(TRANSFORM tests APPEND _slow OUTPUT_VARIABLE slow)
  list(TRANSFORM tests APPEND _full OUTPUT_VARIABLE full)
  foreach(test ${tests} ${slow} ${full})
    if(TEST ${test})
      set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT ${environment})
      set_property(TEST ${test} APPEND PROPERTY LABELS device)
    endif()
  endforeach()
endfunction()
