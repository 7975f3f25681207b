# Modules: what the server loads when it is used first, over libraries that nothing else needs. Every modules/<name>/CMakeLists.txt
# is taken up.

# nereid_module(<name> SOURCES <file>... LIBRARIES <target>...) - libnereid_<name>.so in lib/nereid of the build tree, with what its
# module.map shows. It sees src/ for the one header that it shares with the server.
function(nereid_module name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
    set(target nereid_${name}_module)
    set(map ${CMAKE_CURRENT_SOURCE_DIR}/module.map)
    add_library(${target} MODULE ${arg_SOURCES})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${target} PRIVATE nereid_flags ${arg_LIBRARIES})
    target_link_options(${target} PRIVATE
        -Wl,--version-script=${map} -Wl,-z,now -Wl,-z,relro
        -Wl,--as-needed -Wl,--disable-new-dtags ${NEREID_LINK_LTO})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME nereid_${name}
        # Where libraries travel along (the wheel), they lie in lib/; this kind of path holds for what those need, too.
        BUILD_RPATH "$ORIGIN/.." INSTALL_RPATH "$ORIGIN/.." BUILD_WITH_INSTALL_RPATH ON
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/nereid
        LINK_DEPENDS ${map})
    install(TARGETS ${target} LIBRARY DESTINATION lib/nereid)
    set_property(GLOBAL APPEND PROPERTY NEREID_MODULES ${target})
endfunction()

file(GLOB module_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/modules/*/CMakeLists.txt)
foreach(file IN LISTS module_files)
    get_filename_component(folder ${file} DIRECTORY)
    add_subdirectory(${folder})
endforeach()
