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

if(proto_sources)
    add_library(nereid_proto STATIC ${proto_sources} ${proto_headers})
    target_compile_options(nereid_proto PRIVATE -w)
    target_link_libraries(nereid_proto PUBLIC nereid_build_flags nereid::protobuf_c)
    target_include_directories(nereid_proto SYSTEM PUBLIC ${generated})
    # Layers wait for the headers; objects of a library do not wait for the libraries it links.
    add_custom_target(nereid_proto_headers DEPENDS ${proto_headers})
endif()
