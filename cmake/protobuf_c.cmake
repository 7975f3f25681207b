# proto/*.proto -> library nereid_proto; headers are reached as "proto/<name>.pb-c.h".

find_program(PROTOC_C protoc-c REQUIRED)
set(generated ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated}/proto)
file(GLOB protos CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/proto/*.proto)
set(proto_sources)
set(proto_headers)
foreach(proto IN LISTS protos)
    get_filename_component(name ${proto} NAME_WE)
    set(out ${generated}/proto/${name}.pb-c)
    add_custom_command(
        OUTPUT ${out}.c ${out}.h
        COMMAND ${PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR} --c_out=${generated} proto/${name}.proto
        WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
        DEPENDS ${protos}
        COMMENT "protoc-c ${name}.proto"
        VERBATIM)
    list(APPEND proto_sources ${out}.c)
    list(APPEND proto_headers ${out}.h)
endforeach()

# Their descriptors as bytes: "proto/descriptors.h".
set(descriptors ${generated}/proto/descriptors)
file(WRITE ${descriptors}.h.in "#pragma once
/* Every file of proto/ as a FileDescriptorSet. */
extern const unsigned char descriptors_set[];
extern const unsigned long descriptors_bytes;
")
configure_file(${descriptors}.h.in ${descriptors}.h COPYONLY)
file(RELATIVE_PATH proto_folder ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/proto)
set(proto_names)
foreach(proto IN LISTS protos)
    get_filename_component(name ${proto} NAME)
    list(APPEND proto_names ${proto_folder}/${name})
endforeach()
add_custom_command(
    OUTPUT ${descriptors}.c
    COMMAND ${PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR} --descriptor_set_out=${descriptors}.bin ${proto_names}
    COMMAND ${CMAKE_COMMAND} -DFILE=${descriptors}.bin -DTO=${descriptors}.c
        -DHEADER=proto/descriptors.h -DDATA=descriptors_set -DBYTES=descriptors_bytes
        -P ${CMAKE_SOURCE_DIR}/cmake/bytes.cmake
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    DEPENDS ${protos} ${CMAKE_SOURCE_DIR}/cmake/bytes.cmake
    COMMENT "descriptors of proto/"
    VERBATIM)
list(APPEND proto_sources ${descriptors}.c)

# proto/openapi.json as bytes: "proto/openapi.h".
set(openapi ${generated}/proto/openapi)
file(WRITE ${openapi}.h.in "#pragma once
/* proto/openapi.json */
extern const unsigned char openapi_text[];
extern const unsigned long openapi_bytes;
")
configure_file(${openapi}.h.in ${openapi}.h COPYONLY)
add_custom_command(
    OUTPUT ${openapi}.c
    COMMAND ${CMAKE_COMMAND} -DFILE=${CMAKE_SOURCE_DIR}/proto/openapi.json -DTO=${openapi}.c
        -DHEADER=proto/openapi.h -DDATA=openapi_text -DBYTES=openapi_bytes
        -P ${CMAKE_SOURCE_DIR}/cmake/bytes.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/proto/openapi.json ${CMAKE_SOURCE_DIR}/cmake/bytes.cmake
    COMMENT "proto/openapi.json"
    VERBATIM)
list(APPEND proto_sources ${openapi}.c)

if(proto_sources)
    add_library(nereid_proto STATIC ${proto_sources} ${proto_headers})
    target_compile_options(nereid_proto PRIVATE -w)
    target_link_libraries(nereid_proto PUBLIC nereid_build_flags nereid::protobuf_c)
    target_include_directories(nereid_proto SYSTEM PUBLIC ${generated})
    # Layers wait for the headers; objects of a library do not wait for the libraries it links.
    add_custom_target(nereid_proto_headers DEPENDS ${proto_headers})
endif()
