# Every header compiles alone: one generated source per header, in the libraries headers_alone and
# headers_alone_cxx (public headers once more as C++). ctest builds them as test `headers_alone`.

file(GLOB public_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/triton/core/*.h
    ${CMAKE_SOURCE_DIR}/include/nereid/*.h)
file(GLOB src_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.h
    ${CMAKE_SOURCE_DIR}/src/*/*.h ${CMAKE_SOURCE_DIR}/src/*/*/*.h)

# alone_source(<header> <root> <extension> <variable>) - writes the source, adds it to the variable.
function(alone_source header root extension ret)
    file(RELATIVE_PATH name ${root} ${header})
    string(REPLACE "/" "__" stem ${name})
    set(file ${CMAKE_BINARY_DIR}/headers_alone/${stem}.${extension})
    file(CONFIGURE OUTPUT ${file} CONTENT "#include \"${name}\"\n")
    set(${ret} ${${ret}} ${file} PARENT_SCOPE)
endfunction()

set(c_files)
set(cxx_files)
foreach(header IN LISTS src_headers)
    alone_source(${header} ${CMAKE_SOURCE_DIR}/src c c_files)
endforeach()
foreach(header IN LISTS public_headers)
    alone_source(${header} ${CMAKE_SOURCE_DIR}/include c c_files)
    alone_source(${header} ${CMAKE_SOURCE_DIR}/include cpp cxx_files)
endforeach()

add_custom_target(headers_alone_all)
foreach(kind c cxx)
    if(${kind}_files)
        add_library(headers_alone_${kind} OBJECT EXCLUDE_FROM_ALL ${${kind}_files})
        # Empty units are meant here.
        target_compile_options(headers_alone_${kind} PRIVATE -fno-lto -fno-sanitize=all -O0 -g0 -Wno-unused-function)
        target_link_libraries(headers_alone_${kind} PRIVATE
            nereid_flags ${NEREID_LAYER_TARGETS} ${NEREID_LIBRARIES})
        target_include_directories(headers_alone_${kind} PRIVATE
            ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
        add_dependencies(headers_alone_all headers_alone_${kind})
    endif()
endforeach()

add_test(NAME headers_alone
    COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target headers_alone_all)
set_tests_properties(headers_alone PROPERTIES RUN_SERIAL ON TIMEOUT 600)
