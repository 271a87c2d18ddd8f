# The runtime's library, the program that runs packages and the C example, for a device: needs a C and C++ compiler for it, and
# the headers of fmt, nlohmann_json and tl::expected, which are the same for every processor.
add_library(tilewright_flags INTERFACE)
target_include_directories(tilewright_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(tilewright_flags INTERFACE -Wall -Wextra -Wshadow
                                                  -Wno-missing-field-initializers)

# A cross compiler must not see the other headers of this machine: links to these three only.
set(headers ${CMAKE_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(library fmt nlohmann tl)
  find_path(TILEWRIGHT_HEADERS_${library} ${library} PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH
            NO_CACHE REQUIRED)
  file(CREATE_LINK ${TILEWRIGHT_HEADERS_${library}}/${library} ${headers}/${library} SYMBOLIC)
endforeach()
target_include_directories(tilewright_flags SYSTEM INTERFACE ${headers})

add_subdirectory(src/tilewright/runtime/shared)
add_subdirectory(src/tilewright/runner)
add_subdirectory(examples)
