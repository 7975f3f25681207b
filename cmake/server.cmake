# libtritonserver.so from all layers, the executable, and what is installed of both.

set(map_file ${CMAKE_SOURCE_DIR}/src/libtritonserver.map)

# By file name, each whole and once: as linked targets they would be named a second time by their users.
set(layer_files)
foreach(target IN LISTS NEREID_LAYER_TARGETS)
    list(APPEND layer_files $<TARGET_FILE:${target}>)
endforeach()

add_library(tritonserver SHARED ${CMAKE_SOURCE_DIR}/cmake/empty.c)
set_target_properties(tritonserver PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON
    LINK_DEPENDS "${map_file};${layer_files}")
target_link_options(tritonserver PRIVATE
    -Wl,--version-script=${map_file} -Wl,-z,now -Wl,-z,relro -Wl,--as-needed ${NEREID_LINK_LTO})
if(NOT NEREID_SANITIZE)
    target_link_options(tritonserver PRIVATE -Wl,--no-undefined)
endif()
# Packed, the relocations of the library take 2 KiB instead of 84; the C library that loads them knows that from 2.36 on.
include(CheckLinkerFlag)
include(CheckSourceCompiles)
check_linker_flag(C -Wl,-z,pack-relative-relocs NEREID_LINKER_PACKS)
check_source_compiles(C "#include <features.h>
#if !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 36)
#error before 2.36
#endif
int main(void) { return 0; }" NEREID_LOADER_UNPACKS)
if(NEREID_LINKER_PACKS AND NEREID_LOADER_UNPACKS)
    target_link_options(tritonserver PRIVATE -Wl,-z,pack-relative-relocs)
endif()
target_link_libraries(tritonserver PRIVATE
    nereid_flags
    -Wl,--whole-archive ${layer_files} -Wl,--no-whole-archive
    ${NEREID_LIBRARIES})
if(NEREID_LAYER_TARGETS)
    add_dependencies(tritonserver ${NEREID_LAYER_TARGETS})
endif()
target_include_directories(tritonserver INTERFACE ${CMAKE_SOURCE_DIR}/include)

install(TARGETS tritonserver LIBRARY DESTINATION lib)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/triton DESTINATION include
    FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/THIRD_PARTY DESTINATION share/nereid)

if(EXISTS ${CMAKE_SOURCE_DIR}/src/main.c)
    add_executable(nereid ${CMAKE_SOURCE_DIR}/src/main.c)
    # main.c sees the public headers and the one private table, src/nereid_private.h.
    target_include_directories(nereid PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(nereid PRIVATE nereid_flags tritonserver)
    target_link_options(nereid PRIVATE -Wl,-z,now -Wl,-z,relro ${NEREID_LINK_LTO})
    set_target_properties(nereid PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin
        BUILD_RPATH "$ORIGIN/../lib" INSTALL_RPATH "$ORIGIN/../lib" BUILD_WITH_INSTALL_RPATH ON)
    add_custom_command(TARGET nereid POST_BUILD
        COMMAND ${CMAKE_COMMAND} -E create_symlink nereid ${CMAKE_BINARY_DIR}/bin/tritonserver)
    install(TARGETS nereid RUNTIME DESTINATION bin)
    install(CODE [[
        file(CREATE_LINK nereid "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/tritonserver" SYMBOLIC)]])
endif()

# The page of `nereid bench --html`, and the library that draws in it, where tools/setup.sh could fetch it.
set(report_files ${CMAKE_SOURCE_DIR}/web/report/report.html)
set(uplot ${NEREID_DEPS}/npm/uplot)
if(EXISTS ${uplot}/dist/uPlot.iife.min.js)
    list(APPEND report_files ${uplot}/dist/uPlot.iife.min.js ${uplot}/dist/uPlot.min.css)
    install(FILES ${uplot}/LICENSE DESTINATION share/nereid/licences RENAME uplot)
else()
    message(STATUS "uPlot not found, reports of nereid bench are left out: ${setup_hint}")
endif()
foreach(file IN LISTS report_files)
    get_filename_component(name ${file} NAME)
    configure_file(${file} ${CMAKE_BINARY_DIR}/share/nereid/report/${name} COPYONLY)
endforeach()
install(FILES ${report_files} DESTINATION share/nereid/report)

# The live page that the server shows at `/`.
file(GLOB live_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/live/*)
foreach(file IN LISTS live_files)
    get_filename_component(name ${file} NAME)
    configure_file(${file} ${CMAKE_BINARY_DIR}/share/nereid/live/${name} COPYONLY)
endforeach()
install(FILES ${live_files} DESTINATION share/nereid/live)
