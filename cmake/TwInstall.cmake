# cmake --install build/release --prefix P: the program, and beside the runtime (which installs itself,
# src/tilewright/runtime/shared) what people read and start from.
include(GNUInstallDirs)
install(TARGETS tilewright RUNTIME COMPONENT program)
install(DIRECTORY hw sketches spaces DESTINATION ${CMAKE_INSTALL_DATADIR}/tilewright COMPONENT program)
set(documents ${CMAKE_INSTALL_DATADIR}/doc/tilewright)
install(FILES README.md LICENSE DESTINATION ${documents} COMPONENT program)
install(DIRECTORY docs DESTINATION ${documents} COMPONENT program)
install(DIRECTORY bench/results DESTINATION ${documents}/bench COMPONENT program)
install(DIRECTORY examples DESTINATION ${documents} COMPONENT program
        PATTERN CMakeLists.txt EXCLUDE)
