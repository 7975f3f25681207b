# Libraries from outside. The ones unpacked under build/deps go first; the rest is the system's.

find_package(PkgConfig REQUIRED)
set(deps_libdir ${NEREID_DEPS}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
set(ENV{PKG_CONFIG_PATH} "${deps_libdir}/pkgconfig:$ENV{PKG_CONFIG_PATH}")

set(setup_hint "run tools/setup.sh run (make run and make test do it)")

# nereid_find(<target> <pkg-config name and version>) - an imported target, or a clear error.
function(nereid_find target module)
    pkg_check_modules(${target} IMPORTED_TARGET GLOBAL QUIET ${module})
    if(NOT ${target}_FOUND)
        message(FATAL_ERROR "library ${module} not found: ${setup_hint}")
    endif()
    add_library(nereid::${target} ALIAS PkgConfig::${target})
    set(${target}_LIBRARY_DIRS ${${target}_LIBRARY_DIRS} PARENT_SCOPE)
    set(${target}_LINK_LIBRARIES ${${target}_LINK_LIBRARIES} PARENT_SCOPE)
    set(${target}_INCLUDE_DIRS ${${target}_INCLUDE_DIRS} PARENT_SCOPE)
endfunction()

nereid_find(nghttp2 libnghttp2>=1.52)
nereid_find(protobuf_c libprotobuf-c>=1.4)
nereid_find(zlib zlib)
nereid_find(yyjson yyjson>=0.10)
nereid_find(crypto libcrypto>=3.0)

# llhttp: its static library where there is one, so that no file of it needs to be shipped.
pkg_check_modules(llhttp QUIET IMPORTED_TARGET GLOBAL libllhttp>=9.2)
if(NOT llhttp_FOUND)
    message(FATAL_ERROR "library libllhttp>=9.2 not found: ${setup_hint}")
endif()
find_library(llhttp_static libllhttp.a HINTS ${deps_libdir} ${llhttp_LIBRARY_DIRS} NO_CACHE)
if(llhttp_static)
    add_library(nereid_llhttp STATIC IMPORTED)
    set_target_properties(nereid_llhttp PROPERTIES
        IMPORTED_LOCATION ${llhttp_static}
        INTERFACE_INCLUDE_DIRECTORIES "${llhttp_INCLUDE_DIRS}")
    add_library(nereid::llhttp ALIAS nereid_llhttp)
else()
    add_library(nereid::llhttp ALIAS PkgConfig::llhttp)
endif()

set(NEREID_LIBRARIES nereid::nghttp2 nereid::llhttp nereid::yyjson nereid::protobuf_c nereid::zlib m)

# Shared libraries that are not the system's travel beside libtritonserver.so: list of sonames'
# files in NEREID_PRIVATE_LIBS, copied into the build tree's lib/ and installed.
set(NEREID_PRIVATE_LIBS)
get_filename_component(deps_real ${deps_libdir} REALPATH)
foreach(library IN LISTS yyjson_LINK_LIBRARIES)
    if(library MATCHES "/lib([a-z0-9]+)\\.so$")
        set(stem ${CMAKE_MATCH_1})
        get_filename_component(folder ${library} DIRECTORY)
        get_filename_component(folder ${folder} REALPATH)
        if(folder STREQUAL deps_real)
            file(GLOB sonames ${folder}/lib${stem}.so.[0-9])
            list(APPEND NEREID_PRIVATE_LIBS ${sonames})
        endif()
    endif()
endforeach()

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
foreach(library IN LISTS NEREID_PRIVATE_LIBS)
    get_filename_component(name ${library} NAME)
    get_filename_component(real ${library} REALPATH)
    configure_file(${real} ${CMAKE_BINARY_DIR}/lib/${name} COPYONLY)
    install(PROGRAMS ${real} DESTINATION lib RENAME ${name})
endforeach()

# ONNX Runtime: the library out of its Python wheel, the C header out of the Debian package.
file(GLOB onnxruntime_files
    ${NEREID_VENV}/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.[0-9]*)
find_path(onnxruntime_include onnxruntime_c_api.h NO_CACHE
    HINTS ${NEREID_DEPS}/usr/include PATH_SUFFIXES onnxruntime)
if(onnxruntime_files AND onnxruntime_include)
    list(GET onnxruntime_files 0 onnxruntime_file)
    add_library(nereid_onnxruntime SHARED IMPORTED GLOBAL)
    set_target_properties(nereid_onnxruntime PROPERTIES
        IMPORTED_LOCATION ${onnxruntime_file}
        IMPORTED_SONAME libonnxruntime.so.1
        INTERFACE_INCLUDE_DIRECTORIES ${onnxruntime_include})
    add_library(nereid::onnxruntime ALIAS nereid_onnxruntime)
else()
    message(STATUS "ONNX Runtime not found, its backend is left out: ${setup_hint}")
endif()

# OpenVINO: headers and libraries out of its Python package, where tools/setup.sh openvino has unpacked it. Shipped is what runs models on
# CPU and what reads their files, not the parts for GPUs and NPUs nor those for Python.
set(openvino_root ${NEREID_DEPS}/openvino/openvino)
file(GLOB openvino_file ${openvino_root}/libs/libopenvino_c.so.*)
if(openvino_file AND EXISTS ${openvino_root}/include/openvino/c/openvino.h)
    add_library(nereid_openvino SHARED IMPORTED GLOBAL)
    set_target_properties(nereid_openvino PROPERTIES
        IMPORTED_LOCATION ${openvino_file}
        INTERFACE_INCLUDE_DIRECTORIES ${openvino_root}/include)
    add_library(nereid::openvino ALIAS nereid_openvino)
    file(GLOB nereid_openvino_files ${openvino_root}/libs/*.so ${openvino_root}/libs/*.so.*)
    list(FILTER nereid_openvino_files EXCLUDE REGEX "gpu|npu|pytorch|jax|tbbmalloc_proxy")
endif()

# PyTorch: headers out of its Python package, libraries for processors out of a Java archive, where tools/setup.sh pytorch has unpacked them.
# Or a whole libtorch or Python package of it, with CUDA or without, that lies elsewhere and stays there: NEREID_PYTORCH.
set(NEREID_PYTORCH "" CACHE PATH "Folder of PyTorch, with include/ and lib/; empty = the one for processors, which is shipped")
if(NEREID_PYTORCH)
    set(pytorch_include ${NEREID_PYTORCH}/include)
    set(nereid_pytorch_files)
    file(GLOB pytorch_linked ${NEREID_PYTORCH}/lib/lib*.so)
else()
    set(pytorch_include ${NEREID_DEPS}/pytorch/torch/include)
    file(GLOB nereid_pytorch_files
        ${NEREID_DEPS}/pytorch.maven/pytorch/cpu/linux-${CMAKE_SYSTEM_PROCESSOR}/lib*.so*)
    set(pytorch_linked ${nereid_pytorch_files})
endif()
list(FILTER pytorch_linked INCLUDE REGEX "/lib(torch_cpu|c10|torch)\\.so$")
if(pytorch_linked AND EXISTS ${pytorch_include}/torch/csrc/jit/api/module.h)
    add_library(nereid_pytorch INTERFACE)
    target_include_directories(nereid_pytorch SYSTEM INTERFACE ${pytorch_include})
    # libtorch.so is empty, but packages of AOTInductor need it by this name, and find it only if it is loaded already.
    target_link_libraries(nereid_pytorch INTERFACE
        -Wl,--push-state,--no-as-needed ${pytorch_linked} -Wl,--pop-state)
    add_library(nereid::pytorch ALIAS nereid_pytorch)
    file(GLOB licence_files ${NEREID_DEPS}/pytorch/torch-*.dist-info/*)
    install(FILES ${licence_files} DESTINATION share/nereid/licences/pytorch COMPONENT backend_pytorch EXCLUDE_FROM_ALL)
endif()

# TensorRT: its headers alone, and CUDA's that they need. The library is opened at run time, on machines that have it.
set(NEREID_TENSORRT "" CACHE PATH "Folder of TensorRT's headers, with include/; empty = its backend is left out")
if(NEREID_TENSORRT)
    find_path(tensorrt_include NvInferRuntime.h NO_CACHE NO_DEFAULT_PATH PATHS ${NEREID_TENSORRT}/include)
    find_path(tensorrt_cuda_include cuda_runtime_api.h NO_CACHE HINTS ${NEREID_TENSORRT}/include PATHS /usr/local/cuda/include)
endif()
if(tensorrt_include AND tensorrt_cuda_include)
    add_library(nereid_tensorrt INTERFACE)
    target_include_directories(nereid_tensorrt SYSTEM INTERFACE ${tensorrt_include} ${tensorrt_cuda_include})
    target_link_libraries(nereid_tensorrt INTERFACE ${CMAKE_DL_LIBS})
    add_library(nereid::tensorrt ALIAS nereid_tensorrt)
elseif(NEREID_TENSORRT)
    message(STATUS "NvInferRuntime.h is not in ${NEREID_TENSORRT}/include, or cuda_runtime_api.h is missing: TensorRT's backend is left out")
else()
    message(STATUS "TensorRT's headers are not named (NEREID_TENSORRT), its backend is left out")
endif()

# TensorFlow: libraries for processors out of a Java archive, where tools/setup.sh tensorflow has unpacked them; its part for Java stays out.
set(tensorflow_root ${NEREID_DEPS}/tensorflow.maven/org/tensorflow/internal/c_api/linux-${CMAKE_SYSTEM_PROCESSOR})
file(GLOB nereid_tensorflow_files ${tensorflow_root}/libtensorflow_*.so.2)
if(nereid_tensorflow_files)
    add_library(nereid_tensorflow INTERFACE)
    target_link_libraries(nereid_tensorflow INTERFACE ${nereid_tensorflow_files})
    add_library(nereid::tensorflow ALIAS nereid_tensorflow)
    file(GLOB licence_files ${tensorflow_root}/LICENSE)
    install(FILES ${licence_files} DESTINATION share/nereid/licences/tensorflow COMPONENT backend_tensorflow EXCLUDE_FROM_ALL)
endif()

# The ONNX Runtime that has OpenVINO as an accelerator, where tools/setup.sh onnxruntime-openvino has unpacked it; the package holds
# each library under several names.
set(onnxruntime_openvino_root ${NEREID_DEPS}/onnxruntime-openvino/onnxruntime)
file(GLOB nereid_onnxruntime_openvino_files ${onnxruntime_openvino_root}/capi/libonnxruntime.so.1.*
    ${onnxruntime_openvino_root}/capi/libonnxruntime_providers_*.so ${onnxruntime_openvino_root}/capi/libopenvino_*_plugin.so
    ${onnxruntime_openvino_root}/capi/lib*.so.[0-9]* )
list(FILTER nereid_onnxruntime_openvino_files EXCLUDE REGEX "gpu|npu|libopenvino_c|libopenvino.*\\.so\\.[0-9]+\\.")
list(REMOVE_DUPLICATES nereid_onnxruntime_openvino_files)
if(nereid_onnxruntime_openvino_files)
    install(FILES ${onnxruntime_openvino_root}/LICENSE ${onnxruntime_openvino_root}/ThirdPartyNotices.txt
        DESTINATION share/nereid/licences/onnxruntime-openvino COMPONENT backend_onnxruntime-openvino EXCLUDE_FROM_ALL OPTIONAL)
endif()

if(TARGET nereid::openvino)
    file(GLOB licence_files ${NEREID_DEPS}/openvino/openvino-*.dist-info/licenses/LICENSE
        ${NEREID_DEPS}/openvino/openvino-*.dist-info/licenses/licensing/*.txt)
    install(FILES ${licence_files} DESTINATION share/nereid/licences/openvino COMPONENT backend_openvino EXCLUDE_FROM_ALL)
endif()

# The licences of what an installation contains besides our own files.
file(GLOB licence_files ${NEREID_DEPS}/usr/share/doc/*/copyright)
foreach(file IN LISTS licence_files)
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    install(FILES ${file} DESTINATION share/nereid/licences RENAME ${name})
endforeach()
if(TARGET nereid::onnxruntime)
    get_filename_component(folder ${onnxruntime_file}/../.. ABSOLUTE)
    install(FILES ${folder}/LICENSE DESTINATION share/nereid/licences RENAME onnxruntime OPTIONAL)
    install(FILES ${folder}/ThirdPartyNotices.txt DESTINATION share/nereid/licences
        RENAME onnxruntime-third-parties OPTIONAL)
endif()
