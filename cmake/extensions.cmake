# Response caches and repository agents: every caches/<name>/CMakeLists.txt and repoagents/<name>/CMakeLists.txt is taken up.
# Like backends they see include/, and leave the functions of the server undefined: ours or the reference has them.

# nereid_extension(<kind> <library> <name> SOURCES <file>... [LIBRARIES <target>...]) - <library>_<name>.so in <kind>/<name> of the
# build tree; cmake/<kind>.map says what it shows.
function(nereid_extension kind library name)
    cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "SOURCES;LIBRARIES")
    set(target ${library}_${name})
    set(folder ${CMAKE_BINARY_DIR}/${kind}/${name})
    set(map ${CMAKE_SOURCE_DIR}/cmake/${kind}.map)
    add_library(${target} MODULE ${arg_SOURCES})
    target_include_directories(${target} PRIVATE
        ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/backends ${CMAKE_SOURCE_DIR}/${kind})
    target_link_libraries(${target} PRIVATE nereid_flags ${arg_LIBRARIES})
    target_link_options(${target} PRIVATE
        -Wl,--version-script=${map} -Wl,-z,now -Wl,-z,relro -Wl,--as-needed ${NEREID_LINK_LTO})
    set_target_properties(${target} PROPERTIES
        LIBRARY_OUTPUT_DIRECTORY ${folder}
        BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON
        LINK_DEPENDS ${map})
    install(TARGETS ${target} LIBRARY DESTINATION ${kind}/${name})
    # As with backends, a library that is not the system's travels along.
    if("nereid::yyjson" IN_LIST arg_LIBRARIES)
        file(MAKE_DIRECTORY ${folder})
        foreach(file IN LISTS NEREID_PRIVATE_LIBS)
            get_filename_component(file_name ${file} NAME)
            get_filename_component(file ${file} REALPATH)
            file(CREATE_LINK ${file} ${folder}/${file_name} SYMBOLIC)
            install(PROGRAMS ${file} DESTINATION ${kind}/${name} RENAME ${file_name})
        endforeach()
    endif()
    set_property(GLOBAL APPEND PROPERTY NEREID_BACKENDS ${target})
endfunction()

function(nereid_cache name)
    nereid_extension(caches tritoncache ${name} ${ARGN})
endfunction()

function(nereid_repoagent name)
    nereid_extension(repoagents tritonrepoagent ${name} ${ARGN})
endfunction()

file(GLOB extension_files CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/caches/*/CMakeLists.txt ${CMAKE_SOURCE_DIR}/repoagents/*/CMakeLists.txt)
foreach(file IN LISTS extension_files)
    get_filename_component(folder ${file} DIRECTORY)
    file(RELATIVE_PATH place ${CMAKE_SOURCE_DIR} ${folder})
    add_subdirectory(${folder} ${CMAKE_BINARY_DIR}/cmake/${place})
endforeach()
