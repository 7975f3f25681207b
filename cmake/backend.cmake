# Backends: every backends/<name>/CMakeLists.txt is taken up.

# What backends share but the entry points, which have to be in each, whether or not something asks for them.
file(GLOB common_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/backends/common/*.c)
set(backend_entry ${CMAKE_SOURCE_DIR}/backends/common/bentry.c)
list(REMOVE_ITEM common_sources ${backend_entry})
add_library(nereid_backend_common STATIC ${common_sources})
target_include_directories(nereid_backend_common PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/backends)
target_link_libraries(nereid_backend_common PRIVATE nereid_flags nereid::yyjson)

# nereid_backend(<name> [OPTIONAL] SOURCES <file>... [LIBRARIES <target>...] [SHIP <file>...])
#
# libtriton_<name>.so in backends/<name> of the build tree. It sees include/ and backends/ (for
# backends/common, as "common/x.h"), nothing of src/. The functions of the server stay undefined:
# the server that loads it has them, ours or the reference.
# LIBRARIES are what it links besides. SHIP lists library files to put beside it, each as
# <path>[=<file name>]; the backend looks for libraries in its own folder first. An OPTIONAL one is installed when it is asked for, as
# the component backend_<name> (tools/packages/backends.list).
function(nereid_backend name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIONAL" "" "SOURCES;LIBRARIES;SHIP")
    set(component)
    if(arg_OPTIONAL)
        set(component COMPONENT backend_${name} EXCLUDE_FROM_ALL)
    endif()
    set(target triton_${name})
    set(folder ${CMAKE_BINARY_DIR}/backends/${name})
    add_library(${target} MODULE ${arg_SOURCES} ${backend_entry})
    target_include_directories(${target} PRIVATE
        ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/backends ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${target} PRIVATE nereid_flags nereid_backend_common ${arg_LIBRARIES})
    target_link_options(${target} PRIVATE
        -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/backend.map -Wl,-z,now -Wl,-z,relro
        -Wl,--as-needed ${NEREID_LINK_LTO})
    set_target_properties(${target} PROPERTIES
        LIBRARY_OUTPUT_DIRECTORY ${folder}
        BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON
        LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/backend.map)
    install(TARGETS ${target} LIBRARY DESTINATION backends/${name} ${component})

    # A library that is not the system's travels with each backend that links it, so that the folder
    # works in another server too; inside ours the copy already loaded is used (same soname).
    if("nereid::yyjson" IN_LIST arg_LIBRARIES)
        list(APPEND arg_SHIP ${NEREID_PRIVATE_LIBS})
    endif()
    foreach(item IN LISTS arg_SHIP)
        string(REGEX MATCH "^([^=]+)(=(.+))?$" _ ${item})
        set(file ${CMAKE_MATCH_1})
        set(file_name "${CMAKE_MATCH_3}")
        if(NOT file_name)
            get_filename_component(file_name ${file} NAME)
        endif()
        file(MAKE_DIRECTORY ${folder})
        get_filename_component(file ${file} REALPATH)
        file(CREATE_LINK ${file} ${folder}/${file_name} SYMBOLIC)
        install(PROGRAMS ${file} DESTINATION backends/${name} RENAME ${file_name} ${component})
    endforeach()
    if(NOT arg_OPTIONAL)
        set_property(GLOBAL APPEND PROPERTY NEREID_BACKENDS ${target})
        return()
    endif()
    set_property(GLOBAL APPEND PROPERTY NEREID_FRAMEWORKS ${target})
    if(NEREID_SANITIZE)
        # Their runtimes are not built with it, and what is asked with sanitizers is not asked of them: the target `frameworks` has them.
        set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
endfunction()

# nereid_onnxruntime_files(<variable>) - what a backend on ONNX Runtime ships, for SHIP.
function(nereid_onnxruntime_files ret)
    get_target_property(file nereid::onnxruntime IMPORTED_LOCATION)
    get_target_property(soname nereid::onnxruntime IMPORTED_SONAME)
    set(${ret} ${file}=${soname} PARENT_SCOPE)
endfunction()

file(GLOB backend_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/backends/*/CMakeLists.txt)
foreach(file IN LISTS backend_files)
    get_filename_component(folder ${file} DIRECTORY)
    add_subdirectory(${folder} ${CMAKE_BINARY_DIR}/cmake/${folder})
endforeach()
