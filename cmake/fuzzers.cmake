# fuzz/fuzz_<name>.c defines LLVMFuzzerTestOneInput. With NEREID_FUZZ it is built for libFuzzer; else
# it is linked with fuzz/replay.c and ctest runs it over fuzz/corpus/<name>. What fuzzers of whole
# connections share is fuzz/support/*.c, with the identity backend linked in.

file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/fuzz_*.c)
if(NOT NEREID_FUZZ AND (NOT NEREID_TESTS OR NOT NEREID_UNITS OR NEREID_SANITIZE MATCHES "thread"))
    return() # the replays have one thread
endif()
file(GLOB support_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/support/*.c)
add_library(nereid_fuzz_support STATIC ${support_sources})
target_include_directories(nereid_fuzz_support PUBLIC ${CMAKE_SOURCE_DIR}/fuzz)

# A backend's names are its own inside its library; here they must differ from the server's.
set(identity ${CMAKE_SOURCE_DIR}/backends/identity)
add_library(nereid_fuzz_identity OBJECT
    ${identity}/backend.c ${identity}/model.c ${identity}/run.c
    ${CMAKE_SOURCE_DIR}/backends/common/bconfig.c ${CMAKE_SOURCE_DIR}/backends/common/bcuda.c
    ${CMAKE_SOURCE_DIR}/backends/common/bentry.c ${CMAKE_SOURCE_DIR}/backends/common/berr.c
    ${CMAKE_SOURCE_DIR}/backends/common/blog.c)
target_include_directories(nereid_fuzz_identity PRIVATE ${CMAKE_SOURCE_DIR}/include ${identity})
target_compile_definitions(nereid_fuzz_identity PRIVATE
    model_init=identity_model_init model_fini=identity_model_fini)
target_link_libraries(nereid_fuzz_identity PRIVATE nereid_flags nereid::yyjson)
target_sources(nereid_fuzz_support PRIVATE $<TARGET_OBJECTS:nereid_fuzz_identity>)
target_link_libraries(nereid_fuzz_support PUBLIC nereid_flags nereid::yyjson ${NEREID_LAYER_TARGETS})

foreach(file IN LISTS fuzzers)
    get_filename_component(target ${file} NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" name ${target})
    set(corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
    add_executable(${target} ${file})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    target_link_libraries(${target} PRIVATE
        nereid_flags nereid_fuzz_support ${NEREID_LAYER_TARGETS} ${CMAKE_DL_LIBS} m)
    target_compile_options(${target} PRIVATE -Wno-missing-prototypes)
    if(NEREID_FUZZ)
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    else()
        target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/fuzz/replay.c)
        target_link_options(${target} PRIVATE ${NEREID_LINK_NO_LTO})
        add_test(NAME fuzz.${name} COMMAND ${target} ${corpus})
        set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 300 LABELS fuzz)
        if(name MATCHES "^(http|http2|grpc)$") # a whole connection serves what it can, whatever fails
            add_test(NAME fuzz.${name}.faults COMMAND ${target} --faults ${corpus})
            set_tests_properties(fuzz.${name}.faults PROPERTIES TIMEOUT 300 LABELS fuzz)
        endif()
    endif()
endforeach()

# What translates the files of a backend is fuzzed without its runtime.
set(backends ${CMAKE_SOURCE_DIR}/backends)
file(GLOB caffe2_sources CONFIGURE_DEPENDS ${backends}/onnxruntime/caffe2/*.c)
target_sources(fuzz_netdef PRIVATE ${caffe2_sources} ${backends}/common/bfind.c ${backends}/common/wire.c ${backends}/common/scratch.c)
target_include_directories(fuzz_netdef PRIVATE ${backends}/onnxruntime)

# What lies in a module, with the libraries that it is for.
target_sources(fuzz_tls PRIVATE ${CMAKE_SOURCE_DIR}/modules/tls/context.c ${CMAKE_SOURCE_DIR}/modules/tls/session.c)
target_include_directories(fuzz_tls PRIVATE ${CMAKE_SOURCE_DIR}/modules/tls)
target_link_libraries(fuzz_tls PRIVATE PkgConfig::ssl PkgConfig::crypto)
