# C tests: each file is one executable, linked with every layer, run by ctest.

pkg_check_modules(cmocka QUIET IMPORTED_TARGET cmocka)
if(NOT cmocka_FOUND)
    message(STATUS "cmocka not found, the C tests are left out: run tools/setup.sh test")
    return()
endif()

# What several tests share: tests/support/*.c, included as "support/<name>.h".
file(GLOB support_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.c)
list(REMOVE_ITEM support_sources ${CMAKE_SOURCE_DIR}/tests/support/one_thread.c)
if(support_sources)
    add_library(nereid_test_support STATIC ${support_sources})
    target_include_directories(nereid_test_support PUBLIC ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(nereid_test_support PUBLIC ${NEREID_LAYER_TARGETS} PkgConfig::cmocka)
endif()

set(threads_list ${CMAKE_SOURCE_DIR}/tests/threads.list)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${threads_list})
file(STRINGS ${threads_list} tests_with_threads REGEX "^[^#]")

# nereid_c_test(<rung> <file>) - executable tests/<rung>/<stem>, ctest name <rung>.<stem>. Without NEREID_UNITS most are built when they
# are asked for by name, and ctest knows nothing of them.
function(nereid_c_test rung file)
    get_filename_component(stem ${file} NAME_WE)
    # test_heap: under that sanitizer the heap takes the C library's settings and leaves them, and does not say what is free.
    if(NEREID_SANITIZE MATCHES "thread" AND (NOT ${rung}.${stem} IN_LIST tests_with_threads OR stem STREQUAL "test_heap"))
        return()
    endif()
    set(target ${rung}_${stem})
    add_executable(${target} ${file})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${stem}
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/${rung})
    target_include_directories(${target} PRIVATE
        ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
    target_compile_definitions(${target} PRIVATE
        TEST_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TEST_BINARY_DIR="${CMAKE_BINARY_DIR}")
    target_link_libraries(${target} PRIVATE
        nereid_flags $<TARGET_NAME_IF_EXISTS:nereid_test_support>
        ${NEREID_LAYER_TARGETS} PkgConfig::cmocka ${CMAKE_DL_LIBS} m)
    target_link_options(${target} PRIVATE ${NEREID_LINK_NO_LTO})
    if(NOT rung STREQUAL "10_sim" AND NOT ${rung}.${stem} IN_LIST tests_with_threads) # a simulation has threads that take turns
        target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/one_thread.c)
    endif()
    if(NOT NEREID_UNITS AND NOT stem MATCHES "^test_(heap|pool)$") # a sanitizer would change the memory that these two measure
        set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
        return()
    endif()
    add_test(NAME ${rung}.${stem} COMMAND ${target})
    set_tests_properties(${rung}.${stem} PROPERTIES
        TIMEOUT 300 LABELS ${rung} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

# The stand-ins of CUDA's driver (tests/cuda) and of NVML (tests/cuda/nvml): libcuda.so.1 and libnvidia-ml.so.1 in a folder that tests
# put into LD_LIBRARY_PATH. They are built without sanitizers, so that any process can load them.
set(standin_folder ${CMAKE_BINARY_DIR}/tests/cuda)
function(nereid_standin name)
    add_library(${name}_standin SHARED ${ARGN})
    target_include_directories(${name}_standin PRIVATE
        ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests/cuda)
    target_compile_definitions(${name}_standin PRIVATE _GNU_SOURCE)
    target_compile_options(${name}_standin PRIVATE ${warnings} ${c_warnings} -fno-common $<$<BOOL:${NEREID_WERROR}>:-Werror>)
    target_link_libraries(${name}_standin PRIVATE Threads::Threads)
    set_target_properties(${name}_standin PROPERTIES OUTPUT_NAME ${name} SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY ${standin_folder})
endfunction()
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cuda/*.c)
nereid_standin(cuda ${files})
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cuda/nvml/*.c)
nereid_standin(nvidia-ml ${files} ${CMAKE_SOURCE_DIR}/tests/cuda/plan.c)

foreach(rung 00_unit 10_sim 20_fault)
    file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${rung}/*.c)
    foreach(file IN LISTS files)
        nereid_c_test(${rung} ${file})
    endforeach()
endforeach()

# The store of the local response cache is tested as a unit too.
target_link_libraries(00_unit_test_store PRIVATE nereid_local_store)

# So is what the backend `tensorflow` makes of a configuration and of the messages in files, for which TensorFlow need not be there.
if(TARGET 00_unit_test_tensorflow_options)
    set(backends ${CMAKE_SOURCE_DIR}/backends)
    target_sources(00_unit_test_tensorflow_options PRIVATE
        ${backends}/tensorflow/options.c ${backends}/common/wire.c ${backends}/common/bconfig.c ${backends}/common/berr.c)
    target_include_directories(00_unit_test_tensorflow_options PRIVATE ${backends})
    target_sources(00_unit_test_tensorflow_messages PRIVATE ${backends}/tensorflow/messages.c ${backends}/common/wire.c)
    target_include_directories(00_unit_test_tensorflow_messages PRIVATE ${backends})
endif()

# And what the backend `tensorrt` decides without TensorRT: profiles, shape tensors, the checks of configurations, which executions are
# recorded as graphs of CUDA's and which recording serves a batch.
if(TARGET 00_unit_test_tensorrt)
    set(backends ${CMAKE_SOURCE_DIR}/backends)
    target_sources(00_unit_test_tensorrt PRIVATE
        ${backends}/tensorrt/check.c ${backends}/tensorrt/complete.c ${backends}/tensorrt/options.c ${backends}/tensorrt/profile.c
        ${backends}/common/bcomplete.c ${backends}/common/bconfig.c ${backends}/common/berr.c ${backends}/common/blog.c)
    target_sources(00_unit_test_tensorrt_graph PRIVATE
        ${backends}/tensorrt/graph.c ${backends}/tensorrt/profile.c ${backends}/common/bconfig.c ${backends}/common/berr.c ${backends}/common/blog.c)
    target_include_directories(00_unit_test_tensorrt PRIVATE ${backends})
    target_include_directories(00_unit_test_tensorrt_graph PRIVATE ${backends})
endif()

# And the options and accelerators of the backend `onnxruntime`, with the ONNX Runtime that lies beside it.
if(TARGET 00_unit_test_onnxruntime_accelerators)
    set(backends ${CMAKE_SOURCE_DIR}/backends)
    foreach(target 00_unit_test_onnxruntime_accelerators 00_unit_test_onnxruntime_options)
        target_sources(${target} PRIVATE
            ${CMAKE_SOURCE_DIR}/tests/00_unit/onnxruntime/onnxruntime_opened.c
            ${backends}/onnxruntime/accelerators.c ${backends}/onnxruntime/ort.c
            ${backends}/common/bconfig.c ${backends}/common/berr.c ${backends}/common/blog.c ${backends}/common/cpus.c)
        target_include_directories(${target} PRIVATE ${backends} ${CMAKE_SOURCE_DIR}/tests/00_unit/onnxruntime)
        target_include_directories(${target} SYSTEM PRIVATE
            $<TARGET_PROPERTY:nereid::onnxruntime,INTERFACE_INCLUDE_DIRECTORIES>)
    endforeach()
    target_sources(00_unit_test_onnxruntime_options PRIVATE ${backends}/onnxruntime/options.c)
endif()

# The simulation of the shell brings threads, locks and a clock of its own, in place of those of os/.
if(TARGET 10_sim_test_shell_sim)
    file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/10_sim/shell/*.c)
    target_sources(10_sim_test_shell_sim PRIVATE ${files})
    target_include_directories(10_sim_test_shell_sim PRIVATE ${CMAKE_SOURCE_DIR}/tests/10_sim)
endif()

# What the Python tests of tests/50_config drive; no test by itself.
set(target 50_config_text_tool)
add_executable(${target} ${CMAKE_SOURCE_DIR}/tests/50_config/text_tool.c)
set_target_properties(${target} PROPERTIES
    OUTPUT_NAME text_tool
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/50_config)
target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(${target} PRIVATE nereid_flags ${NEREID_LAYER_TARGETS} ${CMAKE_DL_LIBS} m)
target_link_options(${target} PRIVATE ${NEREID_LINK_NO_LTO})

# Programs that embed the server: they see the public headers alone and link the shared library, as a user's program does. Plug-ins
# of theirs are tests/10_inprocess/plugins/<name>.c, as libtriton_<name>.so in tests/backends/<name>.
function(nereid_host_test file)
    get_filename_component(stem ${file} NAME_WE)
    set(target 10_inprocess_${stem})
    add_executable(${target} ${file} ${CMAKE_SOURCE_DIR}/tests/10_inprocess/host.c)
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${stem}
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/10_inprocess
        BUILD_RPATH ${CMAKE_BINARY_DIR}/lib)
    target_include_directories(${target} PRIVATE
        ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/include)
    target_compile_definitions(${target} PRIVATE
        TEST_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TEST_BINARY_DIR="${CMAKE_BINARY_DIR}")
    target_link_libraries(${target} PRIVATE nereid_flags tritonserver PkgConfig::cmocka m)
    target_link_options(${target} PRIVATE ${NEREID_LINK_NO_LTO})
    get_property(backends GLOBAL PROPERTY NEREID_BACKENDS)
    add_dependencies(${target} ${backends} nereid)
    add_test(NAME 10_inprocess.${stem} COMMAND ${target})
    set_tests_properties(10_inprocess.${stem} PROPERTIES
        TIMEOUT 300 LABELS 10_inprocess WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/10_inprocess/test_*.c)
if(NEREID_SANITIZE MATCHES "thread")
    # ONNX Runtime was not built for the thread sanitizer.
    list(FILTER files EXCLUDE REGEX "test_digits\\.c$")
endif()
foreach(file IN LISTS files)
    nereid_host_test(${file})
endforeach()

# Those of GPUs find the stand-in in the place of the driver.
foreach(test 00_unit.test_gpu 00_unit.test_gpu_memory 00_unit.test_gpu_meter 00_unit.test_region_cuda 10_inprocess.test_gpus)
    if(TEST ${test})
        set_tests_properties(${test} PROPERTIES ENVIRONMENT "LD_LIBRARY_PATH=${standin_folder}")
    endif()
endforeach()

file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/10_inprocess/plugins/*.c
    ${CMAKE_SOURCE_DIR}/tests/49_isolation/plugins/*.c)
foreach(file IN LISTS files)
    get_filename_component(stem ${file} NAME_WE)
    set(target 10_inprocess_plugin_${stem})
    add_library(${target} MODULE ${file})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(${target} PRIVATE nereid_flags)
    target_link_options(${target} PRIVATE ${NEREID_LINK_NO_LTO})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME triton_${stem}
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/backends/${stem})
endforeach()

# Libraries of the interface of custom.h: tests/10_inprocess/custom/<name>.c, as lib<name>.so in tests/custom.
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/10_inprocess/custom/*.c)
foreach(file IN LISTS files)
    get_filename_component(stem ${file} NAME_WE)
    set(target 10_inprocess_custom_${stem})
    add_library(${target} MODULE ${file})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(${target} PRIVATE nereid_flags)
    target_link_options(${target} PRIVATE ${NEREID_LINK_NO_LTO})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${stem}
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/custom)
endforeach()
