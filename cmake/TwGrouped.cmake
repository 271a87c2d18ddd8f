# tw_grouped(OUT NAME source...)
#
# Sets OUT to files that include the sources of the current folder in groups of TILEWRIGHT_GROUP (a
# "unity build"). Templates that several files use are instantiated once per group and headers read
# once, which is most of what a build from nothing does: the layer schedule takes 77 s of CPU file by
# file and 26 s in one group (g++ 12, -O2). Sources with options or definitions of their own stay alone.
#
# Consequence: a name is defined once per layer, in anonymous namespaces too. For work on one file
# configure with TILEWRIGHT_GROUP=1 (preset `dev`): each source is compiled alone, and
# compile_commands.json names it.
#
# The files lie in build/groups of the checkout and are the same for all presets, so that builds whose
# options agree share compiled files in ccache. A build with groups of another size needs a folder of
# its own, TILEWRIGHT_GROUPS_IN: under the same names its files hold other sources.
set(TILEWRIGHT_GROUP 1 CACHE STRING "Sources compiled together; 1: each alone")
set(TILEWRIGHT_GROUPS_IN ${CMAKE_SOURCE_DIR}/build/groups CACHE PATH "Where files of groups lie")

# tw_built_with(OPTION source...)
#
# Tells these sources alone, as TILEWRIGHT_OPTION=1 or 0, whether the build has this option: all others are the
# same with and without it, so that builds that differ in it share what is compiled.
function(tw_built_with option)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_DEFINITIONS TILEWRIGHT_${option}=$<BOOL:${TILEWRIGHT_${option}}>)
endfunction()

function(tw_grouped out name)
  set(alone)
  set(together)
  foreach(source ${ARGN})
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    if(options OR definitions OR TILEWRIGHT_GROUP LESS 2)
      list(APPEND alone ${source})
    else()
      list(APPEND together ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  set(number 0)
  while(number LESS count)
    list(SUBLIST together ${number} ${TILEWRIGHT_GROUP} group)
    math(EXPR number "${number} + ${TILEWRIGHT_GROUP}")
    set(text "")
    foreach(source ${group})
      file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/src ${source})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    set(file ${TILEWRIGHT_GROUPS_IN}/${name}_${number}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND alone ${file})
  endwhile()
  set(${out} ${alone} PARENT_SCOPE)
endfunction()
