# Programs that need nothing but the C library on the machine they are copied to. Drivers of devices
# are loaded when asked for, so the C library itself stays a shared one.
if(TILEWRIGHT_PORTABLE)
  list(PREPEND CMAKE_FIND_LIBRARY_SUFFIXES .a)
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--gc-sections,--strip-all)
  # Functions of the same instructions are kept once: 0.2 MB. Nothing here compares addresses of functions.
  add_link_options(-Wl,--icf=all)
  # A table of addresses to change at start would take 0.7 MB.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()

# tilewright_fmt: the library where it may be shared, else its code.
find_package(fmt REQUIRED)
if(TILEWRIGHT_PORTABLE)
  add_library(tilewright_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cc)
  get_target_property(fmt_folder fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(tilewright_fmt SYSTEM PUBLIC ${fmt_folder})
  # As the shared one has it, so that both kinds of build share compiled files in ccache.
  target_compile_definitions(tilewright_fmt PUBLIC FMT_SHARED)
else()
  add_library(tilewright_fmt INTERFACE)
  target_link_libraries(tilewright_fmt INTERFACE fmt::fmt)
endif()
