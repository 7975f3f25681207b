# Modules: what the server loads when it is used first, over libraries that nothing else needs. Every modules/<name>/CMakeLists.txt
# is taken up; it adds its target to the property NEREID_MODULES.

file(GLOB module_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/modules/*/CMakeLists.txt)
foreach(file IN LISTS module_files)
    get_filename_component(folder ${file} DIRECTORY)
    add_subdirectory(${folder})
endforeach()
